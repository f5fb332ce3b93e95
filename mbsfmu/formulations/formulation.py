"""Base class of formulations: the equations of one implicit step of a system, its explicit form, and its code.

Base class of formulations: the nonlinear equations of one implicit step of a system.

Newton's iteration solves these equations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from mbsfmu.base.options import Options
from mbsfmu.base.registry import Registry
from mbsfmu.formulations.recorded_steps import RecordedIterationMatrices
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import DenseInverse, Inverse, IterationCount, Limits, NewtonTolerances, ReusedJacobian
from mbsfmu.stepping.rule_checks import check_rule
from mbsfmu.stepping.stages import DenseStages, Pattern, Stages
from mbsfmu.stepping.state import State, StepHistory, fingerprint
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LARGE, Code, LoopEquations, System, can_be_in_loops, chosen_rows
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.workspace import AnyFunction, Floats, Overwritten, TracedFunction

if TYPE_CHECKING:
    from mbsfmu.initialization.initialization import Initialization
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

from mbsfmu.base.errors import InputError, LoopsOpenError, SimulationError
from mbsfmu.base.options import ChoiceOption
from mbsfmu.equations.kinematics import LOST, NEAR_GIMBAL_LOCK
from mbsfmu.initialization.closing_loops import turned_joint
from mbsfmu.initialization.initialization import accelerations
from mbsfmu.systems.system import scale_of_arm

# -- consistent states: after discontinuities of inputs, at the end of steps, after changes of references --------------

_KEPT = (
    *("iteration_matrix", "iteration_matrix_use", "suggested_step", "unconverged", "ahead"),
    *("error", "error_history", "error_record"),
)  # of a state where accelerations jump


class FittingStates:
    """Base of formulations: consistent states, independent of the equations of their steps.

    Attributes
    ----------
    functions
        Functions of the system.
    history
        What the rule remembers.
    opening
        How far a loop may be open at the end of a step, as a share of its lever arms.
    step
        Of equal steps by an implicit rule, in s; 0 for other solvers, whose order is higher.
    """

    remedy: ClassVar[str] = "take a smaller step"
    """Advice for loops beyond the drift tolerance."""
    leaves_out: ClassVar[bool] = False
    """Whether nearly dependent equations near a change point are omitted for accelerations."""
    functions: SystemFunctions
    history: StepHistory
    opening: float
    step: float = 0.0

    def consistent(self, state: State) -> State:
        """Return the state with accelerations, multipliers and rates consistent with the present inputs.

        A discontinuity of an input changes these, and the history of the rule by the same amount.
        """
        found = self._consistent(state)
        with suppress(SimulationError):  # what depends on a loop without a solution is not finite
            found = self.with_loops(found)
        history = self.history.after_jump(state, found)
        return replace(found, history=history, **{name: getattr(state, name) for name in _KEPT}).turned

    def closed(self, state: State) -> State:
        """Return the consistent state of positions and velocities near the constraint manifold, to compare outputs."""
        return self.consistent(state)

    def _consistent(self, state: State) -> State:
        self.load(state)
        z_accelerations, multipliers, rates = self.fitting_motion()
        self.functions.accelerations[:] = z_accelerations
        self.functions.multipliers[:] = multipliers
        return replace(
            state,
            accelerations=z_accelerations,
            multipliers=multipliers,
            rates=rates,
            integral_rates=self.functions.integral_rates()[0].copy(),
        )

    def followed(self, state: State, step: float) -> State:
        """Return the state after a step in s that is too short to solve, by the rates at its start.

        The functions hold the inputs at its end. Rates of a rule are differences of positions divided by the step, and
        by its square, which would be round-off only.
        """
        moved = replace(
            state,
            coordinates=state.coordinates + step * (state.velocities + 0.5 * step * state.accelerations),
            velocities=state.velocities + step * state.accelerations,
            states=state.states + step * state.rates,
            integrals=state.integrals + step * state.integral_rates,
            momenta=state.momenta + step * state.momentum_rates,
        )
        return self.anew(moved)

    def anew(self, state: State) -> State:
        """Return the state with recomputed accelerations and rates, and an empty history."""
        return self.consistent(state.forgetful)

    def load(self, state: State) -> None:
        """Write a state into the functions' arrays."""
        functions = self.functions
        functions.coordinates[:] = state.coordinates
        functions.velocities[:] = state.velocities
        functions.accelerations[:] = state.accelerations
        functions.multipliers[:] = state.multipliers
        functions.states[:] = state.states
        functions.integrals[:] = state.integrals
        functions.references[:] = state.references
        functions.active[:] = state.active
        functions.loop_iterates[:] = state.loop_iterates

    def fitting_motion(self, share: float = 1.0) -> tuple[Floats, Floats, Floats]:
        """Return z̈, λ and ẋ consistent with the coordinates, velocities, states and inputs of the functions.

        Parameters
        ----------
        share
            Of what counts as near a change point, within which equations are left out by formulations that do so.
        """
        near = share * self.functions.near
        return accelerations(self.functions, self.element_scales if self.leaves_out else None, near)

    @cached_property
    def element_scales(self) -> Floats:
        """Scales of the elements of Φ_z that make them independent of units and size, shape (m, n)."""
        return self.functions.element_scales(scale_of_arm(self.arm))

    @property
    def arm(self) -> float:
        """Longest lever arm of the loops in m."""
        units = [self.functions.system.constraint_units[row] for row in self.functions.rows]
        return max(
            (scale for scale, unit in zip(self.functions.scales, units, strict=True) if unit == "m"), default=1.0
        )

    def made_consistent(self, state: State) -> State:
        """Return the state to continue from after a step, whose end the functions hold.

        Raises
        ------
        LoopsOpenError
            When a loop has opened further than the formulation lets it, or a joint is turned by half a turn.
        """
        functions = self.functions
        if (joint := turned_joint(functions, functions.coordinates)) is not None:
            raise LoopsOpenError(f"joint {joint} is turned by half a turn against its own orientation; {self.remedy}")
        if len(functions.rows):
            gaps = np.abs(functions.gap()[0])
            worst = int(np.argmax(gaps / functions.scales))
            if not gaps[worst] <= self.opening * functions.scales[worst]:
                row = functions.rows[worst]
                gap = f"{gaps[worst]:.3g} {functions.system.constraint_units[row]}"
                raise LoopsOpenError.of(functions.system.constraints[row], gap, self.remedy)
        return self.with_present_references(state)

    def with_loops(self, state: State) -> State:
        """Return the present state with the solutions of algebraic loops.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        if not len(self.functions.loop_iterates):
            return state
        self.functions.follow_loops()
        return replace(state, loop_iterates=self.functions.loop_iterates.copy())

    def check_loops(self) -> None:
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers.

        Raises
        ------
        SimulationError
            When one is not solved.
        """
        self.functions.follow_loops()

    def with_present_references(self, state: State, *, starts: bool = False) -> State:
        """Return the same motion with references changed near gimbal lock, and along axes of fast rotation."""
        if not self._needs_references(state, starts=starts):
            return state
        self.load(state)
        coordinates, velocities, z_accelerations, momenta, references = (
            part.copy() for part in self.functions.with_present_references()
        )
        return replace(
            state.forgetful,
            coordinates=coordinates,
            velocities=velocities,
            accelerations=z_accelerations,
            momenta=momenta,
            references=references,
        )

    def with_references(self, state: State, references: Floats) -> State:
        """Return the same motion with other references."""
        self.load(state)
        self.functions.momenta[:] = state.momenta
        described = self.functions.with_references
        self.functions.write("new_references", references)
        coordinates, velocities, z_accelerations, momenta = (part.copy() for part in described())
        moved = replace(state, coordinates=coordinates, velocities=velocities, accelerations=z_accelerations)
        return replace(moved, momenta=momenta, references=references)

    def restarted_as(self, other: State, state: State) -> State:  # noqa: ARG002 - most have no momenta
        """Return the state with momenta restarted where those of another state are."""
        return state

    def _needs_references(self, state: State, *, starts: bool) -> bool:
        """Return whether a reference has to change; at the start of a run as if the body had turned by a radian."""
        for first, second, third in self.functions.system.turning_angles:
            tilt = max(abs(state.velocities[first]), abs(state.velocities[second]))
            angle = max(abs(state.coordinates[first]), abs(state.coordinates[second]))
            lost = (self.step * tilt) ** 2 * (1.0 if starts else angle)
            if abs(state.coordinates[second]) > NEAR_GIMBAL_LOCK:
                return True
            if lost > LOST and tilt > abs(state.velocities[third]):
                return True
        return False


