"""Bodies, joints and forces of a mechanism with their variables, independent of its coordinates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.bodies import MassProperties, Points, Properties, Slot
from mbsfmu.equations.constraints import CutJoint, aligning
from mbsfmu.equations.forces import CoordinateRelation, Given, MechanismForces, MechanismSensors
from mbsfmu.equations.joint_coordinates import Loads, MotionState
from mbsfmu.equations.kinematics import Kinematics, angle_rates, tree_joints
from mbsfmu.equations.rotation import Frames, cross, point_acceleration, point_velocity, stack
from mbsfmu.model.body import Body
from mbsfmu.model.joint import AnyJoint, JointElement
from mbsfmu.model.mechanism import Mechanism, Topology, TreeJoint
from mbsfmu.modelling import Quantity, belonging_to
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.systems.part_variables import part_variable
from mbsfmu.systems.system import SystemContext
from mbsfmu.tracing.kernels import kernel


@dataclass(frozen=True)
class _Words:
    """Words for the variables of one coordinate."""

    position: str
    velocity: str
    acceleration: str
    start_velocity: str
    unit: str
    what: str


_SLIDE = _Words("displacement", "velocity", "acceleration", "velocity", "m", "along")
_HINGE = _Words("angle", "angular_velocity", "angular_acceleration", "angular_velocity", "rad", "about")
# Of a joint that turns freely: not the angular velocity's components, but those may be given to start with.
_CARDAN = _Words("cardan_angle", "cardan_rate", "cardan_acceleration", "angular_velocity", "rad", "about")


ENERGIES = (
    Variable("energy.work", unit="J", description="work done by actuators and drives"),
    Variable("energy.dissipated", unit="J", description="energy lost in dampers"),
    Variable("energy.start", unit="J", description="kinetic and potential energy at the start"),
)
"""The integrals of a mechanism."""


class CoordinateVariables:
    """Variables of z, ż and z̈ and their start values.

    Parameters
    ----------
    topology
        The spanning tree.
    properties
        Gets the start values as parameters.

    Attributes
    ----------
    coordinates, velocities, accelerations
        One variable a coordinate.
    starts
        Names of the parameters where each coordinate and its velocity start, and whether the joint's data have them.
    """

    def __init__(self, topology: Topology, properties: Properties) -> None:
        self._tree = topology.tree
        self._starts: list[tuple[Slot, Slot]] = []
        self.starts: list[tuple[tuple[str, bool], tuple[str, bool]]] = []
        self.coordinates: tuple[Variable, ...] = ()
        self.velocities: tuple[Variable, ...] = ()
        self.accelerations: tuple[Variable, ...] = ()
        for body, joint in zip(topology.bodies, topology.tree, strict=True):
            self._add(body, joint, properties)

    def _add(self, body: Body, tree_joint: TreeJoint, properties: Properties) -> None:
        joint = tree_joint.joint
        for element, written in zip(joint.elements, joint.written_starts, strict=True):
            words = _SLIDE if element.slides else _CARDAN if joint.turns_freely else _HINGE
            given = Causality.LOCAL if words is _CARDAN else Causality.OUTPUT
            self.coordinates += (_variable(body, joint, element, words, words.position, given, ""),)
            self.velocities += (_variable(body, joint, element, words, words.velocity, given, "/s"),)
            self.accelerations += (_variable(body, joint, element, words, words.acceleration, Causality.LOCAL, "/s2"),)
            names = [f"{body.name}.{name}_start{element.name}" for name in (words.position, words.start_velocity)]
            self.starts.append(((names[0], written[0]), (names[1], written[1])))
            slots = tuple(
                properties.scalar(
                    full,
                    value,
                    words.unit + per,
                    f"start value of the {name.replace('_', ' ')}; loops are closed from there",
                    structural_zero=False,
                )
                for full, name, value, per in (
                    (names[0], words.position, element.start, ""),
                    (names[1], words.start_velocity, element.start_rate, "/s"),
                )
            )
            self._starts.append((slots[0], slots[1]))

    def initial(self, parameters: Array) -> tuple[Array, Array]:
        """Return z and ż as given in the joints' data, each of shape (n,)."""
        coordinates = [position.of(parameters) for position, _ in self._starts]
        velocities = [velocity.of(parameters) for _, velocity in self._starts]
        for joint in self._tree:
            if joint.reference is not None:
                three = joint.coordinates[-3:]
                angles, given = (np.stack([of[index] for index in three]) for of in (coordinates, velocities))
                rates = angle_rates(list(np.eye(3)), angles, given)
                for index, rate in zip(three, (rates[0], rates[1], rates[2]), strict=True):
                    velocities[index] = rate
        return stack(coordinates), stack(velocities)


