"""Equations of motion in absolute coordinates, and the choice between them and joint coordinates.

Equations of motion in absolute coordinates: every joint is a constraint [Malczyk2012, sect. 2].

A body's coordinates are the position of its centre of mass and its orientation: a reference quaternion and three Cardan
angles relative to it, which stay small because the reference follows (see `coordinate_charts`). The quaternion has norm
one by construction: the paper's normalization constraints and singular inertia matrices do not occur. The mechanism
starts from joint coordinates, which are then computed from the poses of the bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.divide_and_conquer.articulated_bodies import across, along_coordinates, filled, impulse, joint_jacobian
from mbsfmu.divide_and_conquer.articulation import ConstrainedBodies, about, relating_wrenches
from mbsfmu.divide_and_conquer.assembly import Corrections
from mbsfmu.equations.constraints import CutJoint, aligning
from mbsfmu.equations.joint_coordinates import MotionState, is_measurable, measure, unwound
from mbsfmu.equations.kinematics import (
    NO_TURN,
    JointKinematics,
    Kinematics,
    angle_rates,
    cardan_angles,
    floating_joints,
    reference_of,
)
from mbsfmu.equations.rotation import (
    Frames,
    body_velocity,
    cross,
    point_velocity,
    quaternion_about,
    quaternion_conjugate,
    quaternion_product,
    rotation_from_quaternion,
    stack,
)
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling.data import Array
from mbsfmu.systems.mechanism.bodies_system import BodiesSystem, QuaternionJoints, orientation_of
from mbsfmu.systems.mechanism.joint_reactions import constraint_reactions
from mbsfmu.systems.mechanism.mechanism_parts import absolute_variables, angular_velocity_integrals
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.part_variables import make_system
from mbsfmu.systems.system import ConstraintCorrections, LoopsInUse, StartPlacement, System, SystemContext
from mbsfmu.tracing.workspace import Kept


@dataclass(frozen=True)
class AbsoluteMotion(MotionState):
    """Motion with measured joint coordinates; ball and free joints have zero angles.

    Attributes
    ----------
    placed
        Where the bodies are, with the axes of the absolute coordinates.
    """

    placed: Frames


class AbsoluteSystem(BodiesSystem, StartPlacement, ConstraintCorrections):
    """A mechanism as a system in absolute coordinates.

    Inputs, parameters and joint variables have the same names as in joint coordinates.

    Parameters
    ----------
    mechanism, name, start_values
        As for `MechanismSystem`.

    Attributes
    ----------
    bodies
        The bodies, independent but for constraints.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        name: str | None = None,
        start_values: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._in_joints = joints = MechanismSystem(mechanism, name, start_values)
        self.parts = parts = joints.parts
        self.weight = joints.weight
        self._joints = parts.kinematics.joints
        for data, joint in zip(parts.topology.tree, self._joints, strict=True):
            if joint.reference is None and not is_measurable(joint):
                raise InputError(
                    f"{data.joint.type} joint '{data.joint.name}' has {len(joint.hinges)} hinges; in absolute "
                    "coordinates (dca-alm) angles are measured of one hinge, or of two that are not parallel: take "
                    "another formulation, or several joints with bodies between them"
                )
        self._hung = [body for body, joint in enumerate(parts.topology.tree) if joint.joint.constrains]
        constraining = [parts.topology.tree[body] for body in self._hung]
        self.constraining = [CutJoint(each.joint, mechanism, parts.points) for each in constraining] + parts.cuts
        self.aligning = aligning([each.joint for each in constraining], mechanism, parts.points) + parts.aligning
        self._absolute = Kinematics(floating_joints([each.centre for each in parts.masses]))
        self.turning = QuaternionJoints(self._absolute.joints)
        inwards = [*(each.reversed for each in constraining), *(False for _ in parts.cuts)]
        joints_with_relations = parts.kinematics, parts.relations
        self.bodies = ConstrainedBodies(
            parts.masses, self._absolute.joints, self.constraining, inwards, *joints_with_relations
        )
        self._kept: Kept[AbsoluteMotion] = Kept()
        elements = [(joint, element) for joint in self._joints for element in joint.elements]
        self._measured = [e.coordinate for joint, e in elements if e.slides or joint.reference is None]
        self._turns = [e.coordinate for joint, e in elements if not e.slides and joint.reference is None]
        accelerated = [e.coordinate for joint, e in elements if joint.reference is None]
        self.name = joints.name
        self.coordinates, self.velocities, self.accelerations = absolute_variables(parts.topology.bodies)
        self.states, self.inputs, self.parameters = joints.states, joints.inputs, joints.parameters
        self.balances, self.tensors = joints.balances, joints.tensors
        self.integrals = (
            *joints.integrals,
            *angular_velocity_integrals(joints.coordinates[index] for index in self._turns),
        )
        self.outputs = (
            *(joints.coordinates[index] for index in self._measured),
            *(joints.velocities[index] for index in self._measured),
            *(joints.accelerations[index] for index in accelerated),
            *joints.outputs,
        )
        self.event_indicators = joints.event_indicators
        shared = "; of least norm where constraints are redundant"
        self.reactions = tuple(replace(each, description=each.description + shared) for each in joints.reactions)
        self.constraints, self.constraint_units, self.aligned = self.constraint_variables()
        self.references, self.turning_angles = len(parts.masses), self.turning.turning_angles

    def inertia_spread(self, parameters: Array) -> float:
        """Return the largest mass times the largest mobility at a joint."""
        return self._in_joints.inertia_spread(parameters)

    # -- the start ------------------------------------------------------------------------------------------

    @property
    def start_system(self) -> System:
        """The same mechanism in joint coordinates."""
        return self._in_joints

    def start_references(self, coordinates: Array) -> Array:
        """Return the reference of each body from joint coordinates, shape (8 bodies,)."""
        quaternions: list[Array] = []
        for joint in self._joints:
            quaternion = quaternions[joint.parent] if joint.parent >= 0 else np.array([1.0, 0.0, 0.0, 0.0])
            for hinge in joint.hinges:
                quaternion = quaternion_product(quaternion, quaternion_about(hinge.axis, coordinates[hinge.coordinate]))
            quaternions.append(quaternion_product(quaternion, joint.quaternion))
        return np.concatenate([part for quaternion in quaternions for part in (quaternion, NO_TURN[4:])])

    def place(self, coordinates: Array, velocities: Array, instant: SystemContext) -> tuple[Array, Array]:
        """Return absolute coordinates and their rates from joint coordinates and their rates."""
        no_turns = self._in_joints.start_references(coordinates)
        frames = self.parts.kinematics.frames(coordinates, no_turns, instant.parameters)
        moving = self.parts.kinematics.velocities(frames, velocities)
        places: list[Array] = []
        rates: list[Array] = []
        for body, properties in enumerate(self.parts.masses):
            centre = frames.point(body, properties.centre.of(instant.parameters))
            reference = rotation_from_quaternion(reference_of(instant.references, body)[:4])
            angles = cardan_angles(reference.T @ frames.rotation[body])
            turning = angle_rates(list(np.eye(3)), angles, reference.T @ moving[body][3:])
            places += [centre, angles]
            rates += [point_velocity(moving[body], centre), turning]
        return np.concatenate(places), np.concatenate(rates)

    def initial_integrals(self, instant: SystemContext) -> Array:
        """Return initial energies in J and measured angles in rad, with full turns of the start values."""
        given, _ = self.initial_coordinates(instant.parameters)
        found = measure(self._joints, self._placed(instant), instant.parameters).coordinates
        angles = stack([unwound(found[index], given[index]) for index in self._turns])
        energies = instant.integrals[: len(instant.integrals) - len(angles)]
        wound = replace(instant, integrals=np.concatenate([energies, angles]))
        return np.concatenate([self.parts.start_energies(self.motion(wound), wound), angles])

    # -- motion ---------------------------------------------------------------------------------------------

    def _placed(self, instant: SystemContext) -> Frames:
        return self._absolute.frames(instant.coordinates, instant.references, instant.parameters)

    def motion(self, instant: SystemContext) -> AbsoluteMotion:
        """Return positions and velocities of the bodies; cached until the context changes."""
        # The full turns of measured angles are in the integrals.
        given = (instant.coordinates, instant.velocities, instant.integrals, instant.references, instant.parameters)
        return self._kept.of(given, lambda: self._moved(instant))

    def _moved(self, instant: SystemContext) -> AbsoluteMotion:
        placed = self._placed(instant)
        velocities = self._absolute.velocities(placed, instant.velocities)
        found = measure(self._joints, placed, instant.parameters)
        coordinates = dict(found.coordinates)
        for index, integral in zip(self._turns, self._turned(instant), strict=True):
            coordinates[index] = unwound(coordinates[index], integral)
        rates = {}
        for body, joint in enumerate(self._joints):
            inner = body_velocity(velocities, joint.parent)
            rates |= across(found.frames, velocities[body], inner, self._measured_part(joint))
        return AbsoluteMotion(self._listed(coordinates), self._listed(rates), found.frames, velocities, placed)

    def _turned(self, instant: SystemContext) -> list[Array]:
        """Return the integrals that count the full turns of measured angles."""
        first = len(self.integrals) - len(self._turns)
        return [instant.integrals[first + number] for number in range(len(self._turns))]

    def _listed(self, values: dict[int, Array]) -> Array:
        """Return joint coordinates as a vector, zero for missing ones; shape (joint coordinates,)."""
        return stack([values.get(index, np.asarray(0.0)) for index in range(self.parts.topology.coordinates)])

    def _measured_part(self, joint: JointKinematics) -> JointKinematics:
        """Return a joint without unmeasured hinges."""
        return replace(joint, elements=tuple(e for e in joint.elements if e.coordinate in self._measured))

    def _joint_accelerations(self, motion: AbsoluteMotion, instant: SystemContext) -> dict[int, Array]:
        """Return z̈ of all but ball and free joints, by the index of the coordinate."""
        moved = self._body_accelerations(motion, instant, instant.accelerations)
        result: dict[int, Array] = {}
        for body, joint in enumerate(self._joints):
            if joint.reference is None:
                angular = body_velocity(motion.body_velocities, joint.parent)[3:]
                quadratic = self.parts.kinematics.quadratic(motion.frames, joint, angular, motion.velocities)
                inner = body_velocity(moved, joint.parent)
                result |= across(motion.frames, moved[body] - quadratic, inner, joint)
        return result

    def _body_accelerations(self, motion: AbsoluteMotion, instant: SystemContext, accelerations: Array) -> list[Array]:
        """Return Ż of each body, each of shape (6,)."""
        return self._absolute.accelerations(motion.placed, motion.body_velocities, instant.velocities, accelerations)

    # -- equations ------------------------------------------------------------------------------------------

    def residual(self, instant: SystemContext) -> Array:
        """Return M q̈ − Q of unconstrained bodies in N and N m, shape (6 bodies,)."""
        motion = self.motion(instant)
        return self._in_coordinates(motion, self._unbalanced(motion, instant, instant.accelerations))

    def constrained_residual(self, instant: SystemContext, multipliers: Array, regular: bool) -> Array:
        """Return M q̈ − Q + Φ_qᵀ λ in N and N m, shape (6 bodies,), with joint forces as wrenches on bodies.

        A regular M has excess inertias, where a slender beam has no moment about its axis: its diagonal has nonzero
        pivots.
        """
        motion = self.motion(instant)
        unbalanced = self._unbalanced(motion, instant, instant.accelerations, regular=regular)
        pushing = self.bodies.constrained(motion.placed, instant.parameters, multipliers)
        return self._in_coordinates(motion, [one + other for one, other in zip(unbalanced, pushing, strict=True)])

    @property
    def moved_by_constraints(self) -> list[list[int]]:
        """For each constraint the six coordinates of each body on which it acts."""
        return [[6 * body + index for body in ends for index in range(6)] for ends in self.bodies.ends]

    def _in_coordinates(self, motion: AbsoluteMotion, wrenches: list[Array]) -> Array:
        """Return the generalized forces of wrenches about the centres of mass, each of shape (6,)."""
        axes = [[motion.placed.axis[hinge.coordinate] for hinge in joint.hinges] for joint in self._absolute.joints]
        forces = [
            np.concatenate([wrench[:3], np.stack([axis @ wrench[3:] for axis in own])])
            for own, wrench in zip(axes, wrenches, strict=True)
        ]
        return np.concatenate(forces)

    def _unbalanced(
        self, motion: AbsoluteMotion, instant: SystemContext, accelerations: Array, *, regular: bool = False
    ) -> list[Array]:
        """Return (m s̈ − F, J α + ω × J ω − N) of each body about its centre of mass, with joint loads in F and N."""
        moved = self._body_accelerations(motion, instant, accelerations)
        centres = list(instant.coordinates.reshape(-1, 6)[:, :3])
        result = []
        for body, load in enumerate(self._loads(motion, instant)):
            given, rotation = self.parts.masses[body], motion.frames.rotation[body]
            mass, inertia = given.mass.of(instant.parameters), given.inertia(instant.parameters)
            resisting = given.regular_inertia(instant.parameters) if regular else inertia
            mass = given.regular_mass(instant.parameters) if regular else mass
            angular, turning = rotation.T @ motion.body_velocities[body][3:], rotation.T @ moved[body][3:]
            moment = rotation @ (resisting @ turning + cross(angular, inertia @ angular))
            force = mass * accelerations[6 * body : 6 * body + 3]
            result.append(np.concatenate([force, moment]) - about(centres, body, load))
        return result

    def _loads(self, motion: AbsoluteMotion, instant: SystemContext) -> list[Array]:
        """Return the wrench on each body about the inertial origin, each of shape (6,)."""
        loads = self.parts.loads(motion, instant)
        wrenches, loaded = list(loads.wrenches), stack(loads.joint_loads)
        for body, joint in enumerate(self._joints):
            if joint.reference is None:
                load = impulse(motion.frames, joint, loaded)
                wrenches[body] = wrenches[body] + load
                if joint.parent >= 0:
                    wrenches[joint.parent] = wrenches[joint.parent] - load
        return wrenches

    def closure_jacobian(self, instant: SystemContext) -> Array:
        """Return Φ_q on the constraint manifold, shape (number of constraints, n)."""
        motion, parameters, count = self.motion(instant), instant.parameters, len(self.coordinates)
        opening = joint_jacobian(self.constraining, self._absolute, motion.placed, parameters, count)
        entries = [
            entry
            for row, relation in enumerate(self.parts.relations)
            for body, wrench in relating_wrenches(self.parts.kinematics, motion.frames, relation, parameters).items()
            for entry in along_coordinates(self._absolute, motion.placed, body, (row,), [wrench])
        ]
        return np.concatenate([opening, filled(entries, len(self.parts.relations), count)])

    def misalignment_jacobian(self, instant: SystemContext) -> Array:
        """Return the derivatives of the misalignment by q, shape (number of values, n)."""
        frames, count = self.motion(instant).placed, len(self.coordinates)
        return joint_jacobian(self.aligning, self._absolute, frames, instant.parameters, count)

    def free_accelerations(self, instant: SystemContext) -> Array:
        """Return V̇ of the bodies without constraints, with their excess inertias, shape (6 bodies,)."""
        motion = self.motion(instant)
        unbalanced = self._unbalanced(motion, instant, np.zeros(len(self.coordinates)))
        return self.bodies.free(motion.placed, [-wrench for wrench in unbalanced], instant.parameters)

    def corrections(self, instant: SystemContext, loops: LoopsInUse, penalty: float) -> Corrections:
        """Return the solver for Δq, Δq̇ or Δq̈ of a violation, and Δλ, by an assembly of all joints."""
        placed = self.motion(instant).placed
        return self.bodies.corrections(
            placed, instant.parameters, penalty, active=loops.active, sequential=loops.sequential
        )

    def unheld(self, instant: SystemContext, forces: Array) -> Array:
        """Return V̇ of the bodies under generalized forces alone, with their excess inertias, shape (6 bodies,)."""
        return self.bodies.unheld(self.motion(instant).placed, forces, instant.parameters)

    # -- outputs --------------------------------------------------------------------------------------------

    def integral_rates(self, instant: SystemContext) -> Array:
        """Return powers in W and the rates of measured angles in rad/s."""
        motion = self.motion(instant)
        turning = stack([motion.velocities[index] for index in self._turns])
        return np.concatenate([self.parts.powers(motion, instant), turning])

    def evaluate_outputs(self, instant: SystemContext) -> Array:
        """Return the outputs and readings, as in joint coordinates."""
        motion = self.motion(instant)
        accelerations = self._joint_accelerations(motion, instant)
        positions = [motion.coordinates[index] for index in self._measured]
        rates = [motion.velocities[index] for index in self._measured]
        moved = partial(self._body_accelerations, motion, instant, instant.accelerations)
        told = self.parts.evaluate_outputs(motion, instant, self._turns_of(motion, instant), moved)
        return np.concatenate([stack([*positions, *rates, *accelerations.values()]), told])

    def _turns_of(self, motion: AbsoluteMotion, instant: SystemContext) -> list[Array]:
        """Return quaternion and angular velocity of each ball and free joint."""
        absolute = [orientation_of(joint, instant) for joint in self._absolute.joints]
        result = []
        for body, joint in enumerate(self._joints):
            if joint.reference is None:
                continue
            outer = absolute[body]
            inner = absolute[joint.parent] if joint.parent >= 0 else np.array([1.0, 0.0, 0.0, 0.0])
            relative = motion.body_velocities[body] - body_velocity(motion.body_velocities, joint.parent)
            result.append(quaternion_product(quaternion_conjugate(inner), outer))
            result.append(motion.frames.orientation(joint.parent).T @ relative[3:])
        return result

    def evaluate_reactions(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return force in N and moment in N m of each joint on its child, from the multipliers.

        With redundant constraints, the multipliers have the least norm in N and N m. Loads of drives and springs in a
        joint are part of its reaction.
        """
        motion = self.motion(instant)
        loads = self.parts.loads(motion, instant).joint_loads
        return constraint_reactions(self.parts, self.constraining, self._hung, motion, loads, instant.parameters, loops)


@make_system.register
def _(data: Mechanism, name: str, *, absolute: bool, start_values: Mapping[str, float]) -> System:
    return (AbsoluteSystem if absolute else MechanismSystem)(data, name, start_values)