# -- base class of formulations: the equations of one implicit step of a system, its explicit form, and its code -------
# Newton's iteration solves these equations.


class StepKind(Enum):
    """Kinds of steps that solvers make."""

    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    LINEARLY_IMPLICIT = "linearly implicit"
    EXCHANGED = "exchanged"
    """Steps of an external solver, which receives rates and their derivatives."""


@dataclass(frozen=True, kw_only=True)
class NativeNeeds:
    """Needs of a formulation's C code.

    Attributes
    ----------
    file
        The C file of its steps among those of the runtime, which has the functions `prepare`, `change_chart` and what
        `steps.c` calls for implicit or explicit steps.
    unknowns
        Number of unknowns of an implicit step, states apart.
    right_sides
        Number of right sides of the linear equations of a step in loops, integrals apart; 0 where they are as many as
        unknowns and multipliers.
    freedom, dependent
        Numbers of independent and dependent coordinates where it chooses them; 0 where it does not.
    own_motion
        Whether its C has a function `motion` that finds accelerations, multipliers and rates; else they are found from
        the equations of motion with multipliers.
    recomputes_reactions
        Whether reactions are found from positions and velocities, not from the multipliers of a step.
    closes_loops
        Whether loops are closed when its C has made a step: nobody has to look.
    choices
        Numbers that only its own C asks for, by their names there: truths as 0 and 1, sizes.
    element_scales
        What the elements of Φ_z are divided by where its C chooses among them, shape (m, n).
    names
        Lists of names that its messages ask for, by their own there.
    penalty
        Penalty factor α in N/m and N m/rad where it is constant.
    correction_numbers
        How many numbers the matrices of its projections come to.
    gradients
        On how many numbers the conjugate gradients of its projections work.
    slope_pattern
        Where the derivative of ẏ may have elements for linearly implicit methods: rows without those of the coordinates
        whose rates are elements of y, columns without the integrals. None where there is no matrix.
    in_steps
        Traced functions that its steps call.
    at_start
        Traced functions that it calls at the start of a run and where inputs jump.
    """

    file: str
    unknowns: int
    right_sides: int = 0
    freedom: int = 0
    dependent: int = 0
    own_motion: bool = False
    recomputes_reactions: bool = False
    closes_loops: bool = False
    choices: Mapping[str, int] = field(default_factory=dict)
    element_scales: Floats | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    penalty: float = 0.0
    correction_numbers: int = 0
    gradients: int = 0
    slope_pattern: Pattern | None = None
    in_steps: tuple[AnyFunction, ...] = ()
    at_start: tuple[AnyFunction, ...] = ()


