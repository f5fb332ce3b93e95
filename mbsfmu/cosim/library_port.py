"""Fast access to numeric variables of a loaded unit: one call for a whole list of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_bool, c_double, c_int, c_size_t, c_ssize_t, c_uint32, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.layout import Access, Group, PortTable, Rates
from mbsfmu.cosim.elements import Element
from mbsfmu.cosim.instance import Calls, Floats, Port
from mbsfmu.errors import SimulationError

if TYPE_CHECKING:
    from mbsfmu.cosim.library_instance import LibraryInstance

_EXACT = 2.0**53
"""Whole numbers of this magnitude and more are not all floating-point numbers."""


@dataclass(frozen=True)
class Dialect:
    """How a version of FMI reads and writes values.

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
        Functions that keep a state, and go back to one.
    truth
        Type of a Boolean that a function takes or gives.
    """

    prefix: str
    kinds: tuple[tuple[tuple[str, ...], str, type], ...]
    counts: bool
    get_rates: str | None
    set_rates: str | None
    get_state: str
    set_state: str
    truth: type[c_int] | type[c_bool]


def _laid_out(elements: Sequence[Element]) -> tuple[list[int], NDArray[np.intp], int]:
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


class _Group:
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
        self._unit.settle_environment()
        if status > 1:
            self._unit.fail(f"{self._unit.dialect.prefix}Get{self.kind}", status)
        if self.buffer.itemsize == 8 and not self.real and np.any(np.abs(self.buffer.astype(float)) > _EXACT):
            raise SimulationError(
                f"{self._unit.name} at t = {self._unit.time:.9g} s gives the whole number "
                f"{self.buffer[np.argmax(np.abs(self.buffer.astype(float)))]}; beyond 2^53 the master would round it"
            )

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
            )
        self.buffer[self.slots] = rounded.astype(self.buffer.dtype)

    def changes(self) -> bool:
        """Tell whether the buffer has other values than the unit, as far as is known."""
        return self._unit.sent.get(self._key) != self.buffer.tobytes()

    def send(self) -> None:
        """Set what is in the buffer."""
        status = self.set(*self.arguments)
        if status > 1:
            self._unit.fail(f"{self._unit.dialect.prefix}Set{self.kind}", status)
        if self.at_events:
            self._unit.sent[self._key] = self.buffer.tobytes()

    def table(self, calls: Calls) -> Group:
        """Return the group as compiled code sees it."""
        prefix = self._unit.dialect.prefix
        return Group(
            self._access(self.get, calls.number(self._unit, f"{prefix}Get{self.kind}")),
            self._access(self.set, calls.number(self._unit, f"{prefix}Set{self.kind}")),
            self.references,
            len(self.references),
            len(self.buffer),
            self._places.ctypes.data_as(POINTER(c_ssize_t)),
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


class LibraryPort(Port):
    """A port of a loaded unit."""

    def __init__(self, unit: LibraryInstance, names: Sequence[str], values: Floats | None = None) -> None:
        super().__init__(unit, names, values)
        self.unit = unit
        self._groups: list[_Group] = []
        for types, kind, element in unit.dialect.kinds:
            chosen = [index for index, name in enumerate(names) if unit.element(name).described.type in types]
            for at_events in (False, True):
                group = [index for index in chosen if unit.sets_at_events(names[index]) is at_events]
                if group:
                    self._groups.append(_Group(self, kind, element, group, at_events))
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
            self.unit.follow(self, self._groups[0].table(Calls()), self._groups[0].buffer)

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

    def table(self, calls: Calls) -> PortTable:
        """Return the port as compiled code sees it."""
        groups = [group.table(calls) for group in self._groups]
        result = PortTable(self.unit.component, (Group * len(groups))(*groups), len(groups), len(self.names))
        result.values = self.values.ctypes.data_as(POINTER(c_double))
        result.slopes = self.slopes.ctypes.data_as(POINTER(c_double))
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

    def enter(self, table: PortTable, calls: Calls) -> None:
        """Write into a table what compiled code has to know."""
        dialect = self._unit.dialect
        table.references, table.orders, table.reference_count = self._references, self._orders, len(self._references)
        table.rates, table.rate_count = self._rates.ctypes.data_as(POINTER(c_double)), len(self._rates)
        table.rate_places = self._slots.ctypes.data_as(POINTER(c_ssize_t))
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
