"""What instances of all versions of FMI have in common: a library that FMPy loads, and a description that it reads."""

from __future__ import annotations

import logging
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from ctypes import byref, c_int, c_void_p
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from weakref import WeakSet

from fmpy.fmi1 import FMICallException
from numpy.typing import NDArray

from mbsfmu.cosim.archive import Archive
from mbsfmu.cosim.compiled.layout import Group
from mbsfmu.cosim.described import (
    ALLOWED,
    described_dependencies,
    described_states,
    described_units,
    described_variable,
    kind_of,
    typed_value,
    unit_name,
)
from mbsfmu.cosim.elements import Element, all_elements, described_arrays
from mbsfmu.cosim.environment import environment, settle_environment
from mbsfmu.cosim.instance import Floats, Instance, UnitEnded, UnitError
from mbsfmu.cosim.library_port import Dialect, LibraryPort
from mbsfmu.data import meant
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.times import tolerance

logger = logging.getLogger(__name__)

_STATUS = {1: "warning", 2: "discard", 3: "error", 4: "fatal", 5: "pending"}
OK, WARNING, DISCARD, ERROR, FATAL = range(5)
"""What functions return, in all versions."""
_SERIALIZED = "for another process"
"""Slot of states on their way."""
_NEXT_EVENT = "next_event"
"""Name of the Real variable, in s, that tells when a signal of a unit's own jumps or bends next."""


