"""A loaded FMI 2.0 co-simulation unit; the only place that calls FMPy's interface to FMUs."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from ctypes import byref, c_double, c_int, c_void_p
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import fmpy
import numpy as np
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from fmpy.logging import addLoggerProxy
from numpy.typing import NDArray

from mbsfmu.cosim.units import UNIT_ATTRIBUTES, Unit
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.variables import Causality, Variability, Variable

Floats = NDArray[np.float64]
logger = logging.getLogger(__name__)

_STATUS = {1: "warning", 2: "discard", 3: "error", 4: "fatal", 5: "pending"}
_LEVEL = {0: logging.DEBUG, 1: logging.WARNING}
_KEPT_MESSAGES = 5


# FMPy's proxy of the logger has one target per process, the last that was added: messages are told apart by the
# instance's name.
_instances: WeakValueDictionary[bytes, Instance] = WeakValueDictionary()


def _log(_: Any, instance: bytes, status: int, category: bytes, message: bytes) -> None:
    if instance in _instances:
        _instances[instance].log(status, category, message)


_LOGGER = fmi2.fmi2CallbackLoggerTYPE(_log)


class UnitError(SimulationError):
    """A function of a unit that went wrong; after a fatal error nothing may be called any more."""

    def __init__(self, message: str, fatal: bool) -> None:
        super().__init__(message)
        self.fatal = fatal


class Archive:
    """An FMU file, unpacked once for all its instances; `close` removes what was unpacked.

    Parameters
    ----------
    path
        The FMU file.

    Raises
    ------
    InputError
        When it is no FMI 2.0 co-simulation FMU that runs on this platform.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        try:
            self.description = fmpy.read_model_description(str(path), validate=False)
            platforms = fmpy.supported_platforms(str(path))
        except Exception as error:  # FMPy raises bare exceptions here
            raise InputError(f"{path} is no FMU that can be read: {str(error).strip()}") from None
        if self.description.fmiVersion != "2.0" or self.description.coSimulation is None:
            raise InputError(f"{path} is no FMI 2.0 co-simulation FMU (it is FMI {self.description.fmiVersion})")
        if fmpy.platform not in platforms:
            raise InputError(f"{path} has no binary for {fmpy.platform}; it has {', '.join(platforms) or 'none'}")
        self.folder = tempfile.mkdtemp(prefix="mbsfmu-")
        fmpy.extract(str(path), unzipdir=self.folder)

    def close(self) -> None:
        """Remove the unpacked files."""
        shutil.rmtree(self.folder, ignore_errors=True)


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
    returns
        Whether a state from before a step may be restored after it; told to the unit with every step.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        self.name = name
        self.time = 0.0
        self.steps = 0
        self.returns = False
        self._fatal = self._running = False
        self._states: dict[str, Any] = {}
        self._description = archive.description
        self._by_name = {each.name: each for each in self._description.modelVariables}
        self.kinds = {each.name: each.type for each in self._description.modelVariables}
        self.variables = {each.name: _variable(each) for each in self._description.modelVariables}
        self.units = described_units(self._description)
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
        _instances[name.encode()] = self
        self._slave = fmi2.FMU2Slave(
            guid=self._description.guid,
            unzipDirectory=archive.folder,
            modelIdentifier=co_simulation.modelIdentifier,
            instanceName=name,
        )
        try:
            self._slave.instantiate(callbacks=self._callbacks, loggingOn=True)
        except Exception as error:  # FMPy raises a bare exception when the FMU gives no instance
            raise SimulationError(f"{name} cannot be instantiated: {self._reason(str(error))}") from None
        self._address = self.component
        self._do_step = self.function("fmi2DoStep", (c_void_p, c_double, c_double, c_int))
        self._get_state = self.function("fmi2GetFMUstate", (c_void_p, c_void_p))
        self._set_state = self.function("fmi2SetFMUstate", (c_void_p, c_void_p))

    @property
    def dependencies(self) -> dict[str, tuple[str, ...] | None]:
        """What each output depends on directly while stepping; None where the unit does not say."""
        return _dependencies(self._description.outputs)

    @property
    def initial_dependencies(self) -> dict[str, tuple[str, ...] | None]:
        """What each unknown depends on in initialization mode; None where the unit does not say."""
        return _dependencies(self._description.initialUnknowns)

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

    def setup(self, start: float, stop: float) -> None:
        """Set up the experiment, times in s."""
        self.time = start
        self._call("setupExperiment", None, start, stop)

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._call("enterInitializationMode")

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._call("exitInitializationMode")
        self._running = True

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        UnitError
            When the unit refuses; the message has instance, time and reason.
        """
        self.time = time
        self.steps += 1
        if self._messages:
            self._messages.clear()
        status = self._do_step(self._address, time, step, not self.returns)
        if status > 1:
            self.fail("fmi2DoStep", status)

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

    def save(self, slot: str) -> None:
        """Keep the state under a name; what was kept under it is replaced.

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

    # -- values ---------------------------------------------------------------------------------------------

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type.
        """
        if name not in self._by_name:
            raise InputError(f"{self.name} has no variable '{name}'")
        described = self._by_name[name]
        try:
            typed = typed_value(described, value)
        except ValueError:
            raise InputError(f"{self.name}.{name} is {value!r}; it must be {_ALLOWED[described.type]}") from None
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


def _variable(described: Any) -> Variable:
    causality = described.causality or "local"
    if causality not in list(Causality):
        causality = "local"
    variability = described.variability
    if variability not in list(Variability):
        variability = "continuous" if described.type == "Real" else "discrete"
    return Variable(
        described.name,
        Causality(causality),
        Variability(variability),
        _unit_name(described),
        nominal=float(described.nominal) if described.nominal else None,
        description=described.description or "",
    )


def _dependencies(unknowns: Any) -> dict[str, tuple[str, ...] | None]:
    return {
        each.variable.name: None if each.dependencies is None else tuple(known.name for known in each.dependencies)
        for each in unknowns
    }


def described_units(description: Any) -> dict[str, Unit]:
    """Return the unit of each variable of a description that FMPy read, with its definition where that has one."""
    defined = {
        each.name: Unit.of_attributes(each.name, {key: getattr(each.baseUnit, key) for key in UNIT_ATTRIBUTES})
        for each in description.unitDefinitions
        if each.baseUnit is not None
    }
    units = {}
    for each in description.modelVariables:
        name = _unit_name(each)
        unit = defined.get(name, Unit(name))
        # The offset of a difference of two values falls out of its conversion.
        units[each.name] = replace(unit, offset=0.0) if _is_difference(each) else unit
    return units


def _unit_name(described: Any) -> str:
    return described.unit or (described.declaredType.unit if described.declaredType else None) or "1"


def _is_difference(described: Any) -> bool:
    declared = described.declaredType
    return bool(described.relativeQuantity or (declared is not None and declared.relativeQuantity))


_ALLOWED = {
    "Real": "a number",
    "Integer": "an integer",
    "Boolean": "true or false",
    "Enumeration": "an item of the enumeration or its integer",
}
_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def typed_value(described: Any, value: Any) -> float | int | bool | str:
    """Return a value as the type of a described variable asks for it; integers may be written as `3.0`.

    Raises
    ------
    ValueError
        When it is none of that type.
    """
    kind = described.type
    if kind == "String":
        return str(value)
    if kind == "Real":
        return float(value)
    if kind == "Boolean":
        if str(value).lower() not in _TRUTHS:
            raise ValueError(value)
        return _TRUTHS[str(value).lower()]
    items = described.declaredType.items if kind == "Enumeration" and described.declaredType else None
    for item in items or ():
        if item.name == value:
            return int(item.value)
    if float(value) != int(float(value)):
        raise ValueError(value)
    return int(float(value))
