"""The order of recorded calls: those of one kernel behind each other, so that they are loops.

Calls that can be made are made kernel by kernel; what becomes possible on the way, as along a chain, is made in the
same loop. Results lie behind each other in the order in which they are made, so that what a loop takes and gives mostly
lies at equal distances.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Loop:
    """Calls of one kernel behind each other.

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
    arguments: Places
    first: int
    stages: tuple[int, ...]


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
    taken: Places
    made: Places


@dataclass(frozen=True)
class Schedule:
    """The loops in their order.

    Attributes
    ----------
    loops
        The loops.
    constants
        Numbers k of the constants that are needed, recorded as −1 − k; they follow what is given.
    results
        Where the results of the program are in its memory.
    size
        How many numbers this has.
    """

    loops: tuple[Loop, ...]
    constants: tuple[int, ...]
    results: tuple[Places, ...]
    size: int


def schedule(calls: Sequence[Call], given: Places, results: Sequence[Places]) -> Schedule:
    """Order those of some calls that results need.

    Parameters
    ----------
    calls
        As they were recorded.
    given
        Recorded places of what the program is given; it stands first in the memory, in this order.
    results
        Recorded places of the results.
    """
    count = 1 + max((int(each.max()) for each in (given, *(call.made for call in calls)) if each.size), default=0)
    chosen = needed(calls, results, count)
    order = _ordered(chosen, count)
    constants = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *_constants(chosen, results)]))[::-1]
    moved = np.full(count, -1, dtype=np.int64)
    moved[given] = np.arange(len(given))
    number = {place: len(given) + index for index, place in enumerate(constants.tolist())}
    size = len(given) + len(constants)

    def placed(places: Places) -> Places:
        flat = places.ravel()
        found = np.where(flat < 0, 0, moved[np.maximum(flat, 0)])
        negative = np.flatnonzero(flat < 0)
        found[negative] = [number[place] for place in flat[negative].tolist()]
        return found.reshape(places.shape)

    loops = []
    for made in order:
        first = size
        for index in made:
            width = len(chosen[index].made)
            moved[chosen[index].made] = np.arange(size, size + width)
            size += width
        taken = np.stack([chosen[index].taken for index in made])
        loops.append(Loop(chosen[made[0]].kernel, placed(taken), first, _stages(made, chosen)))
    where = tuple(placed(each) for each in results)
    return Schedule(tuple(loops), tuple((-1 - constants).tolist()), where, size)


def needed(calls: Sequence[Call], results: Sequence[Places], count: int) -> list[Call]:
    """Return the calls that results follow from, in their order.

    Parameters
    ----------
    calls
        As they were recorded.
    results
        Recorded places of the results.
    count
        How many places there are.
    """
    wanted = np.zeros(count, dtype=bool)
    for each in results:
        wanted[each[each >= 0]] = True
    found = []
    for call in reversed(calls):
        if wanted[call.made].any():
            wanted[call.taken[call.taken >= 0]] = True
            found.append(call)
    return found[::-1]


def _constants(calls: Sequence[Call], results: Sequence[Places]) -> list[Places]:
    return [each[each < 0] for each in (*(call.taken for call in calls), *results)]


def _ordered(calls: Sequence[Call], count: int) -> list[list[int]]:
    """Return indices of calls, loop by loop."""
    owner = np.full(count, -1, dtype=np.int64)
    for index, call in enumerate(calls):
        owner[call.made] = index
    users: list[list[int]] = [[] for _ in calls]
    waiting = []
    for index, call in enumerate(calls):
        before = set(owner[call.taken[call.taken >= 0]].tolist()) - {-1}
        waiting.append(len(before))
        for each in before:
            users[each].append(index)
    ready: dict[int, deque[int]] = {}
    for index, left in enumerate(waiting):
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
            for user in users[index]:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.setdefault(calls[user].kernel, deque()).append(user)
        order.append(made)
    return order


def _stages(made: Sequence[int], calls: Sequence[Call]) -> tuple[int, ...]:
    """Return where calls begin that take what calls of the same loop have made since the last such place."""
    stages, since = [0], set[int]()
    for position, index in enumerate(made):
        if not since.isdisjoint(calls[index].taken.tolist()):
            stages.append(position)
            since = set()
        since.update(calls[index].made.tolist())
    return tuple(stages)
