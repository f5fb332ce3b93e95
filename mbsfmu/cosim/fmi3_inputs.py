"""Inputs that a unit of FMI 3.0 asks for inside of its steps: the intermediate update."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import POINTER, addressof, c_double, pointer
from typing import Any
from weakref import ref

import numpy as np
from fmpy import fmi3
from numpy.typing import NDArray

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.compiled.layout import Clock, Group, Ramp, Report
from mbsfmu.cosim.compiled.library import setting_function
from mbsfmu.cosim.library_port import LibraryPort


class InputsWithin:
    """Continuous inputs of a unit, which run straight over its steps where it asks for them.

    Parameters
    ----------
    archive
        The unpacked FMU.
    clock, report
        Where the unit is, and what is told of its step.

    Attributes
    ----------
    references
        Of the inputs; none unless the unit asks for all continuous ones.
    callback
        What the unit calls; NULL where it asks for nothing.
    """

    def __init__(self, archive: Archive, clock: Clock, report: Report) -> None:
        self.references = _intermediate_inputs(archive)
        self._clock, self._report = clock, report
        self._ramp, self._buffer = Ramp(clock=pointer(clock), report=pointer(report)), np.zeros(0)
        self._set: Callable[..., int] | None = None
        self.callback = self._made_callback()

    @property
    def environment(self) -> int:
        """What the unit hands to the callback."""
        return addressof(self._ramp)

    def _made_callback(self) -> Any:
        if not self.references:
            return fmi3.fmi3IntermediateUpdateCallback()
        address, itself = setting_function(), ref(self)
        if address is not None:
            return fmi3.fmi3IntermediateUpdateCallback(address)

        def set_within(_: Any, time: float, requested: bool, *others: Any) -> None:
            early = others[3]
            early[0] = False
            inputs = itself()
            if requested and inputs is not None:
                inputs.set_at(time)

        return fmi3.fmi3IntermediateUpdateCallback(set_within)

    def follow(
        self, component: Any, port: LibraryPort, group: Group, buffer: NDArray[Any], set_values: Callable[..., int]
    ) -> None:
        """Let inputs run by the values and slopes of a port from now on.

        Parameters
        ----------
        component
            Of the unit.
        port, group, buffer
            The port, its variables as compiled code sees them, and their buffer.
        set_values
            Function of the library that sets them.
        """
        if len(self._buffer) != len(buffer):
            self._buffer = buffer.copy()
        self._buffer[:] = buffer
        group.buffer = self._buffer.ctypes.data
        self._port, self._group, self._set = port, group, set_values
        self._ramp.group = group
        self._ramp.values = port.values.ctypes.data_as(POINTER(c_double))
        self._ramp.slopes = port.slopes.ctypes.data_as(POINTER(c_double))
        self._ramp.component = component

    def set_at(self, time: float) -> None:
        """Set inputs to where they are at a time in s inside of a step, as compiled code does."""
        if self._set is None:
            return
        group = self._group
        places = np.array(group.places[: group.count])
        wanted = places >= 0
        chosen = places[wanted]
        self._buffer[wanted] = self._port.values[chosen] + (time - self._clock.time) * self._port.slopes[chosen]
        status = self._set(self._ramp.component, group.references, group.reference_count, group.buffer, group.count)
        if status > 1:
            self._report.trouble = status


def _intermediate_inputs(archive: Archive) -> tuple[int, ...]:
    """Return references of the inputs that are set inside of steps; none unless all continuous ones can be."""
    if not archive.interface.providesIntermediateUpdate:
        return ()
    variables = archive.description.modelVariables
    inputs = [each for each in variables if each.causality == "input" and each.variability == "continuous"]
    able = all(each.type == "Float64" and each.valueReference in archive.intermediate for each in inputs)
    return tuple(dict.fromkeys(each.valueReference for each in inputs)) if able else ()
