"""Divide and conquer in absolute coordinates, with augmented Lagrangian and mass-orthogonal projections [Malczyk2012].

[Malczyk2012]

Steps in absolute coordinates: the equations of an implicit one, and ẏ = f(t, y) for the other solvers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import NOT_NEGATIVE, POSITIVE, Number, Switch
from mbsfmu.divide_and_conquer.assembly import FEW_BODIES, PENALTY
from mbsfmu.formulations.first_order import CoordinateForm, change_of, elimination_error
from mbsfmu.formulations.formulation import (
    DIRECTIONS,
    CodeOptions,
    DifferentiableForm,
    Formulation,
    FormulationOptions,
    NativeNeeds,
    StepKind,
)
from mbsfmu.formulations.penalty import AugmentedEquations, AugmentedProblem
from mbsfmu.formulations.penalty_factors import MOST_STIFFENING, REDUNDANT_STIFFENING
from mbsfmu.formulations.penalty_factors import PENALTY as STEP_PENALTY
from mbsfmu.formulations.projection import Projection
from mbsfmu.formulations.recorded_steps import (
    FactoredStages,
    RecordedAugmented,
    RecordedIterationMatrices,
    RecordedStages,
)
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.stepping.stages import DenseStages, Stages, nonzero
from mbsfmu.stepping.state import State
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.systems.system import LOST, Code, LoopEquations, System, why_unrolled
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction


class ConstrainedEquations(AugmentedEquations):
    """Equations of a step with the joint forces on bodies from the assembly, which has fewer operations than Φ_qᵀ λ."""

    @property
    def _balance(self) -> ca.SX:
        return self._given.constrained_residual


class ProjectedProblem(AugmentedProblem):
    """An implicit step in absolute coordinates, with projections instead of those of `penalty`.

    Parameters
    ----------
    formulation, state, step
        The formulation, where the step begins, and its size in s.
    """

    def __init__(self, formulation: DcaAlm, state: State, step: float) -> None:
        super().__init__(formulation, state, step, formulation.step_equations)
        self._formulation = formulation
        formulation.functions.integrals[:] = state.integrals

    def jacobian(self) -> Floats:
        """Return the Jacobian, with a penalty factor suitable for the masses."""
        self._formulation.step_penalty()
        return self._formulation.equations.iteration_matrix()[0]

    def finish(self) -> State:
        """Return the state at the end, projected onto the constraints, with ẋ of the rule."""
        self._formulation.project_onto_constraints()
        return self._end(None)


class ProjectedForm(CoordinateForm):
    """The equations for explicit solvers.

    Parameters
    ----------
    formulation, state
        The formulation and where it begins.
    """

    def __init__(self, formulation: DcaAlm, state: State) -> None:
        super().__init__(formulation, state, "velocities")
        self._formulation = formulation
        self.corrects = formulation.projects

    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""
        self.load(values, inputs)
        formulation, functions = self._formulation, self._formulation.functions
        self._place()
        formulation.projection.accelerate()
        return np.concatenate([functions.velocities, functions.accelerations, formulation.flow_rates()[0]])

    def _place(self) -> None:
        """Project a stage onto the constraints, if projections are used."""
        formulation = self._formulation
        formulation.projection.place(inside=True) if formulation.projects else formulation.projection.factorize()

    def moved(self, integrals: Floats) -> State:
        """Return the present state, projected onto the constraints if projections are used."""
        self._formulation.project_onto_constraints()
        return self._formulation.state(integrals)


class StagesForm(ProjectedForm, DifferentiableForm):
    """The equations for linearly implicit solvers, whose stages are not projected."""

    def _place(self) -> None:
        self._formulation.projection.factorize()

    def stages(self) -> Stages:
        """Return the linear solver of the stages."""
        formulation = self._formulation
        if formulation.iteration_matrices is None:
            return DenseStages(formulation.slope()[0].copy(), 0)
        return FactoredStages(formulation.functions, formulation.stages, formulation.iteration_matrices)

    def drift(self, slopes: Floats) -> Floats:
        """Return the change of ẏ with inputs that have these rates."""
        formulation = self._formulation
        formulation.functions.write("input_rates", slopes)
        drift = formulation.drift if formulation.iteration_matrices is None else formulation.stages.drift
        return drift()[0].copy()


SMALL = 0.05
"""Lever arm in m below which moments of redundant joints have relative errors of 1e-4 and more: α is scaled by masses,
and amplifies the round-off of rotations, whose inertias are proportional to the square of the arm
[docs/studies/projections.md].
"""
_LOGGER = logging.getLogger(__name__)
STABILISATION = 1.0
"""Stabilisation Ω in 1/s without projections, the paper's value."""


