"""The double-step semirecursive formulation: coordinate partitioning [Jaiswal2021, sect. 2.2]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import LuFactors
from mbsfmu.formulations.explicit_form import IterationMatrixForm
from mbsfmu.formulations.formulation import Formulation, FormulationOptions, StepProblem
from mbsfmu.formulations.native_needs import NativeNeeds, StepKind
from mbsfmu.formulations.reduced_equations import ReducedEquations
from mbsfmu.initialization.coordinates import DependentCoordinates, Partition, best_choice, reconsidered
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.stepping.stage_pattern import reduced_pattern
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

LEAP = 0.5
"""Largest relative deviation of a dependent coordinate's displacement for the same assembly mode; up to 0.1 occurs."""
ROUND_OFF = 1e-9
"""Absolute tolerance of this deviation in rad or m, for static states."""
SMALLEST_PART = 2.0**-10
"""Smallest fraction of the distance to an external solver's state for repeated halving."""


class DoubleStepProblem(StepProblem):
    """One step in the independent coordinates and the states [Jaiswal2021, eqs. 35 and 38].

    Parameters
    ----------
    formulation, state, step
        As for every problem; the state's choice of coordinates stays in use.
    """

    def __init__(self, formulation: DoubleStep, state: State, step: float) -> None:
        super().__init__(formulation, state, step)
        assert state.partition is not None
        self._double_step = formulation
        self._equations = equations = formulation.equations
        self._partition = state.partition
        self._independent = independent = state.partition.independent
        self._freedom = len(independent)
        self._dependent = formulation.dependent(state)
        self._estimate = self._predicted_coordinates
        self._placed = False
        equations.end.begin(
            [state.coordinates[independent], state.states],
            [state.velocities[independent], state.rates],
            state.accelerations[independent],
            self.history.of(state.history, independent),
            step,
        )
        self.guess = np.concatenate([self._estimate[independent], self._predicted_states])

    @property
    def rates(self) -> StepRates:
        """Rates of the independent coordinates and the states."""
        return self._equations.end

    def spread(self, positions: Floats) -> Floats:
        """Return R_z times increments of the independent coordinates."""
        return self._equations.basis @ positions

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the independent coordinates and the states."""
        system = self.functions.system
        coordinates = (system.coordinates[index].name for index in self._independent)
        return (*coordinates, *(variable.name for variable in system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M'' z̈^i − Q'', ẋ − f) [Jaiswal2021, eq. 38]; sets z, ż, z̈, λ and x."""
        equations, independent = self._equations, unknowns[: self._freedom]
        if self._placed:  # follow the iteration matrix: after small increments the loops are closed at once
            self._estimate += equations.basis @ (independent - self._estimate[self._independent])
        self._estimate[self._independent] = independent
        self._dependent.place(self._estimate)
        self._estimate[:] = self.functions.coordinates
        self._placed = True
        equations.end.unknowns[:] = unknowns
        return equations.residual()[0]

    def residual_near(self, unknowns: Floats, coordinates: Floats) -> Floats:
        """Return the residual at coordinates near the constraint manifold."""
        self._dependent.place(coordinates, near=True)
        self._equations.end.unknowns[:] = unknowns
        return self._equations.residual()[0]

    def jacobian(self) -> Floats:
        """Return the Jacobian with respect to the independent coordinates and the states."""
        return self._equations.iteration_matrix()[0]

    def finish(self) -> State:
        """Return the state at the end, with another partition if the present one becomes ill-conditioned."""
        return self._end(self._double_step.reconsidered(self._partition))


