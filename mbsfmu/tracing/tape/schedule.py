"""Order of recorded calls: calls of one kernel together, as loops.

Calls that can be made are made kernel by kernel; what becomes possible on the way, as along a chain, is made in the
same loop. Results lie behind each other in the order in which they are made, so that what a loop takes and gives mostly
lies at equal distances. Where calls make more numbers than stay in a cache, that is so for each block of calls that
work on the same ones.
"""

from __future__ import annotations

from collections import deque
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
    """

    kernel: int
    taken: MemoryIndices
    made: MemoryIndices


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


BLOCK = 25_000
"""Numbers computed by a block of calls, 200 kB: with their arguments they fit in the second cache."""


@dataclass(frozen=True)
class Loop:
    """Consecutive calls of one kernel.

    Attributes
    ----------
    kernel
        Index of the kernel.
    arguments
        Places of what each call takes, shape (calls, arguments).
    first
        Place of the first result; those of all calls lie behind each other.
    stages
        Where in the loop calls begin that take results of calls in it before these: between two of them calls are
        independent of each other.
    """

    kernel: int
    arguments: MemoryIndices
    first: int
    stages: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """The loops in order.

    Attributes
    ----------
    loops
        The loops.
    constants
        Numbers k of the constants that are needed, recorded as −1 − k; they follow what is given.
    results
        Where the results of the program are in its memory.
    first
        Where what is given and the constants begin.
    size
        How many numbers the memory has.
    placed
        Where in the memory recorded places are; −1 where they are not.
    """

    loops: tuple[Loop, ...]
    constants: tuple[int, ...]
    results: tuple[MemoryIndices, ...]
    first: int
    size: int
    placed: MemoryIndices


def schedule(
    calls: Sequence[Call],
    given: MemoryIndices,
    results: Sequence[MemoryIndices],
    before: Schedule | None = None,
) -> Schedule:
    """Return the schedule of calls.

    Parameters
    ----------
    calls
        Those that results need, as they were recorded.
    given
        Recorded places of what the program is given; it stands first in the memory, in this order.
    results
        Recorded places of the results.
    before
        What has been done before in the same memory: its values are there, and what is done now follows behind them.
    """
    count = 1 + int(joined([given, *(call.made for call in calls)]).max(initial=0))
    if before is not None:
        count = max(count, len(before.placed))
    placed = np.full(count, -1, dtype=np.int64)
    if before is not None:
        placed[: len(before.placed)] = before.placed
    begin = 0 if before is None else before.size
    placed[given] = begin + np.arange(len(given))
    dependence = Dependence(calls, count)
    order = [
        made for block in _blocks(calls, dependence, range(len(calls))) for made in _ordered(calls, dependence, block)
    ]
    used = joined([*(call.taken for call in calls), *(each.ravel() for each in results)])
    constants = np.unique(used[used < 0])[::-1]
    size = begin + len(given) + len(constants)
    negative = np.full(1 - constants.min(initial=0), -1, dtype=np.int64)  # those of constants from behind
    negative[constants] = begin + len(given) + np.arange(len(constants))
    placed = np.concatenate([placed, negative])
    loops = []
    for made in order:
        first = size
        own = joined([calls[index].made for index in made])
        placed[own] = np.arange(size, size + len(own))
        size += len(own)
        taken = np.stack([calls[index].taken for index in made])
        stages = _stages(made, dependence)
        loops.append(Loop(calls[made[0]].kernel, placed[taken], first, stages))
    where = tuple(placed[each] for each in results)
    return Schedule(tuple(loops), tuple((-1 - constants).tolist()), where, begin, size, placed[:count])


def _blocks(calls: Sequence[Call], dependence: Dependence, group: Sequence[int]) -> list[list[int]]:
    """Return the calls of a group in blocks that fit in a cache; each depends on earlier ones only.

    The dependencies of a call are made immediately before it: neighbouring subassemblies are completed before others
    start.
    """
    if sum(len(calls[index].made) for index in group) < 2 * BLOCK:
        return [list(group)]
    left, blocks, size = set(group), list[list[int]](), BLOCK
    ends = [index for index in group if left.isdisjoint(dependence.after[index])]
    for end in ends:
        path = [end]
        while path:
            index = path[-1]
            missing = [each for each in dependence.before[index] if each in left]
            if missing:
                path += reversed(missing)
                continue
            path.pop()
            if index not in left:
                continue
            left.remove(index)
            if size >= BLOCK:
                blocks.append([])
                size = 0
            blocks[-1].append(index)
            size += len(calls[index].made)
    return [sorted(block) for block in blocks]


def _ordered(calls: Sequence[Call], dependence: Dependence, group: Sequence[int]) -> list[list[int]]:
    """Return the indices of the calls of a group, loop by loop, in a valid order."""
    inside = set(group)
    waiting = {index: len(inside.intersection(dependence.before[index])) for index in group}
    ready: dict[int, deque[int]] = {}
    for index, left in waiting.items():
        if not left:
            ready.setdefault(calls[index].kernel, deque()).append(index)
    order: list[list[int]] = []
    while ready:
        kernel = min(ready, key=lambda each: ready[each][0])
        made: list[int] = []
        while queue := ready.get(kernel):
            index = queue.popleft()
            if not queue:
                del ready[kernel]
            made.append(index)
            for user in dependence.after[index]:
                if user not in inside:
                    continue
                waiting[user] -= 1
                if not waiting[user]:
                    ready.setdefault(calls[user].kernel, deque()).append(user)
        order.append(made)
    return order


def _stages(made: Sequence[int], dependence: Dependence) -> tuple[int, ...]:
    """Return the calls at which a loop starts to use results of its own earlier calls."""
    stages, since = [0], set[int]()
    for position, index in enumerate(made):
        if not since.isdisjoint(dependence.before[index]):
            stages.append(position)
            since = set()
        since.add(index)
    return tuple(stages)
