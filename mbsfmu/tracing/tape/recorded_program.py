"""A recorded function of named arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.tracing.tape.recording import Kernel, RecordedArray, Recorder
from mbsfmu.tracing.tape.schedule import MemoryIndices, Schedule, joined, needed, schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """A program: loops over kernel calls, from given arrays to results.

    Attributes
    ----------
    name
        Name of the function.
    offered
        Names and sizes of what it may depend on.
    given
        Those of them that it does depend on; they lie behind each other at the beginning of its memory.
    constants
        Numbers that follow these.
    kernels, schedule
        What is called, and in which order.
    memory_name
        Name of the memory it works in: programs that go on from what others have found share one.
    """

    name: str
    offered: Mapping[str, int]
    given: Mapping[str, int]
    constants: tuple[float, ...]
    kernels: tuple[Kernel, ...]
    schedule: Schedule
    memory_name: str = "work"

    @property
    def results(self) -> tuple[MemoryIndices, ...]:
        """Memory indices of the elements of each result."""
        return self.schedule.results

    @property
    def operations(self) -> int:
        """Number of operations of a call."""
        loops = self.schedule.loops
        return sum(len(loop.arguments) * self.kernels[loop.kernel].cost for loop in loops)

    @property
    def first_constant(self) -> int:
        """Memory index of the first constant."""
        return self.schedule.first + sum(self.given.values())

    def memory(self) -> Floats:
        """Return a memory with the constants set."""
        memory = np.zeros(self.schedule.size)
        memory[self.first_constant :][: len(self.constants)] = self.constants
        return memory


class BoundProgram:
    """A program with its memory; independent calls of a loop are vectorized.

    Parameters
    ----------
    program
        The program.
    memory
        What `Program.memory` gave; it is overwritten.
    """

    def __init__(self, program: Program, memory: Floats) -> None:
        self._program = program
        self._memory = memory

    def __call__(self, given: Mapping[str, Floats]) -> list[Floats]:
        """Return the results for arrays by name."""
        memory, first = self._memory, self._program.schedule.first
        for name, size in self._program.given.items():
            memory[first : first + size] = given[name].ravel()
            first += size
        for places, arguments, evaluate, _ in self._calls:
            memory.take(places, out=arguments)
            evaluate()
        return [memory[places] for places in self._program.results]

    @cached_property
    def _calls(self) -> list[tuple[MemoryIndices, Floats, Callable[[], None], ca.FunctionBuffer]]:
        """The calls in order, with memory indices of arguments and results.

        They write their results to the memory.
        """
        calls = []
        for loop in self._program.schedule.loops:
            kernel = self._program.kernels[loop.kernel]
            for begin, end in pairwise((*loop.stages, len(loop.arguments))):
                places = np.ascontiguousarray(loop.arguments[begin:end].ravel())
                arguments = np.zeros(places.size)
                buffer, evaluate = kernel.repeated(end - begin).buffer()
                made = slice(loop.first + begin * kernel.results, loop.first + end * kernel.results)
                buffer.set_arg(0, arguments.data)  # pyright: ignore[reportCallIssue]
                buffer.set_res(0, self._memory[made].data)  # pyright: ignore[reportCallIssue]
                calls.append((places, arguments, evaluate, buffer))
        return calls


def depends(program: Program, result: int, part: str) -> NDArray[np.bool_]:
    """Return the sparsity of a result's dependence on a part, shape (elements, size of the part)."""
    size = program.offered[part]
    if part not in program.given:
        return np.zeros((program.results[result].size, size), dtype=bool)
    names = list(program.given)
    first = sum(program.given[name] for name in names[: names.index(part)])
    pattern = np.zeros((program.schedule.size, -(-size // 8)), dtype=np.uint8)
    pattern[first : first + size] = np.packbits(np.eye(size, dtype=bool), axis=1)
    for loop in program.schedule.loops:
        needed = _needed(program.kernels[loop.kernel])
        for begin, end in pairwise((*loop.stages, len(loop.arguments))):
            for index, arguments in enumerate(needed):
                places = loop.first + len(needed) * np.arange(begin, end) + index
                pattern[places] = np.bitwise_or.reduce(pattern[loop.arguments[begin:end][:, arguments]], axis=1)
    return np.unpackbits(pattern[program.results[result].ravel()], axis=1, count=size).astype(bool)


def _needed(kernel: Kernel) -> list[list[int]]:
    """Return the arguments on which each result of a kernel depends."""
    sparsity = kernel.function.jac_sparsity(0, 0)
    needed: list[list[int]] = [[] for _ in range(kernel.results)]
    for row, column in zip(*sparsity.get_triplet(), strict=True):
        needed[row].append(column)
    return needed


def programs_in_sequence(
    names: tuple[str, str],
    recorder: Recorder,
    given: tuple[Mapping[str, RecordedArray], Mapping[str, RecordedArray]],
    results: tuple[Sequence[Any], Sequence[Any]],
    memory_name: str,
) -> tuple[Program, Program]:
    """Return two programs in one memory, of which the second continues from the first.

    Parameters
    ----------
    names, results, memory_name
        As of one.
    recorder
        What has recorded the results.
    given
        What the first may depend on, and what the second may besides.
    """
    later = np.concatenate([each.places.ravel() for each in given[1].values()])
    kept = _needed_before(recorder, later, [each.places for each in results[1]])
    first = program_of(names[0], recorder, given[0], results[0], memory_name, kept=kept)
    second = program_of(names[1], recorder, given[1], results[1], memory_name, before=first)
    return first, second


def _needed_before(recorder: Recorder, later: MemoryIndices, results: Sequence[MemoryIndices]) -> MemoryIndices:
    """Return the memory indices needed by results that do not depend on later arguments."""
    is_late = np.zeros(recorder.places, dtype=bool)
    is_late[later] = True
    taken = [each.ravel() for each in results]
    for call in needed(recorder.calls, taken, recorder.places):
        given = call.taken[call.taken >= 0]
        if is_late[given].any():
            is_late[call.made] = True
            taken.append(given)
    every = np.unique(np.concatenate(taken))
    every = every[every >= 0]
    return np.asarray(every[~is_late[every]])


def program_of(
    name: str,
    recorder: Recorder,
    offered: Mapping[str, RecordedArray],
    results: Sequence[Any],
    memory_name: str = "work",
    before: Program | None = None,
    kept: MemoryIndices | None = None,
) -> Program:
    """Return a program from a recording.

    Parameters
    ----------
    name
        Its name.
    recorder
        What has recorded the results.
    offered
        What they may depend on.
    results
        Arrays, recorded or of numbers.
    memory_name
        Name of the memory.
    before
        A program of the same recorder whose values are in the memory, and stay.
    kept
        Recorded places of what must be there for programs that go on from this one.
    """
    places = [each.places if isinstance(each, RecordedArray) else recorder.constants(each) for each in results]
    goes_on = None if before is None else before.schedule
    made = [] if goes_on is None else [np.flatnonzero(goes_on.placed >= 0)]
    known = joined([*made, *(each.places.ravel() for each in offered.values())])
    wanted = places if kept is None else [*places, kept]
    calls = needed(recorder.calls, wanted, recorder.places, known)
    used = np.zeros(recorder.places + 1, dtype=bool)  # the last one for constants
    used[np.maximum(joined([*(call.taken for call in calls), *(each.ravel() for each in wanted)]), -1)] = True
    given = {part: each for part, each in offered.items() if used[each.places].any()}
    first = joined([each.places.ravel() for each in given.values()])
    ordered = schedule(calls, first, wanted, goes_on)
    placed = ordered.placed if kept is not None else ordered.placed[:0]  # large, and of use to what goes on alone
    ordered = replace(ordered, results=ordered.results[: len(places)], placed=placed)
    return Program(
        name,
        {part: each.size for part, each in offered.items()},
        {part: each.size for part, each in given.items()},
        tuple(recorder.values[number] for number in ordered.constants),
        tuple(recorder.kernels),
        ordered,
        memory_name,
    )
