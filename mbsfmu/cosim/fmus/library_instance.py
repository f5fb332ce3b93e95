"""Base of instances of all FMI versions: a library and description loaded by FMPy.

Fast access to numeric variables of a loaded FMU: one call for a whole list of them.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from ctypes import byref, c_bool, c_char, c_int, c_size_t, c_uint32, c_void_p, pointer
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from weakref import WeakSet

import numpy as np
from fmpy.fmi1 import FMICallException
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import tolerance
from mbsfmu.cosim.compiled.library import (
    Access,
    GetState,
    PortTable,
    Rates,
    SavedState,
    SetState,
    VariableBlock,
    pointer_to,
)
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import (
    Floats,
    FmuCalls,
    FmuEnded,
    FmuError,
    Instance,
    Port,
    environment,
    restore_environment,
)
from mbsfmu.cosim.fmus.variable_descriptions import (
    STRUCTURAL,
    ArrayElement,
    accepted_value,
    all_elements,
    described_aliases,
    described_arrays,
    described_dependencies,
    described_derivatives,
    described_measurement_units,
    described_states,
    described_variable,
    is_start,
    kind_of,
    refused_start,
    unit_name,
)
from mbsfmu.modelling import closest_match

_EXACT = 2**53
"""Integers beyond this magnitude are not all floating-point numbers."""
_WIDE = ("Int64", "UInt64")
"""Types whose values may be beyond."""


@dataclass(frozen=True)
class Dialect:
    """Read and write functions of an FMI version.

    Attributes
    ----------
    prefix
        Of its functions.
    kinds
        For each function, the types of variables that it is for, what its name ends in, and the type of a value.
    counts
        Whether functions are told how many values there are, beside how many variables.
    get_rates, set_rates
        Functions for derivatives by time; None where there is none.
    get_state, set_state
        Functions that keep a state, and go back to one; None where there are none.
    truth
        Type of a Boolean that a function takes or gives.
    prefixed
        Whether functions have the identifier of the model before their names.
    """

    prefix: str
    kinds: tuple[tuple[tuple[str, ...], str, type], ...]
    counts: bool
    get_rates: str | None
    set_rates: str | None
    get_state: str | None
    set_state: str | None
    truth: type[c_int] | type[c_bool] | type[c_char]
    prefixed: bool = False


def _laid_out(elements: Sequence[ArrayElement]) -> tuple[list[int], NDArray[np.intp], int]:
    """Lay out elements in a buffer that has all elements of their variables.

    Returns
    -------
    tuple
        References of the variables, some twice where two names mean one element; the place of each element in the
        buffer; the length of the buffer.
    """
    references: list[int] = []
    begins: dict[int, int] = {}
    taken: set[int] = set()
    slots, count = [], 0
    for element in elements:
        reference = element.described.valueReference
        if reference not in begins or begins[reference] + element.place in taken:
            references.append(reference)
            begins[reference] = count
            count += element.size
        slots.append(begins[reference] + element.place)
        taken.add(slots[-1])
    return references, np.array(slots, dtype=np.intp), count


class _VariableGroup:
    """Variables of one type: their references, and a buffer of their type.

    Attributes
    ----------
    chosen
        For each value that is wanted, its place among the names of the port.
    slots
        Its place in the buffer, which has all elements of arrays.
    at_events
        Whether values are set in event mode, where they have changed.
    shared
        Whether the buffer is the array of the port.
    """

    def __init__(self, port: LibraryPort, kind: str, element: type, chosen: list[int], at_events: bool) -> None:
        unit = port.unit
        self._unit, self.kind, self.at_events = unit, kind, at_events
        references, self.slots, count = _laid_out([unit.element(port.names[index]) for index in chosen])
        self.chosen = np.array(chosen, dtype=np.intp)
        self._names = port.names
        self._places = np.full(count, -1, dtype=np.intp)  # one array for good: all tables point to it
        self._places[self.slots] = self.chosen
        self.whole = count == len(chosen) and bool((self.slots == np.arange(count)).all())
        self.real = element is np.float64
        self.shared = self.whole and self.real and not at_events and len(chosen) == len(port.names)
        self.buffer: NDArray[Any] = port.values if self.shared else np.zeros(count, dtype=element)
        self.references = (c_uint32 * len(references))(*references)
        counted = (count,) if unit.dialect.counts else ()
        types = (c_void_p, c_void_p, c_size_t, c_void_p, *([c_size_t] * len(counted)))
        self.get = unit.function(f"{unit.dialect.prefix}Get{kind}", types)
        self.set = unit.function(f"{unit.dialect.prefix}Set{kind}", types)
        self.arguments = (unit.component, self.references, len(references), self.buffer.ctypes.data, *counted)
        self._range = np.iinfo(element) if np.issubdtype(element, np.integer) else None
        self._key = kind, tuple(references)

    def read(self) -> None:
        """Read into the buffer."""
        status = self.get(*self.arguments)
        self._unit.restore_environment()
        if status > 1:
            self._unit.fail(f"{self._unit.dialect.prefix}Get{self.kind}", status)
        if self.kind in _WIDE:
            self._report_rounded()

    def _report_rounded(self) -> None:
        """Warn once of each variable whose integer is rounded where it becomes a floating-point number."""
        values = self.buffer[self.slots]
        rounded = values > _EXACT
        if self.kind == "Int64":
            rounded |= values < -_EXACT
        for place in np.flatnonzero(rounded).tolist():
            name = self._names[self.chosen[place]]
            if name not in self._unit.rounded:
                self._unit.rounded.add(name)
                logger.warning(
                    "%s.%s is the integer %d at t = %.9g s: beyond 2^53 it is rounded to %.17g; --record of others "
                    "leaves it out", self._unit.name, name, values[place], self._unit.time, float(values[place])
                )  # fmt: skip

    def take(self, port: LibraryPort) -> None:
        """Take the values of a port into the buffer; whole numbers are rounded.

        Raises
        ------
        SimulationError
            When a number is beyond those of the type.
        """
        values = port.values[self.chosen]
        if self._range is None:
            self.buffer[self.slots] = values if self.buffer.dtype.kind == "f" else np.rint(values)
            return
        rounded = np.rint(values)
        fits = (rounded >= float(self._range.min)) & (rounded <= float(self._range.max)) & (np.abs(rounded) <= _EXACT)
        if not fits.all():
            worst = int(np.argmin(fits))
            raise SimulationError(
                f"{self._unit.name}.{port.names[self.chosen[worst]]} is set to "
                f"{values[worst]:.9g}, which is no number of its type, {self.kind}"
                f"{', or rounded: only integers up to 2^53 are passed on' if abs(values[worst]) > _EXACT else ''}"
            )
        self.buffer[self.slots] = rounded.astype(self.buffer.dtype)

    def changes(self) -> bool:
        """Return whether the buffer differs from the FMU's last known values."""
        return self._unit.sent.get(self._key) != self.buffer.tobytes()

    def send(self) -> None:
        """Set the FMU's variables from the buffer."""
        status = self.set(*self.arguments)
        if status > 1:
            self._unit.fail(f"{self._unit.dialect.prefix}Set{self.kind}", status)
        if self.at_events:
            self._unit.sent[self._key] = self.buffer.tobytes()

    def layout(self) -> BlockLayout:
        """Return how the variables lie in the buffer."""
        places = tuple(self._places.tolist())
        return BlockLayout(self.kind, tuple(self.references), places, not self.real, self.shared)

    def table(self, calls: FmuCalls) -> VariableBlock:
        """Return the group as compiled code sees it."""
        prefix = self._unit.dialect.prefix
        return VariableBlock(
            self._access(self.get, calls.number(self._unit, f"{prefix}Get{self.kind}")),
            self._access(self.set, calls.number(self._unit, f"{prefix}Set{self.kind}")),
            self.references,
            len(self.references),
            len(self.buffer),
            pointer_to(self._places),
            self.buffer.ctypes.data,
            not self.real,
            self.shared,
        )

    def _access(self, function: Callable[..., int], number: int) -> Access:
        address = address_of(function)
        return Access(counting=address, number=number) if self._unit.dialect.counts else Access(address, None, number)