def least_reactions(functions: SystemFunctions) -> Floats:
    """Return the reactions of all joints at the present motion and multipliers.

    Internal forces of redundant joints, N μ with Φ_zᵀ N = 0, do not affect the motion and do not follow from it. Of all
    reactions r + A N μ, those with the least sum of squares over all joints, in N and N m, are returned. They are
    independent of the frame, of the formulation, and of the choice of cut joints.

    Returns
    -------
    NDArray
        Shape (number of reactions,).
    """
    reactions = functions.reactions()[0]
    if not functions.reactions_open:
        return reactions
    idle = np.linalg.svd(functions.all_closure_jacobian()[0])[0][:, functions.rank :]
    held = np.empty((len(reactions), idle.shape[1]))
    for index, multipliers in enumerate(idle.T):
        functions.shared_multipliers[:] = multipliers
        held[:, index] = functions.shared_reactions()[0]
    return np.asarray(reactions - held @ np.linalg.lstsq(held, reactions)[0])


class ExplicitForm(ABC):
    """A formulation's equations from a state on, valid in one coordinate chart.

    Parameters
    ----------
    state
        Where it begins.
    """

    corrects = False
    """Whether an accepted y is changed before the next step."""

    def __init__(self, state: State) -> None:
        self.state = state
        """The last accepted state."""

    @property
    @abstractmethod
    def start(self) -> Floats:
        """Y where it begins; integrals are the last elements."""

    @property
    @abstractmethod
    def end_rates(self) -> Floats:
        """Derivative ẏ at `state`."""

    @abstractmethod
    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""

    @abstractmethod
    def state_at(self, values: Floats, inputs: Floats) -> State:
        """Return the complete state for a y."""

    @abstractmethod
    def accept(self, state: State) -> State:
        """Accept the end of a step, from `state_at`, as `state`; return the state to continue from."""

    def leaps(self, state: State, step: float) -> bool:  # noqa: ARG002 - most forms integrate all coordinates
        """Return whether a state cannot follow continuously from the last accepted one within `step` seconds."""
        return False

    def with_loops(self, state: State) -> State:
        """Return a state from `state_at` with the solutions of algebraic loops, to continue from.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        return state

    def check_loops(self) -> None:  # noqa: B027 - some have none
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers in the last rates.

        Raises
        ------
        SimulationError
            When one is not solved.
        """

    def lasts(self, state: State) -> bool:
        """Return whether y is valid after a state; otherwise a new form must start there."""
        kept = ("partition", "references", "active")
        return all(getattr(state, part) is getattr(self.state, part) for part in kept)

    def with_changed_chart(self) -> State | None:
        """Return the last accepted state in another chart after a failed step; None if there is none."""
        return None


