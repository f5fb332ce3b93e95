"""Checks of the results of parts' functions against their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import Quantity

Answer = TypeVar("Answer")


def picked(owner: str, function: str, quantities: Iterable[Quantity], given: Mapping[str, Answer]) -> list[Answer]:
    """Return the results of a function in the order of the quantities; `owner` is type and name of its part.

    Raises
    ------
    DataError
        If names are missing or unknown.
    """
    names = [quantity.name for quantity in quantities]
    if sorted(names) != sorted(given):
        listed, wanted = (", ".join(sorted(each)) or "nothing" for each in (given, names))
        raise DataError(f"{owner}: {function} gives {listed}; it must give {wanted}")
    return [given[name] for name in names]


def in_order(
    owner: str, function: str, quantities: Iterable[Quantity], given: Mapping[str, Array | float]
) -> list[Array | float]:
    """Return the numeric results of a function in the order of the quantities; `owner` is type and name of its part.

    Raises
    ------
    DataError
        If names are missing or unknown, or results are not scalars.
    """
    values = picked(owner, function, quantities, given)
    for name, value in given.items():
        if np.shape(value) != ():
            raise DataError(
                f"{owner}: {function} gives an array of shape {np.shape(value)} as '{name}'; it must be one number"
            )
    return values
