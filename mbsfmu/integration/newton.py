"""Newton's iteration for the equations of a step, with reused iteration matrices (modified Newton).

The inverse of an iteration matrix serves several increments and several steps. Increments then decrease by a ratio that
is measured (Hairer and Wanner, Solving Ordinary Differential Equations II, sect. IV.8). After an increment of size d
the error is at most d r / (1 - r) with the ratio r; this, not the increment itself, must be negligible relative to the
tolerance. An iteration matrix is refreshed if this is less expensive than to continue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.stepping.iteration import REMAINING, Limits
from mbsfmu.stepping.reused_jacobian import DenseInverse, Inverse, ReusedJacobian
from mbsfmu.tracing.workspace import Floats


class Jacobian(StrEnum):
    """Source of the Jacobian."""

    EXACT = "exact"
    FORWARD_DIFFERENCE = "forward-difference"


SLOW = 0.3
"""Convergence ratio above which an iteration matrix is refreshed at any cost."""

FADING = 0.3
"""Weight of a ratio in the estimate of the next one: single ratios may be far off by chance."""

FRESH = 1.0
"""Expected evaluations of an iteration after a refresh."""

STAGNATION = 0.5
"""Convergence ratio above which an iteration stagnates."""

ROUND_OFF = 1e-10
"""Increments below this fraction of the magnitudes that no longer decrease are round-off, for any tolerance."""

FLOOR = 1e-13
"""The same with an iteration matrix of an earlier step, with which increments may decrease slowly …"""

FAST = 0.1
"""… unless the ratio so far was below this."""


NEAR = 1e-6
"""Fraction of the magnitudes up to which stagnating increments are attributed to the tolerance; above it the iteration
fails for any tolerance.
"""


@dataclass(frozen=True)
class Method:
    """Settings of the iteration.

    Attributes
    ----------
    jacobian
        Where the derivative comes from.
    most_iteration_matrices
        How many may be made in a step before it is given up.
    refresh_cost
        What an iteration matrix and its inverse cost, in evaluations of the residual.
    most_increments
        After how many increments the iteration ends wherever it is; None where it goes on until it converges. Each has
        an iteration matrix of its own then: the dearest step costs the same, and few increments have to come near.
    """

    jacobian: Jacobian
    most_iteration_matrices: int
    refresh_cost: float
    most_increments: int | None = None


@dataclass(frozen=True)
class NewtonSolution:
    """Converged unknowns.

    Attributes
    ----------
    problem
        The problem that was solved.
    unknowns
        Its solution.
    iterations, iteration_matrices
        How many increments and iteration matrices it took.
    evaluated
        Whether the residual was last evaluated at the solution.
    kept
        The iteration matrix for the next step, or None.
    unconverged
        The increment that would come next by its tolerances, where the iteration was ended; zero where it converged.
    inverse
        Of the iteration matrix that was used last.
    """

    problem: StepProblem
    unknowns: Floats
    iterations: int
    iteration_matrices: int
    evaluated: bool
    kept: ReusedJacobian | None
    unconverged: float
    inverse: Inverse


def solve(
    begin: Callable[[], StepProblem],
    limits: Limits,
    method: Method,
    kept: ReusedJacobian | None,
    before: float,
    moving: bool = True,
) -> NewtonSolution:
    """Iterate until the error is negligible relative to the tolerances [Jaiswal2021, eq. 37].

    If an iteration matrix of an earlier step does not converge, the iteration restarts with a new one.

    Parameters
    ----------
    begin
        Returns the equations of the step, at its guess.
    limits
        Tolerances of the unknowns.
    method
        How increments are found.
    kept
        An iteration matrix of an earlier step, if there is one.
    before
        The step before in s as the rule remembers it, 0 where it does not.
    moving
        Whether the system is not at rest at the start of the step.

    Raises
    ------
    SimulationError
        When it does not converge; the message names the unknown that moved most, and by how much.
    """
    problem = begin()
    if kept is not None and (method.most_increments or not kept.suits(problem.step, before)):
        kept = None
    iteration = _Iteration(problem, limits, method, kept, moving)
    wasted = 0
    try:
        evaluated = iteration.run()
    except SimulationError:
        if kept is None or iteration.iteration_matrices:
            raise
        wasted = iteration.evaluations
        iteration = _Iteration(begin(), limits, method, None, moving)
        evaluated = iteration.run()
    spent = wasted + iteration.evaluations + method.refresh_cost * iteration.iteration_matrices
    if method.most_increments:
        kept = None
    elif kept is None or iteration.iteration_matrices:
        kept = ReusedJacobian(iteration.inverse.numbers, problem.step, before, 1, spent, iteration.rate)
    else:
        kept = kept.used(spent, iteration.rate)
    counts = iteration.count, iteration.iteration_matrices
    found = iteration.problem, iteration.unknowns
    return NewtonSolution(*found, *counts, evaluated, kept, iteration.unconverged, iteration.inverse)


class _Iteration:
    """An iteration from a problem's initial iterate, with the iteration matrix of an earlier step or its own.

    Attributes
    ----------
    problem, unknowns
        The problem, and where the iteration is.
    inverse
        Of the iteration matrix that was used last.
    rate
        The ratio by which increments by it shrink; 0 where that is not known yet.
    count, iteration_matrices, evaluations
        Increments, iteration matrices and evaluations of the residual until now.
    unconverged
        As `NewtonSolution` has it.
    """

    inverse: Inverse

    def __init__(
        self, problem: StepProblem, limits: Limits, method: Method, kept: ReusedJacobian | None, moving: bool
    ) -> None:
        self.problem, self._limits, self._method, self._moving = problem, limits, method, moving
        self.unknowns = problem.guess.copy()
        self._judged = slice(len(limits.shares))  # multipliers follow the others
        self._weights = np.ones(len(limits.shares))  # of errors
        self.count = self.iteration_matrices = self.evaluations = 0
        self._own = kept is None  # whether the next increment is the first of a refreshed iteration matrix
        self.rate = self.unconverged = self._first = 0.0
        if kept is not None:
            self.inverse, self.rate = problem.kept(kept), kept.rate

    def run(self) -> bool:
        """Iterate to convergence; return whether the residual was last evaluated at the solution."""
        before = np.inf
        self._evaluate()
        self._first = self._residual_size()
        if self._own:
            self._refresh()
        while True:
            increment, size, counted = self._increment()
            # An increment that is negligible is left out, which saves an evaluation.
            if counted <= REMAINING:
                return True
            if self.count == self._method.most_increments:
                self.unconverged = size
                return True
            rate = size / before
            ends = self._is_round_off(increment, rate)
            chord = not self._own and before < np.inf and not ends
            if chord:
                self.rate = max(rate, FADING * self.rate)
                if self._method.most_increments or self._needs_refresh(rate, size, counted):
                    self._refuse(increment, rate)
                    self._refresh()
                    continue
            self.unknowns += increment
            self.count += 1
            # Full Newton increments leave almost no error; after the first with a reused matrix it is
            # unknown.
            if ends or (self._own and size <= 1.0) or (chord and self._left(counted) <= REMAINING):
                return False
            before, self._own = size, False
            self._evaluate()

    def _evaluate(self) -> None:
        self.evaluations += 1
        self._residual = self.problem.residual(self.unknowns)

    def _refresh(self) -> None:
        """Compute the iteration matrix at the present iterate, and its inverse."""
        exact = self._method.jacobian is Jacobian.EXACT
        inverse = self.problem.inverse() if exact else DenseInverse.of(self._forward_difference())
        if inverse is None:
            raise SimulationError(f"the equations of the step are singular in iteration {self.count + 1}")
        self.inverse, self.rate = inverse, 0.0
        self.iteration_matrices += 1
        self._own = True

    def _increment(self) -> tuple[Floats, float, float]:
        """Return the increment, its largest component relative to the tolerance, and the largest weighted one."""
        increment = self.inverse.times(-self._residual)
        shares = self._shares(increment)
        size = float(np.max(shares, initial=0.0))
        if not np.isfinite(size):
            self.problem.check_loops()
            raise SimulationError(f"the equations of the step are not finite in iteration {self.count + 1}")
        if self.count == 0:
            self._weights = self._limits.weights(shares, self._moving)
        return increment, size, float(np.max(self._weights * shares, initial=0.0))

    def _shares(self, increment: Floats) -> Floats:
        """Return the increment relative to the tolerances; multipliers have none."""
        return np.abs(increment[self._judged]) / self._limits.at(self.unknowns[self._judged])

    def _left(self, counted: float) -> float:
        """Return the error after an increment, relative to the tolerances."""
        return self.rate / (1.0 - self.rate) * counted if self.rate < 1.0 else np.inf

    def _needs_refresh(self, rate: float, size: float, counted: float) -> bool:
        """Return whether a refresh is less expensive than to continue (refresh criterion).

        The first ratio is unreliable for small increments, because multipliers adjust between the two.
        """
        if self.count == 1 and size <= 1.0 and rate < 1.0:
            return False
        if self.rate >= SLOW:
            return True
        evaluations, left = 0, self._left(counted)
        while left > REMAINING:
            left *= self.rate
            evaluations += 1
        return evaluations > self._method.refresh_cost + FRESH

    def _is_round_off(self, increment: Floats, rate: float) -> bool:
        """Return whether increments no longer decrease and are at round-off; `self.rate` is their ratio so far."""
        slow, share = (STAGNATION, ROUND_OFF) if self.iteration_matrices else (SLOW, FLOOR)
        if self.count > 1 and self.rate < FAST:
            share = ROUND_OFF
        if rate <= slow:
            return False
        magnitudes = self._limits.magnitudes(self.unknowns[self._judged])
        return bool((np.abs(increment[self._judged]) <= share * magnitudes).all())

    def _refuse(self, increment: Floats, rate: float) -> None:
        """Raise an error if another refresh does not help."""
        if self.iteration_matrices == 0 and rate >= 1.0:
            raise SimulationError("the iteration matrix of an earlier step does not converge")
        if self.iteration_matrices < self._method.most_iteration_matrices or self._method.most_increments:
            return
        shares = self._shares(increment)
        worst = int(np.argmax(shares))
        raise SimulationError(
            f"after {self.iteration_matrices} iterations {self.problem.names[worst]} still moves by "
            f"{abs(increment[worst]):.3g}, tolerance {abs(increment[worst]) / shares[worst]:.3g}"
            f"{self._what_happens(rate, float(shares[worst] * self._limits.shares[worst]))}"
        )

    def _what_happens(self, rate: float, size: float) -> str:
        """Return the description of the convergence from the ratio and the last increment relative to magnitudes."""
        if rate <= STAGNATION:
            return ""
        if size <= NEAR:
            return "; increments hardly decrease, its tolerance may be too small"
        left = self._residual_size() / self._first if self._first > 0.0 else np.inf
        how = "diverges: increments grow" if rate >= 1.0 else "stalls: increments hardly decrease"
        return f"; the iteration {how}, and the residual is {left:.2g} times what it was at first"

    def _residual_size(self) -> float:
        return float(np.max(np.abs(self._residual), initial=0.0))

    def _forward_difference(self) -> Floats:
        """Return the Jacobian by forward differences 1e-8 max(1e-2, |x|) [Jaiswal2021, eqs. 40 and 41]."""
        residual = self._residual.copy()
        matrix = np.diag(-self.problem.softness)
        for column, value in enumerate(self.unknowns):
            moved = self.unknowns.copy()
            moved[column] += 1e-8 * max(1e-2, abs(value))
            matrix[:, column] += (self.problem.residual(moved) - residual) / (moved[column] - value)
        self._residual = self.problem.residual(self.unknowns)
        return matrix
