"""Equations of trapezoidal steps at the points of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.analysis.run_points import Indices
from mbsfmu.analysis.state_equations import Slopes
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
    half, inverse
        h/2 of the steps, shape (steps,), and (I − h/2 A_{n+1})⁻¹.
    """

    points: Indices
    at_begin: Indices
    at_end: Indices
    slopes: Slopes
    half: Floats
    inverse: Floats


class TrapezoidalStepEquations(StepEquations):
    """Steps w_{n+1} = w_n + h/2 (F_n + F_{n+1}).

    With A = ∂F/∂w and B = ∂F/∂p they are differentiated as (I − h/2 A_{n+1}) δw_{n+1} = (I + h/2 A_n) δw_n + h/2 (B_n +
    B_{n+1}) δp.
    """

    def complete(self, rows: Sequence[int]) -> Readings:
        """Find F at the points; see `StepEquations`."""
        points, read = self.at.points, self.states.complete(rows)
        return Readings(points.times, read[points.begins], read[points.ends])

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
        inverse = np.asarray(np.linalg.inv(one - half[:, None, None] * slopes.by_motion[at_end]), dtype=np.float64)
        forward = inverse @ (one + half[:, None, None] * slopes.by_motion[at_begin])
        return _TrapezoidalSlopes(
            part, forward, read[at_begin], read[at_end], places, at_begin, at_end, slopes, half, inverse
        )

    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters; see `StepEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        by_rates, by_read = self.states.by_parameters(steps.points, steps.slopes, columns, rows)
        added = steps.half[:, None, None] * (by_rates[steps.at_begin] + by_rates[steps.at_end])
        return steps.inverse @ added, by_read[steps.at_begin], by_read[steps.at_end]

    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StepEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        # What enters each point: rows for F and for what is read.
        by_rates, weights_there = np.zeros((len(steps.points), self.size)), np.zeros(len(steps.points))
        half = steps.half[:, None] * np.einsum("ij,ijk->ik", by_steps, steps.inverse)
        for place, weight in zip((steps.at_begin, steps.at_end), weights, strict=True):
            np.add.at(by_rates, place, half)
            np.add.at(weights_there, place, weight)
        by_parameters, by_inputs = self.states.pulled_back(steps.points, steps.slopes, by_rates, row, weights_there)
        # A point that one step ends at and the next begins at enters once, where the step ends.
        at_end = by_inputs[steps.at_end]
        begun = np.isin(steps.at_begin, steps.at_end, invert=True)
        return by_parameters.sum(axis=0), np.where(begun[:, None], by_inputs[steps.at_begin], 0.0), at_end