class DifferentiableForm(ExplicitForm):
    """Equations with exact derivatives, for linearly implicit solvers."""

    @abstractmethod
    def stages(self) -> Stages:
        """Return the linear solver of the stages with ∂ẏ/∂y at the last evaluation."""

    @abstractmethod
    def drift(self, slopes: Floats) -> Floats:
        """Return ∂f/∂t at the last evaluation for given rates of the inputs."""


class IterationMatrixForm(DifferentiableForm):
    """Equations with a Jacobian matrix."""

    @property
    @abstractmethod
    def chained(self) -> int:
        """Number of leading elements of y whose rates are the following elements, as those of positions are."""

    @abstractmethod
    def jacobian(self) -> Floats:
        """Return the Jacobian of ẏ with respect to y at the last evaluation.

        Rows are all elements of y except the chained ones, columns all except the integrals, on which nothing depends.
        """

    def stages(self) -> Stages:
        """Return the linear solver of the stages with this matrix."""
        return DenseStages(self.jacobian(), self.chained)


FEW = 4
"""Number of coordinates up to which code is unrolled without counting: few calls gain nothing from loops."""
_SHARE = 0.5
"""Cost of an operation in loops relative to one in unrolled code. Unrolled instructions are read from memory in
sequence, those of kernels stay in the first cache, and loads and stores of kernel arguments count as operations.
"""
_BEGINNING = 700
"""Fixed cost of loops in operations of unrolled code: their first calls miss the caches."""
_SHORT, _LONG = 100_000, 400_000
"""Operations of an unrolled right-hand side times coordinates up to which implicit steps are unrolled, and beyond which
they are in loops, independent of speed. Tracing and compiling derivatives takes time in proportion to this product;
kernels take longer for small ones. Of trees, whose right-hand sides are short for what their derivatives are, the first
one decides: at 110 000, a chain of 16 links in space, compilers take 30 s, and 6 s in loops.
"""


def unrolled_is_faster(straight: int, loops: int) -> bool:
    """Return whether unrolled code is faster, from the operation counts of both forms.

    Both numbers are as `benchmarks/divide_and_conquer/choice.py` measured them; its table is in
    docs/studies/large-mechanisms.md.
    """
    return straight <= _SHARE * loops + _BEGINNING


def faster_form(
    system: System,
    loops: LoopEquations | None,
    traces: Traces,
    *,
    explicit: bool,
    sequential: bool,
) -> Code | None:
    """Return the faster form of code for accelerations by divide and conquer; None if the size decides.

    Unrolled code of implicit steps grows as the square of the size, so that its length counts as well.

    Parameters
    ----------
    system
        The system.
    loops, sequential
        As for `SystemFunctions`.
    traces
        Keeps what was found.
    explicit
        Whether steps are, and call nothing but these accelerations.
    """
    if not FEW < len(system.coordinates) <= LARGE or not can_be_in_loops(system):
        return None

    def counted(code: Code) -> int:
        functions = SystemFunctions(system, loops, None, code, sequential=sequential)
        return functions.defined("weighed", lambda given: list(given.forward_dynamics(0.0))).operations

    def operations(code: Code) -> int:
        return int(traces.fact(f"operations, {code}", lambda: counted(code)))

    straight = operations(Code.STRAIGHT)
    length = straight * len(system.coordinates)
    if explicit or (system.constraints and _SHORT < length <= _LONG):
        is_straight = unrolled_is_faster(straight, operations(Code.LOOPS))
    else:
        is_straight = length <= _SHORT
    return Code.STRAIGHT if is_straight else Code.LOOPS