class DcaAlmOptions(CodeOptions):
    """Options of `dca-alm`."""

    projections: Annotated[
        bool, Switch("Whether positions and velocities are projected onto the constraints after each step")
    ] = True
    stabilisation: Annotated[
        float | None,
        Number(
            f"Stabilisation rate of constraints in 1/s without projections; {STABILISATION:g} by default",
            unit="1/s",
            bounds=NOT_NEGATIVE,
            lacking="which needs none",
        ),
    ] = None
    penalty: Annotated[
        float | None,
        Number(
            "Penalty factor α as a multiple of the bodies' mean mass in kg, or of their mean moment of inertia by (100 "
            f"m)2 where this is more, {PENALTY:g} by default, more for more than {FEW_BODIES} bodies",
            bounds=POSITIVE,
            called="penalty factor",
            lacking="which has none",
        ),
    ] = None

    def check(self) -> None:
        """Refuse a stabilisation together with projections."""
        if self.projections and self.stabilisation is not None:
            chosen = "the formulation 'dca-alm' with projections"
            option, value = self.known()["stabilisation"], self.stabilisation
            raise option.without_effect("stabilisation", value, chosen, ["'dca-alm' without"])

    def completed(self, remembering: str) -> Self:
        """Return the options with the stabilisation; projections are incompatible with multistep solvers."""
        if self.projections and remembering:
            raise InputError(f"projections do not go with {remembering}, or no projections")
        if self.projections or self.stabilisation is not None:
            return self
        return self.model_copy(update={"stabilisation": STABILISATION})


def _warn_small(initialization: Initialization) -> None:
    """Warn in the log if redundant joints share loads inexactly, because α is large relative to moments of inertia."""
    if initialization.lever_arm < SMALL:
        _LOGGER.warning(
            "%s: joints are redundant, and the longest lever arm of their loops is %.2g m: below %g m dca-alm shares "
            "reactions out among redundant joints inexactly; take the formulation double-step, dca or penalty",
            *(initialization.system.name, initialization.lever_arm, SMALL),
        )


