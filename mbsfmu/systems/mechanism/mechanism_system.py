"""Semirecursive equations of motion in joint coordinates, with loop constraints.

Both semirecursive formulations, double-step and penalty, use them [Jaiswal2021, sect. 2.1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.divide_and_conquer.articulation import inertia_spread
from mbsfmu.divide_and_conquer.closure_motion import joint_jacobian
from mbsfmu.equations.coordinate_charts import NO_TURN
from mbsfmu.equations.frames import body_velocity
from mbsfmu.equations.loads import MotionState
from mbsfmu.equations.rotation import quaternion_product
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Causality
from mbsfmu.systems.capabilities import ArticulatedDynamics, CanonicalMomenta
from mbsfmu.systems.checks.force_checks import check_forces
from mbsfmu.systems.checks.joint_checks import check_joint
from mbsfmu.systems.mechanism.apparent_inertias import apparent_inertias, carried_inertias, own_inertias
from mbsfmu.systems.mechanism.bodies_system import BodiesSystem
from mbsfmu.systems.mechanism.joint_reactions import tree_reactions
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts
from mbsfmu.systems.mechanism.mechanism_variables import ENERGIES, balance_of, output_variables, reaction_variables
from mbsfmu.systems.mechanism.quaternion_joints import QuaternionJoints, orientation_of
from mbsfmu.systems.mechanism.tree_dynamics import TreeDynamics
from mbsfmu.systems.part_variables import part_variable, trial_points
from mbsfmu.systems.system import LoopsInUse, SystemContext, Tensor, starting, starts
from mbsfmu.tracing.reused_results import Kept


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
