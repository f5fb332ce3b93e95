"""A recorded function of named arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.programs.dependence import Places, joined, needed
from mbsfmu.programs.recorded_array import RecordedArray
from mbsfmu.programs.recording import Kernel, Recorder
from mbsfmu.programs.schedule import Schedule, schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """Loops over calls of kernels, from arrays that it is given to its results.

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
    """

    name: str
    offered: Mapping[str, int]
    given: Mapping[str, int]
    constants: tuple[float, ...]
    kernels: tuple[Kernel, ...]
    schedule: Schedule

    @property
    def results(self) -> tuple[Places, ...]:
        """Places of the elements of each result."""
        return self.schedule.results

    @property
    def operations(self) -> int:
        """How many operations a call takes."""
        loops = self.schedule.loops
        return sum(len(loop.arguments) * self.kernels[loop.kernel].function.n_instructions() for loop in loops)

    def memory(self) -> Floats:
        """Return a memory with the constants in their places."""
        memory = np.zeros(self.schedule.size)
        first = sum(self.given.values())
        memory[first : first + len(self.constants)] = self.constants
        return memory

    def evaluate(self, memory: Floats, given: Mapping[str, Floats]) -> list[Floats]:
        """Return the results: independent calls of a loop are made at once.

        Parameters
        ----------
        memory
            What `memory` gave; it is overwritten.
        given
            The arrays, by name.
        """
        first = 0
        for name, size in self.given.items():
            memory[first : first + size] = given[name].ravel()
            first += size
        for loop in self.schedule.loops:
            kernel = self.kernels[loop.kernel]
            for begin, end in pairwise((*loop.stages, len(loop.arguments))):
                values = kernel.function(memory[loop.arguments[begin:end]].T)
                place = loop.first + begin * kernel.results
                memory[place : place + (end - begin) * kernel.results] = np.asarray(values).T.ravel()
        return [memory[places] for places in self.results]


def depends(program: Program, result: int, part: str) -> NDArray[np.bool_]:
    """Return which elements of a result depend on which elements of a part, shape (elements, size of the part)."""
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
    """Return which arguments each result of a kernel depends on."""
    sparsity = kernel.function.jac_sparsity(0, 0)
    needed: list[list[int]] = [[] for _ in range(kernel.results)]
    for row, column in zip(*sparsity.get_triplet(), strict=True):
        needed[row].append(column)
    return needed


def program_of(name: str, recorder: Recorder, offered: Mapping[str, RecordedArray], results: Sequence[Any]) -> Program:
    """Return what was recorded as a function of arrays.

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
    """
    places = [each.places if isinstance(each, RecordedArray) else recorder.constants(each) for each in results]
    calls = needed(recorder.calls, places, recorder.places)
    used = np.zeros(recorder.places + 1, dtype=bool)  # the last one for constants
    used[np.maximum(joined([*(call.taken for call in calls), *(each.ravel() for each in places)]), -1)] = True
    given = {part: each for part, each in offered.items() if used[each.places].any()}
    first = joined([each.places.ravel() for each in given.values()])
    ordered = schedule(calls, first, places)
    return Program(
        name,
        {part: each.size for part, each in offered.items()},
        {part: each.size for part, each in given.items()},
        tuple(recorder.values[number] for number in ordered.constants),
        tuple(recorder.kernels),
        ordered,
    )