def _variable(
    body: Body, joint: AnyJoint, element: JointElement, words: _Words, name: str, causality: Causality, per: str
) -> Variable:
    spoken = name.replace("_", " ")
    description = f"{spoken} {words.what} joint {joint.name}, relative to the inner body"
    if words is _CARDAN:
        description = f"{spoken} of joint {joint.name}; jumps when its reference orientation moves"
    return Variable(f"{body.name}.{name}{element.name}", causality, unit=words.unit + per, description=description)


def absolute_variables(bodies: Sequence[Body]) -> tuple[tuple[Variable, ...], ...]:
    """Return the variables of absolute coordinates and their two derivatives."""
    levels = (
        ("position", "cardan_angle", ""),
        ("velocity", "cardan_rate", "/s"),
        ("acceleration", "cardan_acceleration", "/s2"),
    )
    return tuple(
        tuple(
            Variable(f"{body.name}.absolute.{axis}.{word}", unit=unit + per, description=f"{described}, {axis}")
            for body in bodies
            for word, unit, described in (
                (linear, "m", f"{linear} of the centre of mass in the inertial frame"),
                (turning, "rad", f"{turning.replace('_', ' ')} from a reference orientation that moves along"),
            )
            for axis in "xyz"
        )
        for linear, turning, per in levels
    )


def angular_velocity_integrals(angles: Iterable[Variable]) -> tuple[Variable, ...]:
    """Return the integrals of angular velocities that count full turns of measured angles."""
    return tuple(
        Variable(
            f"{angle.name}_integral",
            unit=angle.unit,
            description="integral of the rate; counts full turns of the angle",
        )
        for angle in angles
    )


def balance_of(given: Quantity) -> tuple[Variable, str]:
    """Return the calculated parameter of a balancing input, and the input."""
    force, _, name = given.name.rpartition(".")
    variable = Variable(
        f"{force}.static_{name}",
        Causality.CALCULATED_PARAMETER,
        unit=given.unit,
        description=f"{name} of static equilibrium at the start, with other inputs at their start values",
    )
    return variable, given.name


def output_variables(topology: Topology, measured: Iterable[Quantity]) -> tuple[Variable, ...]:
    """Return the output variables: forces and sensors, orientations, centres of mass, energies."""
    lines = [part_variable(each, Causality.OUTPUT if each.shared else Causality.LOCAL) for each in measured]
    turns = []
    for body, joint in zip(topology.bodies, topology.tree, strict=True):
        if joint.reference is not None:
            relative = f"of joint {joint.joint.name}, outer body in the inner body's frame"
            turns += [
                Variable(
                    f"{body.name}.quaternion.{part}",
                    Causality.OUTPUT,
                    minimum=-1.0,
                    maximum=1.0,
                    description=f"orientation {relative}",
                )
                for part in "wxyz"
            ]
            turns += [
                Variable(
                    f"{body.name}.angular_velocity.{axis}",
                    Causality.OUTPUT,
                    unit="rad/s",
                    description=f"angular velocity {relative}",
                )
                for axis in "xyz"
            ]
    centres = [
        Variable(
            f"{body.name}.centre.{axis}.position", unit="m", description=f"centre of mass in the inertial frame, {axis}"
        )
        for body in topology.bodies
        for axis in "xyz"
    ]
    energies = [
        Variable("energy.kinetic", unit="J", minimum=0.0, description="kinetic energy"),
        Variable("energy.potential", unit="J", description="energy in gravity and springs"),
        Variable(
            "energy.drift",
            unit="J",
            description="energy balance error: energy gained since the start, minus work, plus loss",
        ),
    ]
    return (*lines, *turns, *centres, *energies)


def reaction_variables(
    topology: Topology, driven: Collection[str] = (), loads: Iterable[Quantity] = ()
) -> tuple[Variable, ...]:
    """Return the variables of joint forces and moments; a free joint has none.

    Parameters
    ----------
    topology
        Tree and cut joints.
    driven
        Names of the joints with springs, dampers or drives of their own.
    loads
        What constraints exert along joint coordinates.
    """
    joints = [*(each.joint for each in topology.tree), *topology.cuts]
    where = "on the child at its point of the joint, in the inertial frame"
    open_ones = "; where redundant joints leave it open, of least norm over all joints in N and N m"
    least = open_ones if topology.cuts else ""

    def described(joint: AnyJoint) -> str:
        own = " (what springs, dampers and drives in the joint exert is part of it)" if joint.name in driven else ""
        return f"{where}{own}{least}"

    transmitted = (
        Variable(f"{joint.name}.{quantity}.{axis}", unit=unit, description=f"{quantity} {described(joint)}")
        for joint in joints
        if joint.constrains
        for quantity, unit in (("force", "N"), ("moment", "N.m"))
        for axis in "xyz"
    )
    return (*transmitted, *(part_variable(each, Causality.OUTPUT) for each in loads))


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
