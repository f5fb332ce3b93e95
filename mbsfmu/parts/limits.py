"""Limits of blocks that may be left out."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mbsfmu.data import Array
from mbsfmu.model.numbers import Numbers


class Limited(Protocol):
    """A block with a least and a greatest value, either of which may be None."""

    @property
    def minimum(self) -> float | None:
        """The least value."""
        ...

    @property
    def maximum(self) -> float | None:
        """The greatest value."""
        ...


def check_limits(block: Limited) -> None:
    """Refuse limits that leave no room.

    Raises
    ------
    ValueError
        When the greatest value is not more than the least.
    """
    if block.minimum is not None and block.maximum is not None and not block.minimum < block.maximum:
        raise ValueError(
            f"minimum is {block.minimum:g} and maximum {block.maximum:g}; maximum must be more than minimum"
        )


def ordered_limits(block: Limited) -> tuple[tuple[str, str], ...]:
    """Return the limits as parameters the second of which must be greater, where there are both."""
    return () if block.minimum is None or block.maximum is None else (("minimum", "maximum"),)


def limited(block: Limited, now: Numbers, value: Array) -> Array:
    """Return a value within those limits of a block that it has."""
    if block.minimum is not None:
        value = np.maximum(value, now["minimum"])
    return value if block.maximum is None else np.minimum(value, now["maximum"])