class StepProblem(ABC):
    """The nonlinear equations of one implicit step; positions and states x are the unknowns.

    The formulation's rule gives the rates (see `StepRates`).

    Parameters
    ----------
    formulation
        The formulation; its functions have inputs at the end of the step and parameters set.
    state
        Where the step begins.
    step
        h in s.
    """

    guess: Floats
    """Predicted unknowns: z + h ż + h²/2 z̈ and x + h ẋ; behind them multipliers, where a formulation has them so."""

    def __init__(self, formulation: Formulation, state: State, step: float) -> None:
        self.functions = functions = formulation.functions
        self.history = formulation.history
        self.check_loops = formulation.check_loops
        self._iteration_matrices = formulation.iteration_matrices
        self.state = state
        self.step = step
        functions.references[:] = state.references
        functions.active[:] = state.active
        functions.loop_iterates[:] = state.loop_iterates
        self._predicted_coordinates = state.coordinates + step * state.velocities + 0.5 * step**2 * state.accelerations
        self._predicted_states = state.states + step * state.rates

    @property
    @abstractmethod
    def rates(self) -> StepRates:
        """The rates at the end of the step, and where it begins."""

    def spread(self, positions: Floats) -> Floats:
        """Return the increments of all coordinates, shape (n,), from those of the positions among the unknowns."""
        return positions

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each unknown except multipliers, for messages."""

    @abstractmethod
    def residual(self, unknowns: Floats) -> Overwritten:
        """Return the residual [Jaiswal2021, eqs. 38 and 39] without the common factor h²/4; shape of the unknowns."""

    def residual_near(self, unknowns: Floats, coordinates: Floats) -> Overwritten:  # noqa: ARG002 - most need none
        """Return the residual at coordinates, shape (n,), near the constraint manifold; unknowns as for `residual`."""
        return self.residual(unknowns)

    def project(self, inverse: Inverse) -> None:  # noqa: B027 - most steps have no projections
        """Project z, ż and z̈ of the functions onto the constraints, where steps do so at their end."""

    @abstractmethod
    def jacobian(self) -> Overwritten:
        """Return the Jacobian of the residual at the unknowns of its last call.

        It is exact on the constraint manifold, except for `softness`, the regularisation of redundant constraints.
        """

    def inverse(self) -> Inverse | None:
        """Return the inverse of the Jacobian; None if singular."""
        return self._iteration_matrices.made() if self._iteration_matrices else DenseInverse.of(self.jacobian())

    def kept(self, iteration_matrix: ReusedJacobian) -> Inverse:
        """Return the inverse of an earlier step's Jacobian."""
        return (
            self._iteration_matrices.kept(iteration_matrix)
            if self._iteration_matrices
            else DenseInverse.kept(iteration_matrix.numbers)
        )

    @property
    def softness(self) -> Floats:
        """Regularisation subtracted from the Jacobian's diagonal, shape of the unknowns."""
        return np.zeros(len(self.guess))

    def land(self, unknowns: Floats) -> None:
        """Set the values that `finish` needs at the solution, if the residual was not evaluated there."""
        self.residual(unknowns)

    @abstractmethod
    def finish(self) -> State:
        """Return the state at the end of the step; the residual was last evaluated there, or `land` called."""

    def _end(self, partition: Partition | None) -> State:
        """Return the present state at the end of the step; integrals by the same rule."""
        functions, before = self.functions, self.state
        integral_rates = functions.integral_rates()[0].copy()
        integrals, history = self.history.end(before, integral_rates)
        end = State.of(functions, integrals, integral_rates)
        return replace(end, references=before.references, history=history, partition=partition)


CLOSED = 1e-5
"""Drift tolerance of loops that are closed at position level in every step, relative to lever arms or to 1 rad."""


DIRECTIONS = ("d_coordinates", "d_velocities", "d_states", "d_integrals", "d_inputs")
"""The parts that are directions of z, w or ż, x, the integrals and the inputs."""


class FormulationOptions(Options):
    """Options of a formulation."""

    subject: ClassVar[str] = "a formulation"

    @property
    def form(self) -> Code | None:
        """The form of code; None if the size of the system decides."""
        return Code.STRAIGHT

    @property
    def sequential(self) -> bool:
        """Whether divide and conquer eliminates joints sequentially in kernel loops."""
        return False

    def completed(self, remembering: str) -> Self:  # noqa: ARG002 - most do not depend on it
        """Return the options completed for a solver.

        Parameters
        ----------
        remembering
            How a sentence goes on about a solver that remembers earlier steps; empty where it does not.

        Raises
        ------
        InputError
            When they do not go with it.
        """
        return self


