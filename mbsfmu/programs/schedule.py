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
class Schedule:
    """The loops in their order.

    Attributes
    ----------
    loops
        The loops.
    moved
        Where each recorded place is in the memory of the program.
    size
        How many numbers this has.
    """

    loops: tuple[Loop, ...]
    moved: Places
    size: int


def schedule(calls: Sequence[tuple[int, Places]], results: Sequence[int], given: int, constants: int) -> Schedule:
    """Order calls.

    Parameters
    ----------
    calls
        As recorded: index of the kernel and recorded places of the arguments, those of constants negative.
    results
        How many results each kernel has.
    given
        How many places hold what the program is given; they come first, then constants.
    constants
        How many constants there are: constant k, recorded as −1 − k, is at place `given` + k.
    """
    first = given + np.concatenate([[0], np.cumsum([results[kernel] for kernel, _ in calls])])
    owner = np.repeat(np.arange(len(calls)), [results[kernel] for kernel, _ in calls])
    needed = [np.unique(owner[taken[taken >= given] - given]) for _, taken in calls]
    users: list[list[int]] = [[] for _ in calls]
    for call, before in enumerate(needed):
        for each in before.tolist():
            users[each].append(call)
    waiting = np.array([len(each) for each in needed], dtype=np.int64)
    ready: dict[int, deque[int]] = {}
    for call in np.flatnonzero(waiting == 0).tolist():
        ready.setdefault(calls[call][0], deque()).append(call)
    order: list[list[int]] = []
    while ready:
        kernel = min(ready, key=lambda each: ready[each][0])
        made: list[int] = []
        while kernel in ready:
            call = ready[kernel].popleft()
            if not ready[kernel]:
                del ready[kernel]
            made.append(call)
            for user in users[call]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.setdefault(calls[user][0], deque()).append(user)
        order.append(made)
    return _placed(calls, results, first, order, needed, given, constants)


def _placed(
    calls: Sequence[tuple[int, Places]],
    results: Sequence[int],
    first: Places,
    order: list[list[int]],
    needed: list[Places],
    given: int,
    constants: int,
) -> Schedule:
    moved = np.empty(int(first[-1]), dtype=np.int64)
    moved[:given] = np.arange(given)
    size = given + constants
    loops = []
    for made in order:
        kernel = calls[made[0]][0]
        begin, count = size, results[kernel]
        for call in made:
            moved[first[call] : first[call] + count] = np.arange(size, size + count)
            size += count
        taken = np.stack([calls[call][1] for call in made]).reshape(len(made), -1)
        places = np.where(taken < 0, given - 1 - taken, moved[np.maximum(taken, 0)])
        loops.append(Loop(kernel, places, begin, _stages(made, needed)))
    return Schedule(tuple(loops), moved, size)


def _stages(made: list[int], needed: list[Places]) -> tuple[int, ...]:
    stages, since = [0], set[int]()
    for index, call in enumerate(made):
        if not since.isdisjoint(needed[call].tolist()):
            stages.append(index)
            since = set()
        since.add(call)
    return tuple(stages)
