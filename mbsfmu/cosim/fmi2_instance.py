"""A loaded unit of FMI 2.0 for co-simulation, over FMPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from ctypes import byref, c_double, c_int, c_void_p
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from fmpy import fmi2
from fmpy.logging import addLoggerProxy

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.compiled.layout import MakeStep
from mbsfmu.cosim.elements import Element
from mbsfmu.cosim.instance import Calls, Floats
from mbsfmu.cosim.library_instance import DISCARD, OK, WARNING, LibraryInstance
from mbsfmu.cosim.library_port import Dialect, address_of

_LAST_SUCCESSFUL_TIME, _TERMINATED = 2, 3  # of fmi2StatusKind


# FMPy's proxy of the logger has one target per process, the last that was added: messages are told apart by the
# environment that each instance hands to its unit, for names may occur twice.
_instances: WeakValueDictionary[int, Fmi2Instance] = WeakValueDictionary()
_environments = itertools.count(1)


def _log(environment: int | None, _: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
    instance = _instances.get(environment or 0)
    if instance is not None:
        instance.log(status, (category or b"").decode(), (message or b"").decode(errors="replace"))


_LOGGER = fmi2.fmi2CallbackLoggerTYPE(_log)


class Fmi2Instance(LibraryInstance):
    """An instance of a unit of FMI 2.0.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    """

    dialect = Dialect(
        "fmi2",
        (
            (("Real",), "Real", np.float64),
            (("Integer", "Enumeration"), "Integer", np.int32),
            (("Boolean",), "Boolean", np.int32),
        ),
        counts=False,
        get_rates="fmi2GetRealOutputDerivatives",
        set_rates="fmi2SetRealInputDerivatives",
        get_state="fmi2GetFMUstate",
        set_state="fmi2SetFMUstate",
    )

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi2.FMU2Slave)
        self.interpolates = bool(archive.interface.canInterpolateInputs)
        self._callbacks = fmi2.fmi2CallbackFunctions()
        self._callbacks.logger = _LOGGER
        self._callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        self._callbacks.componentEnvironment = environment = next(_environments)
        _instances[environment] = self
        self._instantiate(callbacks=self._callbacks)
        self._address = self.component
        self._do_step = self.function("fmi2DoStep", (c_void_p, c_double, c_double, c_int))
        self._boolean_status = self.function("fmi2GetBooleanStatus", (c_void_p, c_int, c_void_p))
        self._real_status = self.function("fmi2GetRealStatus", (c_void_p, c_int, c_void_p))
        self._get_state = self.function(self.dialect.get_state, (c_void_p, c_void_p))
        self._set_state = self.function(self.dialect.set_state, (c_void_p, c_void_p))

    def sets_at_events(self, name: str) -> bool:
        """Tell whether a variable is set in event mode, which co-simulation has from FMI 3.0 on."""
        del name
        return False

    def event(self) -> AbstractContextManager[None]:
        """Enter event mode, which co-simulation has from FMI 3.0 on."""
        raise NotImplementedError

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the unit's own solver is what it suggests by default."""
        self.time = start
        self._call("setupExperiment", self._tolerance(tolerance), start, stop)

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode")

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self.is_stepping = True

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        The unit is told whether it may still be brought back to before the beginning of the step
        (`noSetFMUStatePriorToCurrentPoint`): only inside a longer step that may be made again [FMI 2.0.4, section
        4.2.2]. There are units that stand still where they are told so.

        Raises
        ------
        UnitError
            When the unit refuses; the message has instance, time and reason.
        UnitEnded
            When the unit ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        clock = self.clock
        clock.time = time
        clock.steps += 1
        status = self._do_step(self._address, time, step, self._earliest >= time)
        if status > WARNING:
            self.stepped(step, status)

    def step_function(self, calls: Calls) -> MakeStep | None:
        """Return what makes a step, for compiled code to call, which says that it will not go back."""
        if self._saved:
            return None
        return MakeStep(address_of(self._do_step), None, calls.number(self, "fmi2DoStep"))

    def stepped(self, step: float, status: int) -> None:
        """Look at what a step in s has led to whose status is worse than a warning.

        Raises
        ------
        UnitError
            When the unit refuses; the message has instance, time and reason.
        UnitEnded
            When the unit ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        if status != DISCARD:
            self.fail("fmi2DoStep", status)
        reached = self._told_of_step(self._real_status, _LAST_SUCCESSFUL_TIME, c_double(self.time))
        if not self._told_of_step(self._boolean_status, _TERMINATED, c_int(0)):
            self._discarded("fmi2DoStep", reached)
        self._messages.clear()
        self._end(reached, self.time + step, step)

    def _told_of_step(self, function: Callable[..., int], kind: int, answer: c_double | c_int) -> float:
        """Return what the unit tells of a step that it discards, or what is there; what it said of the step stays."""
        self._forget_earlier_steps()
        messages, otherwise = list(self._messages), answer.value
        status = function(self._address, kind, byref(answer))
        self._messages.clear()
        self._messages.extend(messages)
        return answer.value if status == OK else otherwise

    # -- states ---------------------------------------------------------------------------------------------

    def _free_state(self, state: Any) -> None:
        self._slave.freeFMUstate(state)

    # -- values ---------------------------------------------------------------------------------------------

    def _set(self, element: Element, value: float | int | bool | str) -> None:
        kind = element.described.type
        self._call(f"set{'Integer' if kind == 'Enumeration' else kind}", [element.described.valueReference], [value])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self._call("getString", [self.element(name).described.valueReference])[0].decode()

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        references = [[self.element(name).described.valueReference for name in names] for names in (unknowns, knowns)]
        columns = [self._call("getDirectionalDerivative", references[0], [known], [1.0]) for known in references[1]]
        return np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T
