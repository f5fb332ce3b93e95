"""Transport of the global error of implicit steps by their linearization.

The exact solution satisfies the same step from its own position, with the local error as a defect. Its step is solved
by one iteration from a prediction, with the iteration matrix of the run's own step: one evaluation of the residual a
step.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import Formulation, StepProblem
from mbsfmu.stepping.reused_jacobian import Inverse
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

DEFECT = 1.0 / 12.0
"""Error constant of the trapezoidal rule: its defect is h³/12 times the third derivative by time."""
FARTHEST = 1e30
"""Largest error that is carried on: those of a system that departs from itself grow until nothing can be computed."""
LATE = 2.0
"""Weight of the first second difference after a discontinuity, which is one step late."""


class Loss(IntEnum):
    """Reasons for a lost error estimate."""

    NONE = 0
    REFERENCES = 1
    UNSOLVED = 2


REFERENCES_CHANGED = "reference orientations have changed, which the error estimate does not follow"
TOO_FAR = "the exact solution is so far from the computed one that its step is not solved from there"
LOSSES = {Loss.REFERENCES: REFERENCES_CHANGED, Loss.UNSOLVED: TOO_FAR}
"""Descriptions of the reasons."""


class ErrorTransport:
    """Transports the error of a run from step to step.

    Parameters
    ----------
    formulation
        A formulation with `transports_error`, whose rule is trapezoidal.

    Attributes
    ----------
    size, history_size
        How many numbers a state keeps of the error, and of the rates before.
    """

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        self._functions = functions = formulation.functions
        self._coordinates, self._states = len(functions.coordinates), len(functions.states)
        self._rates = 2 * self._coordinates + self._states
        self.size = 3 * self._coordinates + 2 * self._states
        self.history_size = 3 * self._rates + 2

    def carried(self, problem: StepProblem, inverse: Inverse, begin: State, end: State) -> State:
        """Return the state at the end of a step with its error.

        Parameters
        ----------
        problem, inverse
            The equations of the step, and what solves with their derivative.
        begin, end
            The states at both ends.
        """
        step = problem.step
        defects, history = self._defects(begin, end, step)
        try:
            error = self._step(problem, inverse, begin, end, defects)
        except SimulationError:
            error = np.full(self.size, np.nan)
        if (np.abs(error) <= FARTHEST).all():
            return end.with_error(error, history, begin.error_record)
        return end.with_error(begin.error, history, begin.lost(Loss.UNSOLVED))

    def _step(
        self,
        problem: StepProblem,
        inverse: Inverse,
        begin: State,
        end: State,
        defects: tuple[Floats, Floats, Floats],
    ) -> Floats:
        """Return the error at the end of a step: of z, ż, z̈, x and ẋ."""
        functions, n, h = self._functions, self._coordinates, problem.step
        error = begin.error
        of_z, of_v, of_a, of_x, of_rates = np.split(error, [n, 2 * n, 3 * n, 3 * n + self._states])
        by_z, by_v, by_x = defects
        states, rates = begin.states - of_x - by_x, begin.rates - of_rates
        later = end.rates - of_rates
        if not self._formulation.second_order:
            values = np.concatenate([begin.coordinates - of_z - by_z, begin.velocities - of_v - by_v, states])
            slopes = np.concatenate([begin.velocities - of_v, begin.accelerations - of_a, rates])
            guess = values + 0.5 * h * (
                slopes + np.concatenate([end.velocities - of_v, end.accelerations - of_a, later])
            )
            problem.rates.begin([values], [slopes], np.zeros(0), np.zeros(0), h)
            exact = guess - inverse.times(problem.residual(guess))
            slopes = 2.0 / h * (exact - values) - slopes
            found = [exact[:n], exact[n : 2 * n], slopes[n : 2 * n], exact[2 * n :], slopes[2 * n :]]
        else:
            chosen = slice(None) if begin.partition is None else begin.partition.independent
            positions, velocities = begin.coordinates - of_z - by_z, begin.velocities - of_v
            accelerations = begin.accelerations - of_a - 2.0 / h * by_v
            ends = positions + h * velocities + 0.25 * h**2 * (accelerations + (end.accelerations - of_a))
            positions = positions[chosen]
            problem.rates.begin([positions, states], [velocities[chosen], rates], accelerations[chosen], np.zeros(0), h)
            guess = np.concatenate([ends[chosen], states + 0.5 * h * (rates + later)])
            increment = inverse.times(problem.residual_near(guess, ends))
            moved = problem.spread(increment[: len(positions)])
            of_states = increment[len(positions) :]
            found = [
                functions.coordinates - moved,
                functions.velocities - 2.0 / h * moved,
                functions.accelerations - 4.0 / h**2 * moved,
                functions.states - of_states,
                functions.rates - 2.0 / h * of_states,
            ]
        ends = end.coordinates, end.velocities, end.accelerations, end.states, end.rates
        return np.concatenate([reached - exact for reached, exact in zip(ends, found, strict=True)])

    def _defects(self, begin: State, end: State, step: float) -> tuple[tuple[Floats, Floats, Floats], Floats]:
        """Return the defects of z, ż and x in a step in s, and the history of rates.

        Second differences restart at discontinuities of inputs. If rates are discontinuous in every step, because a
        host sets inputs, slopes within the steps are compared. The mean of two differences removes alternating parts,
        as fast components have with this rule.
        """
        size = self._rates
        last, before, second, (step_before, count) = np.split(begin.error_history, [size, 2 * size, 3 * size])
        first = np.concatenate([begin.velocities, begin.accelerations, begin.rates])
        ends = np.concatenate([end.velocities, end.accelerations, end.rates])
        jumps = not np.array_equal(first, last)
        slope = (ends - first) / step
        bend, used, known = np.zeros(size), np.zeros(size), 1.0
        if count > 0.0 and not (jumps and count > 1.0):
            bend = 2.0 * (slope - before) / (step + step_before)
            if jumps:
                used = bend
            elif count == 1.0:
                used, known = LATE * bend, 2.0
            else:
                used, known = 0.5 * (bend + second), 2.0
        defects = DEFECT * step**3 * used
        of_z, of_v, of_x = np.split(defects, [self._coordinates, 2 * self._coordinates])
        return (of_z, of_v, of_x), np.concatenate([ends, slope, bend, [step, known]])
