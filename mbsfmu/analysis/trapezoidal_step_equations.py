"""Equations of trapezoidal steps at the points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.analysis.run_points import Indices
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.analysis.state_equations import Slopes, StateEquations
from mbsfmu.analysis.step_equations import Readings, StepEquations, StepSlopes
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class _TrapezoidalSlopes(StepSlopes):
    """Derivatives along steps, and what they are made of.

    Attributes
    ----------
    points, at_begin, at_end
        Points where the steps begin and end, and which of them each step begins and ends at.
    slopes
        Derivatives there.
    half
        h/2 of the steps, shape (steps,).
    """

    points: Indices
    at_begin: Indices
    at_end: Indices
    slopes: Slopes
    half: Floats


class TrapezoidalStepEquations(StepEquations):
    """Steps w_{n+1} = w_n + h/2 (F_n + F_{n+1}) of a formulation with ẇ = F(w, u, p).

    With A = ∂F/∂w and B = ∂F/∂p they are differentiated as (I − h/2 A_{n+1}) δw_{n+1} = (I + h/2 A_n) δw_n + h/2 (B_n +
    B_{n+1}) δp.

    Parameters
    ----------
    states
        The equations at the points.

    Attributes
    ----------
    states
        As given.
    """

    def __init__(self, states: StateEquations) -> None:
        super().__init__(states.at, states.size)
        self.states = states

    def complete(self, rows: Sequence[int]) -> Readings:
        """Find F at the points; see `StepEquations`."""
        self.states.end_trapezoidal_steps()
        return self.readings(self.states.complete(rows))

    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats] | None:
        """Return how changes of w, and parameters, enter w where another choice is made."""
        return self.states.rechosen(before, after)

    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start, shape (size, directions)."""
        return self.states.at_start(start)

    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much steps miss the rule, and magnitudes; see `StepEquations`."""
        points, motion, rates = self.at.points, self.states.motion(), self.states.rates
        moved = 0.5 * points.steps * (rates[:, points.begins] + rates[:, points.ends])
        return np.abs(motion[:, points.ends] - motion[:, points.begins] - moved), self.states.magnitudes

    def steps(self, part: slice, rows: Sequence[int]) -> _TrapezoidalSlopes:
        """Return derivatives by w of steps; see `StepEquations`."""
        points, half = self.at.points, 0.5 * self.at.points.steps[part]
        both = np.concatenate([points.begins[part], points.ends[part]])
        places, inverse = np.unique(both, return_inverse=True)
        at_begin, at_end = np.split(inverse, 2)
        slopes = self.states.slopes(places, rows)
        one, read = np.eye(self.size), slopes.read_by_motion
        left = one - half[:, None, None] * slopes.by_motion[at_end]
        right = one + half[:, None, None] * slopes.by_motion[at_begin]
        return _TrapezoidalSlopes(
            part, left, right, read[at_begin], read[at_end], places, at_begin, at_end, slopes, half
        )

    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters; see `StepEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        by_rates, by_read = self.states.by_parameters(steps.points, steps.slopes, columns, rows)
        added = steps.half[:, None, None] * (by_rates[steps.at_begin] + by_rates[steps.at_end])
        return added, by_read[steps.at_begin], by_read[steps.at_end]

    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StepEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        # What enters each point: rows for F and for what is read.
        by_rates, weights_there = np.zeros((len(steps.points), self.size)), np.zeros(len(steps.points))
        half = steps.half[:, None] * by_steps
        for place, weight in zip((steps.at_begin, steps.at_end), weights, strict=True):
            np.add.at(by_rates, place, half)
            np.add.at(weights_there, place, weight)
        by_parameters, by_inputs = self.states.pulled_back(steps.points, steps.slopes, by_rates, row, weights_there)
        # A point that one step ends at and the next begins at enters once, where the step ends.
        at_end = by_inputs[steps.at_end]
        begun = np.isin(steps.at_begin, steps.at_end, invert=True)
        return by_parameters.sum(axis=0), np.where(begun[:, None], by_inputs[steps.at_begin], 0.0), at_end
