"""The assembly of a mechanism at its start, made again only where something that it follows from has changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mbsfmu.initialization.closing_loops import (
    OnConstraints,
    OwnStarts,
    close_loops,
    closure_at,
    onto_velocity_constraints,
    rank_of,
)
from mbsfmu.initialization.locked_loops import refuse_locked_motion
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import starts
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class Assembled:
    """The last assembly.

    Attributes
    ----------
    guess, given
        Start values of coordinates and velocities, each of shape (n,).
    coordinates, velocities
        Those on the constraints.
    closure
        Φ, Φ_z and Φ_t of all constraints at the guess and at the coordinates.
    """

    guess: Floats
    given: Floats
    coordinates: OnConstraints
    velocities: OnConstraints
    closure: list[list[Floats]]

    @cached_property
    def rank(self) -> int:
        """How many constraints are independent at the coordinates."""
        return rank_of(self.closure[1][1])


class Assembly:
    """Coordinates and velocities of a system on its constraints.

    They follow from start values and from the loop equations alone. A parameter or an input that is in these equations
    changes Φ, Φ_z or Φ_t where the search begins or ends; where none of them differs, the last result holds.

    Parameters
    ----------
    functions
        Functions of the system, all constraints in use.

    Attributes
    ----------
    functions
        As given.
    last
        The last assembly; None before the first one.
    own, own_velocities
        Start values of coordinates and velocities of the model as it was made.
    """

    def __init__(self, functions: SystemFunctions) -> None:
        self.functions = functions
        set_now = functions.parameters.copy()
        functions.parameters[:] = starts(functions.system.parameters)
        values, written = functions.start()[:2], functions.system.written
        self.own, self.own_velocities = (OwnStarts.of(*each) for each in zip(values, written, strict=True))
        functions.parameters[:] = set_now
        self.last: Assembled | None = None

    def close(self) -> tuple[Floats, Floats]:
        """Return coordinates and velocities, each of shape (n,), for the parameters and inputs that are set.

        Raises
        ------
        InputError
            When the loops cannot be closed, or a prescribed motion drives a coordinate that is locked.
        """
        functions = self.functions
        guess, given, _ = (part.copy() for part in functions.start())
        if self.last is None or not self._holds(self.last, guess, given):
            refuse_locked_motion(functions, guess)
            coordinates = close_loops(functions, guess, self.own)
            velocities = onto_velocity_constraints(functions, coordinates.values, given, self.own_velocities)
            closure = [closure_at(functions, place) for place in (guess, coordinates.values)]
            self.last = Assembled(guess, given, coordinates, velocities, closure)
        return self.last.coordinates.values.copy(), self.last.velocities.values.copy()

    def _holds(self, last: Assembled, guess: Floats, given: Floats) -> bool:
        """Tell whether start values and loop equations are those of the last assembly."""
        if not (np.array_equal(guess, last.guess) and np.array_equal(given, last.given)):
            return False
        return all(
            all(map(np.array_equal, closure_at(self.functions, place), before))
            for place, before in zip((last.guess, last.coordinates.values), last.closure, strict=True)
        )
