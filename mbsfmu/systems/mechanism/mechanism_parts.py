"""Bodies, joints and forces of a mechanism, independent of its coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mbsfmu.equations.bodies import MassProperties, Points
from mbsfmu.equations.constraints import CutJoint, aligning
from mbsfmu.equations.coordinate_relations import CoordinateRelation
from mbsfmu.equations.forces import MechanismForces
from mbsfmu.equations.frames import Frames, point_acceleration, point_velocity
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.loads import Loads, MotionState
from mbsfmu.equations.located_part import Given
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.rotation import cross
from mbsfmu.equations.sensor_equations import MechanismSensors
from mbsfmu.equations.tree_joints import tree_joints
from mbsfmu.equations.vector_pieces import stack
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import belonging_to
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.mechanism.mechanism_variables import CoordinateVariables
from mbsfmu.systems.system import SystemContext
from mbsfmu.tracing.kernels import kernel


class MechanismParts:
    """Parts of a mechanism, and functions of the bodies' poses and motion.

    Parameters
    ----------
    mechanism
        The mechanism.

    Attributes
    ----------
    topology
        The spanning tree.
    points, masses, kinematics, forces, sensors
        Points of the bodies; their masses; the joints of the tree; what acts but gravity; what is measured.
    cuts, aligning
        Joints that close loops, and those of them that can close them turned by half a turn.
    constrained_by_equations
        By body, the closure equations of the joint to its parent, where its elements do not give the constraint
        wrenches: of screw joints, and of slides that turn.
    relations
        What holds between the joint coordinates.
    inputs
        Those of forces, then those of relations, under their full names.
    coordinates
        Variables of the joint coordinates and where they start.
    changeable
        Masses whose inertia tensors parameters may make such as no body has.
    parameters
        Variables of the parameters, in the order in which the above ask for them.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        properties = Properties()
        self.topology = topology = mechanism.topology
        self.points = points = Points(mechanism, properties)
        self._gravity = properties.vector("gravity", mechanism.gravity, "m/s2", "gravitational acceleration")
        self.masses = [MassProperties(body, properties, points) for body in topology.bodies]
        self.kinematics = Kinematics(tree_joints(topology, points))
        self.cuts = [CutJoint(joint, mechanism, points) for joint in topology.cuts]
        self.aligning = aligning(topology.cuts, mechanism, points)
        self.constrained_by_equations = {
            body: CutJoint(topology.tree[body].joint, mechanism, points)
            for body, joint in enumerate(self.kinematics.joints)
            if not joint.has_fixed_normals
        }
        self.forces = MechanismForces(mechanism, points, properties)
        self.sensors = MechanismSensors(mechanism, points, properties)
        self.relations: list[CoordinateRelation] = []
        self.inputs = self.forces.inputs
        for constraint in mechanism.constraints:
            relation = CoordinateRelation(constraint, mechanism, properties, first_input=len(self.inputs))
            self.relations.append(relation)
            self.inputs += tuple(belonging_to(constraint.name, each) for each in relation.inputs)
        self.coordinates = CoordinateVariables(topology, properties)
        self.changeable = [each for each in self.masses if each.may_be_impossible]
        self.parameters: tuple[Variable, ...] = tuple(properties.variables)

    def mass_of(self, body: int, frames: Frames, parameters: Array) -> tuple[Array, Array, Array]:
        """Return mass, inertia tensor in the inertial frame and centre of mass of a body."""
        properties = self.masses[body]
        given = properties.inertia(parameters), properties.centre.of(parameters)
        inertia, centre = _turned(frames.rotation[body], frames.origin[body], *given)
        return properties.mass.of(parameters), inertia, centre

    # -- loads ----------------------------------------------------------------------------------------------

    def loads(self, motion: MotionState, instant: SystemContext) -> Loads:
        """Return the loads of gravity and forces."""
        loads = Loads.none(len(self.masses), self.topology.coordinates)
        gravity = self._gravity.of(instant.parameters)
        for body in range(len(self.masses)):
            mass, _, centre = self.mass_of(body, motion.frames, instant.parameters)
            loads.add_wrench(body, _weight(mass, gravity, centre))
        self.forces.add_to(loads, motion, given(instant))
        return loads

    def balance(self, motion: MotionState, moved: Iterable[Array], instant: SystemContext) -> tuple[list[Array], Loads]:
        """Return M̄ Ż − Q̄ of each body, each of shape (6,), and the loads in Q̄.

        Parameters
        ----------
        motion, instant
            Where the bodies are and how they move.
        moved
            Ż of each body, each of shape (6,).
        """
        loads = self.loads(motion, instant)
        balance = [
            self._inertia_wrench(body, motion, acceleration, instant.parameters) - wrench
            for body, (acceleration, wrench) in enumerate(zip(moved, loads.wrenches, strict=True))
        ]
        return balance, loads

    def _inertia_wrench(self, body: int, motion: MotionState, acceleration: Array, parameters: Array) -> Array:
        """Return M̄ Ż minus the velocity terms of Q̄, at the inertial origin [Jaiswal2021, eqs. 9 and 10]; shape (6,)."""
        mass = self.mass_of(body, motion.frames, parameters)
        return _inertia_wrench(*mass, motion.body_velocities[body], acceleration)

    def momenta(self, motion: MotionState, parameters: Array) -> list[Array]:
        """Return linear and angular momentum of each body about the inertial origin, each of shape (6,)."""
        result = []
        for body, velocity in enumerate(motion.body_velocities):
            result.append(_momentum(*self.mass_of(body, motion.frames, parameters), velocity))
        return result

    # -- states, energies and outputs -----------------------------------------------------------------------

    def _energies(self, motion: MotionState, instant: SystemContext) -> tuple[Array, Array]:
        """Return kinetic and potential energy in J."""
        gravity = self._gravity.of(instant.parameters)
        kinetic = potential = np.asarray(0.0)
        for body, velocity in enumerate(motion.body_velocities):
            mass = self.mass_of(body, motion.frames, instant.parameters)
            kinetic, potential = _with_energies(kinetic, potential, *mass, velocity, gravity)
        for energy in self.forces.energies(motion, given(instant)):
            potential = potential + energy
        return kinetic, potential

    def powers(self, motion: MotionState, instant: SystemContext) -> Array:
        """Return the power of actuators and drives, the loss in dampers, and zero, in W; shape (3,)."""
        work = sum(self.forces.work_rates(motion, given(instant)), start=np.asarray(0.0))
        loss = sum(self.forces.dissipations(motion, given(instant)), start=np.asarray(0.0))
        return np.stack([work, loss, np.asarray(0.0)])

    def start_energies(self, motion: MotionState, instant: SystemContext) -> Array:
        """Return no work, no loss, and the energy at the start in J; shape (3,)."""
        kinetic, potential = self._energies(motion, instant)
        return np.stack([np.asarray(0.0), np.asarray(0.0), kinetic + potential])

    def evaluate_outputs(
        self,
        motion: MotionState,
        instant: SystemContext,
        turns: Sequence[Array],
        accelerations: Callable[[], list[Array]],
    ) -> Array:
        """Return outputs of forces and sensors, orientations, centres of mass, energies, as in `output_variables`.

        Parameters
        ----------
        motion, instant
            Where the bodies are and how they move.
        turns
            Quaternion and angular velocity of each joint that turns freely.
        accelerations
            Returns Ż of each body, each of shape (6,).
        """
        told = self.forces.evaluate_outputs(motion, given(instant))
        told += self.sensors.evaluate_outputs(motion, accelerations, instant.parameters)
        centres = [self.mass_of(body, motion.frames, instant.parameters)[2] for body in range(len(self.masses))]
        kinetic, potential = self._energies(motion, instant)
        work, loss, start = instant.integrals[0], instant.integrals[1], instant.integrals[2]
        drift = kinetic + potential + loss - work - start
        return np.concatenate([stack(told), *turns, *centres, np.stack([kinetic, potential, drift])])