class LibraryInstance(Instance):
    """An instance of a unit in a library.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    slave
        FMPy's class for it.

    Attributes
    ----------
    dialect
        How values are read and written.
    has_company
        Whether others compute in the same process, whose floating-point environment it must leave as it is.
    is_stepping
        Whether it has left initialization.
    sent
        By type and references, what discrete variables were set to in event mode or before, as far as that is known.
    partial
        Ports that hand over elements of arrays beside those that they set.
    """

    dialect: ClassVar[Dialect]
    has_company: ClassVar[bool] = True

    def __init__(self, name: str, archive: Archive, slave: Callable[..., Any]) -> None:
        super().__init__(name)
        self._description = archive.description
        elements = list(all_elements(self._description))
        self._elements = {each.name: each for each in elements}
        if len(self._elements) < len(elements):
            raise InputError(f"{archive.called} has two variables or elements of arrays of one name")
        self.arrays = described_arrays(self._description)
        self.kinds = {each.name: kind_of(each.described) for each in elements}
        self.variables = {each.name: described_variable(each) for each in elements}
        self.units = described_units(self._description)
        variables = self._description.modelVariables
        self.dependencies = described_dependencies(self._description.outputs, variables)
        self.initial_dependencies = described_dependencies(self._description.initialUnknowns, variables)
        self.states = described_states(self._description.derivatives)
        self.default_experiment = _default_experiment(self._description)
        interface = archive.interface
        self.saves_state = bool(interface.canGetAndSetFMUstate)
        self.serializes_state = self.saves_state and bool(getattr(interface, "canSerializeFMUstate", False))
        self.gives_rates = int(getattr(interface, "maxOutputDerivativeOrder", 0) or 0) >= 1
        self.gives_directional_derivatives = bool(interface.providesDirectionalDerivative)
        self.takes_any_step = archive.exchanged or bool(interface.canHandleVariableCommunicationStepSize)
        self.is_stepping = False
        self.sent: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self.partial: WeakSet[LibraryPort] = WeakSet()
        self._states: dict[str, Any] = {}
        self._memories: dict[str, bytes] = {}
        self._next_event: LibraryPort | None = None
        self._environment = environment() if self.has_company else None
        self._slave = _loaded(archive, name, slave)
        self._get_state = self.function(self.dialect.get_state, (c_void_p, c_void_p))
        self._set_state = self.function(self.dialect.set_state, (c_void_p, c_void_p))

    def _instantiate(self, **arguments: Any) -> None:
        try:
            self._slave.instantiate(loggingOn=True, **arguments)
        except Exception as error:  # FMPy raises a bare exception when the FMU gives no instance
            raise SimulationError(f"{self.name} cannot be instantiated: {self._reason(str(error))}") from None
        finally:
            self.settle_environment()

    def _call(self, function: str, *arguments: Any) -> Any:
        self._messages.clear()
        try:
            return getattr(self._slave, function)(*arguments)
        except FMICallException as error:
            self.fail(error.function, error.status)
        finally:
            self.settle_environment()

    def settle_environment(self) -> None:
        """Let the floating-point environment be what it was before the unit was loaded: others compute in it."""
        if self._environment is not None and settle_environment(self._environment):
            self.disturbs = True

    def fail(self, function: str, status: int) -> NoReturn:
        """Raise what a function of the FMI that went wrong means.

        Raises
        ------
        UnitError
            Always; the message has instance, time, function and the unit's own reason.
        """
        self._failed(function, _STATUS.get(status, str(status)), fatal=status == FATAL)

    def _discarded(self, function: str, reached: float) -> NoReturn:
        """Raise that a step was discarded, of which the part up to a time in s was made.

        Raises
        ------
        UnitError
            Always; `reached` is that time, if it is after the beginning of the step.
        """
        try:
            self.fail(function, DISCARD)
        except UnitError as error:
            if reached <= self.time:
                raise
            raise UnitError(f"{error}; it has come to t = {reached:.9g} s", error.fatal, reached) from None

    # -- functions and variables of the FMI as they are -----------------------------------------------------

    @property
    def component(self) -> Any:
        """Address of the component, for functions of the FMI."""
        return self._slave.component

    def function(self, name: str, argument_types: Sequence[Any]) -> Callable[..., int]:
        """Return a function of the FMU's library; it gives the status and raises nothing."""
        function = self._slave.dll[name]
        function.argtypes, function.restype = argument_types, c_int
        return function

    def element(self, name: str) -> Element:
        """Return a variable or an element of an array by its name."""
        return self._elements[name]

    @abstractmethod
    def sets_at_events(self, name: str) -> bool:
        """Tell whether a variable is set in event mode."""

    @abstractmethod
    def event(self) -> AbstractContextManager[None]:
        """Enter event mode between two steps, and leave it at the end."""

    def follow(self, port: LibraryPort, group: Group, buffer: NDArray[Any]) -> None:
        """Let inputs run straight, by the values and slopes of a port, where the unit asks for them within steps."""
        raise NotImplementedError

    # -- life cycle -----------------------------------------------------------------------------------------

    def _tolerance(self, given: float | None) -> float | None:
        """Return the tolerance of the unit's own solver: as given, else what it suggests."""
        experiment = self._description.defaultExperiment
        if given is None and experiment is not None and experiment.tolerance:
            return float(experiment.tolerance)
        return given

    def _end(self, reached: float, end: float, step: float) -> None:
        """Take down that the unit ended the run at a time in a step in s, which was to go to another one.

        Raises
        ------
        UnitEnded
            When that is before the end of the step.
        """
        self.ends[self.name] = reached
        if reached < end - tolerance(step, self.time, end):
            raise UnitEnded(reached)

    def read_next_event(self) -> float:
        """Return when a signal of the unit's own jumps or bends next, in s; infinity where it does not say."""
        if not self._tells_next_event():
            return math.inf
        if self._next_event is None:
            self._next_event = LibraryPort(self, [_NEXT_EVENT])
        return float(self._next_event.read()[0])

    def _tells_next_event(self) -> bool:
        element = self._elements.get(_NEXT_EVENT)
        if element is None or self.kinds[_NEXT_EVENT] != "Real" or unit_name(element.described) != "s":
            return False
        return element.described.causality in ("local", "output", None)

    def close(self) -> None:
        """Free saved states, terminate and free the instance; after a fatal error the standard forbids all three."""
        if self._fatal:
            return
        for state in self._states.values():
            self._free_state(state)
        try:
            if self.is_stepping:
                self._slave.terminate()
        except FMICallException:
            logger.debug("%s does not terminate after an error", self.name)
        self._slave.freeInstance()

    def save(self, slot: str, time: float) -> None:
        """Keep the state at a time in s under a name; what was kept under it is replaced.

        Raises
        ------
        UnitError
            When the unit cannot save its state.
        """
        if slot not in self._states:
            self._states[slot] = c_void_p()
        status = self._get_state(self.component, byref(self._states[slot]))
        if status > WARNING:
            self.fail(self.dialect.get_state, status)
        self._memories[slot] = self._memory()
        self._keeps(slot, time)

    def restore(self, slot: str) -> None:
        """Go back to the state that was kept under a name; what was set since counts no more.

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        status = self._set_state(self.component, self._states[slot])
        if status > WARNING:
            self.fail(self.dialect.set_state, status)
        self._remember(self._memories[slot])
        self.sent.clear()
        self.ends.pop(self.name, None)

    def serialize(self) -> bytes:
        """Return the state for another process, behind what there is to be kept beside it.

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        self.save(_SERIALIZED, self.time)
        try:
            return self._memories[_SERIALIZED] + self._call("serializeFMUState", self._states[_SERIALIZED])
        finally:
            self.release(_SERIALIZED)

    def deserialize(self, state: bytes) -> None:
        """Take a state of another process.

        Raises
        ------
        UnitError
            When the unit refuses.
        """
        if _SERIALIZED in self._states:
            self._free_state(self._states.pop(_SERIALIZED))
        size = len(self._memory())  # which follows from the description of the unit
        self._states[_SERIALIZED] = self._call("deserializeFMUState", state[size:])
        self._memories[_SERIALIZED] = state[:size]
        self.restore(_SERIALIZED)

    def _memory(self) -> bytes:
        """Return what there is to be kept beside the state of the unit; it is always as long."""
        return b""

    def _remember(self, memory: bytes) -> None:
        """Take what was kept beside the state of the unit, which has just gone back to it."""
        del memory

    @abstractmethod
    def _free_state(self, state: Any) -> None:
        """Free a saved state."""

    # -- values ---------------------------------------------------------------------------------------------

    def port(self, names: Sequence[str], values: Floats | None = None) -> LibraryPort:
        """Return what reads and writes numeric variables; `values` is where they stand."""
        return LibraryPort(self, names, values)

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type.
        """
        if name not in self._elements:
            raise InputError(f"{self.name} has no variable '{name}'; {meant(name, self._elements)}")
        element = self._elements[name]
        try:
            typed = typed_value(element.described, value)
        except (ValueError, TypeError):
            raise InputError(f"{self.name}.{name} is {value!r}; it must be {ALLOWED[self.kinds[name]]}") from None
        self._set(element, typed)
        self.sent.clear()
        for port in self.partial:
            port.refresh()

    @abstractmethod
    def _set(self, element: Element, value: float | int | bool | str) -> None:
        """Set an element of a variable."""


def _loaded(archive: Archive, instance: str, slave: Callable[..., Any]) -> Any:
    """Load the library of an FMU, for an instance of a name.

    Raises
    ------
    InputError
        When it, or one that it needs, cannot be loaded, or a function of its version is missing.
    """
    here, identifier = Path.cwd(), archive.interface.modelIdentifier
    try:
        return slave(
            guid=archive.description.guid,
            unzipDirectory=archive.folder,
            modelIdentifier=identifier,
            instanceName=instance,
        )
    except Exception as error:  # FMPy raises bare exceptions here
        reason = str(error).replace(f"{archive.folder}{os.sep}", "").strip()
        raise InputError(f"{archive.called}: the library {identifier} cannot be used: {reason}") from None
    finally:
        os.chdir(here)  # FMPy stays where the library is when it cannot be loaded


def _default_experiment(description: Any) -> tuple[float | None, float | None]:
    """Return stop time and step size in s of a description that FMPy read."""
    experiment = description.defaultExperiment
    if experiment is None:
        return None, None
    stop, step = experiment.stopTime, experiment.stepSize
    return (float(stop) if stop else None), (float(step) if step else None)
