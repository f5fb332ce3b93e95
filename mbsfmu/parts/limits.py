"""Optional limits of blocks."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mbsfmu.model.block import Block
from mbsfmu.model.numbers import Numbers
from mbsfmu.modelling import Array


class Limited(Protocol):
    """A block with an optional lower and upper limit."""

    @property
    def minimum(self) -> float | None:
        """The lower limit."""
        ...

    @property
    def maximum(self) -> float | None:
        """The upper limit."""
        ...


def check_room(block: Block, smaller: str = "minimum", greater: str = "maximum") -> None:
    """Refuse two optional numbers of a block of which the second does not exceed the first.

    Raises
    ------
    ValueError
        If the second does not exceed the first.
    """
    least, most = getattr(block, smaller), getattr(block, greater)
    if least is not None and most is not None and not least < most:
        raise ValueError(f"{smaller} is {least:g} and {greater} {most:g}; {greater} must be more than {smaller}")


def ordered_limits(block: Limited) -> tuple[tuple[str, str], ...]:
    """Return the limits as a pair of parameters of which the second must be greater, if both are given."""
    return () if block.minimum is None or block.maximum is None else (("minimum", "maximum"),)


def limited(block: Limited, now: Numbers, value: Array) -> Array:
    """Return a value saturated at the given limits of a block."""
    if block.minimum is not None:
        value = np.maximum(value, now["minimum"])
    return value if block.maximum is None else np.minimum(value, now["maximum"])