@kernel
def _turned(rotation: Array, origin: Array, inertia: Array, centre: Array) -> tuple[Array, Array]:
    """Return a body's inertia tensor and centre of mass in the inertial frame."""
    return rotation @ inertia @ rotation.T, origin + rotation @ centre


@kernel
def _weight(mass: Array, gravity: Array, centre: Array) -> Array:
    force = mass * gravity
    return np.concatenate([force, cross(centre, force)])


@kernel
def _with_energies(
    kinetic: Array, potential: Array, mass: Array, inertia: Array, centre: Array, velocity: Array, gravity: Array
) -> tuple[Array, Array]:
    """Return energies plus those of one more body."""
    linear, angular = point_velocity(velocity, centre), velocity[3:]
    kinetic = kinetic + 0.5 * (mass * (linear @ linear) + angular @ (inertia @ angular))
    return kinetic, potential - mass * (gravity @ centre)


@kernel
def _inertia_wrench(mass: Array, inertia: Array, centre: Array, velocity: Array, acceleration: Array) -> Array:
    angular = velocity[3:]
    force = mass * point_acceleration(acceleration, angular, centre)
    moment = inertia @ acceleration[3:] + cross(angular, inertia @ angular)
    return np.concatenate([force, moment + cross(centre, force)])


@kernel
def _momentum(mass: Array, inertia: Array, centre: Array, velocity: Array) -> Array:
    linear = mass * point_velocity(velocity, centre)
    return np.concatenate([linear, inertia @ velocity[3:] + cross(centre, linear)])


def given(instant: SystemContext) -> Given:
    """Return the states, inputs and parameters of a mechanism."""
    return Given(instant.states, instant.inputs, instant.parameters)