def address_of(function: Callable[..., int]) -> int | None:
    """Return the address of a function of a library."""
    return ctypes.cast(function, c_void_p).value  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class BlockLayout:
    """Variables of one type of a port, as compiled code sees them in an FMU of coupled FMUs.

    Attributes
    ----------
    kind
        What the functions that get and set them end in.
    references
        Of the variables.
    places
        Of each number of the buffer, its place among the values of the port; negative for those of no name.
    whole
        Whether the numbers have 32 bits.
    shares
        Whether the buffer is the array of the port.
    """

    kind: str
    references: tuple[int, ...]
    places: tuple[int, ...]
    whole: bool
    shares: bool


class LibraryPort(Port):
    """A port of a loaded FMU."""

    def __init__(self, unit: LibraryInstance, names: Sequence[str], values: Floats | None = None) -> None:
        super().__init__(unit, names, values)
        self.unit = unit
        self._groups: list[_VariableGroup] = []
        for types, kind, element in unit.dialect.kinds:
            chosen = [index for index, name in enumerate(names) if unit.element(name).described.type in types]
            for at_events in (False, True):
                group = [index for index in chosen if unit.sets_at_events(names[index]) is at_events]
                if group:
                    self._groups.append(_VariableGroup(self, kind, element, group, at_events))
        self._only = self._groups[0] if self._groups and self._groups[0].shared else None
        self._rates = _Rates(self) if self._groups and self.all_real else None
        if not all(group.whole or group.shared for group in self._groups):
            self.refresh()
            unit.partial.add(self)

    @property
    def all_real(self) -> bool:
        """Whether all variables are Real."""
        return len(self._groups) == 1 and self._groups[0].real

    @property
    def compiles(self) -> bool:
        """Whether compiled code can read and write it."""
        kinds = (np.float64,) if self.unit.dialect.counts else (np.float64, np.int32)
        return not any(group.at_events or group.buffer.dtype.type not in kinds for group in self._groups)

    def layout(self) -> tuple[BlockLayout, ...]:
        """Return how the variables lie in buffers, type by type."""
        return tuple(group.layout() for group in self._groups)

    def slope_references(self) -> tuple[int, ...]:
        """Return the references of the variables for derivatives by time; none unless all are Real."""
        return () if self._rates is None else self._rates.references()

    def refresh(self) -> None:
        """Read the elements of arrays that the port does not set, but hands over beside those that it does."""
        for group in self._groups:
            if not group.whole:
                group.read()

    def read(self) -> Floats:
        """Read the variables into `values` and return it."""
        if self._only is not None:
            self._only.read()
            return self.values
        for group in self._groups:
            group.read()
            self.values[group.chosen] = group.buffer[group.slots]
        return self.values

    def write(self) -> None:
        """Set the variables to `values`; whole numbers are rounded."""
        if self._only is not None:
            self._only.send()
            return
        late = []
        for group in self._groups:
            group.take(self)
            if not (group.at_events and self.unit.is_stepping):
                group.send()
            elif group.changes():
                late.append(group)
        if late:
            with self.unit.event():
                for group in late:
                    group.send()

    def expect_slopes(self) -> None:
        """Make ready for slopes that compiled code sets."""
        if self.unit.dialect.set_rates is None:
            self.unit.follow(self, self._groups[0].table(FmuCalls()), self._groups[0].buffer)

    def write_slopes(self) -> None:
        """Set the first derivatives of the inputs by time to `slopes`; all must be Real."""
        assert self._rates is not None
        if self.unit.dialect.set_rates is None:
            self.expect_slopes()
        else:
            self._rates.write()

    def read_rates(self) -> Floats:
        """Return the first derivatives of the outputs by time in 1/s; all must be Real."""
        assert self._rates is not None
        return self._rates.read()

    def table(self, calls: FmuCalls) -> PortTable:
        """Return the port as compiled code sees it."""
        groups = [group.table(calls) for group in self._groups]
        result = super().table(calls)
        result.component, result.group_count = self.unit.component, len(groups)
        result.groups = (VariableBlock * len(groups))(*groups)
        if self._rates:
            self._rates.enter(result, calls)
        return result


