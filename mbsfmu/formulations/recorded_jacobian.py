"""Iteration matrices in kernel loops, stored by the point at which they were computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mbsfmu.formulations.recorded_steps import RecordedSteps
from mbsfmu.stepping.reused_jacobian import Inverse, ReusedJacobian
from mbsfmu.stepping.stages import Stages
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    from mbsfmu.formulations.recorded_augmented import RecordedAugmented


class RecordedIterationMatrices:
    """Computes iteration matrices and solves with them; the factors of one are stored at a time.

    Their memory is many times that of the point. If the factors were overwritten by those of another matrix, they are
    computed again from the point, to the last bit.

    Parameters
    ----------
    functions
        Functions of the system.
    steps
        Gives what steps call: what solves with the iteration matrix where they are, and the residual.
    parts
        All that an iteration matrix depends on, the step apart.
    """

    def __init__(
        self,
        functions: SystemFunctions,
        steps: Callable[[], RecordedSteps | RecordedAugmented],
        parts: Sequence[str],
    ) -> None:
        self._functions = functions
        self._steps = steps
        self._parts = parts
        self._factored: PointJacobian | None = None

    @property
    def numbers(self) -> int:
        """Number of values of a point, without its step."""
        return sum(self._functions.values(part).size for part in self._parts)

    @property
    def refresh_cost(self) -> float:
        """Cost of an iteration matrix, in evaluations of the residual including the solution."""
        steps = self._steps()
        return steps.implicit.refresh_cost(steps.residual)

    def made(self) -> PointJacobian | None:
        """Return the iteration matrix at the present point; None if a pivot vanishes."""
        self._factored = self.here()
        (pivots,) = self._steps().implicit.factors()
        return self._factored if np.all(np.isfinite(pivots)) else None

    def kept(self, iteration_matrix: ReusedJacobian) -> PointJacobian:
        """Return the iteration matrix that a state has stored."""
        return PointJacobian(self, iteration_matrix.numbers, iteration_matrix.step, iteration_matrix.before)

    def solved(self, iteration_matrix: PointJacobian, right: Floats) -> Floats:
        """Return the solution for a right-hand side."""
        if self._factored is None or not self._factored.is_same_as(iteration_matrix):
            here = self.here()
            self.load(iteration_matrix)
            self.made()
            self.load(here)
        self._functions.write("right", right)
        return self._steps().implicit.changes()[0].copy()

    def here(self) -> PointJacobian:
        """Return the iteration matrix at the present point; its factors are computed on demand."""
        functions = self._functions
        history = functions.values("begin_history")
        point = np.concatenate([functions.values(part) for part in self._parts])
        before = float(history[0]) if history.size else 0.0
        return PointJacobian(self, point, float(functions.values("step")[0]), before)

    def load(self, iteration_matrix: PointJacobian) -> None:
        """Set the functions to the point of an iteration matrix."""
        functions, first = self._functions, 0
        for part in self._parts:
            array = functions.values(part)
            array[:] = iteration_matrix.point[first : first + array.size]
            first += array.size
        functions.values("step")[0] = iteration_matrix.step
        functions.values("begin_history")[:1] = iteration_matrix.before


@dataclass(frozen=True)
class PointJacobian(Inverse):
    """An iteration matrix, represented by its point.

    Attributes
    ----------
    iteration_matrices
        What has made it.
    point
        Positions, velocities or momenta, states, inputs, parameters and whatever else it depends on.
    step, before
        The step in s that it was made for, and the one before, 0 where nothing was remembered.
    """

    iteration_matrices: RecordedIterationMatrices
    point: Floats
    step: float
    before: float

    @property
    def numbers(self) -> Floats:
        """The point."""
        return self.point

    def is_same_as(self, other: PointJacobian) -> bool:
        """Return whether it is the iteration matrix at the same point."""
        return (self.step, self.before) == (other.step, other.before) and np.array_equal(self.point, other.point)

    def times(self, right: Floats) -> Floats:
        """Return the solution for a right side."""
        return self.iteration_matrices.solved(self, right)


class FactoredStages(Stages):
    """Solver of the stages of a step in kernel loops.

    Parameters
    ----------
    functions
        Functions of the system, where the step begins.
    steps
        What steps call.
    iteration_matrices
        Tells where they are.
    """

    def __init__(
        self, functions: SystemFunctions, steps: RecordedSteps, iteration_matrices: RecordedIterationMatrices
    ) -> None:
        self.controlled = 2 * len(functions.coordinates) + len(functions.states)
        self._functions, self._steps, self._iteration_matrices = functions, steps, iteration_matrices
        self._begin = iteration_matrices.here()

    def factorize(self, share: float) -> bool:
        """Compute the factors for h γ in s; return whether no pivot vanishes."""
        self._begin = replace(self._begin, step=share)
        self._iteration_matrices.load(self._begin)
        return bool(np.all(np.isfinite(self._steps.stages.factors()[0])))

    def solve(self, right: Floats) -> Floats:
        """Return u."""
        self._functions.write("right", right[: self.controlled])
        self._functions.write("right_of_integrals", right[self.controlled :])
        return self._steps.stages.changes()[0].copy()

    def missing(self, right: Floats, solution: Floats) -> Floats:
        """Return the residual of a solution, without integrals."""
        self._iteration_matrices.load(self._begin)
        self._functions.write("right", solution[: self.controlled])
        return self._steps.left()[0] - right[: self.controlled]
