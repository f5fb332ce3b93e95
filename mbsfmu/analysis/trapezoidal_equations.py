"""State equations ẇ = F(w, u, p) at the points of a run, whose trapezoidal steps are differentiated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.analysis.run_points import Indices
from mbsfmu.analysis.state_equations import StateEquations, StepSlopes
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class Slopes:
    """Derivatives at points of a run.

    Attributes
    ----------
    by_motion
        Of F by w, shape (points, size, size).
    read_by_motion
        Of what is read by w, through accelerations too, shape (points, rows, size).
    """

    by_motion: Floats
    read_by_motion: Floats


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


class TrapezoidalEquations(StateEquations):
    """Steps w_{n+1} = w_n + h/2 (F_n + F_{n+1}) of a formulation with ẇ = F(w, u, p).

    With A = ∂F/∂w and B = ∂F/∂p they are differentiated as (I − h/2 A_{n+1}) δw_{n+1} = (I + h/2 A_n) δw_n + h/2 (B_n +
    B_{n+1}) δp.

    Attributes
    ----------
    rates
        F at the points, shape (size, points), once they are completed.
    """

    rates: Floats

    @abstractmethod
    def motion(self) -> Floats:
        """Return w at the points, shape (size, points)."""

    @abstractmethod
    def slopes(self, points: Indices, rows: Sequence[int]) -> Slopes:
        """Return derivatives by w at points, of F and of rows of what is computed."""

    @abstractmethod
    def by_parameters(
        self, points: Indices, slopes: Slopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return derivatives by parameters at points, (points, size, columns) and (points, rows, columns).

        Parameters
        ----------
        points, slopes
            The points, and what `slopes` gives there.
        columns, rows
            Indices of the parameters, and of what is computed.
        """

    @abstractmethod
    def pulled_back(
        self, points: Indices, slopes: Slopes, by_rates: Floats, row: int, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return products of rows with derivatives by all parameters and inputs, (points, parameters or inputs).

        Parameters
        ----------
        points, slopes
            The points, and what `slopes` gives there for the row alone.
        by_rates
            Rows of F, shape (points, size).
        row, weights
            Index of what is computed, and its weights at the points.
        """

    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much steps miss the rule, and magnitudes; see `StateEquations`."""
        points, motion, rates = self.at.points, self.motion(), self.rates
        moved = 0.5 * points.steps * (rates[:, points.begins] + rates[:, points.ends])
        system = self.at.functions.system
        own = [each.nominal or 1.0 for each in (*system.states, *system.integrals)]
        nominal = [1.0] * (self.size - len(own)) + own
        off = np.abs(motion[:, points.ends] - motion[:, points.begins] - moved)
        return off, np.maximum(np.abs(motion).max(axis=1), nominal)

    def steps(self, part: slice, rows: Sequence[int]) -> _TrapezoidalSlopes:
        """Return derivatives by w of steps; see `StateEquations`."""
        points, half = self.at.points, 0.5 * self.at.points.steps[part]
        both = np.concatenate([points.begins[part], points.ends[part]])
        places, inverse = np.unique(both, return_inverse=True)
        at_begin, at_end = np.split(inverse, 2)
        slopes = self.slopes(places, rows)
        one, read = np.eye(self.size), slopes.read_by_motion
        left = one - half[:, None, None] * slopes.by_motion[at_end]
        right = one + half[:, None, None] * slopes.by_motion[at_begin]
        return _TrapezoidalSlopes(
            part, left, right, read[at_begin], read[at_end], places, at_begin, at_end, slopes, half
        )

    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters; see `StateEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        by_rates, by_read = self.by_parameters(steps.points, steps.slopes, columns, rows)
        added = steps.half[:, None, None] * (by_rates[steps.at_begin] + by_rates[steps.at_end])
        return added, by_read[steps.at_begin], by_read[steps.at_end]

    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by parameters and inputs; see `StateEquations`."""
        assert isinstance(steps, _TrapezoidalSlopes)
        # What enters each point: rows for F and for what is read.
        by_rates, weights_there = np.zeros((len(steps.points), self.size)), np.zeros(len(steps.points))
        half = steps.half[:, None] * by_steps
        for place, weight in zip((steps.at_begin, steps.at_end), weights, strict=True):
            np.add.at(by_rates, place, half)
            np.add.at(weights_there, place, weight)
        by_parameters, by_inputs = self.pulled_back(steps.points, steps.slopes, by_rates, row, weights_there)
        # A point that one step ends at and the next begins at enters once, where the step ends.
        at_end = by_inputs[steps.at_end]
        begun = np.isin(steps.at_begin, steps.at_end, invert=True)
        return by_parameters.sum(axis=0), np.where(begun[:, None], by_inputs[steps.at_begin], 0.0), at_end
