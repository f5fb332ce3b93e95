"""Repetitions in a sequence of memory indices: a few rows that recur at constant distances.

Along a chain one row repeats; where joints alternate, or two handles take turns, a few rows do. Rows that do not repeat
are separate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbsfmu.tracing.tape.dependence import MemoryIndices

LONGEST = 64
"""Largest number of rows of one repetition: iteration matrices of rings take 28 calls per link."""


@dataclass(frozen=True)
class Repetition:
    """A repetition of rows.

    Attributes
    ----------
    begin
        Index of the first row.
    length
        How many rows are repeated.
    count
        How often they come: row k of repetition r is row k of the first moved on r times by a distance.
    """

    begin: int
    length: int
    count: int


def repetitions(rows: MemoryIndices, kinds: MemoryIndices) -> Iterator[Repetition]:
    """Return a sequence divided into repetitions, the longest first.

    Parameters
    ----------
    rows
        Places, shape (rows, places).
    kinds
        What each row is for; only rows of one kind are alike, shape (rows,).
    """
    gains, lengths, counts = _longest(_hashed(rows), kinds)
    begin = 0
    while begin < len(rows):
        found = Repetition(begin, int(lengths[begin]), int(counts[begin]))
        if gains[begin] <= 0 or not _repeats(rows, found):
            found = Repetition(begin, 1, 1)
        yield found
        begin += found.length * found.count


def _hashed(rows: MemoryIndices) -> NDArray[np.uint64]:
    """Return a hash for each row, linear in the indices, so that equal distances are preserved."""
    weights = np.random.default_rng(1).integers(1, 2**63, size=rows.shape[1], dtype=np.uint64)
    return (rows.astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64)


def _longest(hashed: NDArray[np.uint64], kinds: MemoryIndices) -> tuple[MemoryIndices, MemoryIndices, MemoryIndices]:
    """Return, for a repetition starting at each row, the saved rows, its length, and its count."""
    size = len(hashed)
    gains, lengths, counts = (
        np.zeros(size, dtype=np.int64),
        np.ones(size, dtype=np.int64),
        np.ones(size, dtype=np.int64),
    )
    for length in range(1, min(LONGEST, size // 3) + 1):
        alike = kinds[length:] == kinds[:-length]
        distances = hashed[length:] - hashed[:-length]
        regular = alike[length:] & alike[:-length] & (distances[length:] == distances[:-length])
        ends = _next_false(regular) + 2 * length  # of rows that go on as the two before them, by where these begin
        begins = np.arange(len(regular))
        count = np.where(_next_false(alike)[: len(regular)] - begins >= length, (ends - begins) // length, 1)
        gain = (count - 2) * length
        better = np.flatnonzero(gain > gains[: len(regular)])
        gains[better], lengths[better], counts[better] = gain[better], length, count[better]
    return gains, lengths, counts


def _next_false(values: NDArray[np.bool_]) -> MemoryIndices:
    """Return the next false value from each index on; the number of values without one."""
    places = np.where(values, len(values), np.arange(len(values)))
    return np.minimum.accumulate(places[::-1])[::-1]


def _repeats(rows: MemoryIndices, found: Repetition) -> bool:
    """Return whether rows repeat exactly, which equal hashes only suggest."""
    block = rows[found.begin : found.begin + found.length * found.count].reshape(found.count, found.length, -1)
    distances = np.diff(block, axis=0)
    return bool(np.all(distances == distances[0]))
