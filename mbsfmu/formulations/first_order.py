"""Formulations of first order: explicit ż and ẇ from z and w, without iteration, and the accuracy of eliminations.

Motion defined by linear equations, and its derivatives.

Divide and conquer solves M z̈ − Q + Φ_zᵀ λ = 0 and the loop equations. The derivatives follow from these equations:
with K their Jacobian with respect to z̈ and λ, K ∂(z̈, λ)/∂y is minus that with respect to y. This takes a tenth to a
half of the operations of derivatives traced through the assembly, and is equal to them to round-off.

Formulations of first order: explicit ż and ẇ from z and w, without iteration.

w is defined by the formulation: velocities with `dca`, canonical momenta with `hdca`.

This module has the equations of implicit steps, and ẏ = f(t, y) for the other solvers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.formulations.formulation import (
    DIRECTIONS,
    CodeOptions,
    ExplicitForm,
    Formulation,
    FormulationOptions,
    IterationMatrixForm,
    NativeNeeds,
    StepKind,
    StepProblem,
    least_reactions,
)
from mbsfmu.formulations.recorded_steps import FactoredStages, Moved, RecordedIterationMatrices, RecordedSteps
from mbsfmu.modelling.data import Array
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import Limits, NewtonTolerances
from mbsfmu.stepping.stages import Stages, nonzero
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.systems.system import LOST, have_weak_direction
from mbsfmu.tracing.solved_equations import solved
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

Chosen = NDArray[np.bool_]
"""For each constraint whether it is active."""
LARGEST = 100
"""Largest number of coordinates for the dense equations: as many evaluations, and a matrix of at most 1 MB."""


def elimination_error(functions: SystemFunctions, stabilisation: float) -> float:
    """Return the error of the present accelerations and reactions, relative to the largest of each.

    Accelerations and multipliers that elimination has found leave a residual of M z̈ − Q + Φ_zᵀ λ = 0 and
    Φ̈ + 2 a Φ̇ + a² Φ = 0.
    A dense solution of these equations for the residual is their error to first order, as in one step of iterative
    refinement [Higham2002, sect. 12.1].

    Parameters
    ----------
    functions
        With consistent positions, velocities, accelerations and multipliers.
    stabilisation
        Rate a in 1/s with which the elimination closes loops, Φ̈ + 2 a Φ̇ + a² Φ = 0.

    Returns
    -------
    float
        Zero where elimination loses no digits: loops have no weak direction, and inertias are not very unequal. With
        more than `LARGEST` coordinates NaN where inertias are so unequal that nothing may be left; else zero.
    """
    n, in_use = len(functions.coordinates), functions.active != 0.0
    uneven = functions.system.inertia_spread(functions.parameters) > LOST
    if n > LARGEST:
        return np.nan if uneven else 0.0
    jacobian = functions.closure()[1][in_use].copy()
    if not functions.weak and not uneven and not have_weak_direction(jacobian, len(jacobian)):
        return 0.0
    found = functions.accelerations.copy(), functions.multipliers.copy()
    reactions = least_reactions(functions).copy()
    balance, opening = _residuals(functions, *found, in_use, stabilisation)
    moved, pushed = _solved(_mass(functions, in_use), jacobian, balance, opening)
    functions.accelerations[:], functions.multipliers[:] = found
    functions.accelerations[:] -= moved
    functions.multipliers[in_use] -= pushed
    refined = least_reactions(functions).copy()
    functions.accelerations[:], functions.multipliers[:] = found
    return max(_relative(moved, found[0] - moved), _relative(refined - reactions, refined))


def _relative(error: Floats, values: Floats) -> float:
    """Return the largest error as a fraction of the largest value; 0 where all values are zero."""
    largest = np.max(np.abs(values), initial=0.0)
    return float(np.max(np.abs(error), initial=0.0) / largest) if largest else 0.0


def _residuals(
    functions: SystemFunctions, accelerations: Floats, multipliers: Floats, in_use: Chosen, stabilisation: float = 0.0
) -> list[Floats]:
    """Return the residuals of the equations of motion and of the stabilised active constraints."""
    functions.accelerations[:], functions.multipliers[:] = accelerations, multipliers
    balance, loops, rates, violations = functions.kinetic_residuals()
    stabilised = loops + 2.0 * stabilisation * rates + stabilisation**2 * violations
    return [balance.copy(), stabilised[in_use]]


def _mass(functions: SystemFunctions, in_use: Chosen) -> Floats:
    """Return M, shape (n, n): the equations are linear in accelerations."""
    n, none = len(functions.coordinates), np.zeros(len(functions.multipliers))
    resting, _ = _residuals(functions, np.zeros(n), none, in_use)
    return np.stack([_residuals(functions, unit, none, in_use)[0] - resting for unit in np.eye(n)], axis=1)


def _solved(mass: Floats, jacobian: Floats, balance: Floats, opening: Floats) -> tuple[Floats, Floats]:
    """Return δ and μ with M δ + Φ_zᵀ μ = ρ and Φ_z δ = ε by the null space of Φ_z.

    The condition number of Φ_z enters once only. Coordinates are scaled by their inertia, independent of units.
    """
    inertia = np.abs(np.diag(mass))
    scale = 1.0 / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
    mass, jacobian = scale[:, np.newaxis] * mass * scale, jacobian * scale
    inverse = np.linalg.pinv(jacobian, rcond=np.finfo(float).eps)
    free = np.linalg.svd(jacobian)[2][len(jacobian) :].T
    moved = inverse @ opening
    rest = free.T @ (scale * balance - mass @ moved)
    moved = moved + free @ np.linalg.lstsq(free.T @ mass @ free, rest)[0]
    return scale * moved, inverse.T @ (scale * balance - mass @ moved)


@dataclass(frozen=True)
class Defined:
    """An implicitly defined part of the evaluation context.

    Attributes
    ----------
    value
        Its elements, shape (k,).
    change
        Their derivative by the parts that they are functions of, side by side.
    """

    value: ca.SX
    change: ca.SX


Motion = Mapping[str, Defined]
"""Parts by name."""


def change_of(given: SystemExpressions, values: ca.SX, by: Sequence[str], motion: Motion) -> ca.SX:
    """Return the Jacobian of a vector with respect to parts, where other parts are defined implicitly by these.

    Parameters
    ----------
    given
        The expressions of the system.
    values
        Expressions of them.
    by
        Names of the parts.
    motion
        The parts that follow from these.
    """
    return _change(given, values, by, motion, {part: each.value for part, each in motion.items()})


def defined(
    given: SystemExpressions, equations: ca.SX, parts: Sequence[str], by: Sequence[str], motion: Motion
) -> dict[str, Defined]:
    """Return the parts defined by linear equations.

    Parameters
    ----------
    given, by, motion
        As for `change_of`.
    equations
        As many as the parts have elements.
    parts
        Names of the parts.
    """
    sizes = [given.symbol_by_part[part].numel() for part in parts]
    known = {part: each.value for part, each in motion.items()}
    nothing = {part: ca.SX.zeros(size) for part, size in zip(parts, sizes, strict=True)}
    matrix, rest = given.at([given.derivative(equations, *parts), equations], known | nothing)
    places = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    values = ca.vertsplit(solved(matrix, -rest), places)
    found = dict(zip(parts, map(ca.densify, values), strict=True))
    changes = ca.vertsplit(-solved(matrix, _change(given, equations, by, motion, known | found)), places)
    return {part: Defined(found[part], change) for part, change in zip(parts, changes, strict=True)}


def _change(
    given: SystemExpressions, values: ca.SX, by: Sequence[str], motion: Motion, known: dict[str, ca.SX]
) -> ca.SX:
    """Return the same with other values of the parts."""
    slopes = [given.derivative(values, *by), *(given.derivative(values, part) for part in motion)]
    change, *through = given.at(slopes, known)
    for slope, each in zip(through, motion.values(), strict=True):
        change += ca.mtimes(slope, each.change)
    return change


class CoordinateForm(ExplicitForm):
    """The equations for explicit solvers.

    Parameters
    ----------
    formulation, state
        The formulation and where it begins.
    moving
        The part w of a state: `velocities` or `momenta`.
    """

    def __init__(self, formulation: Formulation, state: State, moving: str) -> None:
        super().__init__(state)
        self._made_consistent = formulation.made_consistent
        self._with_loops, self._check_loops = formulation.with_loops, formulation.check_loops
        self._functions = formulation.functions
        self._moving = moving
        n, k = len(state.coordinates), len(state.states)
        self._bounds = [n, 2 * n, 2 * n + k]

    @property
    def start(self) -> Floats:
        """Return (z, w, x, integrals)."""
        state = self.state
        return np.concatenate([state.coordinates, getattr(state, self._moving), state.states, state.integrals])

    @property
    def end_rates(self) -> Floats:
        """Return (ż, ẇ, ẋ, rates of the integrals) of the last accepted state."""
        state = self.state
        moving = state.momentum_rates if self._moving == "momenta" else state.accelerations
        return np.concatenate([state.velocities, moving, state.rates, state.integral_rates])

    def load(self, values: Floats, inputs: Floats) -> Floats:
        """Write y and the inputs into the functions' arrays; return the integrals."""
        functions = self._functions
        parts = functions.coordinates, getattr(functions, self._moving), functions.states, functions.integrals
        for part, value in zip(parts, np.split(values, self._bounds), strict=True):
            part[:] = value
        functions.inputs[:] = inputs
        functions.references[:] = self.state.references
        functions.active[:] = self.state.active
        functions.loop_iterates[:] = self.state.loop_iterates
        return functions.integrals.copy()

    @abstractmethod
    def moved(self, integrals: Floats) -> State:
        """Return the present state of the functions."""

    def state_at(self, values: Floats, inputs: Floats) -> State:
        """Return the whole state for a y."""
        return replace(
            self.moved(self.load(values, inputs)), references=self.state.references, active=self.state.active
        )

    def with_loops(self, state: State) -> State:
        """Return a state with the solutions of algebraic loops."""
        return self._with_loops(state)

    def check_loops(self) -> None:
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers."""
        self._check_loops()

    def accept(self, state: State) -> State:
        """Accept the end of a step; return the state to continue from."""
        self.state = state
        return self._made_consistent(self.state)


class FirstOrderProblem(StepProblem):
    """One implicit step for y.

    Parameters
    ----------
    formulation, state, step
        The formulation, where the step begins, and its size in s.
    """

    def __init__(self, formulation: FirstOrderFormulation, state: State, step: float) -> None:
        super().__init__(formulation, state, step)
        self._formulation = formulation
        moving, moving_rates = formulation.flow_of(state)
        formulation.end.begin(
            [state.coordinates, moving, state.states],
            [state.velocities, moving_rates, state.rates],
            np.zeros(0),
            self.history.of(state.history, ()),
            step,
        )
        predicted = self._predicted_coordinates, moving + step * moving_rates, self._predicted_states
        self.guess = np.concatenate(predicted)

    @property
    def rates(self) -> StepRates:
        """Rates of z, w and x."""
        return self._formulation.end

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates, of their velocities for w, and of the states."""
        system = self.functions.system
        return tuple(variable.name for variable in (*system.coordinates, *system.velocities, *system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return ẏ by the rule − f(y); sets z, w and x."""
        self._formulation.end.unknowns[:] = unknowns
        if self._formulation.has_dense_jacobian:
            return self._formulation.residual()[0]
        self.land(unknowns)
        return self._formulation.recorded.residual()[0]

    def land(self, unknowns: Floats) -> None:
        """Set z, w and x."""
        functions, n = self.functions, len(self.functions.coordinates)
        parts = functions.coordinates, getattr(functions, self._formulation.moving), functions.states
        for part, values in zip(parts, np.split(unknowns, [n, 2 * n]), strict=True):
            part[:] = values

    def jacobian(self) -> Floats:
        """Return the derivative by z, w and x."""
        return self._formulation.iteration_matrix()[0]

    def finish(self) -> State:
        """Return the state at the end."""
        before = self.state
        end = self._formulation.moved(before.integrals)
        integrals, history = self.history.end(before, end.integral_rates)
        return replace(end, integrals=integrals, history=history)


class FirstOrderForm(CoordinateForm, IterationMatrixForm):
    """The equations for explicit and linearly implicit solvers.

    Parameters
    ----------
    formulation, state
        The formulation and where it begins.
    """

    def __init__(self, formulation: FirstOrderFormulation, state: State) -> None:
        super().__init__(formulation, state, formulation.moving)
        self._formulation = formulation

    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""
        self.load(values, inputs)
        return self._formulation.explicit()[0].copy()

    @property
    def chained(self) -> int:
        """Number of coordinates whose rates are elements of y."""
        return self._formulation.chained

    def stages(self) -> Stages:
        """Return the linear solver of the stages."""
        formulation = self._formulation
        if formulation.iteration_matrices is None:
            return super().stages()
        return FactoredStages(formulation.functions, formulation.recorded, formulation.iteration_matrices)

    def jacobian(self) -> Floats:
        """Return the derivative of ẏ."""
        return self._formulation.slope()[0].copy()

    def drift(self, slopes: Floats) -> Floats:
        """Return the change of ẏ with inputs that have these rates."""
        formulation = self._formulation
        formulation.functions.write("input_rates", slopes)
        drift = formulation.drift if formulation.has_dense_jacobian else formulation.recorded.drift
        return drift()[0].copy()

    def moved(self, integrals: Floats) -> State:
        """Return the present state of the functions."""
        return self._formulation.moved(integrals)

    def lasts(self, state: State) -> bool:
        """Return whether y is valid after a state; restarted momenta invalidate it."""
        return super().lasts(state) and state.momenta is self.state.momenta


SET_OFF = 1e-4
"""Opening of loops, as a fraction of their lever arms, from which on states of a host's solver were set off them: at an
event they are moved back. Tolerances of solvers leave less, which the stabilisation closes."""
RATE_NOMINAL = 1e3
"""Least magnitude of w for a magnitude one of z: about 2/h at a step of 1 ms, as w follows from z there."""


class FirstOrderFormulation(Formulation):
    """A formulation in y = (z, w, x, integrals).

    Parameters
    ----------
    functions, tolerances, rule, options
        As for every formulation.
    """

    has_explicit_form: ClassVar[bool] = True
    has_jacobian: ClassVar[bool] = True
    has_stages: ClassVar[bool] = True
    stages_everywhere: ClassVar[bool] = True
    weighs_code: ClassVar[bool] = True
    remedy: ClassVar[str] = (
        "take a smaller step or tolerance, more stabilisation, or a formulation that closes positions ('double-step', "
        "'penalty', 'dca-alm')"
    )
    moving: ClassVar[str]
    """The part w of the evaluation context: `velocities` or `momenta`."""

    second_order: ClassVar[bool] = False
    stabilisation: float
    """Stabilisation rate a in 1/s of the constraint drift."""

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: FormulationOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options, drifts=True)
        assert isinstance(options, CodeOptions)
        options.check_use(functions)
        self.end = StepRates(functions, rule, 0, 2 * len(functions.coordinates) + len(functions.states))

    def native_needs(self, kind: StepKind) -> NativeNeeds:
        """Return the needs of its C code."""
        steps: tuple[AnyFunction, ...] = (self.explicit,)
        names, pattern = {}, None
        if kind is StepKind.IMPLICIT:
            dense = self.has_dense_jacobian
            steps = (
                (self.residual, self.iteration_matrix) if dense else (self.recorded.residual, *self.recorded.implicit)
            )
            names = {"velocity_names": [each.name for each in self.functions.system.velocities]}
        elif kind is StepKind.LINEARLY_IMPLICIT:
            dense, recorded = self.has_dense_jacobian, self.recorded
            own = (self.slope, self.drift) if dense else (*recorded.stages, recorded.left, recorded.drift)
            steps = self.explicit, *own
            pattern = nonzero(self.slope.sparsities[0]) if dense else None
        elif kind is StepKind.EXCHANGED:
            steps = self.explicit, self.change, *(() if self.functions.in_loops else (self.slope, self.drift))
        return NativeNeeds(
            file="first_order.c",
            unknowns=self.step_coordinates,
            own_motion=True,
            names=names,
            choices={"RESTARTS": 0},
            slope_pattern=pattern,
            in_steps=(self.motion, *steps),
        )

    @abstractmethod
    def _kinetics(self) -> tuple[ca.SX, ca.SX]:
        """Return ż and ẇ as functions of z, w, x and the inputs."""

    @abstractmethod
    def _dynamics(self) -> tuple[ca.SX, ca.SX]:
        """Return z̈ and λ as functions of z, w, x and the inputs."""

    @abstractmethod
    def _changes(self) -> tuple[ca.SX, ca.SX, Motion]:
        """Return the derivatives of ż and ẇ with respect to z, w and x, and the further parts that ẋ depends on."""

    def _accelerations(self, motion: Motion) -> dict[str, Defined]:
        """Return z̈ and λ as functions of z, w, x and other given parts."""
        given, rate = self.functions.expressions, self.stabilisation
        loops = given.closure_acceleration + 2.0 * rate * given.closure_rate + rate**2 * given.closure
        equations = ca.vertcat(given.balance, given.closing(loops))
        return defined(given, equations, ("accelerations", "multipliers"), self._unknown_parts, motion)

    @property
    def _unknown_parts(self) -> tuple[str, str, str]:
        return "coordinates", self.moving, "states"

    @abstractmethod
    def _moved(self, given: RecordedSystem) -> Moved:
        """Return the system with its motion at z, w, x and the inputs."""

    @cached_property
    def kinetics(self) -> tuple[ca.SX, ca.SX]:
        """ż and ẇ."""
        return self._kinetics()

    @cached_property
    def dynamics(self) -> tuple[ca.SX, ca.SX]:
        """z̈ and λ."""
        return self._dynamics()

    def _at_velocities(self, *values: ca.SX) -> list[ca.SX]:
        """Return the system's expressions with ż from z and w."""
        return self.functions.expressions.at(values, {"velocities": self.kinetics[0]})

    def _at_motion(self, *values: ca.SX) -> list[ca.SX]:
        """Return the same with z̈ and λ, if they are used."""
        found = ca.vertcat(self.functions.symbol("accelerations"), self.functions.symbol("multipliers"))
        if not any(ca.depends_on(value, found) for value in values):
            return self._at_velocities(*values)
        accelerations, multipliers = self.dynamics
        motion = {"velocities": self.kinetics[0], "accelerations": accelerations, "multipliers": multipliers}
        return self.functions.expressions.at(values, motion)

    @cached_property
    def _flow(self) -> ca.SX:
        given = self.functions.expressions
        (rates,) = self._at_motion(given.rates)
        return ca.vertcat(*self.kinetics, rates)

    @cached_property
    def _whole_flow(self) -> ca.SX:
        (integral_rates,) = self._at_motion(self.functions.expressions.integral_rates)
        return ca.vertcat(self._flow, integral_rates)

    @cached_property
    def explicit(self) -> AnyFunction:
        """Return ẏ = (ż, ẇ, ẋ, rates of the integrals) from the parts of y."""
        if not self.functions.in_loops:
            return self.functions.kept("first_order_rates", lambda: [self._whole_flow])

        def made(given: RecordedSystem) -> list[Array]:
            moved, moving_rates, _ = self._moved(given)
            return [np.concatenate([moved.instant.velocities, moving_rates, moved.rates, moved.integral_rates])]

        return self.functions.defined("first_order_rates", made)

    @property
    def chained(self) -> int:
        """Number of coordinates whose rates are elements of y."""
        return len(self.functions.coordinates) if self.moving == "velocities" else 0

    def _flow_change(self, *rates: ca.SX) -> ca.SX:
        """Return the derivative of ż, ẇ and some rates with respect to z, w and x."""
        *changes, motion = self._changes()
        return ca.vertcat(
            *changes, change_of(self.functions.expressions, ca.vertcat(*rates), self._unknown_parts, motion)
        )

    @cached_property
    def slope(self) -> TracedFunction:
        """Derivative of ẏ, except chained coordinates, with respect to (z, w, x)."""

        def made() -> list[ca.SX]:
            given = self.functions.expressions
            return [self._flow_change(given.rates, given.integral_rates)[self.chained :, :]]

        return self.functions.kept("first_order_slope", made, matrices=[0])

    @cached_property
    def drift(self) -> TracedFunction:
        """Change of ẏ with time by the part `input_rates`."""

        def made() -> list[ca.SX]:
            inputs, rates = self.functions.symbol("inputs"), self.functions.symbol("input_rates")
            return [ca.jtimes(self._whole_flow, inputs, rates)]

        return self.functions.kept("first_order_drift", made)

    @cached_property
    def change(self) -> AnyFunction:
        """Directional derivatives of the outputs, of ż and of z̈ along z, w, x, the integrals and the inputs.

        In kernel loops, which have no matrix of it, that of ẏ comes first. The direction of w is always the part
        `d_velocities`; the others have their own names.
        """
        directions = dict(zip(("coordinates", self.moving, "states", "integrals", "inputs"), DIRECTIONS, strict=True))
        symbols = {part: self.functions.symbol(part) for part in directions}
        for part, direction in directions.items():
            self.functions.add_part(direction, symbols[part].numel())
        if self.functions.in_loops:

            def made(given: RecordedSystem, beside: dict[str, Any]) -> list[Array]:
                moved, moving_rates, _ = self._moved(given)
                velocities, accelerations = moved.instant.velocities, moved.instant.accelerations
                flow = [velocities, moving_rates, moved.rates, moved.integral_rates]
                along = [(getattr(given.instant, part), beside[each]) for part, each in directions.items()]
                found = given.changes([*flow, moved.outputs, velocities, accelerations], along)
                return [np.concatenate(found[: len(flow)]), *found[len(flow) :]]

            return self.functions.recorded("first_order_change", made, DIRECTIONS)
        accelerations, _ = self.dynamics
        (outputs,) = self._at_motion(self.functions.expressions.outputs)
        whole = ca.vertcat(*symbols.values())
        along = ca.vertcat(*(self.functions.symbol(each) for each in directions.values()))
        values = (outputs, self.kinetics[0], accelerations)
        return self.functions.traced("first_order_change", [ca.jtimes(value, whole, along) for value in values])

    @cached_property
    def motion(self) -> AnyFunction:
        """Write ż, z̈, λ, ẋ and ṗ from z, w and x."""
        of_momenta = ("velocities", "momentum_rates") if self.moving == "momenta" else ()

        def made(given: SystemExpressions | RecordedSystem) -> list[Any]:
            if isinstance(given, RecordedSystem):
                moved, moving_rates, _ = self._moved(given)
                instant, kinetics = moved.instant, (moved.instant.velocities, moving_rates)
                found = instant.accelerations, moved.loops.multipliers, moved.rates
                return [*found, *(kinetics if of_momenta else ())]
            (rates,) = self._at_motion(given.rates)
            return [*self.dynamics, rates, *(self.kinetics if of_momenta else ())]

        written = ("accelerations", "multipliers", "rates", *of_momenta)
        return self.functions.defined("first_order_motion", made, into=written)

    @cached_property
    def residual(self) -> TracedFunction:
        """ẏ by the rule − f(y); writes z, w and x."""
        written = ("coordinates", self.moving, "states")

        def made() -> list[ca.SX]:
            n, k = len(self.functions.coordinates), len(self.functions.states)
            ends = ca.vertsplit(self.end.values, [0, n, 2 * n, 2 * n + k])
            (flow,) = self.functions.expressions.at([self._flow], dict(zip(written, ends, strict=True)))
            return [self.end.rates - flow, *ends]

        return self.functions.kept("first_order_residual", made, into=written)

    @cached_property
    def iteration_matrix(self) -> TracedFunction:
        """Derivative of the residual with respect to (z, w, x); a square matrix."""

        def made() -> list[ca.SX]:
            by_unknowns = self._flow_change(self.functions.expressions.rates)
            return [self.end.rate_by_value * ca.SX.eye(by_unknowns.shape[0]) - by_unknowns]

        return self.functions.kept("first_order_iteration_matrix", made, matrices=[0])

    @cached_property
    def recorded(self) -> RecordedSteps:
        """Functions of steps in kernel loops."""
        return RecordedSteps(self.functions, self.rule, self.moving, self._moved, self.stabilisation)

    @cached_property
    def iteration_matrices(self) -> RecordedIterationMatrices | None:
        """Iteration matrices in kernel loops."""
        if not self.functions.in_loops:
            return None
        parts = "coordinates", self.moving, "states", "inputs", "parameters", "references", "discrete", "active"
        return RecordedIterationMatrices(self.functions, lambda: self.recorded, parts)

    def limits(self, unknowns: int) -> Limits:
        """Return the tolerances of the increments; `unknowns` is their number."""
        n, given = len(self.functions.coordinates), super().limits(unknowns)
        nominal = given.nominal.copy()
        nominal[n : 2 * n] = RATE_NOMINAL
        return replace(given, nominal=nominal)

    def load(self, state: State) -> None:
        """Write a state into the functions' arrays."""
        super().load(state)
        self.functions.momenta[:] = state.momenta
        self.functions.momentum_rates[:] = state.momentum_rates

    def _consistent(self, state: State) -> State:
        self.load(state)
        return self.moved(state.integrals)

    def reaction_error(self) -> float:
        """Return the relative error of the present accelerations and reactions by the elimination."""
        return elimination_error(self.functions, self.stabilisation) if len(self.functions.rows) else 0.0

    def prepared(self, state: State) -> State:
        """Return the state with active loop equations."""
        return self.with_rows_chosen(state, None)

    def made_consistent(self, state: State) -> State:
        """Return the state to continue from after a step; λ and ẇ are recomputed if other loop equations are active."""
        moved = super().made_consistent(state)
        chosen = self.with_rows_chosen(moved, moved.active)
        return state if chosen is state else self.consistent(chosen)

    def moved(self, integrals: Floats) -> State:
        """Return the state at the present z, w and x."""
        self.motion()
        functions = self.functions
        moved = State.of(functions, integrals, functions.integral_rates()[0].copy())
        return replace(moved, momenta=functions.momenta.copy(), momentum_rates=functions.momentum_rates.copy())

    @property
    def step_coordinates(self) -> int:
        """Number of z and w."""
        return 2 * len(self.functions.coordinates)

    @property
    def step_functions(self) -> tuple[TracedFunction, Sequence[AnyFunction]]:
        """The iteration matrix of an implicit step, and the functions of its residual."""
        return self.iteration_matrix, [self.residual]

    def problem(self, state: State, step: float) -> FirstOrderProblem:
        """Return the equations of an implicit step."""
        return FirstOrderProblem(self, state, step)

    def explicit_form(self, state: State) -> FirstOrderForm:
        """Return the equations for explicit solvers."""
        return FirstOrderForm(self, state)
