"""Inputs set inside of steps in FMI 3.0: the intermediate update."""

from __future__ import annotations

from ctypes import POINTER, addressof, c_double, pointer
from typing import Any
from weakref import ref

from fmpy import fmi3
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.layout import Clock, Ramp, Report, VariableBlock
from mbsfmu.cosim.compiled.library import setting_function
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.library_instance import LibraryPort
from mbsfmu.cosim.fmus.linear_inputs import LinearInputs


class InputsWithin:
    """Continuous inputs that are linear over a step, set by intermediate update.

    Parameters
    ----------
    archive
        The unpacked FMU.
    clock, report
        Where the FMU is, and what is told of its step.

    Attributes
    ----------
    references
        Of the inputs; none unless the FMU asks for all continuous ones.
    callback
        What the FMU calls; NULL where it asks for nothing.
    """

    def __init__(self, archive: Archive, clock: Clock, report: Report) -> None:
        self.references = _intermediate_inputs(archive)
        self._clock, self._report = clock, report
        self._ramp = Ramp(clock=pointer(clock), report=pointer(report))
        self._straight: LinearInputs | None = None
        self.callback = self._made_callback()

    @property
    def environment(self) -> int:
        """Callback environment of the FMU."""
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

    def follow(self, port: LibraryPort, group: VariableBlock, buffer: NDArray[Any]) -> None:
        """Use values and slopes of a port for the inputs from now on.

        Parameters
        ----------
        port, group, buffer
            The port, its variables as compiled code sees them, and their buffer.
        """
        if self._straight is None or self._straight.port is not port:
            self._straight = LinearInputs(port, group, len(buffer))
        self._straight.take(buffer)
        self._ramp.group = self._straight.group
        self._ramp.values = port.values.ctypes.data_as(POINTER(c_double))
        self._ramp.slopes = port.slopes.ctypes.data_as(POINTER(c_double))
        self._ramp.component = port.unit.component

    def set_at(self, time: float) -> None:
        """Set inputs to a time in s inside of a step, as compiled code does."""
        if self._straight is None:
            return
        status = self._straight.set_after(time - self._clock.time)
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
