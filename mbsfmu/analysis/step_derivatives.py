"""Exact derivatives of trapezoidal steps: what a step makes of changes where it begins, and of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.analysis.run_points import Indices, RecordedRun
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
    mass
        M'', shape (points, f, f).
    flow_by_accelerations, read_by_accelerations
        Of (ẋ, rates of the integrals) and of what is read by z̈^i.
    """

    by_motion: Floats
    read_by_motion: Floats
    mass: Floats
    flow_by_accelerations: Floats
    read_by_accelerations: Floats


class StepDerivatives:
    """Derivatives along a run.

    Parameters
    ----------
    run
        The run.
    rows
        Which of what is computed is read (see `ReducedEquations.computed`).
    columns
        Indices of the parameters by which functions of `along` differentiate.
    """

    def __init__(self, run: RecordedRun, rows: Sequence[int], columns: Sequence[int]) -> None:
        self.run = run
        self.columns = list(columns)
        self._along_states = run.equations.along_states(rows)
        self._rows = list(rows)

    def slopes(self, points: Indices) -> Slopes:
        """Return derivatives by the motion at points."""
        run, free = self.run, self.run.freedom
        mass, load, flow, by_accelerations, read, read_by = run.evaluate(self._along_states, points)
        pushed = np.linalg.solve(mass, load)
        count, states = len(points), load.shape[2]
        matrix = np.zeros((count, run.size, run.size))
        matrix[:, :free, free : 2 * free] = np.eye(free)
        matrix[:, free : 2 * free, :states] = pushed
        matrix[:, 2 * free :, :states] = flow + by_accelerations @ pushed
        read = read.copy()
        read[:, :, :states] += read_by @ pushed
        return Slopes(matrix, read, mass, by_accelerations, read_by)

    def by_parameters(self, points: Indices, slopes: Slopes) -> tuple[Floats, Floats]:
        """Return derivatives of F and of the readings by the parameters, (points, size or rows, columns)."""
        load, flow, read = self.run.evaluate(self.run.equations.along_parameters(self.columns, self._rows), points)
        pushed: Floats = np.asarray(np.linalg.solve(slopes.mass, load), dtype=np.float64)
        flow = flow + slopes.flow_by_accelerations @ pushed
        return (
            np.concatenate([np.zeros_like(pushed), pushed, flow], axis=1),
            np.asarray(read + slopes.read_by_accelerations @ pushed),
        )

    def rechosen(self, step: int) -> tuple[Floats, Floats] | None:
        """Return how changes of w, and parameters, enter w of another choice of coordinates; None without another.

        Parameters
        ----------
        step
            Index of the step before which coordinates may be chosen anew.

        Returns
        -------
        by_motion, by_parameters
            Shapes (size, size) and (size, all parameters).
        """
        run, points = self.run, self.run.points
        if not step:
            return None
        before, after = points.ends[step - 1], points.begins[step]
        if points.partitions[before] is points.partitions[after]:
            return None
        chosen, free, n = points.partitions[after].independent, run.freedom, len(run.functions.coordinates)
        moved, by = run.evaluate(run.equations.moved, [before])
        rows = np.concatenate([chosen, n + chosen])
        matrix = np.eye(run.size)
        matrix[: 2 * free, : 2 * free] = moved[0][rows]
        return matrix, np.vstack([by[0][rows], np.zeros((run.size - 2 * free, by.shape[2]))])


def step_matrices(step_sizes: Floats, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Return I − h/2 A_{n+1} and I + h/2 A_n of steps, each of shape (steps, size, size)."""
    half = 0.5 * step_sizes[:, None, None]
    one = np.eye(begin.shape[1])
    return one - half * end, one + half * begin
