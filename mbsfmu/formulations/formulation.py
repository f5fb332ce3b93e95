"""What a formulation is: how a time step of a system becomes a set of nonlinear equations.

The nonlinear equations of one implicit step, as formulations give them and Newton's iteration solves them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from mbsfmu.base.options import Options
from mbsfmu.base.registry import Registry
from mbsfmu.formulations.code_choice import faster_form
from mbsfmu.formulations.consistent_states import FittingStates
from mbsfmu.formulations.explicit_form import ExplicitForm
from mbsfmu.formulations.native_needs import NativeNeeds, StepKind
from mbsfmu.formulations.reactions import least_reactions
from mbsfmu.formulations.recorded_jacobian import RecordedIterationMatrices
from mbsfmu.initialization.independent_coordinates import Partition
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import IterationCount, Limits, NewtonTolerances
from mbsfmu.stepping.reused_jacobian import DenseInverse, Inverse, ReusedJacobian
from mbsfmu.stepping.rule_checks import check_rule
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_history import StepHistory
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.code_form import Code
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.loop_equations import LoopEquations, chosen_rows
from mbsfmu.systems.system import System
from mbsfmu.tracing.workspace import AnyFunction, Floats, Overwritten, TracedFunction

if TYPE_CHECKING:
    from mbsfmu.initialization.initialization import Initialization


class StepProblem(ABC):
    """The nonlinear equations of one implicit step, positions and states x being the unknowns.

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
        """Return the changes of all coordinates, shape (n,), with those of the positions among the unknowns."""
        return positions

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each unknown, multipliers apart, for messages."""

    @abstractmethod
    def residual(self, unknowns: Floats) -> Overwritten:
        """Return the residual [Jaiswal2021, eqs. 38 and 39] without the common factor h²/4; shape of the unknowns."""

    def residual_near(self, unknowns: Floats, coordinates: Floats) -> Overwritten:  # noqa: ARG002 - most need none
        """Return the residual where coordinates, shape (n,), nearly close the loops; unknowns are as for `residual`."""
        return self.residual(unknowns)

    @abstractmethod
    def jacobian(self) -> Overwritten:
        """Return the derivative of the residual at the unknowns it was last called with.

        It is exact where loops are closed, but for what makes it regular where they are redundant, `softness`.
        """

    def inverse(self) -> Inverse | None:
        """Return what solves with the derivative; None where that is singular."""
        return self._iteration_matrices.made() if self._iteration_matrices else DenseInverse.of(self.jacobian())

    def kept(self, iteration_matrix: ReusedJacobian) -> Inverse:
        """Return what solves with the derivative of an earlier step."""
        return (
            self._iteration_matrices.kept(iteration_matrix)
            if self._iteration_matrices
            else DenseInverse.kept(iteration_matrix.numbers)
        )

    @property
    def softness(self) -> Floats:
        """What is taken from the derivative's diagonal, shape of the unknowns."""
        return np.zeros(len(self.guess))

    def land(self, unknowns: Floats) -> None:
        """Set what `finish` needs at the solution, where the residual was not evaluated."""
        self.residual(unknowns)

    @abstractmethod
    def finish(self) -> State:
        """Return the state at the end of the step; the residual was last evaluated there, or `land` called."""

    def _end(self, partition: Partition | None) -> State:
        """Return the state at the end of the step, where the functions are; integrals by the same rule."""
        functions, before = self.functions, self.state
        integral_rates = functions.integral_rates()[0].copy()
        integrals, history = self.history.end(before, integral_rates)
        end = State.of(functions, integrals, integral_rates)
        return replace(end, references=before.references, history=history, partition=partition)


CLOSED = 1e-5
"""How far a loop whose positions are closed in every step may be open, as a share of its lever arms or of 1 rad."""


