"""Dependence between recorded calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

MemoryIndices = NDArray[np.int64]


@dataclass(frozen=True)
class Call:
    """A recorded call of a kernel.

    Attributes
    ----------
    kernel
        Index of the kernel.
    taken, made
        Recorded places of its arguments, those of constants negative, and of its results.
    section
        Number of the section that it belongs to, negative for what joins some; None where it was not said.
    stage
        Number of the stage there; None where it was not said.
    """

    kernel: int
    taken: MemoryIndices
    made: MemoryIndices
    section: int | None = None
    stage: int | None = None


class Dependence:
    """Dependence between all calls.

    Parameters
    ----------
    calls
        As they were recorded.
    count
        How many places there are.
    given
        Places of what is given: it counts as made by no call.
    """

    def __init__(self, calls: Sequence[Call], count: int, given: MemoryIndices | None = None) -> None:
        size = len(calls)
        self._owner = np.full(count, -1, dtype=np.int64)
        made = np.repeat(np.arange(size), [len(call.made) for call in calls])
        self._owner[joined([call.made for call in calls])] = made
        if given is not None:
            self._owner[given] = -1
        users = np.repeat(np.arange(size), [len(call.taken) for call in calls])
        owners = self.owners(joined([call.taken for call in calls]))
        pairs = np.sort((users * size + owners)[owners >= 0])
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
        self._users, self._owners = np.divmod(pairs, max(size, 1))
        self._size = size

    def owners(self, places: MemoryIndices) -> MemoryIndices:
        """Return the indices of the calls that computed given memory indices, −1 for none."""
        return np.where(places < 0, -1, self._owner[np.maximum(places, 0)])

    def reached(self, places: MemoryIndices) -> MemoryIndices:
        """Return the indices of the calls on which given memory indices depend, ascending."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - runs of compiled code start without SciPy
        from scipy.sparse.csgraph import breadth_first_order  # noqa: PLC0415 - as above

        wanted = np.unique(self.owners(places))
        wanted = wanted[wanted >= 0]
        end = self._size  # takes what is wanted
        users = np.concatenate([self._users, np.full(len(wanted), end)])
        owners = np.concatenate([self._owners, wanted])
        graph = csr_array((np.ones(len(users), dtype=bool), (users, owners)), shape=(end + 1, end + 1))
        found = breadth_first_order(graph, end, return_predecessors=False)
        return np.sort(found[1:]).astype(np.int64)

    @cached_property
    def before(self) -> Grouped:
        """For each call the indices of the calls whose results it uses, ascending."""
        return Grouped(self._users, self._owners, self._size)

    @cached_property
    def after(self) -> Grouped:
        """For each call the indices of the calls that use its results, ascending."""
        order = np.argsort(self._owners, kind="stable")
        return Grouped(self._owners[order], self._users[order], self._size)


class Grouped:
    """Numbers by group in one array; many short lists would burden the garbage collector.

    Parameters
    ----------
    groups, numbers
        By number its group, ascending, and the number.
    count
        How many groups there are.
    """

    def __init__(self, groups: MemoryIndices, numbers: MemoryIndices, count: int) -> None:
        self._ends = [0, *np.searchsorted(groups, np.arange(count), side="right").tolist()]
        self._numbers = numbers.tolist()

    def __getitem__(self, group: int) -> list[int]:
        return self._numbers[self._ends[group] : self._ends[group + 1]]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each group has."""
        return np.diff(self._ends).tolist()


def needed(
    calls: Sequence[Call], results: Sequence[MemoryIndices], count: int, given: MemoryIndices | None = None
) -> list[Call]:
    """Return the calls on which results depend, in order.

    Parameters
    ----------
    calls
        As they were recorded.
    results
        Recorded places of the results.
    count, given
        As for `Dependence`.
    """
    found = Dependence(calls, count, given).reached(joined([each.ravel() for each in results]))
    return [calls[index] for index in found.tolist()]


def joined(places: Sequence[MemoryIndices]) -> MemoryIndices:
    """Return memory indices of several arrays concatenated."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *places])
