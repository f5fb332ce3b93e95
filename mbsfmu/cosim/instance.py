"""A loaded FMI 2.0 co-simulation unit; the only place that calls FMPy's interface to FMUs."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Sequence
from ctypes import byref
from dataclasses import replace
from pathlib import Path
from typing import Any
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
    """

    def __init__(self, name: str, archive: Archive) -> None:
        self.name = name
        self.time = 0.0
        self._fatal = False
        self._description = archive.description
        self._by_name = {each.name: each for each in self._description.modelVariables}
        self.kinds = {each.name: each.type for each in self._description.modelVariables}
        self.variables = {each.name: _variable(each) for each in self._description.modelVariables}
        self.units = described_units(self._description)
        co_simulation = self._description.coSimulation
        if co_simulation is None:
            raise InputError(f"{name} is no co-simulation unit")
        self.interpolates = bool(co_simulation.canInterpolateInputs)
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
            self._fatal = error.status == fmi2.fmi2Fatal
            status = _STATUS.get(error.status, str(error.status))
            raise SimulationError(
                f"{self.name} at t = {self.time:.9g} s: {error.function} gives {status}: "
                f"{self._reason('no reason given')}"
            ) from None

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

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        SimulationError
            When the unit refuses; the message has instance, time and reason.
        """
        self.time = time
        self._call("doStep", time, step)

    def close(self) -> None:
        """Terminate and free the instance; after a fatal error the standard forbids both."""
        if self._fatal:
            return
        try:
            self._slave.terminate()
        except FMICallException:
            logger.debug("%s does not terminate after an error", self.name)
        self._slave.freeInstance()

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

    def port(self, names: Sequence[str], factors: Floats | float = 1.0, offsets: Floats | float = 0.0) -> Port:
        """Return fast access to numeric variables, values being converted on their way in."""
        return Port(self, names, factors, offsets)


class Port:
    """Reads and writes a list of numeric variables of an instance at once, as floats.

    Parameters
    ----------
    instance
        The instance.
    names
        Names of Real, Integer, Enumeration or Boolean variables.
    factors, offsets
        What becomes of the values that are written: factor · value + offset.
    """

    def __init__(
        self, instance: Instance, names: Sequence[str], factors: Floats | float = 1.0, offsets: Floats | float = 0.0
    ) -> None:
        self.instance = instance
        self.names = tuple(names)
        self.factors, self.offsets = np.broadcast_to(factors, len(names)), np.broadcast_to(offsets, len(names))
        self._converts = bool(np.any(self.factors != 1.0) or np.any(self.offsets != 0.0))
        self._groups = []
        for kind, function, element in (
            (("Real",), "Real", fmi2.fmi2Real),
            (("Integer", "Enumeration"), "Integer", fmi2.fmi2Integer),
            (("Boolean",), "Boolean", fmi2.fmi2Boolean),
        ):
            chosen = [index for index, name in enumerate(names) if instance.kinds[name] in kind]
            if chosen:
                references = [instance._by_name[names[index]].valueReference for index in chosen]
                self._groups.append(
                    (
                        function,
                        np.array(chosen),
                        (fmi2.fmi2ValueReference * len(chosen))(*references),
                        (element * len(chosen))(),
                    )
                )

    def read(self) -> Floats:
        """Return the values, shape (number of names,)."""
        values = np.empty(len(self.names))
        for function, chosen, references, buffer in self._groups:
            self._do(f"fmi2Get{function}", references, buffer)
            values[chosen] = buffer
        return values

    def write(self, values: Floats) -> None:
        """Set the values, converted."""
        if self._converts:
            values = self.factors * values + self.offsets
        for function, chosen, references, buffer in self._groups:
            for position, index in enumerate(chosen):
                buffer[position] = values[index] if function == "Real" else round(float(values[index]))
            self._do(f"fmi2Set{function}", references, buffer)

    def write_derivatives(self, values: Floats) -> None:
        """Set the first derivatives of Real inputs by time, converted."""
        if self._converts:
            values = self.factors * values
        for function, chosen, references, buffer in self._groups:
            if function == "Real":
                derivatives = type(buffer)(*values[chosen])
                orders = (fmi2.fmi2Integer * len(chosen))(*([1] * len(chosen)))
                self._do("fmi2SetRealInputDerivatives", references, orders, derivatives)

    def _do(self, function: str, references: Any, *buffers: Any) -> None:
        component = self.instance._slave.component
        self.instance._call(function, component, references, len(references), *buffers)


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
        description=described.description or "",
    )


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
