"""The solution of the equations of a step in the interpreter, by the iteration of `mbsfmu.stepping.newton`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.stepping.iteration import REMAINING, DenseInverse, Inverse, Limits, ReusedJacobian
from mbsfmu.stepping.language import Reals
from mbsfmu.stepping.newton import Iteration, Machine, Motion, Problem, newton
from mbsfmu.tracing.workspace import Floats


class Jacobian(StrEnum):
    """Source of the Jacobian."""

    EXACT = "exact"
    FORWARD_DIFFERENCE = "forward-difference"


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
    step: float,
    limits: Limits,
    method: Method,
    kept: ReusedJacobian | None,
    before: float,
) -> NewtonSolution:
    """Iterate until the error is negligible relative to the tolerances [Jaiswal2021, eq. 37].

    If an iteration matrix of an earlier step does not converge, the iteration restarts with a new one.

    Parameters
    ----------
    begin
        Returns the equations of the step, at its guess.
    step
        The step in s.
    limits
        Tolerances of the unknowns.
    method
        How increments are found.
    kept
        An iteration matrix of an earlier step, if there is one.
    before
        The step before in s as the rule remembers it, 0 where it does not.

    Raises
    ------
    SimulationError
        When it does not converge; the message names the unknown that moved most, and by how much.
    """
    if kept is not None and (method.most_increments or not kept.suits(step, before)):
        kept = None
    machine, problem = _Machine(begin, limits, method, kept), _Problem([])
    zeros = [0.0] * machine.ALL_UNKNOWNS
    iteration = Iteration(zeros.copy(), zeros.copy(), zeros)
    if not newton(machine, problem, step, iteration):
        raise machine.error
    if method.most_increments:
        kept = None
    elif kept is None or iteration.iteration_matrices:
        kept = ReusedJacobian(iteration.inverse.numbers, step, before, 1, iteration.spent, iteration.rate)
    else:
        kept = kept.used(iteration.spent, iteration.rate)
    return NewtonSolution(
        machine.equations,
        np.array(iteration.unknowns),
        iteration.count,
        iteration.iteration_matrices,
        iteration.evaluated,
        kept,
        iteration.unconverged,
        iteration.inverse,
    )


@dataclass
class _Motion(Motion):
    """Where a step begins."""

    coordinates: Reals
    velocities: Reals


@dataclass
class _Problem(Problem):
    """The equations of a step, of which the iteration reads the guess."""

    guess: Reals


class _Machine(Machine):
    """What the iteration asks of a machine, by the equations of its step in NumPy.

    Attributes
    ----------
    equations
        Of the step.
    error
        Why it fails.
    """

    equations: StepProblem
    error: SimulationError

    def __init__(
        self, begin: Callable[[], StepProblem], limits: Limits, method: Method, kept: ReusedJacobian | None
    ) -> None:
        self._begin, self._method, self._kept = begin, method, kept
        self.equations, self._has_begun = begin(), False
        state = self.equations.state
        self.state = _Motion(state.coordinates.tolist(), state.velocities.tolist())
        self.UNKNOWNS, self.STATES = len(limits.shares), limits.states
        self.ALL_UNKNOWNS, self.COORDINATES = len(self.equations.guess), len(state.coordinates)
        self.MOST_INCREMENTS = method.most_increments or 0
        self.NEWTON_ITERATIONS = method.most_iteration_matrices
        self.REFRESH_COST, self.REMAINING, self.HEAVIEST = method.refresh_cost, REMAINING, limits.heaviest
        self.unknown_tolerances, self.unknown_nominals = limits.shares.tolist(), limits.nominal.tolist()

    def begin(self, problem: Problem, step: float) -> None:  # noqa: ARG002 - the equations have it
        if self._has_begun:
            self.equations = self._begin()
        self._has_begun = True
        problem.guess = self.equations.guess.tolist()

    def evaluate(self, problem: Problem, unknowns: Reals, residual: Reals) -> bool:  # noqa: ARG002 - the equations say it
        try:
            residual[:] = self.equations.residual(np.array(unknowns)).tolist()
        except SimulationError as error:
            self.error = error
            return False
        return True

    def make_matrix(self, iteration: Iteration) -> bool:
        exact = self._method.jacobian is Jacobian.EXACT
        iteration.inverse = self.equations.inverse() if exact else DenseInverse.of(self._forward_difference(iteration))
        return iteration.inverse is not None

    def solve_matrix(self, iteration: Iteration) -> None:
        iteration.increment[:] = iteration.inverse.times(np.array(iteration.residual)).tolist()

    def reuse_iteration_matrix(self, step: float, iteration: Iteration) -> None:  # noqa: ARG002 - it was looked at
        iteration.own = self._kept is None
        if self._kept is not None:
            iteration.inverse, iteration.rate = self.equations.kept(self._kept), self._kept.rate

    def loops_hold(self) -> bool:
        try:
            self.equations.check_loops()
        except SimulationError as error:
            self.error = error
            return False
        return True

    def fail(self, sentence: str, *values: object) -> None:
        self.error = SimulationError(sentence % values)

    def unknown_name(self, i: int) -> str:
        return self.equations.names[i]

    def _forward_difference(self, iteration: Iteration) -> Floats:
        """Return the Jacobian by forward differences 1e-8 max(1e-2, |x|) [Jaiswal2021, eqs. 40 and 41]."""
        equations = self.equations
        unknowns, residual = np.array(iteration.unknowns), np.array(iteration.residual)
        matrix = np.diag(-equations.softness)
        for column, value in enumerate(unknowns):
            moved = unknowns.copy()
            moved[column] += 1e-8 * max(1e-2, abs(value))
            matrix[:, column] += (equations.residual(moved) - residual) / (moved[column] - value)
        iteration.residual[:] = equations.residual(unknowns).tolist()
        return matrix
