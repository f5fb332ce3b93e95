"""Implicit steps with positions and states as primary unknowns [Jaiswal2021, sect. 4], solved by Newton's iteration."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.formulations.formulation import Formulation, StepKind, StepProblem
from mbsfmu.integration.error_measure import ErrorRecord
from mbsfmu.integration.error_transport import ErrorTransport
from mbsfmu.integration.solver import HALVINGS, Inputs, Solver, StepWork, substeps
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.stepping.iteration import REMAINING, USE, DenseInverse, Inverse, Limits, NewtonTolerances, ReusedJacobian
from mbsfmu.stepping.language import Reals
from mbsfmu.stepping.newton import Iteration, Machine, Motion, Problem, newton
from mbsfmu.stepping.state import State
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


SHORT = 1e-4
"""Steps below this fraction of the internal step are not solved …"""
BRIEF = 0.05
"""… and after those below this fraction accelerations are recomputed."""
MOST_ITERATIONS = 10
"""Newton iterations after which a step counts as failed."""
UNRESOLVED = 1e-3
"""Distance from convergence, relative to the magnitudes, above which a step is reported, once a run."""
ROUND_OFF = 4e-3
"""Round-off of accelerations in rad/s² and m/s² per rad or m at which a step is reported as too small."""
NOISE = 1e-7
"""The same at which it may be all that an error estimate has of a load that is constant: a hundredth of the millionth
of the weight that such an error is compared with. Smaller steps would make it larger.
"""
LARGER_STEPS = "take larger steps, or the formulation dca, hdca or dca-alm, which find them from the equations"

_LOGGER = logging.getLogger(__name__)


@dataclass
class ImplicitSolver(Solver):
    """Fixed internal steps; after a failure of Newton's iteration the step is halved, up to eight times.

    With limited iterations the work of a step is bounded: it is never halved, and the last iterate is used.

    Attributes
    ----------
    jacobian
        Exact, or the paper's forward difference.
    most_iterations
        Newton iterations after which a step counts as failed.
    iterations
        Newton iterations after which what was found is taken as the solution; None where a step has to converge.
    """

    options: ClassVar[tuple[str, ...]] = ("jacobian", "newton_tolerance", "iterations")
    kind: ClassVar[StepKind] = StepKind.IMPLICIT

    jacobian: Jacobian = Jacobian.EXACT
    most_iterations: int = MOST_ITERATIONS
    iterations: int | None = None

    @classmethod
    def of(cls, name: str, formulation: Formulation, step: float, **options: Any) -> Self:  # noqa: ARG003 - the formulation has it
        """Return the solver; the formulation has the rule and the tolerances."""
        return cls(formulation, step, jacobian=options["jacobian"], iterations=options["iterations"])

    @property
    def name(self) -> str:
        """Name of the rule with its options."""
        return str(self.formulation.rule)

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`; intervals longer than the internal step are divided evenly."""
        self.formulation.step = self.step
        for begin, end in pairwise(times.tolist()):
            state = self._over(state, begin, end, inputs)
            yield state

    def _over(self, state: State, begin: float, end: float, inputs: Inputs) -> State:
        """Return the state at the end of an interval.

        After a short interval accelerations are recomputed, as after a discontinuity, because those of the rule are
        differences of positions over the square of the step.
        """
        length, functions = end - begin, self.formulation.functions
        if length < SHORT * self.step:
            functions.inputs[:] = inputs(end)
            self.statistics.steps += 1
            return self.formulation.followed(state, length)
        for time, step in substeps(begin, end, self.step):
            state = self._step(state, time, step, inputs, 0)
        if length < BRIEF * self.step:
            functions.inputs[:] = inputs(end)
            state = self.formulation.anew(state)
        return state

    def __post_init__(self) -> None:
        functions = self.formulation.functions
        functions.iteration_matrix = np.zeros(self.formulation.kept_numbers)
        functions.iteration_matrix_use = np.zeros(USE)
        functions.unconverged = np.zeros(2 if self.iterations else 0)
        self._transport: ErrorTransport | None = None
        self._record: ErrorRecord | None = None
        if self._estimates_error:
            self._transport, self._record = ErrorTransport(self.formulation), ErrorRecord(self.formulation)
            functions.error = np.zeros(self._transport.size)
            functions.error_history = np.zeros(self._transport.history_size)
            functions.error_record = np.zeros(self._record.size)

    @property
    def most_work(self) -> StepWork | None:
        """Bound on the work of an internal step with limited iterations; None where a step has to converge.

        Each increment but the first is preceded by one with the last Jacobian, which tells whether another one is
        needed; so is the end.
        """
        if self.iterations is None:
            return None
        residuals = self.iterations + 1
        if self.jacobian is not Jacobian.EXACT:
            residuals += self.iterations * (1 + self._unknowns + self.formulation.step_multipliers)
        return StepWork(residuals, self.iterations, 2 * self.iterations)

    @property
    def _estimates_error(self) -> bool:
        """Whether its steps transport their error: converged iterations of the trapezoidal rule."""
        formulation = self.formulation
        functions = formulation.functions
        moves = len(functions.coordinates) + len(functions.states) > 0
        able = formulation.has_dense_jacobian and isinstance(formulation.rule, Trapezoidal)
        return able and moves and not self.iterations

    @property
    def error_record(self) -> ErrorRecord | None:
        """Error record of the run."""
        return self._record

    @property
    def _unknowns(self) -> int:
        return self.formulation.step_coordinates + len(self.formulation.functions.states)

    @property
    def _round_off(self) -> float:
        """Round-off of accelerations relative to positions in 1/s², if they are differences of positions; else zero."""
        # Positions round by half an epsilon at either end, velocities and accelerations begun with as much times 2/h
        # and 4/h²; the trapezoidal rule hands what is off in these on from step to step, with the other sign.
        formulation = self.formulation
        by_differences = formulation.accelerates_by_rule and formulation.functions.coordinates.size > 0
        return 16.0 * sys.float_info.epsilon / self.step**2 if by_differences else 0.0

    @property
    def smaller_error(self) -> str:
        """Advice that makes the error of steps smaller."""
        if self._round_off > ROUND_OFF:
            return LARGER_STEPS
        usual, own = NewtonTolerances(), self.formulation.tolerances
        if own.coordinates > usual.coordinates or own.states > usual.states:
            return "take a smaller Newton tolerance"
        if self._round_off > NOISE:
            return f"let steps be chosen by their error: take {self.chosen_steps}"
        return super().smaller_error

    def warn_round_off(self) -> None:
        """Warn of a step that is so small that accelerations are round-off."""
        if self._round_off > ROUND_OFF:
            _LOGGER.warning(
                "with steps of %.3g s accelerations by the solver %s, differences of positions by the square of the "
                "step, have a round-off of up to %.2g rad/s2 or m/s2 for each rad or m; %s",
                *(self.step, self.name, self._round_off, LARGER_STEPS),
            )

    @property
    def limits(self) -> Limits:
        """Tolerances of the unknowns of a step."""
        return self.formulation.limits(self._unknowns)

    @property
    def unresolved(self) -> float:
        """Distance from convergence, in tolerances, that is reported."""
        return UNRESOLVED / float(np.min(self.limits.shares, initial=1.0))

    def _warn_unresolved(self, begin: State, end: State, time: float) -> None:
        if self.iterations and begin.unconverged[1] <= self.unresolved < end.unconverged[1]:
            _LOGGER.warning(
                "%d iterations do not solve the steps: at t = %.6g s one is left %.2g tolerances from converged, more "
                "than %.2g of the magnitudes; allow more of them, or take smaller steps",
                self.iterations,
                time,
                end.unconverged[1],
                UNRESOLVED,
            )

    def _solved(self, state: State, step: float) -> NewtonSolution:
        """Solve the equations of a step; those of the formulation's functions hold the inputs at its end."""
        formulation = self.formulation
        exact = self.jacobian is Jacobian.EXACT
        refresh_cost = formulation.refresh_cost if exact else float(self._unknowns)
        return solve(
            lambda: formulation.problem(state, step),
            step,
            self.limits,
            Method(self.jacobian, self.most_iterations, refresh_cost, self.iterations),
            ReusedJacobian.of(state.iteration_matrix, state.iteration_matrix_use),
            state.history[0] if len(state.history) else 0.0,
        )

    def _step(self, state: State, time: float, step: float, inputs: Inputs, halvings: int) -> State:
        self.formulation.functions.inputs[:] = inputs(time + step)
        try:
            solution = self._solved(state, step)
            if not solution.evaluated:
                solution.problem.land(solution.unknowns)
            end = self.formulation.with_loops(solution.problem.finish())
            if self.iterations:
                most = max(solution.unconverged, float(state.unconverged[1]))
                end = replace(end, unconverged=np.array([solution.unconverged, most]))
            if solution.kept is not None and end.partition is state.partition:
                end = replace(end, iteration_matrix=solution.kept.numbers, iteration_matrix_use=solution.kept.use)
            reached, end = end, self.formulation.made_consistent(end)
        except LoopsOpenError as error:
            raise error.at(time + step) from None
        except SimulationError as error:
            self.statistics.failures += 1
            if halvings == HALVINGS or self.iterations:
                raise SimulationError(f"the step at t = {time:.9g} s fails even with {step:.3g} s: {error}") from None
            self.statistics.retries += 1
            middle = self._step(state, time, step / 2, inputs, halvings + 1)
            return self._step(middle, time + step / 2, step / 2, inputs, halvings + 1)
        self._warn_unresolved(state, end, time + step)
        self.statistics.steps += 1
        self.statistics.newton_total += solution.iterations
        self.statistics.newton_max = max(self.statistics.newton_max, solution.iterations)
        self.statistics.iteration_matrices += solution.iteration_matrices
        self.statistics.repartitions += not end.goes_on_from(state)
        return self._with_error(solution, state, reached, end)

    def _with_error(self, solution: NewtonSolution, begin: State, reached: State, end: State) -> State:
        """Return the next state with its error; `reached` is the end of the step before `made_consistent`."""
        if self._transport is None:
            return end
        if begin.error_record[-1]:
            return end.with_error(begin.error, begin.error_history, begin.error_record)
        carried = self._transport.carried(solution.problem, solution.inverse, begin, reached)
        return self._transport.described(carried, end)
