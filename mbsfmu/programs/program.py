"""A recorded function of named arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.programs.recorded_array import RecordedArray
from mbsfmu.programs.recording import Kernel, Recorder
from mbsfmu.programs.schedule import Places, Schedule, schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """Loops over calls of kernels, from arrays that it is given to its results.

    Attributes
    ----------
    name
        Name of the function.
    given
        Names and sizes of what it takes; they lie behind each other at the beginning of its memory.
    constants
        Numbers that follow these.
    kernels, schedule
        What is called, and in which order.
    results
        Places of the elements of each result.
    """

    name: str
    given: Mapping[str, int]
    constants: tuple[float, ...]
    kernels: tuple[Kernel, ...]
    schedule: Schedule
    results: tuple[Places, ...]

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


def recorded(name: str, given: Mapping[str, int], function: Callable[[dict[str, Any]], Sequence[Any]]) -> Program:
    """Record a function of arrays.

    Parameters
    ----------
    name
        Its name.
    given
        Names and sizes of the arrays that it takes.
    function
        The function; it returns arrays.
    """
    recorder = Recorder()
    results = function({each: recorder.new(size) for each, size in given.items()})
    places = [each.places if isinstance(each, RecordedArray) else recorder.constants(each) for each in results]
    first, constants = sum(given.values()), len(recorder.values)
    ordered = schedule(recorder.calls, [kernel.results for kernel in recorder.kernels], first, constants)
    moved = [np.where(each < 0, first - 1 - each, ordered.moved[np.maximum(each, 0)]) for each in places]
    return Program(name, dict(given), tuple(recorder.values), tuple(recorder.kernels), ordered, tuple(moved))