class DoubleStep(Formulation):
    """Coordinate partitioning: loop equations hold to round-off; singular configurations are refused."""

    name: ClassVar[str] = "double-step"
    has_explicit_form: ClassVar[bool] = True
    has_jacobian: ClassVar[bool] = True
    has_stages: ClassVar[bool] = True
    stages_everywhere: ClassVar[bool] = True
    accelerates_by_rule: ClassVar[bool] = True
    takes_differences: ClassVar[bool] = True
    holds_locked_loops: ClassVar[bool] = True

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: FormulationOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options)
        self.equations = ReducedEquations(functions, rule)
        self._partition: Partition | None = None
        self._dependent: DependentCoordinates

    @property
    def freedom(self) -> int:
        """Number of independent coordinates."""
        return len(self.functions.coordinates) - self.functions.rank

    @property
    def step_coordinates(self) -> int:
        """Number of independent coordinates."""
        return self.freedom

    @property
    def step_functions(self) -> tuple[TracedFunction, Sequence[AnyFunction]]:
        """The iteration matrix of a step, and the functions of its residual; loop closure takes two."""
        closure = [self.functions.closure] * 2 if len(self.functions.rows) else []
        return self.equations.iteration_matrix, [self.equations.residual, *closure]

    def prepared(self, state: State) -> State:
        """Return the state with independent coordinates chosen."""
        self.load(state)
        return replace(state, partition=best_choice(self.functions, self.element_scales))

    def reconsidered(self, partition: Partition) -> Partition:
        """Return the partition to continue with: the present one unless it becomes ill-conditioned."""
        return reconsidered(partition, self.functions, self.equations.basis, self.element_scales)

    def dependent(self, state: State) -> DependentCoordinates:
        """Return the solver for the dependent coordinates of a state's partition."""
        assert state.partition is not None
        if state.partition is not self._partition:
            self._partition = state.partition
            equations = self.equations
            self._dependent = DependentCoordinates(self.functions, state.partition, equations.basis, equations.lift)
        return self._dependent

    def problem(self, state: State, step: float) -> DoubleStepProblem:
        """Return the equations of a step."""
        return DoubleStepProblem(self, state, step)

    def native_needs(self, kind: StepKind) -> NativeNeeds:
        """Return the needs of its C code."""
        functions, equations = self.functions, self.equations
        steps: tuple[AnyFunction, ...] = equations.explicit, equations.motion
        pattern = None
        if kind is StepKind.IMPLICIT:
            steps = equations.residual, equations.iteration_matrix
        elif kind in (StepKind.LINEARLY_IMPLICIT, StepKind.EXCHANGED):
            steps = *steps, equations.slope, equations.mass, equations.drift
            fed_through = (equations.by_accelerations,) if equations.flow_by_accelerations else ()
            steps = *steps, *fed_through
            pattern = reduced_pattern(equations.slope, *fed_through)
            if kind is StepKind.EXCHANGED:
                steps = *steps, equations.change
        return NativeNeeds(
            file="double_step.c",
            unknowns=self.step_coordinates,
            freedom=self.freedom,
            dependent=functions.rank,
            closes_loops=True,
            choices={"RATES_AT_ONCE": int(equations.rates_at_once)},
            element_scales=self.element_scales,
            slope_pattern=pattern,
            in_steps=steps,
            at_start=(functions.quadratic,),
        )

    def explicit_form(self, state: State) -> DoubleStepForm:
        """Return the equations for explicit solvers."""
        return DoubleStepForm(self, state)


