"""Names and start values of a mechanism's variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.coordinate_charts import angle_rates
from mbsfmu.equations.properties import Properties, Slot
from mbsfmu.equations.vector_pieces import stack
from mbsfmu.model.body import Body
from mbsfmu.model.joint import AnyJoint, JointElement
from mbsfmu.model.topology import Topology, TreeJoint
from mbsfmu.modelling import Quantity
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.systems.part_variables import part_variable


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
