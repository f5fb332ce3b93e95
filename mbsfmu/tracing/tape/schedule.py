"""Order of recorded calls: calls of one kernel together, as loops.

Calls that can be made are made kernel by kernel; what becomes possible on the way, as along a chain, is made in the
same loop. Results lie behind each other in the order in which they are made, so that what a loop takes and gives mostly
lies at equal distances. Where calls have sections, that is so for each section in each phase; where they make more
numbers than stay in a cache, for each block of calls that work on the same ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.tracing.tape.dependence import Call, Dependence, MemoryIndices, joined
from mbsfmu.tracing.tape.phases import groups

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
    phase, section
        In which phase calls are made, and in which section there.
    """

    kernel: int
    arguments: MemoryIndices
    first: int
    stages: tuple[int, ...]
    phase: int
    section: int


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
    costs: Sequence[int],
    before: Schedule | None = None,
    *,
    in_blocks: bool = True,
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
    costs
        How many operations a call takes, by kernel.
    before
        What has been done before in the same memory: its values are there, and what is done now follows behind them.
    in_blocks
        Whether large groups are made block by block.
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
        (phase, section, made)
        for phase, section, group in groups(calls, dependence, costs)
        for block in (_blocks(calls, dependence, group) if in_blocks else [group])
        for made in _ordered(calls, dependence, block)
    ]
    used = joined([*(call.taken for call in calls), *(each.ravel() for each in results)])
    constants = np.unique(used[used < 0])[::-1]
    size = begin + len(given) + len(constants)
    negative = np.full(1 - constants.min(initial=0), -1, dtype=np.int64)  # those of constants from behind
    negative[constants] = begin + len(given) + np.arange(len(constants))
    placed = np.concatenate([placed, negative])
    loops = []
    for phase, section, made in order:
        first = size
        own = joined([calls[index].made for index in made])
        placed[own] = np.arange(size, size + len(own))
        size += len(own)
        taken = np.stack([calls[index].taken for index in made])
        stages = _stages(made, dependence)
        loops.append(Loop(calls[made[0]].kernel, placed[taken], first, stages, phase, section))
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
