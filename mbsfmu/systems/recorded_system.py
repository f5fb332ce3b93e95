"""Recorded functions of a system for kernel loops; counterpart of `SystemExpressions`.

There are no algebraic loops in this form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mbsfmu.divide_and_conquer.assembly import Corrections, suitable_penalty
from mbsfmu.modelling.data import Array
from mbsfmu.systems.system import (
    MOTION,
    ArticulatedDynamics,
    CanonicalMomenta,
    ConstraintCorrections,
    ConstraintMotion,
    EventIndicators,
    InertiaTensors,
    JointReactions,
    LoopsInUse,
    MovingReferences,
    SampledUpdates,
    StartLimits,
    StartPlacement,
    System,
    SystemContext,
    require_capability,
)
from mbsfmu.tracing.tape.recording import ZERO, RecordedArray, Recorder

CORRECTIONS = 4
"""Number of corrections of constrained accelerations for derivatives."""


@dataclass(frozen=True)
class RecordedSystem:
    """The functions, with the names of `SystemExpressions`.

    Attributes
    ----------
    system
        The system.
    instant
        Where it is.
    loops
        The loop equations in use.
    """

    system: System
    instant: SystemContext
    loops: LoopsInUse
    _dynamics: dict[float, tuple[Array, Array]] = field(default_factory=dict, init=False)

    def at(self, multipliers: Array | None = None, **parts: Array) -> RecordedSystem:
        """Return it with other parts of the context, and other multipliers."""
        loops = self.loops if multipliers is None else replace(self.loops, multipliers=multipliers)
        return RecordedSystem(self.system, replace(self.instant, **parts), loops)

    def of_loops(self, loops: LoopsInUse) -> RecordedSystem:
        """Return it with other active loop equations."""
        return RecordedSystem(self.system, self.instant, loops)

    def forward_dynamics(self, stabilisation: float) -> tuple[Array, Array]:
        """Return z̈ and λ."""
        if stabilisation not in self._dynamics:
            self._dynamics[stabilisation] = self._forward_dynamics(stabilisation)
        return self._dynamics[stabilisation]

    @cached_property
    def moving(self) -> RecordedSystem:
        """It with accelerations from loads, on closed loops."""
        return self.at(accelerations=self.forward_dynamics(0.0)[0])

    def _forward_dynamics(self, stabilisation: float) -> tuple[Array, Array]:
        if self.system.start_system is self.system:
            system = require_capability(self.system, ArticulatedDynamics)
            accelerations, multipliers = system.forward_dynamics(self.instant, self.loops, stabilisation)
            moved = self.at(accelerations=accelerations, multipliers=multipliers)
            loops = moved.loop_accelerations
            self._define(accelerations, multipliers, lambda: (moved.balance, loops(stabilisation)), -1.0)
            return accelerations, multipliers
        return self._held(self.turning(stabilisation), self.free_accelerations)

    def answers(self, forces: Array, opening: Array) -> tuple[Array, Array]:
        """Return the changes of z̈ and λ by forces in absolute coordinates: M δz̈ + Φ_zᵀ δλ = f.

        Parameters
        ----------
        forces
            Along the coordinates, shape (n,).
        opening
            By how much Φ̈ changes at the same z̈, shape (rows,).
        """
        return self._held(opening, require_capability(self.system, ConstraintCorrections).unheld(self.instant, forces))

    def tangential(self, motion: Array, opening: Array | None = None) -> Array:
        """Return a motion without its mass-orthogonal part off the constraints, in absolute coordinates.

        Parameters
        ----------
        motion
            Changes of the coordinates, or of their velocities, shape (n,).
        opening
            What the constraints, or their rates, change by beside Φ_z times the motion, shape (rows,); none by default.
        """
        if not self.loops.rows:
            return motion
        off = self.along(self.closure, motion)
        return motion + self._held(off if opening is None else off + opening)[0]

    def _held(self, turning: Array, free: Array | None = None) -> tuple[Array, Array]:
        """Return accelerations with Φ̈ + turning = 0 under loads, and the multipliers; arguments as of corrections."""
        corrections = self.corrections(suitable_penalty(len(self.system.coordinates)))
        accelerations, multipliers = corrections.solve(turning, free)
        for _ in range(CORRECTIONS - 1):
            moved, pushing = corrections.solve(self.along(self.closure, accelerations) + turning)
            accelerations, multipliers = accelerations + moved, multipliers + pushing
        return accelerations, multipliers

    def along(self, values: Array, direction: Array) -> Array:
        """Return directional derivatives along the coordinates."""
        return cast("Array", self.changes([values], [(self.instant.coordinates, direction)])[0])

    def turning(self, stabilisation: float) -> Array:
        """Return Φ̈ + 2 a Φ̇ + a² Φ without z̈, of the constraints in use."""
        rate = self.along(self.closure, self.instant.velocities)
        found = self.along(rate, self.instant.velocities) + self.drift_rates
        if not stabilisation:
            return found
        return found + 2.0 * stabilisation * (rate + self.drifts) + stabilisation**2 * self.closure

    def impulsive_velocities(self, stabilisation: float) -> tuple[Array, Array]:
        """Return ż and σ from the momenta."""
        system, given = require_capability(self.system, CanonicalMomenta), self.instant.momenta
        velocities, impulses = system.impulsive_velocities(self.instant, self.loops, stabilisation)
        moved = self.at(velocities=velocities, multipliers=impulses)
        loops = moved.loop_rates
        self._define(velocities, impulses, lambda: (moved.canonical_momenta - given, loops(stabilisation)), 1.0)
        return velocities, impulses

    def _define(
        self, motion: Array, multipliers: Array, equations: Callable[[], tuple[Array, Array]], sign: float
    ) -> None:
        """Declare a motion and signed multipliers as implicitly defined by the equations of motion and loops."""
        n, system = len(motion), require_capability(self.system, ArticulatedDynamics)

        def solved(change: Any) -> Any:
            opening = replace(self.loops, multipliers=change[n:])
            moved, pushing = system.responses(self.instant, opening, -change[:n])
            return np.concatenate([moved, sign * pushing])

        found: Any = np.concatenate([motion, multipliers])
        self._recorder.define(found, lambda: np.concatenate(equations()), solved)

    @property
    def open_velocities(self) -> Array:
        """ż of the open tree from the momenta, M⁻¹ p."""
        return self.of_loops(LoopsInUse((), sequential=self.loops.sequential, opened=True)).impulsive_velocities(0.0)[0]

    @property
    def momentum_energies(self) -> Array:
        """Twice the kinetic energies, of the open tree with the momenta and of the motion, shape (2,)."""
        pairs = (self.instant.momenta, self.open_velocities), (self.initial_momenta, self.instant.velocities)
        return np.stack([sum(each) for each in (one * other for one, other in pairs)])

    @property
    def momentum_rates(self) -> Array:
        """Rates of the momenta, with the multipliers in place of the impulses."""
        return require_capability(self.system, CanonicalMomenta).momentum_rates(self.instant, self.loops)

    @property
    def initial_momenta(self) -> Array:
        """Return p = M ż."""
        return require_capability(self.system, CanonicalMomenta).initial_momenta(self.instant)

    def changes(self, values: Sequence[Any], directions: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Return directional derivatives along parts."""
        return self._recorder.changes(values, directions)

    @property
    def _recorder(self) -> Recorder:
        coordinates = self.instant.coordinates
        assert isinstance(coordinates, RecordedArray)
        return coordinates.recorder

    @property
    def free_accelerations(self) -> Array:
        """Accelerations of the bodies without constraint forces."""
        return require_capability(self.system, ConstraintCorrections).free_accelerations(self.instant)

    def corrections(self, penalty: float) -> Corrections:
        """Return the solver for Δz and Δλ of a violation."""
        return require_capability(self.system, ConstraintCorrections).corrections(self.instant, self.loops, penalty)

    def start_references(self, coordinates: Array) -> Array:
        """Return the references for coordinates of the start system."""
        return require_capability(self.system, MovingReferences).start_references(coordinates)

    def placed(self, coordinates: Array, velocities: Array) -> tuple[Array, Array]:
        """Return z and ż from coordinates and velocities of the start system."""
        return require_capability(self.system, StartPlacement).place(coordinates, velocities, self.instant)

    @property
    def residual(self) -> Array:
        """M z̈ − Q."""
        return self.system.residual(self.instant)

    @cached_property
    def resting(self) -> Array:
        """−Q at zero velocity without constraint forces."""
        still = np.zeros(len(self.system.coordinates))
        return self.at(velocities=still, accelerations=still).residual

    @property
    def standing_balance(self) -> Array:
        """−Q + Φ_zᵀ λ at zero velocity, with the multipliers of all constraints."""
        still = np.zeros(len(self.system.coordinates))
        return self.at(velocities=still, accelerations=still).balance

    @property
    def constrained_residual(self) -> Array:
        """M z̈ − Q + Φ_zᵀ λ of the system, with the multipliers of all constraints."""
        return require_capability(self.system, ConstraintCorrections).constrained_residual(
            self.instant, self.loops.multipliers, False
        )

    @property
    def regular_residual(self) -> Array:
        """The same with a regular M: its derivative has a nonzero pivot for each coordinate."""
        return require_capability(self.system, ConstraintCorrections).constrained_residual(
            self.instant, self.loops.multipliers, True
        )

    @property
    def moved_by_constraints(self) -> list[list[int]]:
        """For each constraint the coordinates of the bodies on which it acts."""
        return require_capability(self.system, ConstraintCorrections).moved_by_constraints

    @property
    def balance(self) -> Array:
        """M z̈ − Q + Φ_zᵀ λ."""
        return require_capability(self.system, ArticulatedDynamics).balance(self.instant, self.loops)

    @property
    def depths(self) -> list[int]:
        """Number of joints from the ground to each coordinate's own."""
        return require_capability(self.system, ArticulatedDynamics).depths

    def loop_accelerations(self, stabilisation: float) -> Array:
        """Return Φ̈ + 2 a Φ̇ + a² Φ of the constraints in use."""
        return require_capability(self.system, ArticulatedDynamics).loop_accelerations(
            self.instant, self.loops, stabilisation
        )

    @property
    def canonical_momenta(self) -> Array:
        """P = M ż − Φ_zᵀ σ, with the multipliers in the place of the impulses."""
        return require_capability(self.system, CanonicalMomenta).canonical_momenta(self.instant, self.loops)

    def loop_rates(self, stabilisation: float) -> Array:
        """Return Φ̇ + a Φ of the constraints in use."""
        return require_capability(self.system, CanonicalMomenta).loop_rates(self.instant, self.loops, stabilisation)

    @property
    def acted_on(self) -> list[list[int]]:
        """For each active constraint the coordinates on which its multiplier acts on the manifold."""
        if not self.loops.rows:
            return []
        return [np.flatnonzero(row).tolist() for row in varies(self.closure_jacobian)]

    @property
    def rates(self) -> Array:
        """Rates ẋ."""
        return self.system.rates(self.instant)

    @property
    def integral_rates(self) -> Array:
        """Rates of the integrals."""
        if not self.loops.rows:
            return self.system.integral_rates(self.instant)
        powers = self.system.driving_powers(self.instant, self.loops)
        return self.system.integral_rates(self.instant) + powers

    @cached_property
    def outputs(self) -> Array:
        """The outputs y."""
        return self.system.evaluate_outputs(self.instant)

    @property
    def event_indicators(self) -> Array:
        """The event indicators."""
        return require_capability(self.system, EventIndicators).evaluate_event_indicators(self.instant)

    @property
    def violation(self) -> Array:
        """Magnitudes of Φ and Φ̇ over all constraints."""
        if not self.system.constraints:
            return np.zeros(2)
        return np.stack(
            [np.sqrt(sum(each * each for each in vector)) for vector in (self.all_closure, self.all_closure_rate)]
        )

    @property
    def all_closure(self) -> Array:
        """Φ of all constraints."""
        return self.system.closure(self.instant)

    @property
    def all_closure_rate(self) -> Array:
        """Φ̇ of all constraints."""
        return self._constrained.closure_rate(self.instant)

    @property
    def all_closure_jacobian(self) -> Array:
        """Φ_z of all constraints, exact where Φ = 0."""
        return self._constrained.closure_jacobian(self.instant)

    @property
    def misalignment(self) -> Array:
        """1 − cos θ of joints that Φ = 0 lets turn over by half a turn."""
        return self.system.misalignment(self.instant)

    @property
    def misalignment_jacobian(self) -> Array:
        """Its derivatives by z."""
        return self._constrained.misalignment_jacobian(self.instant)

    @property
    def all_drifts(self) -> Array:
        """Φ_t of all constraints."""
        return self.system.constraint_drifts(self.instant)

    @property
    def closure(self) -> Array:
        """Φ of the constraints in use."""
        return self.all_closure[list(self.loops.rows)]

    @property
    def closure_rate(self) -> Array:
        """Φ̇ of the constraints in use."""
        return self.all_closure_rate[list(self.loops.rows)]

    @property
    def closure_jacobian(self) -> Array:
        """Φ_z of the constraints in use."""
        return self.all_closure_jacobian[list(self.loops.rows)]

    @property
    def drifts(self) -> Array:
        """Φ_t of the constraints in use."""
        return self.all_drifts[list(self.loops.rows)]

    @property
    def drift_rates(self) -> Array:
        """Φ_tt of the constraints in use."""
        return self.all_drift_rates[list(self.loops.rows)]

    @property
    def _constrained(self) -> ConstraintMotion:
        return require_capability(self.system, ConstraintMotion)

    @cached_property
    def reactions(self) -> Array:
        """Forces and moments in the joints."""
        return require_capability(self.system, JointReactions).evaluate_reactions(self.instant, self.loops)

    def shared_reactions(self, multipliers: Array) -> Array:
        """Return the reactions of multipliers of all constraints, in which they are linear."""
        loops = LoopsInUse(range(len(self.system.constraints)), multipliers=multipliers)
        return cast("Array", self.changes([self.of_loops(loops).reactions], [(multipliers, multipliers)])[0])

    @property
    def all_drift_rates(self) -> Array:
        """Φ_tt of all constraints."""
        return self.system.constraint_drift_rates(self.instant)

    @property
    def with_present_references(self) -> dict[str, Array]:
        """Parts of the context with all references at the present orientation."""
        moved = require_capability(self.system, MovingReferences).with_references(self.instant, None)
        return {part: getattr(moved, part) for part in (*MOTION, "momenta", "references")}

    @cached_property
    def initial_integrals(self) -> Array:
        """The integrals at the start."""
        return self.system.initial_integrals(self.instant)

    @property
    def initial_discrete(self) -> Array:
        """The discrete states before their first update."""
        return require_capability(self.system, SampledUpdates).initial_discrete(self.instant.parameters)

    @property
    def updates(self) -> Array:
        """The discrete states after an update of all of them."""
        return require_capability(self.system, SampledUpdates).updates(self.instant)

    @property
    def inertia_tensors(self) -> Array:
        """Inertia tensors with validity conditions."""
        return require_capability(self.system, InertiaTensors).inertia_tensors(self.instant.parameters)

    @property
    def start_limits(self) -> Array:
        """Limited variables at the start."""
        return require_capability(self.system, StartLimits).start_limits(self.instant)

    @property
    def start(self) -> dict[str, Array]:
        """Coordinates and velocities of the start system as given by the user, and initial x, by part."""
        parameters = self.instant.parameters
        coordinates, velocities = self.system.start_system.initial_coordinates(parameters)
        states = self.system.initial_states(parameters)
        return {"coordinates": coordinates, "velocities": velocities, "states": states}


def varies(array: Any) -> NDArray[np.bool_]:
    """Return which elements of a recorded or numeric array are not structurally zero."""
    return (array.places != ZERO) if isinstance(array, RecordedArray) else np.asarray(array) != 0.0
