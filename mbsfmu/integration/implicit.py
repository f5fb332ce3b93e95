"""Implicit steps with positions and states as primary unknowns [Jaiswal2021, sect. 4], by the formulation's rule."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.formulations.formulation import Formulation, StepKind
from mbsfmu.integration.error_record import ErrorRecord
from mbsfmu.integration.error_transport import ErrorTransport
from mbsfmu.integration.newton import Jacobian, Method, NewtonSolution, solve
from mbsfmu.integration.solver import HALVINGS, Inputs, Solver, StepWork, substeps
from mbsfmu.rules.trapezoidal import Trapezoidal
from mbsfmu.stepping.iteration import USE, Limits, NewtonTolerances, ReusedJacobian
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

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
