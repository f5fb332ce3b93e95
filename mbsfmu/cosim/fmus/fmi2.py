"""Loaded FMUs of FMI 1.0 and 2.0 for co-simulation, over FMPy."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from ctypes import byref, c_char, c_double, c_int, c_void_p
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from fmpy import fmi1, fmi2
from fmpy.logging import addLoggerProxy

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.compiled.library import MakeStep
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuCalls
from mbsfmu.cosim.fmus.library_instance import DISCARD, OK, WARNING, Dialect, LibraryInstance, address_of
from mbsfmu.cosim.fmus.variable_descriptions import ArrayElement

_LAST_SUCCESSFUL_TIME = 2  # of the kinds of status


class PlainSteps(LibraryInstance, ABC):
    """An FMU whose steps are one call each, without events, and that says afterwards how far a discarded one came.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    slave
        FMPy's class for it.
    """

    def __init__(self, name: str, archive: Archive, slave: Callable[..., Any]) -> None:
        super().__init__(name, archive, slave)
        prefix, truth = self.dialect.prefix, self.dialect.truth
        self.interpolates = bool(archive.interface.canInterpolateInputs)
        self._do_step = self.function(f"{prefix}DoStep", (c_void_p, c_double, c_double, truth))
        self._real_status = self.function(f"{prefix}GetRealStatus", (c_void_p, c_int, c_void_p))

    def sets_at_events(self, name: str) -> bool:
        """Return whether a variable is set in event mode, which co-simulation has from FMI 3.0 on."""
        del name
        return False

    def event(self) -> AbstractContextManager[None]:
        """Enter event mode, which co-simulation has from FMI 3.0 on."""
        raise NotImplementedError

    @abstractmethod
    def _step_flag(self, time: float) -> bool:
        """Return the flag of a step from a time in s."""

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        FmuError
            When the FMU refuses; the message has instance, time and reason.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        clock = self.clock
        clock.time = time
        clock.steps += 1
        status = self._do_step(self.component, time, step, self._step_flag(time))
        self.restore_environment()
        if status > WARNING:
            self.stepped(step, status)

    def step_function(self, calls: FmuCalls) -> MakeStep | None:
        """Return the step function for compiled code, with the flag of no return."""
        return MakeStep(address_of(self._do_step), None, calls.number(self, f"{self.dialect.prefix}DoStep"))

    def _reached(self) -> float:
        """Return the time in s that a discarded step came to."""
        return self._step_report(self._real_status, _LAST_SUCCESSFUL_TIME, c_double(self.time))

    def _step_report(self, function: Callable[..., int], kind: int, answer: Any) -> float:
        """Return the FMU's information on a discarded step."""
        self._forget_earlier_steps()
        messages, otherwise = list(self._messages), answer.value
        status = function(self.component, kind, byref(answer))
        self._messages.clear()
        self._messages.extend(messages)
        return float(answer.value if status == OK else otherwise)


# FMPy's proxy of the logger has one target per process, the last that was added: messages are told apart by the
# environment that each instance hands to its unit, for names may occur twice.
_instances: WeakValueDictionary[int, Fmi2Library] = WeakValueDictionary()
_environments = itertools.count(1)


