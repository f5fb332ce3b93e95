"""Equations of a system as CasADi expressions with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.divide_and_conquer.assembly import Corrections
from mbsfmu.modelling.data import Array
from mbsfmu.systems.system import (
    MOTION,
    SIZES,
    AccelerationFeedback,
    AlgebraicLoops,
    ArticulatedDynamics,
    CanonicalMomenta,
    ConstraintCorrections,
    EventIndicators,
    InertiaTensors,
    JointReactions,
    LoopEquations,
    LoopsInUse,
    LoopSolution,
    MovingReferences,
    SampledUpdates,
    StartLimits,
    StartPlacement,
    System,
    require_capability,
)
from mbsfmu.tracing.solved_equations import SolvedLoops
from mbsfmu.tracing.symbols import SymbolicArray, expression, symbolic_array, symbols

PARTS = tuple(SIZES)


def _vector(capability: type[System], function: Callable[..., Array], part: str = "") -> cached_property[ca.SX]:
    """Return a property with a function's result at the context, or at a part of it."""

    def traced(self: SystemExpressions) -> ca.SX:
        given = getattr(self._instant, part) if part else self._instant
        return expression(getattr(require_capability(self.system, capability), function.__name__)(given))

    return cached_property(traced)


class SystemExpressions:
    """A traced system; all expressions follow from its NumPy functions.

    Parameters
    ----------
    system
        The system.
    loops
        The loop equations in use; all of them, as if they were independent, by default.

    Attributes
    ----------
    symbol_by_part
        Vectors of symbols: the parts of an `Instant`, `multipliers`, and `active` where loop equations are redundant.
    rows
        Indices of the loop equations in use.
    """

    def __init__(self, system: System, loops: LoopEquations | None = None) -> None:
        self.system = system
        self.rows = tuple(range(len(system.constraints))) if loops is None else loops.rows
        self.symbol_by_part: dict[str, ca.SX] = {}
        self._instant = system.instant(self._symbol)
        self._solved = SolvedLoops()
        if system.loop_iterates:
            solved = self._solved.add(len(system.loop_iterates), self._loop_solution)
            self._instant = replace(self._instant, loop_iterates=symbolic_array(solved))
        self._feed_through_context = self._instant
        if system.fed_through:
            self._feed_through_context = replace(
                self._instant, fed_through=self._symbol("fed_through", len(system.fed_through))
            )
        multipliers = self._symbol("multipliers", len(self.rows))
        self.multipliers = self.symbol_by_part["multipliers"]
        redundant = loops is not None and loops.rank < len(loops.rows)
        active = self._symbol("active", len(self.rows)) if redundant else None
        refined = loops is not None and loops.weak
        self._loops = LoopsInUse(self.rows, active, multipliers, sequential=True, refined=refined)

    def _symbol(self, part: str, size: int) -> SymbolicArray:
        self.symbol_by_part[part], array = symbols(part, size)
        return array

    def derivative(self, value: ca.SX, *parts: str) -> ca.SX:
        """Return the derivative of a vector with respect to parts, concatenated."""
        return ca.horzcat(*(ca.jacobian(value, self.symbol_by_part[part]) for part in parts))

    def at(self, values: Sequence[ca.SX], symbol_values: dict[str, ca.SX]) -> list[ca.SX]:
        """Return expressions with substituted parts, with algebraic loops solved there; other symbols stay."""
        if not symbol_values:
            return list(values)
        symbols_of = self.symbol_by_part
        changed = ca.veccat(
            *(symbol for part, symbol in symbols_of.items() if symbol_values.get(part, symbol) is not symbol)
        )
        solved = self._solved.within(values)
        moved = [self._solved.moved(each, changed, lambda value: self.at([value], symbol_values)[0]) for each in solved]
        given = [*symbols_of.values(), *(each.symbol for each in solved)]
        function = ca.Function("values", given, list(values), {"allow_free": True})
        arguments = [symbol_values.get(part, symbol) for part, symbol in symbols_of.items()]
        result = function.call([*arguments, *moved], True, False)
        return list(result)

    def closed(self, values: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with the solutions of algebraic loops, from iterates."""
        return self._solved.inserted(values)

    def _loop_solution(self) -> ca.SX:
        return ca.vertcat(*(expression(each.values) for each in self._loops_from_iterates))

    @cached_property
    def _loops_from_iterates(self) -> list[LoopSolution]:
        loop_iterates = symbolic_array(self.symbol_by_part["loop_iterates"])
        return require_capability(self.system, AlgebraicLoops).solved_loops(
            replace(self._instant, loop_iterates=loop_iterates)
        )

    @property
    def loop_solutions(self) -> tuple[ca.SX, ca.SX]:
        """Residual of each nonlinear loop, 0 if solved, and all solutions."""
        return ca.vertcat(*(expression(each.off) for each in self._loops_from_iterates)), self._loop_solution()

    @cached_property
    def unsolved(self) -> tuple[tuple[str, int], ...]:
        """Message on each unsolved nonlinear loop, and the index of its first iterate."""
        every = self._loops_from_iterates if self.system.loop_iterates else []
        first = np.cumsum([0, *(len(each.values) for each in every)]).tolist()
        return tuple(
            (f"no solution of {each.description} is found from {self.system.loop_iterates[index].name}", index)
            for each, index in zip(every, first, strict=False)
        )

    residual = _vector(System, System.residual)
    """M z̈ − Q."""
    all_closure = _vector(System, System.closure)
    """Φ of all constraints, redundant ones included."""
    misalignment = _vector(System, System.misalignment)
    """1 − cos θ of joints that Φ = 0 lets turn over by half a turn."""
    rates = _vector(System, System.rates)
    """ẋ."""
    all_drifts = _vector(System, System.constraint_drifts)
    """Φ_t of all constraints."""
    all_drift_rates = _vector(System, System.constraint_drift_rates)
    """Φ_tt of all constraints."""
    outputs = _vector(System, System.evaluate_outputs)
    """The outputs y."""
    event_indicators = _vector(EventIndicators, EventIndicators.evaluate_event_indicators)
    """The event indicators."""
    initial_integrals = _vector(System, System.initial_integrals)
    """The integrals at the start."""
    updates = _vector(SampledUpdates, SampledUpdates.updates)
    """The discrete states after an update of all of them."""
    initial_discrete = _vector(SampledUpdates, SampledUpdates.initial_discrete, "parameters")
    """The discrete states before their first update."""
    inertia_tensors = _vector(InertiaTensors, InertiaTensors.inertia_tensors, "parameters")
    """Inertia tensors with validity conditions."""
    start_limits = _vector(StartLimits, StartLimits.start_limits)
    """Limited variables at the start: value, lower and upper limit in turn."""
    initial_momenta = _vector(CanonicalMomenta, CanonicalMomenta.initial_momenta)
    """P = M ż."""

    @cached_property
    def moving_rows(self) -> tuple[int, ...]:
        """Indices of the constraints that depend on the coordinates at all."""
        jacobian = self.derivative(self.all_closure, "coordinates")
        return tuple(row for row in range(jacobian.shape[0]) if jacobian[row, :].nnz())

    @cached_property
    def closure(self) -> ca.SX:
        """Φ of the constraints in use."""
        return self.all_closure[list(self.rows)]

    @cached_property
    def closure_jacobian(self) -> ca.SX:
        """Φ_z."""
        return self.derivative(self.closure, "coordinates")

    @cached_property
    def all_closure_jacobian(self) -> ca.SX:
        """Φ_z of all constraints."""
        return self.derivative(self.all_closure, "coordinates")

    @cached_property
    def misalignment_jacobian(self) -> ca.SX:
        """Its derivatives by z."""
        return self.derivative(self.misalignment, "coordinates")

    @cached_property
    def integral_rates(self) -> ca.SX:
        """Rates of the integrals, including the work of prescribed motion through multipliers."""
        powers = expression(self.system.driving_powers(self._instant, self._loops))
        return expression(self.system.integral_rates(self._instant)) + powers

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """Indices, among the active constraints, of prescribed motions, which do work."""
        return tuple(row for row in range(self.drifts.numel()) if self.drifts[row].nnz())

    @cached_property
    def drifts(self) -> ca.SX:
        """Φ_t."""
        return ca.sparsify(self.all_drifts[list(self.rows)])

    @cached_property
    def drift_rates(self) -> ca.SX:
        """Φ_tt."""
        return ca.sparsify(self.all_drift_rates[list(self.rows)])

    @cached_property
    def closure_rate(self) -> ca.SX:
        """Φ̇ = Φ_z ż + Φ_t."""
        return ca.mtimes(self.closure_jacobian, self.symbol_by_part["velocities"]) + self.drifts

    @cached_property
    def quadratic(self) -> ca.SX:
        """Φ̇_z ż + Φ_tt, the part of Φ̈ without accelerations: Φ_t depends on time alone."""
        turning = ca.mtimes(self.derivative(self.closure_rate, "coordinates"), self.symbol_by_part["velocities"])
        return turning + self.drift_rates

    @cached_property
    def closure_acceleration(self) -> ca.SX:
        """Φ̈ = Φ_z z̈ + Φ̇_z ż + Φ_tt."""
        return ca.mtimes(self.closure_jacobian, self.symbol_by_part["accelerations"]) + self.quadratic

    @cached_property
    def balance(self) -> ca.SX:
        """M z̈ − Q + Φ_zᵀ λ."""
        return self.residual + ca.mtimes(self.closure_jacobian.T, self.multipliers)

    @property
    def computed(self) -> ca.SX:
        """Outputs, z, ż, z̈, x and the integrals, stacked."""
        return ca.vertcat(self.outputs, *(self.symbol_by_part[part] for part in (*MOTION, "states", "integrals")))

    def closing(self, equations: ca.SX) -> ca.SX:
        """Return active loop equations, and multipliers, which must be zero, of the inactive ones."""
        if "active" not in self.symbol_by_part:
            return equations
        active = self.symbol_by_part["active"]
        return active * equations + (1.0 - active) * self.multipliers

    @cached_property
    def mass(self) -> ca.SX:
        """M."""
        return self.derivative(self.residual, "accelerations")

    @cached_property
    def rest(self) -> ca.SX:
        """−Q, that is M z̈ − Q without accelerations."""
        return self.at([self.residual], {"accelerations": ca.SX.zeros(len(self.system.coordinates))})[0]

    def forward_dynamics(self, stabilisation: float) -> tuple[ca.SX, ca.SX]:
        """Return z̈ and λ of the active constraints by divide and conquer.

        With acceleration feed-through they are linear in it: w = A w + b, solved as (I − A) w = b. The determinant of I
        − A must stay positive; where it vanishes z̈ is unbounded.
        """
        dynamics = require_capability(self.system, ArticulatedDynamics)
        found = dynamics.forward_dynamics(self._feed_through_context, self._loops, stabilisation)
        accelerations, multipliers = expression(found[0]), expression(found[1])
        if not self.system.fed_through or not ca.depends_on(
            accelerations, fed_through := self.symbol_by_part["fed_through"]
        ):
            return accelerations, multipliers
        (carried,) = self.at([self.feed_through_values], {"accelerations": accelerations})
        without = ca.substitute(carried, fed_through, ca.SX.zeros(fed_through.numel()))
        matrix = ca.SX.eye(fed_through.numel()) - ca.jacobian(carried, fed_through)
        solved = ca.if_else(ca.det(matrix) > 0.0, ca.solve(ca.densify(matrix), without), ca.DM.nan(fed_through.numel()))
        accelerations, multipliers = ca.substitute([accelerations, multipliers], [fed_through], [solved])
        return accelerations, multipliers

    @cached_property
    def bare_mass(self) -> ca.SX:
        """M without acceleration feed-through."""
        residual = expression(self.system.residual(self._feed_through_context))
        return self.derivative(residual, "accelerations")

    @cached_property
    def feed_through_values(self) -> ca.SX:
        """Acceleration feed-through of connections."""
        return expression(require_capability(self.system, AccelerationFeedback).feed_through_values(self._instant))

    @cached_property
    def free_accelerations(self) -> ca.SX:
        """Accelerations of bodies without constraint forces, with feed-through as the part `fed_through`."""
        return expression(
            require_capability(self.system, ConstraintCorrections).free_accelerations(self._feed_through_context)
        )

    def impulsive_velocities(self, stabilisation: float) -> tuple[ca.SX, ca.SX]:
        """Return ż and the impulses σ of the constraints in use from the momenta."""
        system = require_capability(self.system, CanonicalMomenta)
        velocities, impulses = system.impulsive_velocities(self._instant, self._loops, stabilisation)
        return expression(velocities), expression(impulses)

    @cached_property
    def open_velocities(self) -> ca.SX:
        """ż of the open tree from the momenta, M⁻¹ p."""
        system = require_capability(self.system, CanonicalMomenta)
        opened = LoopsInUse((), sequential=True, opened=True)
        return expression(system.impulsive_velocities(self._instant, opened, 0.0)[0])

    @cached_property
    def momentum_energies(self) -> ca.SX:
        """Twice the kinetic energies, of the open tree with the momenta and of the motion, shape (2,)."""
        momenta, velocities = (self.symbol_by_part[part] for part in ("momenta", "velocities"))
        return ca.vertcat(ca.dot(momenta, self.open_velocities), ca.dot(self.initial_momenta, velocities))

    @cached_property
    def momentum_rates(self) -> ca.SX:
        """ṗ, with the multipliers in place of the impulses σ."""
        return expression(require_capability(self.system, CanonicalMomenta).momentum_rates(self._instant, self._loops))

    def with_references(self, references: ca.SX) -> dict[str, ca.SX]:
        """Return parts of the context with other references."""
        system = require_capability(self.system, MovingReferences)
        moved = system.with_references(self._instant, symbolic_array(references))
        return {part: expression(getattr(moved, part)) for part in (*MOTION, "momenta")}

    @cached_property
    def with_present_references(self) -> dict[str, ca.SX]:
        """Parts of the context with all references at the present orientation."""
        moved = require_capability(self.system, MovingReferences).with_references(self._instant, None)
        return {part: expression(getattr(moved, part)) for part in (*MOTION, "momenta", "references")}

    @cached_property
    def reactions(self) -> ca.SX:
        """Forces and moments in the joints, from z̈ and λ."""
        return expression(
            require_capability(self.system, JointReactions).evaluate_reactions(self._instant, self._loops)
        )

    @cached_property
    def _reaction_shares(self) -> ca.SX:
        """Reactions per unit multiplier of all constraints."""
        every = range(len(self.system.constraints))
        symbol, multipliers = symbols("all_multipliers", len(every))
        loops = LoopsInUse(every, multipliers=multipliers)
        reactions = expression(require_capability(self.system, JointReactions).evaluate_reactions(self._instant, loops))
        return ca.jacobian(reactions, symbol)

    def shared_reactions(self, multipliers: ca.SX) -> ca.SX:
        """Return the reactions of given multipliers of all constraints."""
        return ca.mtimes(self._reaction_shares, multipliers)

    @cached_property
    def reactions_open(self) -> bool:
        """Whether redundant constraints can share reactions.

        Those of a planar mechanism cannot, because no force acts normal to its plane.
        """
        still = [row for row in range(len(self.system.constraints)) if row not in self.rows]
        shared = ca.mtimes(ca.sparsify(self._reaction_shares)[:, still].T, ca.sparsify(self.reactions))
        return bool(ca.sparsify(shared).nnz())

    @cached_property
    def all_closure_rate(self) -> ca.SX:
        """Φ̇ of all constraints."""
        moved = ca.mtimes(self.all_closure_jacobian, self.symbol_by_part["velocities"])
        return moved + ca.sparsify(self.all_drifts)

    @cached_property
    def violation(self) -> ca.SX:
        """Magnitudes of Φ and Φ̇ over all constraints."""
        if not self.system.constraints:
            return ca.SX.zeros(2)
        return ca.vertcat(ca.norm_2(self.all_closure), ca.norm_2(self.all_closure_rate))

    @cached_property
    def start(self) -> dict[str, ca.SX]:
        """Coordinates and velocities of the start system as given by the user, and initial x, by part."""
        parameters = self._instant.parameters
        coordinates, velocities = self.system.start_system.initial_coordinates(parameters)
        states = self.system.initial_states(parameters)
        named = {"coordinates": coordinates, "velocities": velocities, "states": states}
        return {part: expression(value) for part, value in named.items()}

    def start_references(self, coordinates: ca.SX) -> ca.SX:
        """Return the references for coordinates of the start system."""
        system = require_capability(self.system, MovingReferences)
        return expression(system.start_references(symbolic_array(coordinates)))

    def placed(self, coordinates: ca.SX, velocities: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return z and ż from coordinates and velocities of the start system."""
        system = require_capability(self.system, StartPlacement)
        placed = system.place(symbolic_array(coordinates), symbolic_array(velocities), self._instant)
        return expression(placed[0]), expression(placed[1])

    @cached_property
    def constrained_residual(self) -> ca.SX:
        """M z̈ − Q + Φ_zᵀ λ of the system, with the multipliers of all constraints."""
        system = require_capability(self.system, ConstraintCorrections)
        return expression(system.constrained_residual(self._instant, symbolic_array(self.multipliers), False))

    def corrections(self, penalty: float) -> Corrections:
        """Return the solver for Δz and Δλ, all symbolic."""
        return require_capability(self.system, ConstraintCorrections).corrections(self._instant, self._loops, penalty)

    def depends(self, value: ca.SX, part: str) -> NDArray[np.bool_]:
        """Return the sparsity of a vector's dependence on a part; shape (rows, elements)."""
        sparsity = ca.jacobian_sparsity(value, self.symbol_by_part[part])
        pattern = np.zeros(sparsity.shape, dtype=bool)
        pattern[sparsity.get_triplet()[0], sparsity.get_triplet()[1]] = True
        return pattern
