"""Fast access to numeric variables of a unit of FMI 2.0: one call for a whole list of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_double, c_int, c_size_t, c_ssize_t, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.layout import Access, Group, PortTable, Rates
from mbsfmu.cosim.instance import Calls, Floats, Port

if TYPE_CHECKING:
    from mbsfmu.cosim.fmi2_instance import Fmi2Instance

_KINDS = (
    (("Real",), "Real", np.float64),
    (("Integer", "Enumeration"), "Integer", np.int32),
    (("Boolean",), "Boolean", np.int32),
)
_ACCESS = (c_void_p, c_void_p, c_size_t, c_void_p)
_DERIVATIVES = (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)


class _Group:
    """Variables of one FMI type: their references, their places among the names, and a buffer of their type."""

    def __init__(
        self,
        instance: Fmi2Instance,
        names: Sequence[str],
        kind: str,
        chosen: list[int],
        buffer: NDArray[Any],
        shared: bool,
    ) -> None:
        self.chosen = np.array(chosen, dtype=np.intp)
        self.buffer, self.shared = buffer, shared
        self.real = kind == "Real"
        references = [instance.reference(names[index]) for index in chosen]
        self.references = (c_uint32 * len(chosen))(*references)
        self.get = instance.function(f"fmi2Get{kind}", _ACCESS)
        self.set = instance.function(f"fmi2Set{kind}", _ACCESS)
        self.kind = kind
        self.arguments = (instance.component, self.references, len(chosen), buffer.ctypes.data)

    def table(self, instance: Fmi2Instance, calls: Calls) -> Group:
        """Return the group as compiled code sees it."""
        return Group(
            Access(address_of(self.get), calls.number(instance, f"fmi2Get{self.kind}")),
            Access(address_of(self.set), calls.number(instance, f"fmi2Set{self.kind}")),
            self.references,
            len(self.chosen),
            self.chosen.ctypes.data_as(POINTER(c_ssize_t)),
            self.buffer.ctypes.data,
            not self.real,
            self.shared,
        )


def address_of(function: Callable[..., int]) -> int | None:
    """Return the address of a function of a library."""
    return ctypes.cast(function, c_void_p).value  # pyright: ignore[reportArgumentType]


class Fmi2Port(Port):
    """A port of a unit of FMI 2.0."""

    def __init__(self, instance: Fmi2Instance, names: Sequence[str], values: Floats | None = None) -> None:
        super().__init__(instance, names, values)
        self._unit, self._fail = instance, instance.fail
        self._groups: list[_Group] = []
        for kinds, kind, element in _KINDS:
            chosen = [index for index, name in enumerate(names) if instance.kinds[name] in kinds]
            if chosen:
                shared = element is np.float64 and len(chosen) == len(names)
                buffer = self.values if shared else np.zeros(len(chosen), dtype=element)
                self._groups.append(_Group(instance, names, kind, chosen, buffer, shared))
        self._only = self._groups[0] if self._groups and self._groups[0].shared else None
        self._rates = _Rates(instance, self) if self._only else None

    @property
    def all_real(self) -> bool:
        """Whether all variables are Real."""
        return self._only is not None

    def read(self) -> Floats:
        """Read the variables into `values` and return it."""
        if self._only is not None:
            status = self._only.get(*self._only.arguments)
            if status > 1:
                self._fail("fmi2GetReal", status)
            return self.values
        for group in self._groups:
            status = group.get(*group.arguments)
            if status > 1:
                self._fail(f"fmi2Get{group.kind}", status)
            self.values[group.chosen] = group.buffer
        return self.values

    def write(self) -> None:
        """Set the variables to `values`; whole numbers are rounded."""
        if self._only is not None:
            status = self._only.set(*self._only.arguments)
            if status > 1:
                self._fail("fmi2SetReal", status)
            return
        for group in self._groups:
            chosen = self.values[group.chosen]
            group.buffer[:] = chosen if group.real else np.rint(chosen)
            status = group.set(*group.arguments)
            if status > 1:
                self._fail(f"fmi2Set{group.kind}", status)

    def write_slopes(self) -> None:
        """Set the first derivatives of the inputs by time to `slopes`; all must be Real."""
        assert self._rates is not None
        self._rates.write()

    def read_rates(self) -> Floats:
        """Return the first derivatives of the outputs by time in 1/s; all must be Real."""
        assert self._rates is not None
        return self._rates.read()

    def table(self, calls: Calls) -> PortTable:
        """Return the port as compiled code sees it."""
        groups = [group.table(self._unit, calls) for group in self._groups]
        result = PortTable(self._unit.component, (Group * len(groups))(*groups), len(groups), len(self.names))
        result.values = self.values.ctypes.data_as(POINTER(c_double))
        result.slopes = self.slopes.ctypes.data_as(POINTER(c_double))
        if self._rates:
            self._rates.enter(result, calls)
        return result


class _Rates:
    """First derivatives by time of the variables of a port."""

    def __init__(self, instance: Fmi2Instance, port: Port) -> None:
        self._instance = instance
        count = len(port.names)
        self._references = (c_uint32 * count)(*(instance.reference(name) for name in port.names))
        self._orders = (c_int * count)(*([1] * count))
        self._rates = np.zeros(count)
        self._set = instance.function("fmi2SetRealInputDerivatives", _DERIVATIVES)
        self._get = instance.function("fmi2GetRealOutputDerivatives", _DERIVATIVES)
        given = (instance.component, self._references, count, self._orders)
        self._set_arguments = (*given, port.slopes.ctypes.data)
        self._get_arguments = (*given, self._rates.ctypes.data)

    def enter(self, table: PortTable, calls: Calls) -> None:
        """Write into a table what compiled code has to know."""
        table.references, table.orders = self._references, self._orders
        table.rates = self._rates.ctypes.data_as(POINTER(c_double))
        set_number = calls.number(self._instance, "fmi2SetRealInputDerivatives")
        table.set_rates = Rates(address_of(self._set), set_number)
        get_number = calls.number(self._instance, "fmi2GetRealOutputDerivatives")
        table.get_rates = Rates(address_of(self._get), get_number)

    def write(self) -> None:
        status = self._set(*self._set_arguments)
        if status > 1:
            self._instance.fail("fmi2SetRealInputDerivatives", status)

    def read(self) -> Floats:
        status = self._get(*self._get_arguments)
        if status > 1:
            self._instance.fail("fmi2GetRealOutputDerivatives", status)
        return self._rates