class Formulation(FittingStates, ABC):
    """Base class of formulations: equations of time steps of a system.

    A derived class with a name is registered by it.

    Parameters
    ----------
    functions
        Functions of the system with the independent constraints in use.
    tolerances
        Tolerances of the Newton iteration.
    rule
        How rates follow from the unknowns of an implicit step.
    options
        Of the class `Options`, completed.
    drifts
        Whether loops are closed in velocities or accelerations only.

    Attributes
    ----------
    options
        As given.
    history
        What the rule remembers.
    drifts
        Whether its loops may come open.
    opening
        How far a loop may be open at the end of a step, as a share of its lever arms.
    """

    name: ClassVar[str]
    Options: ClassVar[type[FormulationOptions]] = FormulationOptions
    """The class of its options."""
    has_explicit_form: ClassVar[bool]
    """Whether explicit solvers can integrate it."""
    has_jacobian: ClassVar[bool] = False
    """Whether the Jacobian of its explicit form is available."""
    has_stages: ClassVar[bool] = False
    """Whether linearly implicit solvers can integrate it: its explicit form solves with its Jacobian."""
    stages_everywhere: ClassVar[bool] = False
    """Whether this holds for every system and configuration, so that such a solver is the default."""
    accelerates_by_rule: ClassVar[bool] = False
    """Whether accelerations of implicit steps come from the rule (differences of positions), not from the equations."""
    moving: ClassVar[str] = "velocities"
    """What its explicit form integrates beside positions: `velocities` or `momenta`."""
    weighs_code: ClassVar[bool] = False
    """Whether its explicit form uses by default the form of code in which divide and conquer is faster."""
    absolute: ClassVar[bool] = False
    """Whether it uses absolute coordinates, with all constraints active."""
    takes_differences: ClassVar[bool] = False
    """Whether the Jacobian of its implicit steps may be a forward difference, as published [Jaiswal2021]."""
    second_order: ClassVar[bool] = True
    """Whether positions alone are unknowns of an implicit step and determine velocities and accelerations."""
    quantities: ClassVar[tuple[tuple[str, str], ...]] = (("states", "rates"),)
    """Names of its quantities of first order with their rates."""

    holds_locked_loops: ClassVar[bool] = False
    """Whether loops without freedom keep their positions even if their equations are nearly singular."""

    kind: StepKind = StepKind.IMPLICIT
    """Kind of its steps."""

    stiffens: bool = False
    """Whether the penalty factor adapts to the weakest constraints. Nearly dependent redundant constraints are
    inconsistent off the manifold, and this would be enforced.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            FORMULATIONS.add(cls.name, cls)

    def __init__(
        self,
        functions: SystemFunctions,
        tolerances: NewtonTolerances,
        rule: Rule,
        options: FormulationOptions,
        *,
        drifts: bool = False,
    ) -> None:
        check_rule(rule)
        self.functions = functions
        self.rule = rule
        self.options = options
        self.history = StepHistory(functions, rule, motion=self.second_order, quantities=self.quantities)
        self.tolerances = tolerances
        self.iterations: dict[str, IterationCount] = {}
        nominal = [variable.nominal or 1.0 for variable in functions.system.states]
        self.drifts = drifts
        self.opening = tolerances.opening if drifts else CLOSED
        self.state_nominals = np.array(nominal)

    @classmethod
    def loops(
        cls,
        initialization: Initialization,
        system: System,  # noqa: ARG003 - of absolute coordinates
        options: FormulationOptions,  # noqa: ARG003 - the same
        kind: StepKind,  # noqa: ARG003 - the same
    ) -> LoopEquations:
        """Return the loop equations used in steps of a kind."""
        return initialization.loops

    @classmethod
    def form(
        cls,
        system: System,  # noqa: ARG003 - some formulations ask
        options: FormulationOptions,
        kind: StepKind,  # noqa: ARG003 - the same
    ) -> Code | None:
        """Return the form of code for steps of a kind; None if the size of the system decides.

        Raises
        ------
        InputError
            When it has no code of a form that was chosen, or that the system can have, for such steps.
        """
        return options.form

    @classmethod
    def of(
        cls,
        initialization: Initialization,
        system: System,
        tolerances: NewtonTolerances,
        rule: Rule,
        options: FormulationOptions,
        step: float,
        kind: StepKind = StepKind.IMPLICIT,
    ) -> Self:
        """Return the formulation of a system, whose start the initialization computes, for steps of a size in s.

        If no form of code is chosen, and divide and conquer computes accelerations, it is the faster form, except if
        unrolled code of implicit steps would be long, or is short in any case.
        """
        traces = initialization.traces.of("motion", cls.name, options.content(), fingerprint(rule))
        loops = cls.loops(initialization, system, options, kind)
        form = cls.form(system, options, kind)
        if form is None and cls.weighs_code:
            form = faster_form(system, loops, traces, explicit=kind is StepKind.EXPLICIT, sequential=options.sequential)
        functions = SystemFunctions(system, loops, traces, form, sequential=options.sequential)
        made = cls(functions, tolerances, rule, options)
        made.kind = kind
        made.fit_to(initialization, step)
        return made

    def fit_to(self, initialization: Initialization, step: float) -> None:
        """Take from a model's start and the size of steps in s what was not given."""

    @property
    def fitted(self) -> tuple[float, ...]:
        """What was taken from the size of steps and stands in compiled code."""
        return ()

    def limits(self, unknowns: int) -> Limits:
        """Return the tolerances of the increments of a number of unknowns: coordinates, then all states."""
        coordinates = unknowns - len(self.state_nominals)
        shares = [self.tolerances.coordinates, self.tolerances.states]
        return Limits(
            np.repeat(shares, [coordinates, len(self.state_nominals)]),
            np.concatenate([np.ones(coordinates), self.state_nominals]),
            len(self.state_nominals),
        )

    @property
    def changes_known(self) -> bool:
        """Whether rates and outputs have derivatives for model exchange."""
        return self.has_jacobian

    @property
    def freedom(self) -> int:
        """Number of coordinates that explicit solvers integrate."""
        return len(self.functions.coordinates)

    @property
    def freedom_chosen(self) -> bool:
        """Whether these are a subset of the coordinates, chosen again when necessary."""
        return self.freedom < len(self.functions.coordinates)

    @property
    def explicit_scale(self) -> Floats:
        """Scales of the absolute tolerances of y: nominal values of states and integrals."""
        system = self.functions.system
        nominal = [variable.nominal or 1.0 for variable in (*system.states, *system.integrals)]
        return np.concatenate([np.ones(2 * self.freedom), nominal])

    @property
    def step_coordinates(self) -> int:
        """Number of unknowns of an implicit step, except states."""
        return len(self.functions.coordinates)

    @property
    def step_multipliers(self) -> int:
        """Number of multipliers among the unknowns of an implicit step, not included in `step_coordinates`."""
        return 0

    @property
    def has_dense_jacobian(self) -> bool:
        """Whether iteration matrices of implicit steps are dense matrices; otherwise only solutions are available."""
        return self.iteration_matrices is None

    @cached_property
    def iteration_matrices(self) -> RecordedIterationMatrices | None:
        """Iteration matrices of implicit steps as programs; None if they are matrices."""
        return None

    @property
    def kept_numbers(self) -> int:
        """Number of values that a state stores of an iteration matrix."""
        if self.iteration_matrices is not None:
            return self.iteration_matrices.numbers
        return (self.step_coordinates + len(self.functions.states) + self.step_multipliers) ** 2

    @property
    @abstractmethod
    def step_functions(self) -> tuple[TracedFunction, Sequence[AnyFunction]]:
        """The iteration matrix of an implicit step, and the functions of its residual."""

    @cached_property
    def refresh_cost(self) -> float:
        """Cost of an iteration matrix and its inverse, in evaluations of the residual including the product.

        Counted in operations of unrolled code; those in loops take about twice the time.
        """
        if self.iteration_matrices is not None:
            return self.iteration_matrices.refresh_cost
        iteration_matrix, evaluation = self.step_functions
        unknowns = self.step_coordinates + len(self.functions.states) + self.step_multipliers
        once = sum(each.operations for each in evaluation) + 2.0 * unknowns**2
        # Without unknowns there may be nothing to evaluate.
        return (iteration_matrix.operations + 4.0 * unknowns**3) / max(once, 1.0)

    @abstractmethod
    def problem(self, state: State, step: float) -> StepProblem:
        """Return the equations of a step of `step` seconds from a state."""

    @abstractmethod
    def native_needs(self, kind: StepKind) -> NativeNeeds:
        """Return the needs of its C code for steps of a kind."""

    def flow_of(self, state: State) -> tuple[Floats, Floats]:
        """Return velocities and accelerations of a state, or momenta and their rates where it integrates these."""
        if self.moving == "momenta":
            return state.momenta, state.momentum_rates
        return state.velocities, state.accelerations

    def prepared(self, state: State) -> State:
        """Return the state with the formulation's own data."""
        return state

    def with_rows_chosen(self, state: State, active: Floats | None) -> State:
        """Return the state with a set of independent active loop equations; the state itself if unchanged.

        Positions, velocities or momenta are unchanged: the omitted equations hold as long as the others do, and momenta
        with the impulses of either set give the same velocities.

        Parameters
        ----------
        state
            The state.
        active
            Ones for the equations in use; None where a choice is made for the first time.
        """
        if not self.functions.redundant:
            return state
        self.load(state)
        chosen = chosen_rows(self.functions.closure()[1], self.functions.rank, active)
        return state if chosen is active else replace(state, active=chosen)

    def reactions(self) -> Floats:
        """Return the reactions of all joints at the present state, shape (number of reactions,)."""
        return least_reactions(self.functions)

    def reaction_error(self) -> float:
        """Return the relative error of accelerations and reactions at the present state, by round-off."""
        return 0.0

    def explicit_form(self, state: State) -> ExplicitForm:
        """Return the equations for explicit solvers, from a state on.

        Raises
        ------
        TypeError
            When `has_explicit_form` is false.
        """
        raise TypeError(f"the formulation '{self.name}' has no explicit form; {state} cannot be integrated so")