class DoubleStepForm(IterationMatrixForm):
    """The reduced equations with y = (z^i, ż^i, x, integrals).

    Parameters
    ----------
    formulation, state
        The formulation, and where it begins: its choice of coordinates stays in use, its dependent coordinates are the
        first estimate.
    """

    def __init__(self, formulation: DoubleStep, state: State) -> None:
        super().__init__(state)
        assert state.partition is not None
        self._formulation = formulation
        self._functions = formulation.functions
        self._partition = state.partition
        self._free = len(state.partition.independent)
        self._leading: Floats | None = None

    @property
    def start(self) -> Floats:
        """Return (z^i, ż^i, x, integrals)."""
        state, independent = self.state, self._partition.independent
        return np.concatenate(
            [state.coordinates[independent], state.velocities[independent], state.states, state.integrals]
        )

    @property
    def end_rates(self) -> Floats:
        """Return (ż^i, z̈^i, ẋ, rates of the integrals) of the last accepted state."""
        state, independent = self.state, self._partition.independent
        return np.concatenate(
            [state.velocities[independent], state.accelerations[independent], state.rates, state.integral_rates]
        )

    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ; sets z, ż, z̈, λ and x in the functions.

        Raises
        ------
        SimulationError
            When the loops cannot be closed, or the mass matrix is singular.
        """
        functions, free, equations = self._functions, self._free, self._formulation.equations
        functions.states[:] = values[2 * free : 2 * free + len(functions.states)]
        functions.inputs[:] = inputs
        functions.references[:] = self.state.references
        functions.loop_iterates[:] = self.state.loop_iterates
        # The estimate comes from the last step and not from the last evaluation: f is a function of t and y alone.
        independent, coordinates = self._partition.independent, self.state.coordinates.copy()
        if self._leading is not None:
            coordinates += self._leading @ (values[:free] - coordinates[independent])
        coordinates[independent] = values[:free]
        self._formulation.dependent(self.state).place(coordinates)
        equations.velocities[:] = velocities = values[free : 2 * free]
        mass, load, rates, *at_once = equations.explicit()
        factors = LuFactors(mass)
        if factors.singular:
            raise SimulationError("the mass matrix is singular")
        equations.accelerations[:] = accelerations = factors.solve(load)
        equations.motion()
        if functions.rates_by_accelerations:
            rates = functions.state_rates()[0]
        (integral_rates,) = at_once or functions.integral_rates()
        return np.concatenate([velocities, accelerations, rates, integral_rates])

    @property
    def chained(self) -> int:
        """Number of independent coordinates."""
        return self._free

    def jacobian(self) -> Floats:
        """Return the derivative of ẏ."""
        mass, of_load, of_rates = self._formulation.equations.slope()
        self._leading = self._formulation.equations.basis.copy()  # R_z at the state leads to the loops at others
        pushed = LuFactors(mass).solve(of_load)
        return np.concatenate([pushed, of_rates + self._through_accelerations(pushed)])

    def drift(self, slopes: Floats) -> Floats:
        """Return the change of ẏ with inputs that have these rates."""
        equations = self._formulation.equations
        self._functions.write("input_rates", slopes)
        of_load, rest = np.split(equations.drift()[0], [self._free])
        pushed = LuFactors(equations.mass()[0]).solve(of_load)
        return np.concatenate([np.zeros(self._free), pushed, rest + self._through_accelerations(pushed)])

    def _through_accelerations(self, pushed: Floats) -> Floats | float:
        """Return the derivative of (ẋ, rates of the integrals) through z̈^i."""
        if not self._formulation.equations.flow_by_accelerations:
            return 0.0
        return np.asarray(self._formulation.equations.by_accelerations()[0] @ pushed)

    def state_at(self, values: Floats, inputs: Floats) -> State:
        """Return the whole state for a y."""
        rates = self.rates(values, inputs)
        functions, first = self._functions, 2 * self._free
        last = first + len(functions.states)
        return replace(
            self.state,
            coordinates=functions.coordinates.copy(),
            velocities=functions.velocities.copy(),
            accelerations=functions.accelerations.copy(),
            multipliers=functions.multipliers.copy(),
            states=values[first:last].copy(),
            rates=rates[first:last].copy(),
            integrals=values[last:].copy(),
            integral_rates=rates[last:].copy(),
        )

    def with_loops(self, state: State) -> State:
        """Return a state with the solutions of algebraic loops."""
        return self._formulation.with_loops(state)

    def check_loops(self) -> None:
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers."""
        self._formulation.check_loops()

    def accept(self, state: State) -> State:
        """Accept the end of a step as the new estimate; return it with the partition to continue with."""
        self.state, self._leading = state, None
        partition = self._formulation.reconsidered(self._partition)
        return self._formulation.made_consistent(replace(self.state, partition=partition))

    def leaps(self, state: State, step: float) -> bool:
        """Return whether the assembly mode of the loops has changed.

        Newton's iteration may converge to another assembly mode for the same independent coordinates, and an error
        estimate does not detect it if all stages do so. Velocities and accelerations at both ends give the displacement
        of the dependent coordinates to order four; another mode deviates by more than a fraction of it.
        """
        before, dependent = self.state, self._partition.dependent
        speeds = np.stack([before.velocities[dependent], state.velocities[dependent]])
        pushes = np.stack([before.accelerations[dependent], state.accelerations[dependent]])
        moved = 0.5 * step * (speeds[0] + speeds[1]) + step**2 / 12.0 * (pushes[0] - pushes[1])
        way = step * np.abs(speeds).max(initial=0.0) + 0.5 * step**2 * np.abs(pushes).max(initial=0.0)
        off = state.coordinates[dependent] - before.coordinates[dependent] - moved
        return bool(np.abs(off).max(initial=0.0) > LEAP * way + ROUND_OFF)

    def with_changed_chart(self) -> State | None:
        """Return the last accepted state with the best partition; None if that is the present one."""
        self._formulation.load(self.state)
        other = best_choice(self._functions, self._formulation.element_scales)
        return None if other.same_as(self._partition) else replace(self.state, partition=other)