def _log(environment: int | None, _: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
    instance = _instances.get(environment or 0)
    if instance is not None:
        instance.log(status, (category or b"").decode(errors="replace"), (message or b"").decode(errors="replace"))


_LOGGER = fmi2.fmi2CallbackLoggerTYPE(_log)


class Fmi2Library(LibraryInstance, ABC):
    """An FMU of FMI 2.0 for any interface.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    slave
        FMPy's class for it.
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
        truth=c_int,
    )

    def __init__(self, name: str, archive: Archive, slave: Callable[..., Any]) -> None:
        super().__init__(name, archive, slave)
        self._callbacks = fmi2.fmi2CallbackFunctions()
        self._callbacks.logger = _LOGGER
        self._callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        self._callbacks.componentEnvironment = environment = next(_environments)
        _instances[environment] = self
        self._instantiate(callbacks=self._callbacks)

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the FMU's own solver is what it suggests by default."""
        self.time = start
        self._call("setupExperiment", self.own_tolerance(tolerance), start, stop)

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode")

    def _free_state(self, state: Any) -> None:
        self._slave.freeFMUstate(state)

    # -- values ---------------------------------------------------------------------------------------------

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        kind = element.described.type
        self._call(f"set{'Integer' if kind == 'Enumeration' else kind}", [element.described.valueReference], [value])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self.decoded(name, self._call("getString", [self.element(name).described.valueReference])[0])

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        FmuError
            When the FMU refuses.
        """
        references = [[self.element(name).described.valueReference for name in names] for names in (unknowns, knowns)]
        columns = [self._call("getDirectionalDerivative", references[0], [known], [1.0]) for known in references[1]]
        return np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T


_TERMINATED = 3  # of fmi2StatusKind


class Fmi2Instance(PlainSteps, Fmi2Library):
    """An instance of a co-simulation FMU of FMI 2.0.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi2.FMU2Slave)
        self._boolean_status = self.function("fmi2GetBooleanStatus", (c_void_p, c_int, c_void_p))

    # -- life cycle -----------------------------------------------------------------------------------------

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self.is_stepping = True

    def _step_flag(self, time: float) -> bool:
        """Return whether the unit may not be brought back to before the beginning of a step.

        It may (`noSetFMUStatePriorToCurrentPoint`) inside a longer step alone that may be made again [FMI 2.0.4,
        section 4.2.2]. There are FMUs that stand still where they are told so.
        """
        return self._earliest >= time

    def stepped(self, step: float, status: int) -> None:
        """Handle the result of a step in s whose status is worse than a warning.

        Raises
        ------
        FmuError
            When the FMU refuses; the message has instance, time and reason.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        if status != DISCARD:
            self.fail("fmi2DoStep", status)
        reached = self._reached()
        if not self._step_report(self._boolean_status, _TERMINATED, c_int(0)):
            self._discarded("fmi2DoStep", reached)
        self._messages.clear()
        self._end(reached, self.time + step, step)


# Messages are told apart by the address of the component, which a unit that is being instantiated does not have yet.
_fmi1_instances: WeakValueDictionary[int, Fmi1Instance] = WeakValueDictionary()
_instantiated: list[Fmi1Instance] = []


def _fmi1_log(component: int | None, _: bytes, status: int, category: bytes | None, message: bytes | None) -> None:
    instance = _fmi1_instances.get(component or 0) or next(iter(_instantiated), None)
    if instance is not None:
        instance.log(status, (category or b"").decode(errors="replace"), (message or b"").decode(errors="replace"))


_FMI1_LOGGER = fmi1.fmi1CallbackLoggerTYPE(_fmi1_log)


class Fmi1Instance(PlainSteps):
    """An instance of a co-simulation FMU of FMI 1.0.

    It has no initialization mode: it is initialized with its start values and what was set, and what connections and
    signals bring is set afterwards. It saves no states and takes no tolerance.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    """

    dialect = Dialect(
        "fmi",
        (
            (("Real",), "Real", np.float64),
            (("Integer", "Enumeration"), "Integer", np.int32),
            (("Boolean",), "Boolean", np.int8),
        ),
        counts=False,
        get_rates="fmiGetRealOutputDerivatives",
        set_rates="fmiSetRealInputDerivatives",
        get_state=None,
        set_state=None,
        truth=c_char,
        prefixed=True,
    )
    has_initialization_mode = False

    def __init__(self, name: str, archive: Archive) -> None:
        super().__init__(name, archive, fmi1.FMU1Slave)
        self._callbacks = fmi1.fmi1CallbackFunctions()
        self._callbacks.logger = _FMI1_LOGGER
        self._callbacks.allocateMemory = fmi1.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi1.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        _instantiated.append(self)
        try:
            self._instantiate(functions=self._callbacks)
        finally:
            _instantiated.remove(self)
        if not self.component:  # FMPy takes that for an instance
            raise SimulationError(f"{name} cannot be instantiated: {self._reason('the FMU gives no instance')}")
        _fmi1_instances[self.component] = self
        self._span = 0.0, 0.0

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; there is no tolerance."""
        del tolerance
        self.time = start
        self._span = start, stop

    def enter_initialization(self) -> None:
        """Initialize the FMU with what was set."""
        self._call("initialize", *self._span)

    def exit_initialization(self) -> None:
        """Begin to step."""
        self.is_stepping = True

    def _step_flag(self, time: float) -> bool:
        """Return that a step is a new one: without saved states none is made again."""
        del time
        return True

    def stepped(self, step: float, status: int) -> None:
        """Handle the result of a step in s whose status is worse than a warning.

        Raises
        ------
        FmuError
            Always; the message has instance, time and reason.
        """
        del step
        if status != DISCARD:
            self.fail("fmiDoStep", status)
        self._discarded("fmiDoStep", self._reached())

    def _free_state(self, state: Any) -> None:
        raise NotImplementedError

    # -- values ---------------------------------------------------------------------------------------------

    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
        kind = element.described.type
        self._call(f"set{'Integer' if kind == 'Enumeration' else kind}", [element.described.valueReference], [value])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self.decoded(name, self._call("getString", [self.element(name).described.valueReference])[0])

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return derivatives, which FMI 2.0 begins with."""
        raise NotImplementedError