class _Rates:
    """First derivatives by time of the variables of a port."""

    def __init__(self, port: LibraryPort) -> None:
        self._unit = unit = port.unit
        dialect = unit.dialect
        references, self._slots, count = _laid_out([unit.element(name) for name in port.names])
        self._references = (c_uint32 * len(references))(*references)
        self._orders = (c_int * len(references))(*([1] * len(references)))
        self._rates = np.zeros(count)
        given = (unit.component, self._references, len(references), self._orders)
        counted = (len(self._rates),) if dialect.counts else ()
        types = (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, *([c_size_t] * len(counted)))
        self._get = None if dialect.get_rates is None else unit.function(dialect.get_rates, types)
        self._set = None if dialect.set_rates is None else unit.function(dialect.set_rates, types)
        self._set_arguments = (*given, port.slopes.ctypes.data)
        self._get_arguments = (*given, self._rates.ctypes.data, *counted)

    def references(self) -> tuple[int, ...]:
        """Return the references of the variables."""
        return tuple(self._references)

    def enter(self, table: PortTable, calls: FmuCalls) -> None:
        """Write into a table what compiled code has to know."""
        dialect = self._unit.dialect
        table.references, table.orders, table.reference_count = self._references, self._orders, len(self._references)
        table.rates, table.rate_count = pointer_to(self._rates), len(self._rates)
        table.rate_places = pointer_to(self._slots)
        if self._set is not None and dialect.set_rates is not None:
            table.set_rates = Rates(address_of(self._set), None, calls.number(self._unit, dialect.set_rates))
        if self._get is not None and dialect.get_rates is not None:
            number = calls.number(self._unit, dialect.get_rates)
            address = address_of(self._get)
            table.get_rates = Rates(None, address, number) if dialect.counts else Rates(address, None, number)

    def write(self) -> None:
        assert self._set is not None
        assert self._unit.dialect.set_rates is not None
        status = self._set(*self._set_arguments)
        if status > 1:
            self._unit.fail(self._unit.dialect.set_rates, status)

    def read(self) -> Floats:
        assert self._get is not None
        assert self._unit.dialect.get_rates is not None
        status = self._get(*self._get_arguments)
        if status > 1:
            self._unit.fail(self._unit.dialect.get_rates, status)
        return self._rates[self._slots]