class DcaAlm(Formulation):
    """Absolute coordinates; all joints are constraints, which may be redundant and singular.

    Explicit solvers integrate y = (q, q̇, x), with accelerations from the augmented-Lagrangian iteration, and project
    after each accepted step. Linearly implicit ones do the same with derivatives, which exist in kernel loops only, and
    with independent constraints. Implicit rules have positions as unknowns, with penalty forces in the equations of the
    step, and project the result.

    Parameters
    ----------
    functions, tolerances, rule, options
        As for every formulation; all constraints have to be in use.
    """

    name: ClassVar[str] = "dca-alm"
    Options: ClassVar[type[FormulationOptions]] = DcaAlmOptions
    has_explicit_form: ClassVar[bool] = True
    has_stages: ClassVar[bool] = True
    absolute: ClassVar[bool] = True

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: DcaAlmOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options, drifts=not options.projections)
        options.check_use(functions)
        self.projects = options.projections
        converges = options.projections or not functions.redundant
        self.projection = Projection(functions, options.penalty, options.stabilisation or 0.0, converges=converges)
        self.iterations = self.projection.iterations

    @classmethod
    def loops(
        cls, initialization: Initialization, system: System, options: FormulationOptions, kind: StepKind
    ) -> LoopEquations:
        """Return the equations of all joints, of which as many are redundant as of the loop equations.

        With projections they are treated as independent: where constraints hold to round-off, multipliers and reactions
        have the least norm. In stages that are not projected redundant ones would be inconsistent.
        """
        assert isinstance(options, DcaAlmOptions)
        loops, every = initialization.loops, len(system.constraints)
        closing = len(initialization.functions.rows)
        rank, staged = every, None
        if not options.projections:
            rank -= closing - loops.rank
        elif kind is StepKind.LINEARLY_IMPLICIT and loops.rank < closing:
            # Joints of the tree come first; of those that close loops, what no coordinate moves is redundant.
            behind = system.constraints[every - closing :] == initialization.system.constraints
            if behind and loops.rank == len(loops.rows):
                staged = (*(True,) * (every - closing), *(row in loops.rows for row in range(closing)))
            else:
                rank -= closing - loops.rank
        return LoopEquations(tuple(range(every)), rank, (1.0,) * every, staged=staged)

    @classmethod
    def form(cls, system: System, options: FormulationOptions, kind: StepKind) -> Code | None:
        """Return the form of code: loops where derivatives are needed."""
        if kind is not StepKind.LINEARLY_IMPLICIT or not system.coordinates:
            return options.form
        why = "unrolled code was chosen (code 'straight')" if options.form is Code.STRAIGHT else why_unrolled(system)
        if why:
            name = "" if options.form is Code.STRAIGHT else f"{system.name} "
            raise InputError(
                "rodas4 and rodas5p need derivatives of the rates, which 'dca-alm' gives in kernel loops only, and "
                f"{name}{why}; take another formulation, or another solver"
            )
        return Code.LOOPS

    def fit_to(self, initialization: Initialization, step: float) -> None:
        """Take whether constraints are redundant."""
        del step
        self.stiffens = initialization.loops.rank == len(initialization.functions.rows)
        if self.projects and not self.stiffens:
            _warn_small(initialization)

    @cached_property
    def flow_rates(self) -> AnyFunction:
        """ẋ and the rates of the integrals, one vector."""

        def made(given: SystemExpressions | RecordedSystem) -> list[Any]:
            if isinstance(given, RecordedSystem):
                return [np.concatenate([given.rates, given.integral_rates])]
            return [ca.vertcat(given.rates, given.integral_rates)]

        return self.functions.defined("flow_rates", made)

    @cached_property
    def slope(self) -> TracedFunction:
        """Derivative of ẏ by x, of a system without bodies; shape (states and integrals, states)."""
        given = self.functions.expressions
        matrix = change_of(given, ca.vertcat(given.rates, given.integral_rates), ("states",), {})
        return self.functions.traced("first_order_slope", [matrix], matrices=[0])

    @cached_property
    def drift(self) -> TracedFunction:
        """Change of ẏ with time by the part `input_rates`, of a system without bodies."""
        given, inputs = self.functions.expressions, self.functions.symbol("inputs")
        flow = ca.vertcat(given.rates, given.integral_rates)
        change = ca.jtimes(flow, inputs, self.functions.symbol("input_rates"))
        return self.functions.traced("first_order_drift", [change])

    @cached_property
    def step_penalty(self) -> TracedFunction:
        """Write the penalty factor of the equations of a step.

        The multipliers converge by the ratio of M ∂z̈/∂z to it in each iteration, so it must be much larger, but below
        the limit of round-off: small bodies of 1e-12 kg would vanish beside the paper's factor.
        """
        largest = ca.mmax(ca.diag(self.functions.expressions.mass))
        inertia = self.equations.end.acceleration_by_position * largest
        factor = ca.fmax(ca.fmin(STEP_PENALTY, MOST_STIFFENING * inertia), REDUNDANT_STIFFENING * inertia)
        return self.functions.traced("step_penalty", [factor], into=["penalty"])

    @cached_property
    def equations(self) -> ConstrainedEquations:
        """The equations of implicit steps where code is unrolled."""
        return ConstrainedEquations(self.functions, self.rule)

    @cached_property
    def recorded(self) -> RecordedAugmented:
        """The equations of implicit steps where code is kernel loops."""
        return RecordedAugmented(self.functions, self.rule)

    @cached_property
    def iteration_matrices(self) -> RecordedIterationMatrices | None:
        """Iteration matrices in kernel loops."""
        if not self.functions.in_loops:
            return None
        moving = "coordinates", "velocities", "accelerations", "states", "multipliers"
        given = "integrals", "inputs", "parameters", "references", "discrete", *(["active"] if self._chooses else [])
        return RecordedIterationMatrices(self.functions, lambda: self.recorded, (*moving, *given))

    @cached_property
    def change(self) -> AnyFunction:
        """Directional derivatives of ẏ, the outputs, q, q̇ and q̈ along q, q̇, x, the integrals and the inputs."""
        parts = "coordinates", "velocities", "states", "integrals", "inputs"
        for part, direction in zip(parts, DIRECTIONS, strict=True):
            self.functions.add_part(direction, self.functions.symbol(part).numel())

        def made(given: RecordedSystem, beside: dict[str, Any]) -> list[Any]:
            return self.stages.change(given, [beside[each] for each in DIRECTIONS], projects=self.projects)

        return self.functions.recorded("projected_change", made, DIRECTIONS)

    @cached_property
    def stages(self) -> RecordedStages:
        """Functions for linearly implicit solvers."""
        return RecordedStages(self.functions, self.rule, self.projection.stabilisation)

    def project_onto_constraints(self) -> None:
        """Project the present state onto the constraints, and compute accelerations and multipliers there."""
        with self._all_in_use():
            if self.projects:
                self.projection.project()
            else:
                self.projection.factorize()
            self.projection.accelerate()

    def closed(self, state: State) -> State:
        """Return the state projected onto the constraints: beside these, redundant ones contradict each other.

        Its iterations are none of the run.
        """
        counted = {level: replace(count) for level, count in self.iterations.items()}
        self.load(state)
        self.project_onto_constraints()
        self.iterations.update(counted)
        return self.state(state.integrals)

    def _consistent(self, state: State) -> State:
        self.load(state)
        with self._all_in_use():
            self.projection.factorize()
            self.projection.accelerate()
        return self.state(state.integrals)

    @contextmanager
    def _all_in_use(self) -> Iterator[None]:
        """Activate all constraints: on the manifold, redundant ones share loads."""
        chosen = self.functions.active.copy()
        self.functions.active[:] = 1.0
        yield
        self.functions.active[:] = chosen

    def state(self, integrals: Floats) -> State:
        """Return the present state, with ẋ and the rates of integrals."""
        functions = self.functions
        functions.integrals[:] = integrals
        functions.rates[:], integral_rates = np.split(self.flow_rates()[0], [len(functions.states)])
        return State.of(functions, integrals, integral_rates.copy())

    @property
    def step_multipliers(self) -> int:
        """Number of constraints."""
        return len(self.functions.rows)

    @property
    def step_equations(self) -> ConstrainedEquations | RecordedAugmented:
        """The equations of implicit steps."""
        return self.equations if self.has_dense_jacobian else self.recorded

    @property
    def step_functions(self) -> tuple[TracedFunction, Sequence[AnyFunction]]:
        """The iteration matrix of an implicit step, and the functions of its residual."""
        return self.equations.iteration_matrix, [self.equations.residual]

    def problem(self, state: State, step: float) -> ProjectedProblem:
        """Return the equations of an implicit step."""
        return ProjectedProblem(self, state, step)

    def native_needs(self, kind: StepKind) -> NativeNeeds:
        """Return the needs of its C code."""
        projection = self.projection
        steps: tuple[AnyFunction, ...] = ()
        right_sides, pattern = 0, None
        if kind is StepKind.IMPLICIT:
            equations = self.step_equations
            steps = equations.residual, equations.landing
            dense = self.has_dense_jacobian
            dense_steps = self.equations.iteration_matrix, self.step_penalty, self.equations.loop_motion
            steps += dense_steps if dense else self.recorded.implicit
        elif kind is StepKind.LINEARLY_IMPLICIT:
            if self.iteration_matrices is None:
                steps, pattern = (self.slope, self.drift), nonzero(self.slope.sparsities[0])
            else:
                steps = *self.stages.stages, self.stages.left, self.stages.drift
                right_sides = 2 * len(self.functions.coordinates) + len(self.functions.states)
        elif kind is StepKind.EXCHANGED and self.changes_known:
            steps = (self.change,)
        return NativeNeeds(
            file="projection.c",
            unknowns=len(self.functions.coordinates),
            right_sides=right_sides,
            own_motion=True,
            choices={"PROJECTIONS": int(self.projects)},
            correction_numbers=projection.calls.size,
            gradients=4 * len(self.functions.coordinates) + 7 * len(self.functions.rows),
            slope_pattern=pattern,
            in_steps=(*projection.in_steps, self.flow_rates, *steps),
        )

    def reaction_error(self) -> float:
        """Return the relative error of the present accelerations and reactions where inertias are very unequal."""
        functions = self.functions
        if not functions.rows or functions.system.inertia_spread(functions.parameters) <= LOST:
            return 0.0
        return elimination_error(functions, self.projection.stabilisation)

    def prepared(self, state: State) -> State:
        """Return the state, with active constraints for stages."""
        if self.functions.staged is not None:
            return replace(state, active=np.array(self.functions.staged, dtype=float))
        return self.with_rows_chosen(state, None) if self._chooses else state

    def made_consistent(self, state: State) -> State:
        """Return the state to continue from after a step, with active constraints for stages."""
        moved = super().made_consistent(state)
        return self.with_rows_chosen(moved, moved.active) if self._chooses else moved

    @property
    def changes_known(self) -> bool:
        """Whether rates have derivatives: in kernel loops, of constraints that do not contradict each other.

        Unrolled, the solution of the equations of all bodies would be one long function.
        """
        return self.functions.in_loops and self.projection.converges

    @property
    def _chooses(self) -> bool:
        return self.kind is StepKind.LINEARLY_IMPLICIT

    def explicit_form(self, state: State) -> ProjectedForm:
        """Return the equations for explicit and linearly implicit solvers."""
        return StagesForm(self, state) if self._chooses else ProjectedForm(self, state)
