"""Vectors of component variables: arrays in FMI versions that have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mbsfmu.modelling.variables import Variable

_COMPONENTS = ("wxyz", "xyz")  # of quaternions, and of vectors in space


@dataclass(frozen=True)
class Entry:
    """One variable or one array of several, as a description lists it.

    Attributes
    ----------
    name
        Its name; of an array that of its components without their last part.
    first, size
        Index of the first variable, and how many there are.
    """

    name: str
    first: int
    size: int


def entries(variables: Sequence[Variable], apart: Collection[str] = ()) -> tuple[Entry, ...]:
    """Return variables in order, with components of vectors combined.

    `payload.force.x`, `.y` and `.z` are the array `payload.force` of three where all of them follow each other and are
    alike in all that a description says of an array as a whole, and where nothing else has that name.

    Parameters
    ----------
    variables
        All of a unit.
    apart
        Names of variables that stay single, with all components of their vectors.
    """
    names = {each.name for each in variables}
    found: list[Entry] = []
    place = 0
    while place < len(variables):
        size = next((len(axes) for axes in _COMPONENTS if _is_vector(variables[place : place + len(axes)], axes)), 1)
        components = [each.name for each in variables[place : place + size]]
        name = components[0].rpartition(".")[0]
        if size == 1 or name in names or not set(components).isdisjoint(apart):
            found += [Entry(single, place + index, 1) for index, single in enumerate(components)]
        else:
            found.append(Entry(name, place, size))
        place += size
    return tuple(found)


def _is_vector(variables: Sequence[Variable], axes: str) -> bool:
    """Return whether variables are the components of one vector, complete and in order."""
    vector = variables[0].name.rpartition(".")[0]
    if not vector or [each.name for each in variables] != [f"{vector}.{axis}" for axis in axes]:
        return False
    return len({(v.causality, v.variability, v.unit, v.minimum, v.maximum) for v in variables}) == 1