class FormulationOptions(Options):
    """Options of a formulation's own."""

    subject: ClassVar[str] = "a formulation"

    @property
    def form(self) -> Code | None:
        """The form of its code; None where the size of the system decides."""
        return Code.STRAIGHT

    @property
    def sequential(self) -> bool:
        """Whether divide and conquer eliminates joints one after the other where code is kernel loops."""
        return False

    @property
    def sections(self) -> int:
        """In how many sections trees are taken, for as many threads."""
        return 1

    @property
    def in_blocks(self) -> bool:
        """Whether one thread makes all calls of kernel loops, those on the same numbers behind each other."""
        return True

    def completed(self, remembering: str) -> Self:  # noqa: ARG002 - most do not depend on it
        """Return what they come to with a solver.

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
    """A way to make a time step of a system's equations.

    A class of this kind that has a name is known by it as soon as it is defined.

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
    threads
        How many threads share its code in units and in compiled runs.
    opening
        How far a loop may be open at the end of a step, as a share of its lever arms.
    """

    name: ClassVar[str]
    Options: ClassVar[type[FormulationOptions]] = FormulationOptions
    """The options of its own."""
    has_explicit_form: ClassVar[bool]
    """Whether explicit solvers can integrate it."""
    has_jacobian: ClassVar[bool] = False
    """Whether the derivatives of its explicit form are known."""
    has_stages: ClassVar[bool] = False
    """Whether linearly implicit solvers can integrate it: its explicit form solves with its derivatives."""
    stages_everywhere: ClassVar[bool] = False
    """Whether they can for every system and in every configuration, so that one of them is its usual solver."""
    accelerates_by_rule: ClassVar[bool] = False
    """Whether accelerations of implicit steps are the rule's, differences of positions, and not the equations'."""
    moving: ClassVar[str] = "velocities"
    """What its explicit form integrates beside positions: `velocities` or `momenta`."""
    remaining: ClassVar[float] = 1e-7
    """Share of the tolerances that Newton's iteration may leave: it adds up over steps, in rates 2 / h times."""
    weighs_code: ClassVar[bool] = False
    """Whether its explicit form is in the form of code in which divide and conquer is faster where none is chosen."""
    absolute: ClassVar[bool] = False
    """Whether it takes mechanisms in absolute coordinates, all constraints in use."""
    second_order: ClassVar[bool] = True
    """Whether positions are unknowns of an implicit step and give velocities and accelerations; else each alone."""
    quantities: ClassVar[tuple[tuple[str, str], ...]] = (("states", "rates"),)
    """Names of its quantities of first order with their rates."""

    holds_locked_loops: ClassVar[bool] = False
    """Whether loops without freedom stay where they are, however nearly singular their equations."""

    transports_error: ClassVar[bool] = False
    """Whether its implicit steps carry the error of a run along."""

    kind: StepKind = StepKind.IMPLICIT
    """How its steps are made."""

    stiffens: bool = False
    """Whether a penalty factor follows what the weakest of the constraints need. Redundant ones contradict each other
    beside the constraints, where they nearly depend on each other: that would be enforced."""

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
        self.threads = 1
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
        """Return the loop equations that it deals with in steps of a kind."""
        return initialization.loops

    @classmethod
    def form(
        cls,
        system: System,  # noqa: ARG003 - some formulations ask
        options: FormulationOptions,
        kind: StepKind,  # noqa: ARG003 - the same
    ) -> Code | None:
        """Return the form of its code for steps of a kind; None where the size of the system decides.

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
        step: float,  # noqa: ARG003 - of defaults that follow from it
        kind: StepKind = StepKind.IMPLICIT,
    ) -> Self:
        """Make the formulation of a system, which the initialization finds the start of, for steps of a size in s.

        Where the form of its code is not chosen, and divide and conquer finds accelerations, it is the form that finds
        these sooner, unless unrolled code for implicit steps would be long, or is short anyway.
        """
        traces = initialization.traces.of("motion", cls.name, options.content())
        loops = cls.loops(initialization, system, options, kind)
        joining = {"sequential": options.sequential, "sections": options.sections, "in_blocks": options.in_blocks}
        form = cls.form(system, options, kind)
        if form is None and cls.weighs_code:
            form = faster_form(system, loops, traces, explicit=kind is StepKind.EXPLICIT, **joining)
        functions = SystemFunctions(system, loops, traces, form, **joining)
        made = cls(functions, tolerances, rule, options)
        made.kind = kind
        return made

    def limits(self, unknowns: int) -> Limits:
        """Return the tolerances of the increments of so many unknowns: coordinates, then all states."""
        coordinates = unknowns - len(self.state_nominals)
        shares = [self.tolerances.coordinates, self.tolerances.states]
        return Limits(
            np.repeat(shares, [coordinates, len(self.state_nominals)]),
            np.concatenate([np.ones(coordinates), self.state_nominals]),
            len(self.state_nominals),
        )

    @property
    def freedom(self) -> int:
        """Number of coordinates that explicit solvers integrate."""
        return len(self.functions.coordinates)

    @property
    def freedom_chosen(self) -> bool:
        """Whether these are some of the coordinates, chosen anew where that is due."""
        return self.freedom < len(self.functions.coordinates)

    @property
    def explicit_scale(self) -> Floats:
        """Magnitudes that absolute tolerances of y are multiplied with: nominal values of states and integrals."""
        system = self.functions.system
        nominal = [variable.nominal or 1.0 for variable in (*system.states, *system.integrals)]
        return np.concatenate([np.ones(2 * self.freedom), nominal])

    @property
    def step_coordinates(self) -> int:
        """Number of unknowns of an implicit step, states apart."""
        return len(self.functions.coordinates)

    @property
    def step_multipliers(self) -> int:
        """Number of multipliers among the unknowns of an implicit step, which `step_coordinates` does not count."""
        return 0

    @property
    def has_dense_jacobian(self) -> bool:
        """Whether iteration matrices of implicit steps are matrices; else they are solved with alone."""
        return self.iteration_matrices is None

    @cached_property
    def iteration_matrices(self) -> RecordedIterationMatrices | None:
        """Makes iteration matrices of implicit steps that are programs; None where they are matrices."""
        return None

    @property
    def kept_numbers(self) -> int:
        """How many numbers a state keeps of an iteration matrix."""
        if self.iteration_matrices is not None:
            return self.iteration_matrices.numbers
        return (self.step_coordinates + len(self.functions.states) + self.step_multipliers) ** 2

    @property
    @abstractmethod
    def step_functions(self) -> tuple[TracedFunction, Sequence[AnyFunction]]:
        """The iteration matrix of an implicit step, and what an evaluation of its residual calls."""

    @cached_property
    def refresh_cost(self) -> float:
        """What an iteration matrix and its inverse cost, in evaluations of the residual with the product that follows.

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
        """Return what its C needs for steps of a kind."""

    def prepared(self, state: State) -> State:
        """Return the state with what the formulation itself has to remember."""
        return state

    def with_rows_chosen(self, state: State, active: Floats | None) -> State:
        """Return the state with independent loop equations in use; the state itself where these stay.

        Positions, velocities or momenta stay: the equations left out hold as long as the others do, and momenta with
        the impulses of either give the same velocities.

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
        """Return the reactions of all joints at the state that the functions hold, shape (number of reactions,)."""
        return least_reactions(self.functions)

    def reaction_error(self) -> float:
        """Return the relative error of the reactions at the state that the functions hold, by round-off."""
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
