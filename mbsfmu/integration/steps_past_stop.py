"""Steps past a requested stop, stored in the state and interpolated until they end.

Importers request short communication steps of FMUs whose internal steps would be longer. While no variable is set
between two of these, a solver with an interpolant may step past the requested time, up to the next discontinuity of an
input or update of a block; the following communication points are interpolated. If a variable is set, the run continues
from the present state, and the rest of the step is discarded; FMUs do the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mbsfmu.stepping.adaptive import Attempt
from mbsfmu.stepping.state import State

MOST_AHEAD = 100.0
"""Largest step past the stop, in requested steps."""
_HEAD = 6


@dataclass(frozen=True)
class Ahead:
    """A step that ends past the present time.

    Attributes
    ----------
    origin
        Time in s from which the others count.
    begin, end
        Where it begins and ends.
    following
        What is tried next in s.
    attempt
        The step: its size, y at both ends, and the increments of all stages.
    """

    origin: float
    begin: float
    end: float
    following: float
    attempt: Attempt

    @classmethod
    def of(cls, state: State, stages: int) -> Ahead | None:
        """Return the stored step of a state; None if there is none."""
        if not looks_ahead(state) or state.ahead[4] == 0.0:
            return None
        start, values, increments = np.split(
            state.ahead[_HEAD:], len(state.ahead[_HEAD:]) // (2 + stages) * np.array([1, 2])
        )
        origin, begin, end, step, following = state.ahead[1:_HEAD].tolist()
        attempt = Attempt(start.tolist(), [], [], values.tolist(), [], increments.tolist(), [], [], step=step)
        return cls(origin, begin, end, following, attempt)

    def kept_by(self, state: State) -> State:
        """Return the state with this step."""
        head = [float(state.ahead[0]), self.origin, self.begin, self.end, self.attempt.step, self.following]
        return replace(state, ahead=np.array([*head, *self.attempt.start, *self.attempt.end, *self.attempt.increments]))


def room(size: int, stages: int) -> int:
    """Return the number of values of a stored step for a size of y."""
    return _HEAD + (2 + stages) * size


def looks_ahead(state: State) -> bool:
    """Return whether no variable was set since the last step, for solvers to which this matters."""
    return len(state.ahead) > 0 and bool(state.ahead[0])


def untouched(state: State) -> State:
    """Return the state as one after which nothing was set."""
    if not len(state.ahead) or state.ahead[0]:
        return state
    return replace(state, ahead=np.concatenate([[1.0], state.ahead[1:]]))


def without(state: State) -> State:
    """Return the state without the stored step."""
    return replace(state, ahead=np.concatenate([state.ahead[:4], [0.0], state.ahead[5:]]))
