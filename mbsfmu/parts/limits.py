"""Limits of blocks that may be left out."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mbsfmu.model.block import Block
from mbsfmu.model.numbers import Numbers
from mbsfmu.modelling import Array


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


def check_room(block: Block, smaller: str = "minimum", greater: str = "maximum") -> None:
    """Refuse two numbers of a block, either of which may be None, that leave no room between them.

    Raises
    ------
    ValueError
        When the second is not more than the first.
    """
    least, most = getattr(block, smaller), getattr(block, greater)
    if least is not None and most is not None and not least < most:
        raise ValueError(f"{smaller} is {least:g} and {greater} {most:g}; {greater} must be more than {smaller}")


def ordered_limits(block: Limited) -> tuple[tuple[str, str], ...]:
    """Return the limits as parameters the second of which must be greater, where there are both."""
    return () if block.minimum is None or block.maximum is None else (("minimum", "maximum"),)


def limited(block: Limited, now: Numbers, value: Array) -> Array:
    """Return a value within those limits of a block that it has."""
    if block.minimum is not None:
        value = np.maximum(value, now["minimum"])
    return value if block.maximum is None else np.minimum(value, now["maximum"])
