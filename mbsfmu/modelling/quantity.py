"""Named quantities with units, and arrays accessed by these names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mbsfmu.modelling.fields import Array


@dataclass(frozen=True)
class Quantity:
    """A named number with its unit.

    Attributes
    ----------
    name
        Structured name, `component.quantity`.
    unit
        SI unit.
    start
        Value before anything is computed.
    minimum, maximum
        Bounds of what may be set.
    nominal
        Magnitude it usually has.
    description
        One line on it.
    tunable
        Of a parameter: whether it may change while a circuit works, as settings of valves and pumps do.
    shared
        Of an output: whether it is there for other systems, and not only to be looked at.
    rated
        Of an input: whether the next input of its part is its rate, by which it runs on where it is held.
    saturates
        Of an input: whether values beyond its bounds are taken, and act as the bound.
    """

    name: str
    unit: str
    start: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""
    tunable: bool = False
    shared: bool = False
    rated: bool = False
    saturates: bool = False


def belonging_to(owner: str, quantity: Quantity) -> Quantity:
    """Return a quantity with its owner's name as prefix."""
    return replace(quantity, name=f"{owner}.{quantity.name}")


def places(**groups: Iterable[Quantity]) -> dict[str, tuple[str, int]]:
    """Return group and index of each quantity by name, for `NamedValues`."""
    return {each.name: (group, index) for group, own in groups.items() for index, each in enumerate(own)}


class NamedValues:
    """Arrays whose elements are accessed by name.

    Parameters
    ----------
    places
        Group and index of each element, as of `places`.
    arrays
        Arrays of some groups; elements of the others are absent.
    """

    def __init__(self, places: Mapping[str, tuple[str, int]], **arrays: Array) -> None:
        self._arrays = arrays
        self._place = places

    def __getitem__(self, name: str) -> Array:
        group, index = self._place[name]
        element: Array = self._arrays[group][index]
        return element

    def __contains__(self, name: object) -> bool:
        return name in self._place and self._place[str(name)][0] in self._arrays

    def __iter__(self) -> Iterator[str]:
        return (name for name, (group, _) in self._place.items() if group in self._arrays)
