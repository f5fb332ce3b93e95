"""Signals in the form of compiled code, and validation of tables."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple


class SignalTable(NamedTuple):
    """A signal in the form of compiled code.

    Attributes
    ----------
    kind
        Its place in `SignalKind` of runtime.h.
    times
        Its events in s.
    values
        Numbers of its kind.
    initial
        Value before the first event, of one that jumps.
    """

    kind: int
    times: tuple[float, ...]
    values: tuple[float, ...]
    initial: float = 0.0


def check_times(times: tuple[float, ...], count: int, what: str) -> None:
    """Check the times of a table: ascending, and as many as its values.

    Raises
    ------
    ValueError
        When there is none, they do not ascend, or there are more or less.
    """
    if not times:
        raise ValueError("times is empty; a signal needs at least one point")
    if len(times) != count:
        raise ValueError(f"there are {len(times)} times but {count} {what}")
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ValueError(f"times is {times}; it must ascend")
