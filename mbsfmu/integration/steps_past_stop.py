"""Steps that go past where a run was asked to come: what a state keeps of one, to be answered from until it ends.

Importers ask for short steps of units whose own would be long. While nobody sets anything between two of their steps, a
solver with an interpolant may step past where it was asked to come, up to the next jump of an input or update of a
block; what follows is read off that step. Where something is set, the run goes on from where it is, and the rest is
dropped. Units do the same (`runtime/integration/rosenbrock.c`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

MOST_AHEAD = 100.0
"""Of the steps asked for: how far past them a step may go."""
_HEAD = 6


@dataclass(frozen=True)
class Ahead:
    """A step that ends past the present.

    Attributes
    ----------
    origin
        Time in s from which the others count.
    begin, end, step
        Where it begins and ends, and its size in s.
    following
        What is tried next in s.
    start, values
        y at both ends.
    increments
        Those of all stages, each of the shape of y.
    """

    origin: float
    begin: float
    end: float
    step: float
    following: float
    start: Floats
    values: Floats
    increments: Sequence[Floats]

    @classmethod
    def of(cls, state: State, stages: int) -> Ahead | None:
        """Return the step that a state keeps; None where there is none."""
        if not looks_ahead(state) or state.ahead[4] == 0.0:
            return None
        start, values, *increments = np.split(state.ahead[_HEAD:], 2 + stages)
        origin, begin, end, step, following = state.ahead[1:_HEAD].tolist()
        return cls(origin, begin, end, step, following, start, values, increments)

    def kept_by(self, state: State) -> State:
        """Return the state with this step."""
        head = [float(state.ahead[0]), self.origin, self.begin, self.end, self.step, self.following]
        return replace(state, ahead=np.concatenate([head, self.start, self.values, *self.increments]))


def room(size: int, stages: int) -> int:
    """Return how many numbers a step of a y of some size takes."""
    return _HEAD + (2 + stages) * size


def looks_ahead(state: State) -> bool:
    """Tell whether nothing was set since the last step, where that matters to a solver."""
    return len(state.ahead) > 0 and bool(state.ahead[0])


def untouched(state: State) -> State:
    """Return the state from which nothing has been set."""
    if not len(state.ahead) or state.ahead[0]:
        return state
    return replace(state, ahead=np.concatenate([[1.0], state.ahead[1:]]))


def without(state: State) -> State:
    """Return the state without the step, as one that nothing is set in."""
    return replace(state, ahead=np.concatenate([state.ahead[:4], [0.0], state.ahead[5:]]))
