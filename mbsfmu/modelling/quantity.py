"""Named quantities with units, and arrays accessed by these names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def belonging_to(owner: str, quantity: Quantity) -> Quantity:
    """Return a quantity with its owner's name as prefix."""
    return replace(quantity, name=f"{owner}.{quantity.name}")


class NamedValues:
    """Arrays whose elements are accessed by name.

    Parameters
    ----------
    groups
        Pairs of quantities and the array of their values.
    """

    def __init__(self, *groups: tuple[Sequence[Quantity], Array]) -> None:
        self._place = {
            quantity.name: (array, index) for quantities, array in groups for index, quantity in enumerate(quantities)
        }

    def __getitem__(self, name: str) -> Array:
        array, index = self._place[name]
        element: Array = array[index]
        return element

    def __contains__(self, name: object) -> bool:
        return name in self._place

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)