FORMULATIONS: Registry[type[Formulation]] = Registry("formulation", "double-step")


# -- options of formulations with kernel loops: form of code, order of assembly ----------------------------------------


class Assembly(StrEnum):
    """Orders of assembly."""

    BALANCED = "balanced"
    SEQUENTIAL = "sequential"


class CodeOptions(FormulationOptions):
    """Options of formulations that have kernel loops."""

    code: Annotated[
        Code | None,
        ChoiceOption(
            "Form of the generated code: straight (unrolled), or kernel loops, which large mechanisms trace and "
            f"compile sooner; by default loops above {LARGE} coordinates, and with dca and hdca where they need fewer "
            "operations, or unrolled code of implicit steps would be long",
            among=lambda: tuple(each.value for each in Code),
            lacking="which has unrolled code only",
        ),
    ] = None

    assembly: Annotated[
        Assembly | None,
        ChoiceOption(
            "Order of assembly of a tree in kernel loops: sequential, with the fewest operations (default), or "
            "balanced, in pairs level by level, as mechanisms with loops always are",
            among=lambda: tuple(each.value for each in Assembly),
            lacking="which has unrolled code only",
        ),
    ] = None

    @property
    def sequential(self) -> bool:
        """Whether joints are eliminated sequentially."""
        return self.assembly != Assembly.BALANCED

    @property
    def form(self) -> Code | None:
        """The chosen form of code."""
        return None if self.code is None else Code(self.code)

    def _why_unrolled(self, functions: SystemFunctions) -> str:
        """Return why code is unrolled, and the alternative."""
        if self.form is Code.STRAIGHT:
            return "as was chosen; choose code 'loops'"
        if not can_be_in_loops(functions.system):
            return "as it cannot be kernel loops; leave that out"
        count = len(functions.system.start_system.coordinates)
        coordinates = "1 coordinate" if count == 1 else f"{count} coordinates"
        return f"the quicker one of {coordinates} where none is chosen; choose code 'loops' (--code loops)"

    def check_use(self, functions: SystemFunctions) -> None:
        """Refuse options without effect on the functions of a system.

        Raises
        ------
        InputError
            When it is for kernel loops, or for trees, and they are not such.
        """
        name = functions.system.name
        if self.assembly is None:
            return
        if not functions.in_loops:
            message = f"the assembly can be chosen for kernel loops only; the code of {name} is unrolled"
            raise InputError(f"{message}, {self._why_unrolled(functions)}")
        start = functions.system.start_system
        closing = functions.rows if start is functions.system else start.constraints
        if self.assembly == Assembly.SEQUENTIAL and len(closing):
            raise InputError(f"the assembly can be sequential for trees alone; {name} has loops")
