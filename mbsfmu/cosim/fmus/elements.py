"""FMI 3.0 arrays element by element: `force` of three elements is `force[1]`, `force[2]`, `force[3]`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from mbsfmu.base.errors import InputError

MOST_ELEMENTS = 1_000_000
"""Largest number of elements of one array; a larger one is treated as a damaged description."""


@dataclass(frozen=True)
class ArrayElement:
    """An element of a described variable; a scalar has one.

    Attributes
    ----------
    name
        Name with the indices, which count from 1 as the naming convention `structured` has them.
    described
        The variable as FMPy has read it.
    place
        Where it stands among the elements, the last index counting fastest [FMI 3.0.2, section 2.2.6.2].
    size
        Number of elements of the variable.
    """

    name: str
    described: Any
    place: int = 0
    size: int = 1


def elements_of(described: Any) -> list[ArrayElement]:
    """Return the elements of a described variable.

    Raises
    ------
    InputError
        When there are too many to be meant.
    """
    if not described.dimensions:
        return [ArrayElement(described.name, described)]
    size = math.prod(described.shape)
    if size > MOST_ELEMENTS:
        raise InputError(f"{described.name} has {size} elements; at most {MOST_ELEMENTS} are taken")
    indices = product(*(range(1, count + 1) for count in described.shape))
    return [
        ArrayElement(f"{described.name}[{','.join(map(str, each))}]", described, place, size)
        for place, each in enumerate(indices)
    ]


def all_elements(description: Any) -> Iterator[ArrayElement]:
    """Yield the elements of all variables of a description that FMPy read."""
    for described in description.modelVariables:
        yield from elements_of(described)


def described_arrays(description: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the elements of each array of a description that FMPy read."""
    return {
        each.name: tuple(element.name for element in elements_of(each))
        for each in description.modelVariables
        if each.dimensions
    }
