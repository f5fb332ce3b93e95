"""The double-step semirecursive formulation: coordinate partitioning and reduced equations [Jaiswal2021, sect. 2.2]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import LuFactors
from mbsfmu.formulations.formulation import (
    Formulation,
    FormulationOptions,
    IterationMatrixForm,
    NativeNeeds,
    StepKind,
    StepProblem,
)
from mbsfmu.initialization.coordinates import DependentCoordinates, Partition, best_choice, reconsidered
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.stepping.stages import reduced_pattern
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import MOTION
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction


class ReducedEquations:
    """The equations of motion in the independent coordinates, for any partition.

    R_z and G (see `DependentCoordinates`) are arguments, so that one set of functions serves every partition.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.
    rule
        How ż^i, z̈^i and ẋ follow from z^i and x at the end of a step.

    Attributes
    ----------
    basis, lift
        R_z, shape (n, n − r) with the number r of independent loop equations, and G, shape (n, m).
    velocities, accelerations
        ż^i and z̈^i for `motion` and `explicit`, each of shape (n − r,).
    end
        ż^i, z̈^i and ẋ at the end of a step.
    """

    def __init__(self, functions: SystemFunctions, rule: Rule) -> None:
        n, m = len(functions.coordinates), len(functions.rows)
        freedom = n - functions.rank
        self._functions = functions
        self._given = functions.expressions
        if m:
            self._r, self.basis = functions.add_part("basis", n, freedom)
            self._g, self.lift = functions.add_part("lift", n, m)
        else:
            # Without loops all coordinates are independent; as constants these matrices vanish from the equations.
            self._r, self.basis = ca.SX.eye(n), np.eye(n)
            self._g, self.lift = ca.SX(n, 0), np.zeros((n, 0))
        self._v, self.velocities = functions.add_part("independent_velocities", freedom)
        self._a, self.accelerations = functions.add_part("independent_accelerations", freedom)
        self.end = StepRates(functions, rule, freedom, len(functions.states))
        self._made: dict[tuple[str, tuple[int, ...], tuple[int, ...]], TracedFunction] = {}

    def _motion(self, independent_velocities: ca.SX, independent_accelerations: ca.SX) -> dict[str, ca.SX]:
        """Return ż and z̈ from the independent ones [Jaiswal2021, eqs. 14 and 15], with Φ_t and Φ_tt."""
        velocities = ca.mtimes(self._r, independent_velocities) - ca.mtimes(self._g, self._given.drifts)
        (quadratic,) = self._given.at([self._given.quadratic], {"velocities": velocities})
        accelerations = ca.mtimes(self._r, independent_accelerations) - ca.mtimes(self._g, quadratic)
        return {"velocities": velocities, "accelerations": accelerations}

    def _multipliers(self, residual: ca.SX) -> ca.SX:
        """Return λ = −Gᵀ (M z̈ − Q) from the dependent rows of M z̈ − Q + Φ_zᵀ λ = 0, of least norm."""
        return -ca.mtimes(self._g.T, residual)

    @cached_property
    def residual(self) -> TracedFunction:
        """(R_zᵀ (M z̈ − Q), ẋ − f) at the end of a step [eq. 38]; writes x, ẋ, ż, z̈ and λ."""
        written = ("states", "velocities", "accelerations", "rates", "multipliers")

        def made() -> list[ca.SX]:
            end = self.end
            at_end = {"states": end.values, **self._motion(end.velocities, end.accelerations)}
            residual, rates = self._given.at([self._given.residual, self._given.rates], at_end)
            unbalanced = ca.vertcat(ca.mtimes(self._r.T, residual), end.rates - rates)
            found = {**at_end, "rates": end.rates, "multipliers": self._multipliers(residual)}
            return [unbalanced, *(found[part] for part in written)]

        return self._functions.kept("reduced_residual", made, into=written)

    @cached_property
    def motion(self) -> TracedFunction:
        """Write ż, z̈ and λ from `velocities` and `accelerations`."""
        written = ("velocities", "accelerations", "multipliers")

        def made() -> list[ca.SX]:
            found = self._motion(self._v, self._a)
            found["multipliers"] = self._multipliers(self._given.at([self._given.residual], found)[0])
            return [found[part] for part in written]

        return self._functions.kept("reduced_motion", made, into=written)

    def _moved(self, coordinates: ca.SX, velocities: ca.SX, accelerations: ca.SX) -> ca.SX:
        """Return (δz, δż, δz̈) stacked, for R_z times variations of z^i, ż^i and z̈^i.

        They follow from differentiating Φ, Φ̇ and Φ̈, which stay zero.
        """
        given = self._given
        turned = ca.mtimes(given.derivative(given.closure_rate, "coordinates"), coordinates)
        velocities = velocities - ca.mtimes(self._g, turned)
        both = given.derivative(given.closure_acceleration, "coordinates", "velocities")
        turned = ca.mtimes(both, ca.vertcat(coordinates, velocities))
        return ca.vertcat(coordinates, velocities, accelerations - ca.mtimes(self._g, turned))

    def _moved_by(self, part: str, along: ca.SX) -> ca.SX:
        """Return (δz, δż, δz̈) for a variation of a part: inputs and parameters move dependent coordinates."""
        given, symbol = self._given, self._functions.symbol(part)
        opened = [given.closure, given.closure_rate, given.closure_acceleration]
        return self._moved(*(-ca.mtimes(self._g, ca.jtimes(each, symbol, along)) for each in opened))

    def _changes_by(self, part: str, along: ca.SX, values: Sequence[ca.SX]) -> list[ca.SX]:
        """Return the changes of vectors with a part, at constant z^i, ż^i, z̈^i and multipliers."""
        changes = [ca.jtimes(each, self._functions.symbol(part), along) for each in values]
        if part != "inputs" or self._given.driven:
            motion = self._moved_by(part, along)
            pushed = [ca.mtimes(self._given.derivative(each, *MOTION), motion) for each in values]
            changes = [first + second for first, second in zip(changes, pushed, strict=True)]
        return changes

    def _by_multipliers(self, flow: ca.SX, balance: ca.SX) -> ca.SX:
        """Return the change of rates through multipliers that keep the dependent part of M z̈ − Q + Φ_zᵀ λ zero.

        Only the power of prescribed motion depends on them.

        Parameters
        ----------
        flow
            The rates.
        balance
            Changes of M z̈ − Q + Φ_zᵀ λ with multipliers as they are, side by side.
        """
        if not self._given.driven:
            return ca.SX(flow.numel(), balance.shape[1])
        return -ca.mtimes(self._given.derivative(flow, "multipliers"), ca.mtimes(self._g.T, balance))

    @cached_property
    def slope(self) -> TracedFunction:
        """M'', and derivatives of −M'' z̈^i + Q'' and of (ẋ, rates of the integrals) by (z^i, ż^i, x).

        Shapes (n − r, n − r), (n − r, 2 (n − r) + k) and (k + i, 2 (n − r) + k); as for `iteration_matrix` λ is such
        that the dependent part of ρ vanishes.
        """
        return self._functions.kept("reduced_slope", lambda: self._slopes, matrices=[0, 1, 2])

    @cached_property
    def _slopes(self) -> list[ca.SX]:
        """Results of `slope`."""
        given, r, nothing = self._given, self._r, ca.SX(*self._r.shape)
        motion = self._moved(ca.horzcat(r, nothing), ca.horzcat(nothing, r), ca.horzcat(nothing, nothing))
        along = [
            ca.horzcat(ca.mtimes(given.derivative(value, *MOTION), motion), given.derivative(value, "states"))
            for value in (given.balance, self._whole_flow)
        ]
        mass = ca.mtimes(r.T, ca.mtimes(given.mass, r))
        rates = along[1] + self._by_multipliers(self._whole_flow, along[0])
        return [mass, -ca.mtimes(r.T, along[0]), rates]

    @property
    def flow_by_accelerations(self) -> bool:
        """Whether ẋ or the rates of the integrals depend on z̈^i, as the power of prescribed motion does."""
        return self._functions.rates_by_accelerations or bool(self._functions.driven)

    @cached_property
    def by_accelerations(self) -> TracedFunction:
        """Derivative of (ẋ, rates of the integrals) by z̈^i, shape (k + i, n − r)."""
        return self._functions.kept("reduced_by_accelerations", lambda: [self._flow_by_accelerations], matrices=[0])

    @cached_property
    def _flow_by_accelerations(self) -> ca.SX:
        """Result of `by_accelerations`."""
        flow, pushed = self._whole_flow, ca.mtimes(self._given.mass, self._r)
        return ca.mtimes(self._given.derivative(flow, "accelerations"), self._r) + self._by_multipliers(flow, pushed)

    @cached_property
    def _whole_flow(self) -> ca.SX:
        """ẋ and the rates of the integrals."""
        return ca.vertcat(self._given.rates, self._given.integral_rates)

    @cached_property
    def mass(self) -> TracedFunction:
        """M'', shape (n − r, n − r)."""

        def made() -> list[ca.SX]:
            return [ca.mtimes(self._r.T, ca.mtimes(self._given.mass, self._r))]

        return self._functions.kept("reduced_mass", made, matrices=[0])

    @cached_property
    def drift(self) -> TracedFunction:
        """Change of M'' z̈^i and of (ẋ, rates of the integrals) with time, by the part `input_rates`."""

        def made() -> list[ca.SX]:
            return [ca.vertcat(*self._drift("inputs", self._functions.symbol("input_rates")))]

        return self._functions.kept("reduced_drift", made)

    def _drift(self, part: str, along: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the changes of M'' z̈^i and of (ẋ, rates of the integrals) with inputs or parameters."""
        balance, flow = self._changes_by(part, along, [self._given.balance, self._whole_flow])
        return -ca.mtimes(self._r.T, balance), flow + self._by_multipliers(self._whole_flow, balance)

    @cached_property
    def change(self) -> TracedFunction:
        """Directional derivatives of the outputs, z, ż and z̈ along z^i, ż^i, z̈^i, x, the integrals and the inputs.

        The directions are the parts `d_coordinates`, … here, of the independent ones alone.
        """
        given, functions, (n, freedom) = self._given, self._functions, self._r.shape
        z, v, a = (ca.mtimes(self._r, functions.add_part(f"d_{part}", freedom)[0]) for part in MOTION)
        others = {part: functions.symbol(part) for part in ("states", "integrals", "inputs")}
        along = [functions.add_part(f"d_{part}", symbol.numel())[0] for part, symbol in others.items()]
        motion = self._moved(z, v, a)
        if given.driven:
            motion += self._moved_by("inputs", along[-1])
        directly = ca.jtimes(given.outputs, ca.vertcat(*others.values()), ca.vertcat(*along))
        outputs = ca.mtimes(given.derivative(given.outputs, *MOTION), motion) + directly
        return functions.traced("reduced_change", [outputs, motion[:n], motion[n : 2 * n], motion[2 * n :]])

    def along_states(self, rows: Sequence[int]) -> TracedFunction:
        """Return the derivatives of what is computed with respect to (z^i, ż^i, x), and to z̈^i.

        Parameters
        ----------
        rows
            Those of what is computed that count.

        Returns
        -------
        function
            Of the results of `slope`; then of derivatives of (ẋ, rates of the integrals) by z̈^i, of the rows of
            what is computed by (z^i, ż^i, x, integrals), and of these by z̈^i.
        """
        return self._once("states", (), rows, lambda: self._along_states(rows))

    def _once(
        self, name: str, columns: Sequence[int], rows: Sequence[int], make: Callable[[], TracedFunction]
    ) -> TracedFunction:
        """Decorate a function that is traced on its first use."""
        key = name, tuple(columns), tuple(rows)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def read(self, rows: Sequence[int]) -> TracedFunction:
        """Return rows of what is computed."""
        return self._once(
            "read", (), rows, lambda: self._functions.traced("computed", [self._given.computed[list(rows)]])
        )

    def _along_states(self, rows: Sequence[int]) -> TracedFunction:
        given, r, nothing = self._given, self._r, ca.SX(*self._r.shape)
        motion = self._moved(ca.horzcat(r, nothing), ca.horzcat(nothing, r), ca.horzcat(nothing, nothing))
        read = self._given.computed[list(rows)]
        by_motion = given.derivative(read, *MOTION)
        others = given.derivative(read, "states", "integrals")
        by_accelerations = ca.mtimes(given.derivative(read, "accelerations"), r)
        results = [ca.horzcat(ca.mtimes(by_motion, motion), others), by_accelerations]
        slopes = [*self._slopes, self._flow_by_accelerations, *results]
        return self._functions.traced("reduced_along_states", slopes, matrices=range(6))

    def along_parameters(self, columns: Sequence[int], rows: Sequence[int]) -> TracedFunction:
        """Return the derivatives of Q'' − M'' z̈^i, (ẋ, rates of the integrals) and what is computed by parameters.

        Parameters
        ----------
        columns, rows
            Indices of the parameters, and of the rows of what is computed.
        """
        return self._once("parameters", columns, rows, lambda: self._along_parameters(columns, rows))

    def _along_parameters(self, columns: Sequence[int], rows: Sequence[int]) -> TracedFunction:
        size = self._functions.symbol("parameters").numel()
        along, read = ca.SX.eye(size)[:, list(columns)], self._given.computed[list(rows)]
        by_load, by_flow = self._drift("parameters", along)
        (by_read,) = self._changes_by("parameters", along, [read])
        return self._functions.traced("reduced_along_parameters", [by_load, by_flow, by_read], matrices=range(3))

    @cached_property
    def pulled_back(self) -> TracedFunction:
        """Products of rows with derivatives of Q'' − M'' z̈^i and (ẋ, rates of the integrals), by parameters and inputs.

        The rows are the parts `by_load` and `by_flow`; the products come by reverse differentiation.
        """
        functions, (_, freedom) = self._functions, self._r.shape
        by_load, by_flow = (
            functions.add_part(name, size)[0]
            for name, size in (("by_load", freedom), ("by_flow", self._whole_flow.numel()))
        )
        pulled = self._pulled(-ca.mtimes(self._r, by_load), ca.dot(by_flow, self._whole_flow))
        return functions.traced("reduced_pulled_back", [pulled["parameters"], pulled["inputs"]])

    @cached_property
    def read_back(self) -> TracedFunction:
        """Products of the part `by_read` with derivatives of what is computed.

        By (z^i, ż^i, x, integrals), by z̈^i, by parameters, and by inputs.
        """
        functions, read = self._functions, self._given.computed
        by_read = functions.add_part("by_read", read.numel())[0]
        pulled = self._pulled(ca.SX.zeros(self._r.shape[0]), ca.dot(by_read, read))
        motion = [ca.mtimes(self._r.T, pulled[part]) for part in MOTION]
        by_motion = ca.vertcat(*motion[:2], pulled["states"], pulled["integrals"])
        results = [by_motion, motion[2], pulled["parameters"], pulled["inputs"]]
        return functions.traced("reduced_read_back", results)

    def _pulled(self, loads: ca.SX, scalar: ca.SX) -> dict[str, ca.SX]:
        """Return the gradients of loadsᵀ (M z̈ − Q + Φ_zᵀ λ) plus a scalar with respect to all parts.

        The transpose of `_moved` and `_moved_by`: loads are held, and adjoint multipliers ν of Φ̈, Φ̇ and Φ carry what
        dependent coordinates do over to the independent ones, parameters and inputs; gradients by z, ż and z̈ are
        those that R_zᵀ makes gradients by the independent ones of.
        """
        given, symbol = self._given, self._functions.symbol
        parts = (*MOTION, "states", "integrals", "inputs", "parameters")

        def gradients(value: ca.SX) -> dict[str, ca.SX]:
            vectors = [symbol(part) for part in parts]
            ends = np.cumsum([0, *(each.numel() for each in vectors)]).tolist()
            return dict(zip(parts, ca.vertsplit(ca.gradient(value, ca.vertcat(*vectors)), ends), strict=True))

        if given.driven:
            loads = loads - ca.mtimes(self._g, ca.gradient(scalar, symbol("multipliers")))
        held = [(ca.SX.sym("loads", loads.numel()), loads)]
        found = gradients(scalar + ca.dot(held[0][0], given.balance))
        for part, closed in (
            ("accelerations", given.closure_acceleration),
            ("velocities", given.closure_rate),
            ("coordinates", given.closure),
        ):
            multipliers = ca.SX.sym("multipliers", closed.numel())
            held.append((multipliers, -ca.mtimes(self._g.T, found[part])))
            more = gradients(ca.dot(multipliers, closed))
            # The part itself is what R_z spans with the independent one, and the correction by G is in ν.
            found = {name: value if name == part else value + more[name] for name, value in found.items()}
        results = list(found.values())
        for sym, value in reversed(held):
            results = ca.substitute(results, [sym], [value])
        return dict(zip(parts, results, strict=True))

    @cached_property
    def moved(self) -> TracedFunction:
        """Derivatives of z and ż, one below the other, by (z^i, ż^i) and by all parameters."""
        r, nothing, size = self._r, ca.SX(*self._r.shape), self._functions.symbol("parameters").numel()
        motion = self._moved(ca.horzcat(r, nothing), ca.horzcat(nothing, r), ca.horzcat(nothing, nothing))
        by_parameters = self._moved_by("parameters", ca.SX.eye(size))
        rows = 2 * r.shape[0]
        return self._functions.traced("reduced_moved", [motion[:rows, :], by_parameters[:rows, :]], matrices=[0, 1])

    @cached_property
    def iteration_matrix(self) -> TracedFunction:
        """Derivative of (R_zᵀ (M z̈ − Q), ẋ by the rule − f) by (z^i, x); a square matrix.

        ż^i and z̈^i follow z^i as the rule says. The residual is the independent part of ρ = M z̈ − Q + Φ_zᵀ λ with
        λ such that the dependent part vanishes: projecting dρ with R_zᵀ removes dλ.
        """

        def made() -> list[ca.SX]:
            given, r, end = self._given, self._r, self.end
            motion = self._moved(r, end.velocity_by_position * r, end.acceleration_by_position * r)
            balance = ca.mtimes(r.T, ca.mtimes(given.derivative(given.balance, *MOTION), motion))
            by_states = ca.mtimes(r.T, given.derivative(given.balance, "states"))
            rates = ca.mtimes(given.derivative(given.rates, *MOTION), motion)
            return [end.square(balance, by_states, rates, given.derivative(given.rates, "states"))]

        return self._functions.kept("reduced_iteration_matrix", made, matrices=[0])

    @cached_property
    def rates_at_once(self) -> bool:
        """Whether no rate depends on accelerations or multipliers; the rates of integrals then come with ẋ.

        Flows through valves, losses and powers are common to both: together they cost little more than one.
        """

        def at_once() -> bool:
            symbols = [self._functions.symbol(part) for part in ("accelerations", "multipliers")]
            rates = ca.vertcat(self._given.rates, self._given.integral_rates)
            return not self._functions.rates_by_accelerations and not ca.depends_on(rates, ca.vertcat(*symbols))

        return bool(self._functions.traces.fact("rates at once", at_once))

    @cached_property
    def explicit(self) -> TracedFunction:
        """M'' = R_zᵀ M R_z, shape (n − r, n − r), Q'', shape (n − r,) [eq. 17], ẋ, and what `rates_at_once` says."""

        def made() -> list[ca.SX]:
            motion, r = self._motion(self._v, self._a), self._r
            # With z̈^i = 0 the accelerations are −G Φ̇_z ż, the D of eq. 16.
            motion["accelerations"] = ca.substitute(motion["accelerations"], self._a, ca.SX.zeros(self._a.shape))
            given = [self._given.mass, self._given.residual, self._given.rates]
            given += [self._given.integral_rates] * self.rates_at_once
            mass, residual, *rates = self._given.at(given, motion)
            return [ca.mtimes(r.T, ca.mtimes(mass, r)), -ca.mtimes(r.T, residual), *rates]

        return self._functions.kept("reduced_dynamics", made, matrices=[0])


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
