"""Units of measurement as FMI 2.0 and SSP 1.0 define them, and the conversion between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mbsfmu.base.errors import InputError

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
UNIT_ATTRIBUTES = (*BASE_UNITS, "factor", "offset")
"""Attributes of a `BaseUnit` element."""


@dataclass(frozen=True)
class UnitOfMeasurement:
    """A unit: a value in SI base units is factor · (value in this unit) + offset [FMI 2.0.4, section 2.2.2].

    Attributes
    ----------
    name
        Its name, such as `bar`.
    exponents
        Of the SI base units in the order of `BASE_UNITS`; None where the file that uses the unit does not define it.
    factor, offset
        Of the conversion to SI base units.
    """

    name: str
    exponents: tuple[int, ...] | None = None
    factor: float = 1.0
    offset: float = 0.0

    @classmethod
    def of_attributes(cls, name: str, attributes: Mapping[Any, Any]) -> UnitOfMeasurement:
        """Make a unit of the attributes of a `BaseUnit` element.

        Raises
        ------
        InputError
            When the factor is zero: no value could be converted to such a unit.
        """
        exponents = tuple(int(attributes.get(base, 0)) for base in BASE_UNITS)
        factor, offset = float(attributes.get("factor", 1.0)), float(attributes.get("offset", 0.0))
        if factor == 0.0:
            raise InputError(f"the unit '{name}' has the factor 0; a unit needs another one")
        return cls(name, exponents, factor, offset)


@dataclass(frozen=True)
class LinearMap:
    """Conversion of a value: factor · value + offset."""

    factor: float = 1.0
    offset: float = 0.0

    def __call__(self, value: float) -> float:
        """Return the value at the end."""
        return self.factor * value + self.offset

    def then(self, other: LinearMap) -> LinearMap:
        """Return the composition of this map with a following one."""
        return LinearMap(other.factor * self.factor, other.factor * self.offset + other.offset)

    def inverse(self) -> LinearMap:
        """Return the inverse map."""
        return LinearMap(1.0 / self.factor, -self.offset / self.factor)


IDENTITY = LinearMap()


def conversion(source: UnitOfMeasurement, target: UnitOfMeasurement) -> LinearMap:
    """Return the conversion between two units.

    A unit without a name or called `1` says nothing of its values, which then stay as they are.

    Raises
    ------
    InputError
        When the units are of different quantities, or one of them is not defined.
    """
    if source.name == target.name or {source.name, target.name} & {"1", ""}:
        return IDENTITY
    for unit in (source, target):
        if unit.exponents is None:
            raise InputError(f"the unit '{unit.name}' has no definition in SI base units")
    if source.exponents != target.exponents:
        raise InputError(f"'{source.name}' and '{target.name}' are units of different quantities")
    return LinearMap(source.factor / target.factor, (source.offset - target.offset) / target.factor)
