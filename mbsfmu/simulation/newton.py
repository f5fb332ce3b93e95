"""Newton iteration for the equations of a step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.linalg.lapack import dgesv

from mbsfmu.errors import SimulationError
from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.formulations.functions import Floats


class Jacobian(StrEnum):
    """Where the derivative of the residual comes from."""

    EXACT = "exact"
    FORWARD_DIFFERENCE = "forward-difference"


@dataclass(frozen=True)
class Solution:
    """Converged unknowns, and how many linear systems it took."""

    unknowns: Floats
    iterations: int


def solve(problem: StepProblem, jacobian: Jacobian, most_iterations: int) -> Solution:
    """Iterate until every increment is below its tolerance [Jaiswal2021, eq. 37].

    Raises
    ------
    SimulationError
        When it does not converge; the message names the unknown that moved most, and by how much.
    """
    unknowns = problem.guess.copy()
    increment = np.zeros_like(unknowns)
    for iteration in range(1, most_iterations + 1):
        residual = problem.residual(unknowns)
        if jacobian is Jacobian.EXACT:
            matrix = problem.jacobian()
        else:
            matrix = _forward_difference(problem, unknowns, residual)
        *_, increment, info = dgesv(matrix, -residual)
        if info != 0 or not np.isfinite(increment).all():
            raise SimulationError(
                f"the equations of the step are singular or not finite in iteration {iteration}"
            )
        unknowns += increment
        problem.updated(unknowns)
        if (np.abs(increment) <= problem.limits).all():
            return Solution(unknowns, iteration)
    worst = int(np.argmax(np.abs(increment) / problem.limits))
    raise SimulationError(
        f"after {most_iterations} iterations {problem.names[worst]} still moves by "
        f"{abs(increment[worst]):.3g}, tolerance {problem.limits[worst]:.3g}"
    )


def _forward_difference(problem: StepProblem, unknowns: Floats, residual: Floats) -> Floats:
    """Differentiate with the increment 1e-8 max(1e-2, |x|) [Jaiswal2021, eqs. 40 and 41]."""
    residual = residual.copy()
    matrix = np.empty((len(unknowns), len(unknowns)))
    for column, value in enumerate(unknowns):
        moved = unknowns.copy()
        moved[column] += 1e-8 * max(1e-2, abs(value))
        matrix[:, column] = (problem.residual(moved) - residual) / (moved[column] - value)
    problem.residual(unknowns)
    return matrix
