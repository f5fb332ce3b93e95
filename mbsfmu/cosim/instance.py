"""A loaded FMI 2.0 co-simulation unit; the only place that calls FMPy's interface to FMUs."""

from __future__ import annotations

import itertools
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from ctypes import byref, c_double, c_int, c_void_p
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from fmpy.logging import addLoggerProxy
from numpy.typing import NDArray

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.described import (
    ALLOWED,
    described_dependencies,
    described_units,
    described_variable,
    typed_value,
    unit_name,
)
from mbsfmu.data import meant
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.times import tolerance

Floats = NDArray[np.float64]
logger = logging.getLogger(__name__)

_STATUS = {1: "warning", 2: "discard", 3: "error", 4: "fatal", 5: "pending"}
_LEVEL = {0: logging.DEBUG, 1: logging.WARNING}
_KEPT_MESSAGES = 5
_LAST_SUCCESSFUL_TIME, _TERMINATED = 2, 3  # of fmi2StatusKind
NEXT_EVENT = "next_event"
"""Name of the Real variable, in s, that tells when a signal of a unit's own jumps or bends next."""


# FMPy's proxy of the logger has one target per process, the last that was added: messages are told apart by the
# environment that each instance hands to its unit, for names may occur twice.
_instances: WeakValueDictionary[int, Instance] = WeakValueDictionary()
_environments = itertools.count(1)


def _log(environment: int | None, _: bytes, status: int, category: bytes, message: bytes) -> None:
    instance = _instances.get(environment or 0)
    if instance is not None:
        instance.log(status, category, message)


_LOGGER = fmi2.fmi2CallbackLoggerTYPE(_log)


class UnitError(SimulationError):
    """A function of a unit that went wrong; after a fatal error nothing may be called any more."""

    def __init__(self, message: str, fatal: bool) -> None:
        super().__init__(message)
        self.fatal = fatal


