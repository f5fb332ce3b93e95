"""The penalty-based semirecursive formulation: index-3 augmented Lagrangian with projections.

[Jaiswal2021, sect. 2.3]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar

import casadi as ca
import numpy as np

from mbsfmu.base.options import POSITIVE, Number
from mbsfmu.equations.linear import LuFactors
from mbsfmu.formulations.formulation import Formulation, FormulationOptions, NativeNeeds, StepKind, StepProblem
from mbsfmu.formulations.penalty_factors import (
    DISTINCT,
    PENALTY,
    ROUND_OFF,
    WEAK,
    WEAK_IN_STEPS,
    raised_penalty_factor,
    suitable_penalty,
)
from mbsfmu.initialization.initialization import UNDETERMINED, shortest
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import DenseInverse, Inverse, NewtonTolerances
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import MOTION
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

if TYPE_CHECKING:
    from mbsfmu.formulations.recorded_steps import RecordedAugmented
    from mbsfmu.initialization.initialization import Initialization


_WRITTEN = ("coordinates", "velocities", "accelerations", "states", "rates")
"""Parts that residuals write: z, ż, z̈, x and ẋ at the end of a step."""


class AugmentedEquations:
    """Equations of motion in all coordinates with penalty forces.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.
    rule
        How ż, z̈ and ẋ follow from z and x at the end of a step.

    Attributes
    ----------
    penalty
        α, shape (1,).
    end
        ż, z̈ and ẋ at the end of a step.
    """

    def __init__(self, functions: SystemFunctions, rule: Rule) -> None:
        self._functions = functions
        self._given = functions.expressions
        self._penalty, self.penalty = functions.add_part("penalty", 1)
        self.end = StepRates(functions, rule, len(functions.coordinates), len(functions.states))

    @property
    def _balance(self) -> ca.SX:
        """M z̈ − Q + Φ_zᵀ λ."""
        return self._given.balance

    def at_end(self) -> dict[str, ca.SX]:
        """Return z, ż, z̈ and x at the end of a step."""
        end = self.end
        values = (end.coordinates, end.velocities, end.accelerations, end.values)
        return dict(zip(_WRITTEN, values, strict=False))

    @property
    def open_step(self) -> ca.SX:
        """(M z̈ − Q + Φ_zᵀ λ, ẋ − f, Φ) at the end of a step, an expression of its unknowns."""
        given, end = self._given, self.end
        balance, rates, closure = given.at([self._balance, given.rates, given.closure], self.at_end())
        return ca.vertcat(balance, end.rates - rates, closure)

    @cached_property
    def residual(self) -> TracedFunction:
        """(M z̈ − Q + Φ_zᵀ λ, ẋ − f, Φ) at the end of a step [eq. 39]; writes z, x, ẋ, ż and z̈.

        The iteration matrix contains α, by which λ follows Φ [eq. 19].
        """

        def made() -> list[ca.SX]:
            return [self.open_step, *self.at_end().values(), self.end.rates]

        return self._functions.kept("augmented_residual", made, into=_WRITTEN)

    @cached_property
    def landing(self) -> TracedFunction:
        """Write the same values as `residual`."""

        def made() -> list[ca.SX]:
            return [*self.at_end().values(), self.end.rates]

        return self._functions.kept("augmented_landing", made, into=_WRITTEN)

    @cached_property
    def iteration_matrix(self) -> TracedFunction:
        """Derivative of (M z̈ − Q + Φ_zᵀ λ, ẋ by the rule − f, Φ) by (z, x, λ), with −1/α beside Φ_z; a square matrix.

        An increment of λ is then α Φ [eq. 19] at the corrected z. Springs α Φ_zᵀ Φ_z instead of the multipliers are
        equivalent with the present Φ_z; with the Φ_z of an earlier step they would give spurious forces, α times the
        rotation of the bodies since.
        """

        def made() -> list[ca.SX]:
            given, end = self._given, self.end
            by_z, by_v, by_a = (given.derivative(self._balance, part) for part in MOTION)
            balance = by_z + end.velocity_by_position * by_v + end.acceleration_by_position * by_a
            by_z, by_v, by_a = (given.derivative(given.rates, part) for part in MOTION)
            rates = by_z + end.velocity_by_position * by_v + end.acceleration_by_position * by_a
            by_states, own = (given.derivative(value, "states") for value in (self._balance, given.rates))
            without = end.square(balance, by_states, rates, own)
            constraints = len(self._functions.rows)
            jacobian = ca.horzcat(given.closure_jacobian, ca.SX(constraints, by_states.shape[1]))
            return [_bordered(without, jacobian, ca.SX.eye(constraints) / self._penalty)]

        return self._functions.kept("augmented_iteration_matrix", made, matrices=[0])

    @cached_property
    def projection(self) -> TracedFunction:
        """Matrix and right-hand sides, shape (n + m, 2), of the projected ż and z̈ with their forces [eqs. 20, 21].

        The weight W is the step's iteration matrix with respect to accelerations, M + h/2 C + h²/4 K for the
        trapezoidal rule, with springs h²/4 α: ż and z̈ change with z at the end by the rule, with 2/h and 4/h². The
        spring forces are unknowns too, because those of light bodies would be lost in the sum W + h²/4 α Φ_zᵀ Φ_z.
        """

        def made() -> list[ca.SX]:
            given, end = self._given, self.end
            by_z, by_v, by_a = (given.derivative(given.balance, part) for part in MOTION)
            position = 1.0 / end.acceleration_by_position
            weight = by_a + position * end.velocity_by_position * by_v + position * by_z
            jacobian, constraints = given.closure_jacobian, len(self._functions.rows)
            softness = ca.SX.eye(constraints) / (position * self._penalty)
            motion = ca.horzcat(*(given.symbol_by_part[part] for part in MOTION[1:]))
            turns = -ca.horzcat(given.drifts, given.quadratic)
            return [_bordered(weight, jacobian, softness), ca.vertcat(ca.mtimes(weight, motion), turns)]

        return self._functions.kept("projection", made, matrices=[0, 1])

    @cached_property
    def loop_motion(self) -> TracedFunction:
        """Φ, Φ̇ and Φ̈ at z, ż and z̈, one vector of shape (3 m,)."""
        given = self._given
        place, moving, turned = (given.symbol_by_part[part] for part in MOTION)

        def made() -> list[ca.SX]:
            # Along the motion: the elements of Φ_z, and their derivatives, are not needed.
            rate = ca.jtimes(given.closure, place, moving)
            turning = ca.jtimes(given.closure, place, turned) + ca.jtimes(rate, place, moving)
            return [ca.vertcat(given.closure, rate + given.drifts, turning + given.drift_rates)]

        return self._functions.kept("loop_motion", made)

    @cached_property
    def unbalanced(self) -> TracedFunction:
        """M z̈ − Q + Φ_zᵀ λ, shape (n,)."""
        return self._functions.kept("unbalanced", lambda: [self._given.balance])


def _bordered(matrix: ca.SX, jacobian: ca.SX, softness: ca.SX) -> ca.SX:
    """Return the bordered matrix of a system with soft constraints."""
    return ca.vertcat(ca.horzcat(matrix, jacobian.T), ca.horzcat(jacobian, -softness))


class AugmentedProblem(StepProblem):
    """One step in all coordinates and the states [Jaiswal2021, eqs. 36 and 39]."""

    def __init__(
        self, formulation: Formulation, state: State, step: float, equations: AugmentedEquations | RecordedAugmented
    ) -> None:
        super().__init__(formulation, state, step)
        self._stiffens = formulation.stiffens
        self._equations = equations
        equations.end.begin(
            [state.coordinates, state.states],
            [state.velocities, state.rates],
            state.accelerations,
            self.history.of(state.history, np.arange(len(state.coordinates))),
            step,
        )
        self._size = len(state.coordinates) + len(state.states)
        self.guess = np.concatenate([self._predicted_coordinates, self._predicted_states, state.multipliers])

    @property
    def rates(self) -> StepRates:
        """Rates of the coordinates and the states."""
        return self._equations.end

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates and the states."""
        system = self.functions.system
        return tuple(variable.name for variable in (*system.coordinates, *system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M' z̈ + Φ_zᵀ λ − Q', ẋ − f, Φ) [Jaiswal2021, eq. 39]; sets z, ż, z̈, x and λ."""
        self._take(unknowns)
        return self._equations.residual()[0]

    def land(self, unknowns: Floats) -> None:
        """Set z, ż, z̈, x and λ."""
        self._take(unknowns)
        self._equations.landing()

    def project(self, inverse: Inverse) -> None:
        """Project z, ż and z̈ of the functions by an iteration matrix, which is the weight of the projections.

        Multipliers of the next step balance what this corrects in ż and z̈: no position depends on it.
        """
        size, functions, equations = self._size, self.functions, self._equations
        if len(self.guess) == size:
            return
        assert isinstance(equations, AugmentedEquations)
        right = np.zeros(len(self.guess))
        levels = functions.coordinates, functions.velocities, functions.accelerations
        for level, opening in zip(levels, np.split(equations.loop_motion()[0], 3), strict=True):
            right[size:] = opening
            level[:] -= inverse.times(right)[: len(level)]

    def _take(self, unknowns: Floats) -> None:
        self._equations.end.unknowns[:] = unknowns[: self._size]
        self.functions.multipliers[:] = unknowns[self._size :]

    def inverse(self) -> Inverse | None:
        """Return the inverse of the Jacobian, with the penalty factor that the weakest constraints need."""
        made = super().inverse()
        if not self._stiffens or not isinstance(made, DenseInverse) or len(self.guess) == self._size:
            return made
        equations = self._equations
        assert isinstance(equations, AugmentedEquations)
        factor = raised_penalty_factor(
            self._left_of_weakest(made.matrix, 1.0 / float(equations.penalty[0])), WEAK_IN_STEPS
        )
        if factor == 1.0:
            return made
        before = equations.penalty[0]
        equations.penalty[0] = factor * before
        firm = DenseInverse.of(equations.iteration_matrix()[0])
        equations.penalty[0] = before
        return firm

    def _left_of_weakest(self, inverse: Floats, softness: float) -> float:
        """Return the fraction of a violation in the weakest direction that remains after an increment.

        The remainder of an increment is its change of multipliers divided by α, and the next increment responds to it.
        The first multipliers respond to a load.
        """
        size = self._size
        held, moved, loaded = -inverse[size:, size:], inverse[:size, size:], inverse[size:, :size]
        push = loaded[:, int(np.argmax(np.sum(loaded**2, axis=0)))]
        sizes = []
        for _ in range(3):
            sizes.append(float(np.linalg.norm(moved @ push)))
            push = softness * (held @ push)
        return sizes[2] / sizes[1] if sizes[2] > DISTINCT * sizes[0] else 0.0


def projection_stiffening(factors: LuFactors, softness: float, solution: Floats, given: Floats) -> float:
    """Return by how much the penalty factor of a projection has to be raised for the weakest constraints.

    Parameters
    ----------
    factors, softness
        Of the projection's matrix, and 4/(h² α) in it.
    solution, given
        What the projection gives, shape (n + m, 2), and ż and z̈ before it, (n, 2).
    """
    count = len(given)
    open_still = np.zeros(solution.shape)
    open_still[count:] = -softness * solution[count:]
    missing = np.linalg.norm(factors.solve(open_still)[:count], axis=0)
    moved = np.linalg.norm(solution[:count] - given, axis=0)
    sizes = np.maximum(1.0, np.max(np.abs(given), axis=0))
    return max(
        raised_penalty_factor(float(left / all_), WEAK) if left > ROUND_OFF * size else 1.0
        for left, all_, size in zip(missing, np.maximum(moved, missing), sizes, strict=True)
    )


class PenaltyProblem(AugmentedProblem):
    """A step that ends with projections, weighted by the step's iteration matrix."""

    def __init__(self, formulation: Formulation, state: State, step: float, equations: AugmentedEquations) -> None:
        super().__init__(formulation, state, step, equations)
        self._augmented = equations

    def jacobian(self) -> Floats:
        """Return the Jacobian with respect to the coordinates, the states and the multipliers."""
        return self._augmented.iteration_matrix()[0]

    @property
    def softness(self) -> Floats:
        """1/α for the constraints."""
        multipliers = len(self.guess) - self._size
        return np.repeat([0.0, 1.0 / float(self._augmented.penalty[0])], [self._size, multipliers])

    def finish(self) -> State:
        """Return the state at the end, velocities and accelerations projected onto the constraints."""
        functions = self.functions
        if functions.redundant:
            # What redundant equations hold against each other moves nothing, but would add up as they turn.
            jacobian = functions.closure()[1]
            functions.multipliers[:] = shortest(jacobian, jacobian.T @ functions.multipliers)
        if len(functions.rows):
            count, (factors, solution) = len(functions.coordinates), self._projected()
            functions.velocities[:], functions.accelerations[:] = solution[:count].T
            if functions.driven:
                self._balance(factors)
        return self._end(None)

    def _projected(self) -> tuple[LuFactors, Floats]:
        """Return the factors of the projection's matrix, and its solution, adapted to the weakest constraints."""
        functions, equations = self.functions, self._augmented
        before = equations.penalty[0]
        matrix, right = equations.projection()
        factors = LuFactors(matrix)
        solution = factors.solve(right)
        if not self._stiffens:
            return factors, solution
        given = np.column_stack([functions.velocities, functions.accelerations])
        factor = projection_stiffening(factors, -matrix[-1, -1], solution, given)
        if factor > 1.0:
            equations.penalty[0] = factor * before
            matrix, right = equations.projection()
            equations.penalty[0] = before
            factors = LuFactors(matrix)
            solution = factors.solve(right)
        return factors, solution

    def _balance(self, factors: LuFactors) -> None:
        """Compute λ of the projected z̈, by the factors of the projection's matrix.

        The multipliers of a step balance the accelerations of the rule. The imbalance after the projection is W v +
        Φ_zᵀ η with Φ_z v = 0, where v is the error of the step and η that of λ.
        """
        functions = self.functions
        right = np.zeros(len(functions.coordinates) + len(functions.rows))
        right[: len(functions.coordinates)] = self._augmented.unbalanced()[0]
        functions.multipliers -= factors.solve(right)[len(functions.coordinates) :]


class PenaltyOptions(FormulationOptions):
    """Options of `penalty`."""

    penalty: Annotated[
        float | None,
        Number(
            f"Penalty factor α in N/m and N m/rad; {PENALTY:g} by default, scaled for light and heavy machines",
            bounds=POSITIVE,
            called="penalty factor",
            lacking="which has none",
        ),
    ] = None


class Penalty(Formulation):
    """Augmented Lagrangian in all coordinates; constraints may be redundant and singular.

    Parameters
    ----------
    functions, tolerances, rule, options
        As for every formulation.
    """

    name: ClassVar[str] = "penalty"
    Options: ClassVar[type[FormulationOptions]] = PenaltyOptions
    has_explicit_form: ClassVar[bool] = False
    accelerates_by_rule: ClassVar[bool] = True
    takes_differences: ClassVar[bool] = True
    leaves_out: ClassVar[bool] = True
    remedy: ClassVar[str] = "take another formulation, or another penalty factor"

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: PenaltyOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options)
        self.equations = AugmentedEquations(functions, rule)
        self.equations.penalty[0] = PENALTY if options.penalty is None else options.penalty
        self._given = options.penalty is not None

    def fit_to(self, initialization: Initialization, step: float) -> None:
        """Take a penalty factor suitable for the machine, if none is given; a given one is not adapted."""
        loops = initialization.loops
        redundant = loops.rank < len(loops.rows)
        if not self._given:
            self.equations.penalty[0] = suitable_penalty(initialization.largest_inertia, step, redundant)
        self.stiffens = not (self._given or redundant)

    @property
    def fitted(self) -> tuple[float, ...]:
        """The penalty factor."""
        return (float(self.equations.penalty[0]),)

    @property
    def step_multipliers(self) -> int:
        """Number of loop equations."""
        return len(self.functions.rows)

    @property
    def step_functions(self) -> tuple[TracedFunction, Sequence[AnyFunction]]:
        """The iteration matrix of an implicit step, and the functions of its residual."""
        return self.equations.iteration_matrix, [self.equations.residual]

    def problem(self, state: State, step: float) -> PenaltyProblem:
        """Return the equations of a step."""
        return PenaltyProblem(self, state, step, self.equations)

    def native_needs(self, kind: StepKind) -> NativeNeeds:  # noqa: ARG002 - it has implicit steps alone
        """Return the needs of its C code."""
        functions, equations = self.functions, self.equations
        return NativeNeeds(
            file="penalty.c",
            unknowns=len(functions.coordinates),
            recomputes_reactions=True,
            penalty=float(equations.penalty[0]),
            element_scales=self.element_scales if functions.rank else None,
            in_steps=(
                *(equations.residual, equations.landing, equations.iteration_matrix, equations.projection),
                equations.loop_motion,
                *([equations.unbalanced] if functions.driven else []),
            ),
            at_start=(functions.quadratic,),
        )

    def reactions(self) -> Floats:
        """Return the reactions at positions and velocities with the present consistent accelerations.

        The multipliers of a step balance accelerations that are projected afterwards. For internal forces between
        redundant joints the difference is of first order in the step.
        """
        functions = self.functions
        functions.accelerations[:], functions.multipliers[:], _ = self.fitting_motion(UNDETERMINED)
        return super().reactions()