logger = logging.getLogger(__name__)

_STATUS = {1: "warning", 2: "discard", 3: "error", 4: "fatal", 5: "pending"}
OK, WARNING, DISCARD, ERROR, FATAL = range(5)
"""What functions return, in all versions."""
_SERIALIZED = "for another process"
"""Slot of states on their way."""
_NEXT_EVENT = "next_event"
"""Name of the Real variable, in s, that tells when a signal of an FMU's own jumps or bends next."""


class LibraryInstance(Instance):
    """An instance of an FMU in a library.

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
    rounded
        Variables whose integers were rounded when they were read, of which there was a warning.
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
        self.flat_names = archive.flat_names
        self.kinds = {each.name: kind_of(each.described) for each in elements}
        self.units = described_measurement_units(self._description)
        self.variables = {each.name: described_variable(each, self.units[each.name]) for each in elements}
        self.aliases = described_aliases(self._description)
        self.dependencies = described_dependencies(self._description.outputs, self.aliases)
        self.initial_dependencies = described_dependencies(self._description.initialUnknowns, self.aliases)
        self.states = described_states(self._description.derivatives)
        self.derivatives = described_derivatives(self._description.derivatives)
        self.default_experiment = _default_experiment(self._description)
        self.suggested_tolerance = _suggested_tolerance(self._description)
        interface = archive.interface
        self.saves_state = bool(interface.canGetAndSetFMUstate)
        self.serializes_state = self.saves_state and bool(getattr(interface, "canSerializeFMUstate", False))
        self.gives_rates = int(getattr(interface, "maxOutputDerivativeOrder", 0) or 0) >= 1
        self.gives_directional_derivatives = bool(interface.providesDirectionalDerivative)
        self.takes_any_step = archive.exchanged or bool(interface.canHandleVariableCommunicationStepSize)
        self.structural = frozenset(each.name for each in elements if each.described.causality == STRUCTURAL)
        self.configured = archive.configured
        self.wide = frozenset(each.name for each in elements if each.described.type in _WIDE)
        self.rounded: set[str] = set()
        self.is_stepping = False
        self.sent: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self.partial: WeakSet[LibraryPort] = WeakSet()
        self._states: dict[str, Any] = {}
        self._memories: dict[str, bytes] = {}
        self._next_event: LibraryPort | None = None
        self._environment = environment() if self.has_company else None
        self._slave = _loaded(archive, name, slave)
        self._get_state, self._set_state = (
            None if name is None else self.function(name, (c_void_p, c_void_p))
            for name in (self.dialect.get_state, self.dialect.set_state)
        )

    def _instantiate(self, **arguments: Any) -> None:
        try:
            self._slave.instantiate(loggingOn=True, **arguments)
        except Exception as error:  # FMPy raises a bare exception when the FMU gives no instance
            raise SimulationError(f"{self.name} cannot be instantiated: {self._reason(str(error))}") from None
        finally:
            self.restore_environment()

    def _call(self, function: str, *arguments: Any) -> Any:
        self._messages.clear()
        try:
            return getattr(self._slave, function)(*arguments)
        except FMICallException as error:
            self.fail(error.function, error.status)
        finally:
            self.restore_environment()

    def restore_environment(self) -> None:
        """Restore the floating-point environment from before the FMU was loaded."""
        if self._environment is not None and restore_environment(self._environment):
            self.disturbs = True

    def fail(self, function: str, status: int) -> NoReturn:
        """Raise the error of a failed FMI function.

        Raises
        ------
        FmuError
            Always; the message has instance, time, function and the FMU's own reason.
        """
        self._failed(function, _STATUS.get(status, str(status)), fatal=status == FATAL)

    def _discarded(self, function: str, reached: float) -> NoReturn:
        """Raise the error of a discarded step that reached a time in s.

        Raises
        ------
        FmuError
            Always; `reached` is that time, if it is after the beginning of the step.
        """
        try:
            self.fail(function, DISCARD)
        except FmuError as error:
            if reached <= self.time:
                raise
            raise FmuError(f"{error}; it has come to t = {reached:.9g} s", error.fatal, reached) from None

    # -- functions and variables of the FMI as they are -----------------------------------------------------

    @property
    def component(self) -> Any:
        """Address of the component, for functions of the FMI."""
        return self._slave.component

    def function(self, name: str, argument_types: Sequence[Any]) -> Callable[..., int]:
        """Return a function of the FMU's library; it returns the status and raises nothing."""
        function = self._slave.dll[f"{self._slave.modelIdentifier}_{name}" if self.dialect.prefixed else name]
        function.argtypes, function.restype = argument_types, c_int
        return function

    def element(self, name: str) -> ArrayElement:
        """Return a variable or an element of an array by its name."""
        return self._elements[name]

    @abstractmethod
    def sets_at_events(self, name: str) -> bool:
        """Return whether a variable is set in event mode."""

    @abstractmethod
    def event(self) -> AbstractContextManager[None]:
        """Enter event mode between two steps, and leave it at the end."""

    def follow(self, port: LibraryPort, group: VariableBlock, buffer: NDArray[Any]) -> None:
        """Let inputs run straight, by the values and slopes of a port, where the FMU asks for them within steps."""
        raise NotImplementedError

    # -- life cycle -----------------------------------------------------------------------------------------

    def own_tolerance(self, given: float | None) -> float | None:
        """Return the tolerance of the unit's own solver: as given, else what it suggests."""
        return self.suggested_tolerance if given is None else given

    def _end(self, reached: float, end: float, step: float) -> None:
        """Record that the FMU ended the run at a time in a step in s.

        Raises
        ------
        FmuEnded
            When that is before the end of the step.
        """
        self.ends[self.name] = reached
        if reached < end - tolerance(step, self.time, end):
            raise FmuEnded(reached)

    def read_next_event(self) -> float:
        """Return when a signal of the FMU's own jumps or bends next, in s; infinity where it does not say."""
        if not self._gives_next_event():
            return math.inf
        if self._next_event is None:
            self._next_event = LibraryPort(self, [_NEXT_EVENT])
        return float(self._next_event.read()[0])

    def _gives_next_event(self) -> bool:
        element = self._elements.get(_NEXT_EVENT)
        if element is None or self.kinds[_NEXT_EVENT] != "Real" or unit_name(element.described) != "s":
            return False
        return element.described.causality in ("local", "output", None)

    def close(self) -> None:
        """Free saved states, terminate and free the instance; after a fatal error the standard forbids all three."""
        if self._fatal:
            return
        for state in filter(None, self._states.values()):
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
        FmuError
            When the FMU cannot save its state.
        """
        if slot not in self._states:
            self._states[slot] = c_void_p()
        assert self._get_state is not None
        assert self.dialect.get_state is not None
        status = self._get_state(self.component, byref(self._states[slot]))
        if status > WARNING:
            self.fail(self.dialect.get_state, status)
        self._memories[slot] = self._memory()
        self._keeps(slot, time)

    def restore(self, slot: str) -> None:
        """Go back to the state that was kept under a name; what was set since counts no more.

        Raises
        ------
        FmuError
            When the FMU refuses.
        """
        assert self._set_state is not None
        assert self.dialect.set_state is not None
        status = self._set_state(self.component, self._states[slot])
        if status > WARNING:
            self.fail(self.dialect.set_state, status)
        self._remember(self._memories[slot])
        self.sent.clear()
        self.ends.pop(self.name, None)

    def state_table(self, slot: str, calls: FmuCalls) -> SavedState:
        """Return the state under a name for compiled code, which saves and restores it; see `take_over`."""
        assert self._get_state is not None
        assert self._set_state is not None
        get, restore = self.dialect.get_state, self.dialect.set_state
        assert get is not None
        assert restore is not None
        return SavedState(
            GetState(address_of(self._get_state), calls.number(self, get)),
            SetState(address_of(self._set_state), calls.number(self, restore)),
            pointer(self._states.setdefault(slot, c_void_p())),
        )

    def take_over(self, slot: str, time: float, saved: SavedState) -> None:
        """Record that compiled code has saved the state at a time in s under a name."""
        self._memories[slot] = self._memory_of(saved.next_event)
        self._keeps(slot, time)

    def serialize(self) -> bytes:
        """Return the state for another process, behind what there is to be kept beside it.

        Raises
        ------
        FmuError
            When the FMU refuses.
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
        FmuError
            When the FMU refuses.
        """
        if _SERIALIZED in self._states:
            self._free_state(self._states.pop(_SERIALIZED))
        size = len(self._memory())  # which follows from the description of the unit
        self._states[_SERIALIZED] = self._call("deserializeFMUState", state[size:])
        self._memories[_SERIALIZED] = state[:size]
        self.restore(_SERIALIZED)

    def _memory(self) -> bytes:
        """Return the additional data of a saved state, of fixed size."""
        return b""

    def _memory_of(self, next_event: float) -> bytes:
        """Return the additional data of a state that compiled code has saved, whose next event is at a time in s."""
        del next_event
        return b""

    def _remember(self, memory: bytes) -> None:
        """Restore the additional data of a saved state."""
        del memory

    @abstractmethod
    def _free_state(self, state: Any) -> None:
        """Free a saved state."""

    # -- values ---------------------------------------------------------------------------------------------

    def port(self, names: Sequence[str], values: Floats | None = None) -> LibraryPort:
        """Return a port of numeric variables; `values` is its array."""
        return LibraryPort(self, names, values)

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type or beyond its bounds.
        """
        if name not in self._elements:
            raise InputError(f"{self.name} has no variable '{name}'; {closest_match(name, self._elements)}")
        element = self._elements[name]
        if element.described.causality == STRUCTURAL:  # set in configuration mode alone
            if is_start(element.described, value, self.units[name]):
                return
            raise InputError(f"{self.name}.{name} cannot be set to {value}: {refused_start(element.described)}")
        self._set(element, accepted_value(f"{self.name}.{name}", element.described, self.variables[name], value))
        self.sent.clear()
        for port in self.partial:
            port.refresh()

    @abstractmethod
    def _set(self, element: ArrayElement, value: float | int | bool | str | bytes) -> None:
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


def _suggested_tolerance(description: Any) -> float | None:
    """Return the relative tolerance of a description that FMPy read."""
    experiment = description.defaultExperiment
    return float(experiment.tolerance) if experiment is not None and experiment.tolerance else None
