"""Newton iteration for the equations of a step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mbsfmu.equations.linear import Factors
from mbsfmu.errors import SimulationError
from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.formulations.iteration import Limits
from mbsfmu.formulations.workspace import Floats


class Jacobian(StrEnum):
    """Where the derivative of the residual comes from."""

    EXACT = "exact"
    FORWARD_DIFFERENCE = "forward-difference"


@dataclass(frozen=True)
class Solution:
    """Converged unknowns, and how many iterations it took.

    An iteration is a Jacobian, its factorization and an increment. Between iterations the residual is looked
    at through the last factors: an increment that is already below its tolerance is still applied, and the
    step is done without another Jacobian.
    """

    unknowns: Floats
    iterations: int
    evaluated: bool


NEGLIGIBLE = 1e-5
"""An increment below this share of its tolerance is left out, which saves an evaluation."""

STAGNATION = 0.5
"""Share of the increments before above which an iteration no longer gets nearer."""

ROUND_OFF = 1e-10
"""Increments below this share of the magnitudes that no longer shrink are round-off: no tolerance asks for less."""


def solve(problem: StepProblem, limits: Limits, jacobian: Jacobian, most_iterations: int) -> Solution:
    """Iterate until every increment is below its tolerance [Jaiswal2021, eq. 37].

    Parameters
    ----------
    problem
        The equations of the step.
    limits
        Tolerances of the increments.
    jacobian
        Where the derivative comes from.
    most_iterations
        Iterations after which it is given up.

    Raises
    ------
    SimulationError
        When it does not converge; the message names the unknown that moved most, and by how much.
    """
    unknowns = problem.guess.copy()
    residual = problem.residual(unknowns)
    increment = residual
    before = size = np.inf
    for iteration in range(1, most_iterations + 1):
        exact = jacobian is Jacobian.EXACT
        matrix = problem.jacobian() if exact else _forward_difference(problem, unknowns, residual)
        factors = Factors(matrix)
        increment = factors.solve(-residual)
        if factors.singular or not np.isfinite(increment).all():
            raise SimulationError(f"the equations of the step are singular or not finite in iteration {iteration}")
        unknowns += increment
        problem.updated(unknowns)
        before, size = size, _size(increment, limits.at(unknowns))
        if size <= 1.0 or _is_round_off(increment, size, before, limits.magnitudes(unknowns)):
            return Solution(unknowns, iteration, evaluated=False)
        residual = problem.residual(unknowns)
        increment = factors.solve(-residual)
        following = _size(increment, limits.at(unknowns))
        if following <= NEGLIGIBLE:
            return Solution(unknowns, iteration, evaluated=True)
        if following <= 1.0:
            unknowns += increment
            problem.updated(unknowns)
            return Solution(unknowns, iteration, evaluated=False)
    shares = np.abs(increment) / limits.at(unknowns)
    worst = int(np.argmax(shares))
    slow = "; increments hardly shrink, its tolerance may be too small" if size > STAGNATION * before else ""
    raise SimulationError(
        f"after {most_iterations} iterations {problem.names[worst]} still moves by "
        f"{abs(increment[worst]):.3g}, tolerance {abs(increment[worst]) / shares[worst]:.3g}{slow}"
    )


def _size(increment: Floats, tolerances: Floats) -> float:
    """Return the largest increment by its tolerance; infinite where one is not finite."""
    size = np.max(np.abs(increment) / tolerances, initial=0.0)
    return float(size) if np.isfinite(size) else np.inf


def _is_round_off(increment: Floats, size: float, before: float, magnitudes: Floats) -> bool:
    """Tell whether an increment is round-off, which it is where it does not shrink and is small enough to be."""
    return size > STAGNATION * before and bool((np.abs(increment) <= ROUND_OFF * magnitudes).all())


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