class UnitEnded(Exception):  # noqa: N818 - no error: a unit may end a run
    """A unit that ended the run by itself, within a step; `time` in s is the last that it reached."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time


class Instance:
    """An instance of a unit.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.

    Attributes
    ----------
    variables
        Variables by name; `kinds` has their FMI types, `units` their units with the definitions.
    interpolates
        Whether inputs may be given with derivatives.
    gives_rates, gives_directional_derivatives
        Whether outputs have derivatives by time and by inputs.
    saves_state
        Whether the state can be saved and restored.
    takes_any_step
        Whether communication steps may differ.
    steps
        Number of steps made.
    ends
        By instance, the time in s at which it ended the run by itself; one for all instances of a run.
    next_event
        Name of the variable that tells when a signal of the unit's own jumps or bends next; None where there is none.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        self.name = name
        self.time = 0.0
        self.steps = 0
        self.ends: dict[str, float] = {}
        self._fatal = self._running = False
        self._states: dict[str, Any] = {}
        self._saved: dict[str, float] = {}
        self._earliest = math.inf
        self._description = archive.description
        self._by_name = {each.name: each for each in self._description.modelVariables}
        self.kinds = {each.name: each.type for each in self._description.modelVariables}
        self.variables = {each.name: described_variable(each) for each in self._description.modelVariables}
        self.units = described_units(self._description)
        self.next_event = NEXT_EVENT if self._tells_next_event() else None
        co_simulation = self._description.coSimulation
        if co_simulation is None:
            raise InputError(f"{name} is no co-simulation unit")
        self.interpolates = bool(co_simulation.canInterpolateInputs)
        self.gives_rates = int(co_simulation.maxOutputDerivativeOrder or 0) >= 1
        self.saves_state = bool(co_simulation.canGetAndSetFMUstate)
        self.gives_directional_derivatives = bool(co_simulation.providesDirectionalDerivative)
        self.takes_any_step = bool(co_simulation.canHandleVariableCommunicationStepSize)
        self._messages: deque[str] = deque(maxlen=_KEPT_MESSAGES)
        self._callbacks = fmi2.fmi2CallbackFunctions()
        self._callbacks.logger = _LOGGER
        self._callbacks.allocateMemory = fmi2.defaultCallbacks.allocateMemory
        self._callbacks.freeMemory = fmi2.defaultCallbacks.freeMemory
        addLoggerProxy(byref(self._callbacks))
        self._callbacks.componentEnvironment = environment = next(_environments)
        _instances[environment] = self
        self._slave = archive.load(name)
        try:
            self._slave.instantiate(callbacks=self._callbacks, loggingOn=True)
        except Exception as error:  # FMPy raises a bare exception when the FMU gives no instance
            raise SimulationError(f"{name} cannot be instantiated: {self._reason(str(error))}") from None
        self._address = self.component
        self._do_step = self.function("fmi2DoStep", (c_void_p, c_double, c_double, c_int))
        self._boolean_status = self.function("fmi2GetBooleanStatus", (c_void_p, c_int, c_void_p))
        self._real_status = self.function("fmi2GetRealStatus", (c_void_p, c_int, c_void_p))
        self._get_state = self.function("fmi2GetFMUstate", (c_void_p, c_void_p))
        self._set_state = self.function("fmi2SetFMUstate", (c_void_p, c_void_p))

    @property
    def dependencies(self) -> dict[str, tuple[str, ...] | None]:
        """What each output depends on directly while stepping; None where the unit does not say."""
        return described_dependencies(self._description.outputs)

    @property
    def initial_dependencies(self) -> dict[str, tuple[str, ...] | None]:
        """What each unknown depends on in initialization mode; None where the unit does not say."""
        return described_dependencies(self._description.initialUnknowns)

    @property
    def default_experiment(self) -> tuple[float | None, float | None]:
        """Stop time and step size in s that the unit suggests."""
        experiment = self._description.defaultExperiment
        if experiment is None:
            return None, None
        stop, step = experiment.stopTime, experiment.stepSize
        return (float(stop) if stop else None), (float(step) if step else None)

    def log(self, status: int, category: bytes, message: bytes) -> None:
        """Take a message of the unit; what is worse than OK counts as the reason if the call fails."""
        text = (message or b"").decode(errors="replace")
        if status:
            self._messages.append(text)
        logger.log(_LEVEL.get(status, logging.ERROR), "%s [%s]: %s", self.name, (category or b"").decode(), text)

    def _reason(self, otherwise: str) -> str:
        return "; ".join(dict.fromkeys(self._messages)) or otherwise

    def _call(self, function: str, *arguments: Any) -> Any:
        self._messages.clear()
        try:
            return getattr(self._slave, function)(*arguments)
        except FMICallException as error:
            self.fail(error.function, error.status)

    def fail(self, function: str, status: int) -> NoReturn:
        """Raise what a function of the FMI that went wrong means.

        Raises
        ------
        UnitError
            Always; the message has instance, time, function and the unit's own reason.
        """
        self._fatal = self._fatal or status == fmi2.fmi2Fatal
        word = _STATUS.get(status, str(status))
        reason = self._reason("no reason given")
        self._messages.clear()
        raise UnitError(f"{self.name} at t = {self.time:.9g} s: {function} gives {word}: {reason}", self._fatal)

    # -- functions of the FMI as they are -------------------------------------------------------------------

    @property
    def component(self) -> Any:
        """Address of the component, for functions of the FMI."""
        return self._slave.component

    def function(self, name: str, argument_types: Sequence[Any]) -> Callable[..., int]:
        """Return a function of the FMU's library; it gives the status and raises nothing."""
        function = self._slave.dll[name]
        function.argtypes, function.restype = argument_types, c_int
        return function

    def reference(self, name: str) -> int:
        """Return the value reference of a variable."""
        return self._by_name[name].valueReference

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the unit's own solver is what it suggests by default."""
        self.time = start
        experiment = self._description.defaultExperiment
        if tolerance is None and experiment is not None and experiment.tolerance:
            tolerance = float(experiment.tolerance)
        self._call("setupExperiment", tolerance, start, stop)

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode")

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self._running = True

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
        self.time = time
        self.steps += 1
        if self._messages:
            self._messages.clear()
        status = self._do_step(self._address, time, step, self._earliest >= time)
        if status > 1:
            if status != fmi2.fmi2Discard or not self._wants_to_end():
                self.fail("fmi2DoStep", status)
            self._end(time, step)

    def _wants_to_end(self) -> bool:
        """Tell whether a step was discarded because the unit ends the run; what it said of the step stays."""
        messages, answer = list(self._messages), c_int(0)
        status = self._boolean_status(self._address, _TERMINATED, byref(answer))
        self._messages.clear()
        self._messages.extend(messages)
        return status == fmi2.fmi2OK and bool(answer.value)

    def _end(self, time: float, step: float) -> None:
        """Take down that the unit ended the run, and where in a step in s."""
        reached = c_double(time)
        if self._real_status(self._address, _LAST_SUCCESSFUL_TIME, byref(reached)) != fmi2.fmi2OK:
            reached.value = time
        self._messages.clear()
        self.ends[self.name] = reached.value
        if reached.value < time + step - tolerance(step, time, time + step):
            raise UnitEnded(reached.value)

    def read_next_event(self) -> float:
        """Return when a signal of the unit's own jumps or bends next, in s; infinity where it does not say."""
        if self.next_event is None:
            return math.inf
        return float(self._call("getReal", [self.reference(self.next_event)])[0])

    def _tells_next_event(self) -> bool:
        described = self._by_name.get(NEXT_EVENT)
        if described is None or described.type != "Real" or unit_name(described) != "s":
            return False
        return described.causality in ("local", "output", None)

    def close(self) -> None:
        """Free saved states, terminate and free the instance; after a fatal error the standard forbids all three."""
        if self._fatal:
            return
        for state in self._states.values():
            self._slave.freeFMUstate(state)
        try:
            if self._running:
                self._slave.terminate()
        except FMICallException:
            logger.debug("%s does not terminate after an error", self.name)
        self._slave.freeInstance()

    # -- states ---------------------------------------------------------------------------------------------

    def save(self, slot: str, time: float) -> None:
        """Keep the state at a time in s under a name; what was kept under it is replaced.

        Raises
        ------
        UnitError
            When the unit cannot save its state.
        """
        if slot not in self._states:
            self._states[slot] = fmi2.fmi2FMUstate()
        status = self._get_state(self._address, byref(self._states[slot]))
        if status > 1:
            self.fail("fmi2GetFMUstate", status)
        self._saved[slot] = time
        self._earliest = min(self._saved.values())

    def release(self, slot: str) -> None:
        """Promise not to go back to what is kept under a name any more."""
        self._saved.pop(slot, None)
        self._earliest = min(self._saved.values(), default=math.inf)

    def restore(self, slot: str) -> None:
        """Go back to the state that was kept under a name.

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        status = self._set_state(self._address, self._states[slot])
        if status > 1:
            self.fail("fmi2SetFMUstate", status)
        self.ends.pop(self.name, None)

    # -- values ---------------------------------------------------------------------------------------------

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type.
        """
        if name not in self._by_name:
            raise InputError(f"{self.name} has no variable '{name}'; {meant(name, self._by_name)}")
        described = self._by_name[name]
        try:
            typed = typed_value(described, value)
        except ValueError:
            raise InputError(f"{self.name}.{name} is {value!r}; it must be {ALLOWED[described.type]}") from None
        function = "Integer" if described.type == "Enumeration" else described.type
        self._call(f"set{function}", [described.valueReference], [typed])

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self._call("getString", [self._by_name[name].valueReference])[0].decode()

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns).

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        references = [[self.reference(name) for name in names] for names in (unknowns, knowns)]
        columns = [self._call("getDirectionalDerivative", references[0], [known], [1.0]) for known in references[1]]
        return np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T
