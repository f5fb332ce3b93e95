"""What the functions of parts give, checked against what the parts have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.part import DynamicPart
from mbsfmu.modelling.quantity import Quantity

Answer = TypeVar("Answer")


def picked(
    part: DynamicPart, function: str, quantities: Iterable[Quantity], given: Mapping[str, Answer]
) -> list[Answer]:
    """Return what a function gave for each quantity, in their order.

    Raises
    ------
    DataError
        When it gave more or less than these.
    """
    names = [quantity.name for quantity in quantities]
    if sorted(names) != sorted(given):
        listed, wanted = (", ".join(sorted(each)) or "nothing" for each in (given, names))
        raise DataError(f"{part.type} '{part.name}': {function} gives {listed}; it must give {wanted}")
    return [given[name] for name in names]


def in_order(
    part: DynamicPart, function: str, quantities: Iterable[Quantity], given: Mapping[str, Array | float]
) -> list[Array | float]:
    """Return the numbers that a function gave for each quantity, in their order.

    Raises
    ------
    DataError
        When it gave more or less than these, or arrays of numbers.
    """
    values = picked(part, function, quantities, given)
    for name, value in given.items():
        if np.shape(value) != ():
            raise DataError(
                f"{part.type} '{part.name}': {function} gives an array of shape {np.shape(value)} as "
                f"'{name}'; it must be one number"
            )
    return values
