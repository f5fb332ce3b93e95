"""Semirecursive equations of motion in joint coordinates, with loop constraints.

Equations of motion in the coordinates of the open tree: residuals, and divide and conquer.

Assemblies are those of accelerations [Featherstone1999] and of momenta [Chadaj2017].

Semirecursive equations of motion in joint coordinates, with loop constraints.

Both semirecursive formulations, double-step and penalty, use them [Jaiswal2021, sect. 2.1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.divide_and_conquer.articulated_bodies import impulse, joint_jacobian
from mbsfmu.divide_and_conquer.articulation import Articulation, inertia_spread, spatial
from mbsfmu.equations.joint_coordinates import MotionState
from mbsfmu.equations.kinematics import NO_TURN
from mbsfmu.equations.rotation import Frames, body_velocity, quaternion_product, stack
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Causality
from mbsfmu.systems.checks import check_forces, check_joint
from mbsfmu.systems.mechanism.bodies_system import BodiesSystem, QuaternionJoints, orientation_of
from mbsfmu.systems.mechanism.joint_reactions import apparent_inertias, carried_inertias, own_inertias, tree_reactions
from mbsfmu.systems.mechanism.mechanism_parts import (
    ENERGIES,
    MechanismParts,
    balance_of,
    given,
    output_variables,
    reaction_variables,
)
from mbsfmu.systems.part_variables import part_variable, trial_points
from mbsfmu.systems.system import (
    NO_LOOPS,
    ArticulatedDynamics,
    CanonicalMomenta,
    LoopsInUse,
    SystemContext,
    Tensor,
    starting,
    starts,
)
from mbsfmu.tracing.workspace import Kept

REFINEMENTS = 2
"""Steps of iterative refinement for loops with a weak direction. Elimination of a random machine with a ratio of 7e4
between singular values of Φ_z left errors of 1.7e-3 in the reactions, 2.8e-6 after one step and 6.6e-9 after two."""


class TreeDynamics:
    """Equations of motion of a mechanism's tree, with loops cut.

    Parameters
    ----------
    parts
        Bodies, joints and forces.
    """

    def __init__(self, parts: MechanismParts) -> None:
        self._parts = parts
        self._kinematics = parts.kinematics
        self._articulated = cache(self._articulation)

    def articulation(self, loops: LoopsInUse) -> Articulation:
        """Return the divide-and-conquer data of the mechanism with the active loop equations."""
        return self._articulated(tuple(loops.rows), loops.sequential, loops.opened)

    def _articulation(self, rows: tuple[int, ...], sequential: bool, opened: bool) -> Articulation:
        parts = self._parts
        own = parts.masses, parts.cuts, parts.constrained_by_equations, parts.relations
        return Articulation(self._kinematics, *own, rows, sequential=sequential, opened=opened)

    def moved(self, motion: MotionState, instant: SystemContext, accelerations: Array) -> list[Array]:
        """Return Ż of each body at z̈, each of shape (6,)."""
        return self._kinematics.accelerations(motion.frames, motion.body_velocities, instant.velocities, accelerations)

    def residual(self, motion: MotionState, instant: SystemContext, loops: LoopsInUse = NO_LOOPS) -> Array:
        """Return M' z̈ − Q' + Φ_zᵀ λ in N m and N [Jaiswal2021, eqs. 11 and 12], shape (n,).

        Summed up from the leaves to the base: Rdᵀ Tᵀ (M̄ Ż − Q̄).
        """
        moved = self.moved(motion, instant, instant.accelerations)
        balance, loads = self._parts.balance(motion, moved, instant)
        return self._with_loops(motion.frames, balance, instant.parameters, loops) - stack(loads.joint_loads)

    def _with_loops(self, frames: Frames, wrenches: list[Array], parameters: Array, loops: LoopsInUse) -> Array:
        """Return generalized forces of wrenches on the bodies, plus Φ_zᵀ λ, shape (n,)."""
        if not len(loops.rows):
            return self._along_joints(frames, wrenches)
        articulation = self.articulation(loops)
        pulled = articulation.pulled(wrenches, self._loop_wrenches(frames, parameters), loops.multipliers)
        return articulation.along(self._along_joints(frames, pulled), loops.multipliers, parameters)

    def _loop_wrenches(self, frames: Frames, parameters: Array) -> list[tuple[Array, Array]]:
        """Return the wrenches of unit multipliers of all cut joints, on the parent and on the child."""
        return [pair for cut in self._parts.cuts for pair in cut.wrenches(frames, parameters)]

    def _along_joints(self, frames: Frames, wrenches: list[Array]) -> Array:
        """Return bᵀ times the sum of the wrenches outboard of each joint, shape (n,)."""
        total = self._behind_joints(wrenches)
        columns = {
            element.coordinate: self._kinematics.transformation(frames, element.coordinate) @ total[body]
            for body, joint in enumerate(self._kinematics.joints)
            for element in joint.elements
        }
        return stack([columns[index] for index in range(len(columns))])

    def _behind_joints(self, vectors: list[Array]) -> list[Array]:
        """Return the sum over each body and its descendants."""
        total = list(vectors)
        for body in reversed(range(len(total))):
            inner = self._kinematics.joints[body].parent
            if inner >= 0:
                total[inner] = total[inner] + total[body]
        return total

    def _with_joints(self, frames: Frames, wrenches: Sequence[Array], along: Array) -> list[Array]:
        """Return wrenches on the bodies plus joint loads on both ends of each joint."""
        result = list(wrenches)
        for body, joint in enumerate(self._kinematics.joints):
            acting = impulse(frames, joint, along)
            result[body] = result[body] + acting
            if joint.parent >= 0:
                result[joint.parent] = result[joint.parent] - acting
        return result

    def _on_bodies(self, frames: Frames, loads: Array) -> list[Array]:
        """Return loads along the coordinates, shape (n,), as wrenches on the bodies, each of shape (6,)."""
        return self._with_joints(frames, [np.zeros(6)] * len(self._parts.masses), loads)

    # -- divide and conquer ---------------------------------------------------------------------------------

    def forward_dynamics(
        self, motion: MotionState, instant: SystemContext, loops: LoopsInUse, stabilisation: float
    ) -> tuple[Array, Array]:
        """Return z̈ and λ by Featherstone's assembly of accelerations, shapes (n,) and (rows,).

        V is the contribution of z̈ to the bodies' accelerations: the velocity terms are those at z̈ = 0, which satisfy
        all tree joints. Where elimination loses digits, iterative refinement follows [Higham2002, sect. 12.1].
        """
        articulation = self.articulation(loops)
        moved = self.moved(motion, instant, np.zeros(len(instant.coordinates)))
        balance, loads = self._parts.balance(motion, moved, instant)
        wrenches = self._with_joints(motion.frames, [-wrench for wrench in balance], stack(loads.joint_loads))
        bias = np.zeros(len(loops.rows))
        if len(loops.rows):
            still = replace(instant, accelerations=np.zeros(len(instant.coordinates)))
            bias = self._closing(motion, still, loops, stabilisation, moved)
        solve = articulation.assembled(motion.frames, instant.parameters, loops.active)
        accelerations, multipliers = solve(wrenches, bias)
        for _ in range(self._refinements(loops)):
            found = replace(instant, accelerations=accelerations)
            balance = self.residual(motion, found, replace(loops, multipliers=-multipliers))
            opening = self.loop_accelerations(motion, found, loops, stabilisation)
            missing = solve(self._on_bodies(motion.frames, -balance), opening)
            accelerations, multipliers = accelerations + missing[0], multipliers + missing[1]
        return accelerations, -multipliers  # the equations of motion have M z̈ − Q + Φ_zᵀ λ = 0

    def _refinements(self, loops: LoopsInUse) -> int:
        return REFINEMENTS if loops.refined and not self.articulation(loops).passes_one_by_one else 0

    def loop_accelerations(
        self, motion: MotionState, instant: SystemContext, loops: LoopsInUse, stabilisation: float
    ) -> Array:
        """Return Φ̈ + 2 a Φ̇ + a² Φ of the loop equations in use, shape (rows,)."""
        moved = self.moved(motion, instant, instant.accelerations)
        return self._closing(motion, instant, loops, stabilisation, moved)

    def _closing(
        self, motion: MotionState, instant: SystemContext, loops: LoopsInUse, stabilisation: float, moved: list[Array]
    ) -> Array:
        """Return the same with Ż of the bodies at the z̈ of a context."""
        articulation = self.articulation(loops)
        at_origin = [spatial(each, motion.body_velocities[body]) for body, each in enumerate(moved)]
        found = articulation.loop_accelerations(motion, given(instant), at_origin, instant.accelerations)
        if not stabilisation:
            return found
        rate, violation = (
            articulation.loop_rates(motion, given(instant)),
            self._violation(motion.frames, instant, loops),
        )
        return found + 2.0 * stabilisation * rate + stabilisation**2 * violation

    def _violation(self, frames: Frames, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return Φ of the loop equations in use, shape (rows,)."""
        violations = [cut.evaluate(frames, instant.parameters) for cut in self._parts.cuts]
        related = [each.evaluate(instant.coordinates, given(instant)) for each in self._parts.relations]
        return np.concatenate([*violations, stack(related)])[list(loops.rows)]

    # -- momenta --------------------------------------------------------------------------------------------

    def momenta(self, motion: MotionState, instant: SystemContext, loops: LoopsInUse = NO_LOOPS) -> Array:
        """Return p = M ż − Φ_zᵀ σ, shape (n,).

        Without loops it is the momenta of the outer bodies along each coordinate [Chadaj2017, eq. 6].
        """
        momenta, impulses = self._parts.momenta(motion, instant.parameters), -loops.multipliers
        return self._with_loops(motion.frames, momenta, instant.parameters, replace(loops, multipliers=impulses))

    def impulsive_velocities(
        self, instant: SystemContext, loops: LoopsInUse, stabilisation: float
    ) -> tuple[Array, Array]:
        """Return ż and σ from the momenta [Chadaj2017, eqs. 15 to 46], shapes (n,) and (rows,).

        With stabilisation, Φ̇ = −a Φ replaces Φ̇ = 0: ṗ [eq. 77] holds for both, because its constraint forces Φ_zᵀ λ
        are the rates of the impulses in either case. Refined as `forward_dynamics`.
        """
        bias = self.articulation(loops).loop_drifts(given(instant))
        if stabilisation and len(loops.rows):
            frames = self._kinematics.frames(instant.coordinates, instant.references, instant.parameters)
            bias = bias + stabilisation * self._violation(frames, instant, loops)
        frames = self._kinematics.frames(instant.coordinates, instant.references, instant.parameters)
        solve = self.articulation(loops).assembled(frames, instant.parameters, loops.active)
        velocities, impulses = solve(self._on_bodies(frames, instant.momenta), bias)
        for _ in range(self._refinements(loops)):
            found = replace(instant, velocities=velocities)
            moved = self._kinematics.velocities(frames, velocities)
            motion = MotionState(instant.coordinates, velocities, frames, moved)
            momenta = self.momenta(motion, found, replace(loops, multipliers=impulses))
            opening = self.loop_rates(motion, found, loops, stabilisation)
            missing = solve(self._on_bodies(frames, instant.momenta - momenta), opening)
            velocities, impulses = velocities + missing[0], impulses + missing[1]
        return velocities, impulses

    def responses(self, instant: SystemContext, loops: LoopsInUse, loads: Array) -> tuple[Array, Array]:
        """Return x and μ with M x = F + Φ_zᵀ μ and Φ_z x + γ = 0, shapes (n,) and (rows,).

        H F acts on each body at its joint, and the opposite on its parent.

        Parameters
        ----------
        instant
            Where the bodies are.
        loops
            The loop equations in use, with γ in the place of their multipliers.
        loads
            F, shape (n,).
        """
        frames = self._kinematics.frames(instant.coordinates, instant.references, instant.parameters)
        solve = self.articulation(loops).assembled(frames, instant.parameters, loops.active)
        return solve(self._on_bodies(frames, loads), loops.multipliers)

    def loop_rates(self, motion: MotionState, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> Array:
        """Return Φ̇ + a Φ of the loop equations in use, shape (rows,)."""
        found = self.articulation(loops).loop_rates(motion, given(instant))
        return found + stabilisation * self._violation(motion.frames, instant, loops) if stabilisation else found

    def momentum_rates(self, motion: MotionState, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return ṗ = Hᵀ (Q − Σ ẇ σ) + Ḣᵀ P̄ [Chadaj2017, eq. 77], shape (n,).

        At the fixed inertial origin the terms with Ṡ vanish. Q are the loads outboard of the joint, ẇ the rates of the
        cut joints' wrenches there, and P̄, the articulated momentum, is the momentum of these bodies minus the impulses
        of their cut joints.
        """
        loads = self._parts.loads(motion, instant)
        forces, momenta = loads.wrenches, self._parts.momenta(motion, instant.parameters)
        if len(loops.rows):  # a relation's wrenches along the coordinates stay as they are
            articulation, impulses = self.articulation(loops), -loops.multipliers
            wrenches = self._loop_wrenches(motion.frames, instant.parameters)
            forces = articulation.pulled(forces, articulation.wrench_rates(motion, instant.parameters), impulses)
            momenta = articulation.pulled(momenta, wrenches, impulses)
        behind = self._behind_joints(momenta)
        turning = self._kinematics.transformation_rates(motion.frames, motion.body_velocities, instant.velocities)
        joints = {e.coordinate: body for body, joint in enumerate(self._kinematics.joints) for e in joint.elements}
        along = self._along_joints(motion.frames, forces) + stack(loads.joint_loads)
        return along + stack([turning[index] @ behind[joints[index]] for index in range(len(joints))])


class MechanismSystem(BodiesSystem, ArticulatedDynamics, CanonicalMomenta):
    """A mechanism as a system in the coordinates of its open tree.

    Variables are named after the body that a joint carries (`boom.angle`) and after the force
    (`cylinder.length`, `cylinder.velocity`, input `cylinder.force`).

    Parameters
    ----------
    mechanism
        The mechanism.
    name
        Name of the system; the mechanism's by default.
    start_values
        Start values of inputs and parameters by name, where they are not those of the mechanism.

    Attributes
    ----------
    mechanism
        The mechanism.
    dynamics
        The equations of motion of its tree.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        name: str | None = None,
        start_values: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.name = name or mechanism.name
        self.mechanism = mechanism
        self.parts = parts = MechanismParts(mechanism)
        self.weight = sum(body.mass for body in mechanism.bodies) * float(np.linalg.norm(mechanism.gravity))
        self.constraining, self.aligning = parts.cuts, parts.aligning
        self.dynamics = TreeDynamics(parts)
        self.turning = QuaternionJoints(parts.kinematics.joints)
        self._kept: Kept[MotionState] = Kept()
        topology, forces = parts.topology, parts.forces
        self.coordinates = parts.coordinates.coordinates
        self.velocities = parts.coordinates.velocities
        starts_of = zip(*parts.coordinates.starts, strict=True) if self.coordinates else ((), ())
        self.written = tuple(tuple(told or name in start_values for name, told in each) for each in starts_of)
        self.accelerations = parts.coordinates.accelerations
        self.references = topology.references
        self.turning_angles = self.turning.turning_angles
        self.tensors = tuple(Tensor(each.body.name, each.rod) for each in parts.changeable)
        self.states = tuple(part_variable(replace(each, start=None), Causality.LOCAL) for each in forces.states)
        self.inputs = starting((part_variable(each, Causality.INPUT) for each in parts.inputs), start_values)
        self.parameters = starting(parts.parameters, start_values)
        self.constraints, self.constraint_units, self.aligned = self.constraint_variables()
        self.balances = tuple(balance_of(forces.inputs[index]) for index in forces.balancing)
        self.integrals = ENERGIES
        self.outputs = output_variables(topology, (*forces.outputs, *parts.sensors.outputs))
        self.event_indicators = tuple(part_variable(each, Causality.LOCAL) for each in forces.event_indicators)
        named = {joint for force in mechanism.forces for joint in references(force, ReferenceKind.JOINT)}
        along = {joint.joint.name for joint in topology.tree if joint.reference is None}
        driven = along & {joint.partition(".")[0] for joint in named}
        driven.update(joint for constraint in mechanism.constraints for joint in constraint.coupled)
        self.reactions = reaction_variables(topology, driven, [load for each in parts.relations for load in each.loads])
        check_forces(forces, parts.sensors, parts.kinematics, topology.references, self._trials)
        for joint in mechanism.joints:
            check_joint(joint)

    def _trials(self) -> list[tuple[Array, ...]]:
        """Return test points of user-defined parts: coordinates, two derivatives, states, inputs, parameters."""
        parameters = starts(self.parameters)
        coordinates, velocities = self.initial_coordinates(parameters)
        still = np.zeros(len(coordinates))
        groups = (coordinates, velocities, still, self.initial_states(parameters), starts(self.inputs))
        variables = (self.coordinates, self.velocities, self.accelerations, self.states, self.inputs)
        return trial_points(parameters, *zip(groups, variables, strict=True))

    def motion(self, instant: SystemContext) -> MotionState:
        """Return positions and velocities of the bodies; cached until the context changes."""
        given = (instant.coordinates, instant.velocities, instant.references, instant.parameters)
        return self._kept.of(given, lambda: self._moved(instant))

    def _moved(self, instant: SystemContext) -> MotionState:
        kinematics = self.parts.kinematics
        frames = kinematics.frames(instant.coordinates, instant.references, instant.parameters)
        velocities = kinematics.velocities(frames, instant.velocities)
        return MotionState(instant.coordinates, instant.velocities, frames, velocities)

    # -- equations ------------------------------------------------------------------------------------------

    def residual(self, instant: SystemContext) -> Array:
        """Return M' z̈ − Q' of the open tree in N m and N, shape (n,)."""
        return self.dynamics.residual(self.motion(instant), instant)

    def closure_jacobian(self, instant: SystemContext) -> Array:
        """Return Φ_z on the constraint manifold, shape (number of constraints, n)."""
        frames, parts, count = self.motion(instant).frames, self.parts, len(self.coordinates)
        opening = joint_jacobian(parts.cuts, parts.kinematics, frames, instant.parameters, count)
        related = [each.along(instant.parameters, count)[np.newaxis] for each in parts.relations]
        return np.concatenate([opening, *related])

    def misalignment_jacobian(self, instant: SystemContext) -> Array:
        """Return the derivatives of the misalignment by z, shape (number of values, n)."""
        frames, count = self.motion(instant).frames, len(self.coordinates)
        return joint_jacobian(self.aligning, self.parts.kinematics, frames, instant.parameters, count)

    @property
    def depths(self) -> list[int]:
        """Number of joints from the ground to each coordinate's own."""
        depths: list[int] = []
        found = [0] * len(self.coordinates)
        for joint in self.parts.kinematics.joints:
            depths.append(1 + depths[joint.parent] if joint.parent >= 0 else 1)
            for element in joint.elements:
                found[element.coordinate] = depths[-1]
        return found

    def forward_dynamics(self, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> tuple[Array, Array]:
        """Return z̈ and λ by Featherstone's assembly, shapes (n,) and (rows,)."""
        return self.dynamics.forward_dynamics(self.motion(instant), instant, loops, stabilisation)

    def responses(self, instant: SystemContext, loops: LoopsInUse, loads: Array) -> tuple[Array, Array]:
        """Return x and μ with M x = F + Φ_zᵀ μ and Φ_z x + γ = 0, shapes (n,) and (rows,)."""
        return self.dynamics.responses(instant, loops, loads)

    def balance(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return M z̈ − Q + Φ_zᵀ λ in N m and N, shape (n,)."""
        return self.dynamics.residual(self.motion(instant), instant, loops)

    def loop_accelerations(self, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> Array:
        """Return Φ̈ + 2 a Φ̇ + a² Φ of the loop equations in use, shape (rows,)."""
        return self.dynamics.loop_accelerations(self.motion(instant), instant, loops, stabilisation)

    def initial_momenta(self, instant: SystemContext) -> Array:
        """Return p = M ż, shape (n,)."""
        return self.dynamics.momenta(self.motion(instant), instant)

    def canonical_momenta(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return p = M ż − Φ_zᵀ σ, shape (n,)."""
        return self.dynamics.momenta(self.motion(instant), instant, loops)

    def loop_rates(self, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> Array:
        """Return Φ̇ + a Φ of the loop equations in use, shape (rows,)."""
        return self.dynamics.loop_rates(self.motion(instant), instant, loops, stabilisation)

    def impulsive_velocities(
        self, instant: SystemContext, loops: LoopsInUse, stabilisation: float
    ) -> tuple[Array, Array]:
        """Return ż and σ from the momenta, shapes (n,) and (rows,)."""
        return self.dynamics.impulsive_velocities(instant, loops, stabilisation)

    def momentum_rates(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return ṗ, shape (n,)."""
        return self.dynamics.momentum_rates(self.motion(instant), instant, loops)

    def inertia_spread(self, parameters: Array) -> float:
        """Return the largest mass times the largest mobility at a joint."""
        parts = self.parts
        return inertia_spread(parts.kinematics.joints, parts.cuts, parts.masses, parameters)

    def apparent_inertias(self, instant: SystemContext) -> Array:
        """Return 1 / (M⁻¹)ᵢᵢ of the coordinates, shape (n,).

        Raises
        ------
        InputError
            When a body is so light that nothing is left of its inertia beside that of others.
        """
        parts, frames = self.parts, self.motion(instant).frames
        try:
            return apparent_inertias(parts.kinematics, parts.masses, frames, instant.parameters)
        except np.linalg.LinAlgError:
            mass, body = self.lightest_body(instant.parameters)
            raise InputError(
                f"{self.name}: nothing is left of the inertia of body '{body}', of {mass:.3g} kg, next to that of the "
                "others, whose momenta hdca cannot tell apart; take the formulation double-step, penalty or dca, or "
                "give the body more mass"
            ) from None

    def own_inertias(self, instant: SystemContext) -> Array:
        """Return the inertia of each coordinate's own body, shape (n,)."""
        return own_inertias(self.parts.kinematics, self.parts.masses, self.motion(instant).frames, instant.parameters)

    def carried_inertias(self, instant: SystemContext) -> Array:
        """Return the inertia of outboard masses for each coordinate, shape (n,)."""
        return carried_inertias(
            self.parts.kinematics, self.parts.masses, self.motion(instant).frames, instant.parameters
        )

    # -- outputs --------------------------------------------------------------------------------------------

    def integral_rates(self, instant: SystemContext) -> Array:
        """Return the power of actuators and drives, the loss in dampers, and zero, in W; shape (3,)."""
        return self.parts.powers(self.motion(instant), instant)

    def evaluate_outputs(self, instant: SystemContext) -> Array:
        """Return outputs of forces and sensors, orientations, centres of mass, energies, in the order of `outputs`."""
        motion, turns = self.motion(instant), []
        for body, joint in enumerate(self.parts.kinematics.joints):
            if joint.reference is not None:
                inner = body_velocity(motion.body_velocities, joint.parent)
                relative = motion.body_velocities[body][3:] - inner[3:]
                turns.append(quaternion_product(orientation_of(joint, instant), joint.quaternion))
                turns.append(motion.frames.orientation(joint.parent).T @ relative)
        moved = partial(self.dynamics.moved, motion, instant, instant.accelerations)
        return self.parts.evaluate_outputs(motion, instant, turns, moved)

    def evaluate_reactions(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return force in N and moment in N m of each joint on its child, tree joints first, then cut ones."""
        motion = self.motion(instant)
        moved = self.dynamics.moved(motion, instant, instant.accelerations)
        balance, _ = self.parts.balance(motion, moved, instant)
        return tree_reactions(self.parts, motion, balance, instant.parameters, loops)

    # -- references and the start ---------------------------------------------------------------------------

    def start_references(self, coordinates: Array) -> Array:  # noqa: ARG002 - the angles tell all there
        """Return references without rotation, shape (8 r,)."""
        return np.tile(NO_TURN, self.references)

    def initial_integrals(self, instant: SystemContext) -> Array:
        """Return zero work and loss, and the initial energy in J; shape (3,)."""
        return self.parts.start_energies(self.motion(instant), instant)
