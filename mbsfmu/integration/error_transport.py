"""Transport of the global error of implicit steps by their linearization.

The exact solution satisfies the same step from its own position, with the local error as a defect. Its step is solved
by one iteration from a prediction, with the iteration matrix of the run's own step: one evaluation of the residual a
step. The matrix may be of an earlier step, and what it leaves of the prediction's error would add up: the errors of
multipliers are predicted to change as in the last steps, which leaves second differences.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import Formulation, StepProblem
from mbsfmu.stepping.iteration import Inverse
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

DEFECT = 1.0 / 12.0
"""Error constant of the trapezoidal rule: its defect is h³/12 times the third derivative by time."""
FARTHEST = 1e30
"""Largest error that is carried on: those of a system that departs from itself grow until nothing can be computed."""
RECENT = 0.25
"""Weight of the last change of a multiplier's error in the mean that is predicted to go on: what alternates would grow
by the last one alone. Changes of the errors of accelerations are not predicted, for their round-off would grow.
"""
LATE = 2.0
"""Weight of the first second difference after a discontinuity, which is one step late."""


class Loss(IntEnum):
    """Reasons for a lost error estimate."""

    NONE = 0
    UNSOLVED = 1


TOO_FAR = "the exact solution is so far from the computed one that its step is not solved from there"
LOSSES = {Loss.UNSOLVED: TOO_FAR}
"""Descriptions of the reasons."""


def exact_state(formulation: Formulation, state: State) -> State:
    """Return the state without its error: coordinates, velocities, accelerations, momenta, states and rates."""
    n, k = len(state.coordinates), len(state.states)
    of_z, of_v, of_a, of_x, of_rates, of_others = np.split(state.error, np.cumsum([n, n, n, k, k]).tolist())
    return replace(
        state,
        coordinates=state.coordinates - of_z,
        velocities=state.velocities - of_v,
        accelerations=state.accelerations - of_a,
        states=state.states - of_x,
        rates=state.rates - of_rates,
        momenta=state.momenta - of_others[:n] if formulation.moving == "momenta" else state.momenta,
    )


class ErrorTransport:
    """Transports the error of a run from step to step.

    Parameters
    ----------
    formulation
        A formulation whose rule is trapezoidal.

    Attributes
    ----------
    size, history_size
        How many numbers a state keeps of the error, and of the rates and the changes of errors before.
    """

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        self._functions = functions = formulation.functions
        self._coordinates, self._states = len(functions.coordinates), len(functions.states)
        self._rates = 2 * self._coordinates + self._states
        self._has_momenta = formulation.moving == "momenta"
        self._multipliers = formulation.step_multipliers
        of_moving = 2 * self._coordinates if self._has_momenta else self._multipliers
        self.size = 3 * self._coordinates + 2 * self._states + of_moving
        self.history_size = 4 * self._rates + self._multipliers + 2

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
        defects, history, onward = self._defects(begin, end, step)
        changes = slice(4 * self._rates, -2)
        expected = onward * begin.error_history[changes]
        try:
            error = self._step(problem, inverse, begin, end, defects, expected)
        except SimulationError:
            error = np.full(self.size, np.nan)
        if (np.abs(error) <= FARTHEST).all():
            change = (error - begin.error)[self.size - self._multipliers :]
            history[changes] = RECENT * change + (1.0 - RECENT) * expected
            return end.with_error(error, history, begin.error_record)
        return end.with_error(begin.error, history, begin.lost(Loss.UNSOLVED))

    def described(self, begin: State, end: State) -> State:
        """Return the end with the error of the same motion in another description: references, restarted momenta.

        Parameters
        ----------
        begin
            The state before, with its error.
        end
            The same state with the references, coordinates and momenta to continue with.
        """
        formulation, n = self._formulation, self._coordinates
        turned = not np.array_equal(end.references, begin.references)
        if not turned and (not self._has_momenta or np.array_equal(end.momenta, begin.momenta)):
            return end.with_error(begin.error, begin.error_history, begin.error_record)
        error, history, exact = begin.error.copy(), begin.error_history, exact_state(formulation, begin)
        if turned:
            exact = formulation.with_references(exact, end.references)
            history = np.zeros_like(history)
        if self._has_momenta:
            exact = formulation.restarted_as(end, exact)
            error[-2 * n : -n] = end.momenta - exact.momenta
        error[:n], error[n : 2 * n] = end.coordinates - exact.coordinates, end.velocities - exact.velocities
        error[2 * n : 3 * n] = end.accelerations - exact.accelerations
        return end.with_error(error, history, begin.error_record)

    def _step(
        self,
        problem: StepProblem,
        inverse: Inverse,
        begin: State,
        end: State,
        defects: tuple[Floats, Floats, Floats],
        changes: Floats,
    ) -> Floats:
        """Return the error at the end of a step: of z, ż, z̈, x, ẋ, and of p and ṗ or the step's multipliers.

        The changes are those expected of the errors of multipliers.
        """
        functions, n, h = self._functions, self._coordinates, problem.step
        functions.references[:] = begin.references  # those of the next step are known already
        ends = [end.coordinates, end.velocities, end.accelerations, end.states, end.rates]
        errors = np.split(begin.error, np.cumsum([n, n, n, self._states, self._states]).tolist())
        of_z, of_v, of_a, of_x, of_rates, of_others = errors
        by_z, by_v, by_x = defects
        states, rates = begin.states - of_x - by_x, begin.rates - of_rates
        later = end.rates - of_rates
        if not self._formulation.second_order:
            moving, moving_rates = self._formulation.flow_of(begin)
            of_w, of_w_rate = np.split(of_others, 2) if self._has_momenta else (of_v, of_a)
            values = np.concatenate([begin.coordinates - of_z - by_z, moving - of_w - by_v, states])
            slopes = np.concatenate([begin.velocities - of_v, moving_rates - of_w_rate, rates])
            moving, moving_rates = self._formulation.flow_of(end)
            guess = values + 0.5 * h * (
                slopes + np.concatenate([end.velocities - of_v, moving_rates - of_w_rate, later])
            )
            problem.rates.begin([values], [slopes], np.zeros(0), np.zeros(0), h)
            exact = guess - inverse.times(problem.residual(guess))
            slopes = 2.0 / h * (exact - values) - slopes
            found = [exact[:n], exact[n : 2 * n], slopes[n : 2 * n], exact[2 * n :], slopes[2 * n :]]
            if self._has_momenta:
                # Accelerations are no rates of the step: their error is the mean slope of that of velocities.
                accelerations = end.accelerations - (end.velocities - slopes[:n] - of_v) / h
                found = [exact[:n], slopes[:n], accelerations, *found[3:], *found[1:3]]
                ends += [moving, moving_rates]
        else:
            chosen = slice(None) if begin.partition is None else begin.partition.independent
            positions, velocities = begin.coordinates - of_z - by_z, begin.velocities - of_v
            accelerations = begin.accelerations - of_a - 2.0 / h * by_v
            predicted = positions + h * velocities + 0.25 * h**2 * (accelerations + (end.accelerations - of_a))
            positions = positions[chosen]
            problem.rates.begin([positions, states], [velocities[chosen], rates], accelerations[chosen], np.zeros(0), h)
            multipliers = end.multipliers[: self._multipliers]
            expected = multipliers - (of_others + changes)
            guess = np.concatenate([predicted[chosen], states + 0.5 * h * (rates + later), expected])
            increment = inverse.times(problem.residual_near(guess, predicted))
            moved = problem.spread(increment[: len(positions)])
            of_states, of_multipliers = np.split(increment[len(positions) :], [self._states])
            functions.coordinates -= moved
            functions.velocities -= 2.0 / h * moved
            functions.accelerations -= 4.0 / h**2 * moved
            functions.states -= of_states
            problem.project(inverse)
            found = [
                functions.coordinates,
                functions.velocities,
                functions.accelerations,
                functions.states,
                functions.rates - 2.0 / h * of_states,
                expected - of_multipliers,
            ]
            ends.append(multipliers)
        return np.concatenate([reached - exact for reached, exact in zip(ends, found, strict=True)])

    def _defects(self, begin: State, end: State, step: float) -> tuple[tuple[Floats, Floats, Floats], Floats, float]:
        """Return the defects of z, ż or momenta, and x in a step in s, the history, and how far changes go on.

        The history has room for the changes of errors.

        Second differences restart at discontinuities of inputs. If rates are discontinuous in every step, because a
        host sets inputs, slopes within the steps are compared. The mean of two differences removes alternating parts,
        as fast components have with this rule. It is that of the middle of the step before, and goes on to the middle
        of this one: where defects cancel over a motion, those of a step before sum up to more than the error. Changes
        in a step go on in the next, but for short ones, which do not tell of long ones.
        """
        size = self._rates
        parts = np.split(begin.error_history, [size, 2 * size, 3 * size, 4 * size, 4 * size + self._multipliers])
        last, before, second, mean_before, _, (step_before, count) = parts
        flow_of = self._formulation.flow_of
        first, ends = (np.concatenate([each.velocities, flow_of(each)[1], each.rates]) for each in (begin, end))
        jumps = not np.array_equal(first, last)
        slope = (ends - first) / step
        bend, mean, used = np.zeros((3, size))
        known, onward = 1.0, 0.0
        if count > 0.0 and not (jumps and count > 1.0):
            bend = 2.0 * (slope - before) / (step + step_before)
            if jumps:
                used = bend
            elif count == 1.0:
                used, known = LATE * bend, 2.0
            else:
                mean, known = 0.5 * (bend + second), 3.0
                onward = min(1.0, step / step_before) if count > 2.0 else 0.0
                used = mean + onward * (mean - mean_before)
        defects = DEFECT * step**3 * used
        of_z, of_v, of_x = np.split(defects, [self._coordinates, 2 * self._coordinates])
        history = np.concatenate([ends, slope, bend, mean, np.zeros(self._multipliers), [step, known]])
        return (of_z, of_v, of_x), history, onward
