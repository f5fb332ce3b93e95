"""Couplings between joint coordinates: gears, racks, screws; and rotating inertias outside mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from mbsfmu.model.block import Block
from mbsfmu.model.force import Numbers
from mbsfmu.model.joint import Constraint
from mbsfmu.model.reference_types import JointReference, NonNegative, Positive
from mbsfmu.modelling import Array, Name, Parameter, Quantity


def _not_zero(value: float) -> float:
    if value == 0.0:
        raise PydanticCustomError("zero", "it must not be zero")
    return value


NonZero = Annotated[float, AfterValidator(_not_zero)]


class Gear(Constraint):
    """Gear between two rotating (or two sliding) joints: q_driving = ratio · q_driven + offset.

    Attributes
    ----------
    driving, driven
        Names of joints of the spanning tree with one coordinate.
    ratio
        Speed of the driving joint divided by that of the driven one; negative for opposite rotation, as of external
        gears on parallel axes.
    offset
        Coordinate of the driving joint in rad (or m) at zero of the driven one.
    """

    type: Literal["gear"] = "gear"
    driving: JointReference
    driven: JointReference
    ratio: Annotated[NonZero, Parameter("1", "speed ratio of driving and driven joint")]
    offset: Annotated[float, Parameter("{driving.coordinate}", "driving coordinate at zero of the driven one")] = 0.0

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one and −ratio."""
        return {self.driving: 1.0, self.driven: -now["ratio"]}

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class RackAndPinion(Constraint):
    """Rack and pinion, or lead screw with lead over 2 π: x = radius · φ + offset.

    Attributes
    ----------
    pinion
        Name of a joint of the spanning tree with one coordinate, an angle.
    rack
        Name of a joint of the spanning tree with one coordinate, a displacement.
    radius
        Radius of the pinion in m, or lead of a screw divided by 2 π; negative for opposite motion.
    offset
        Displacement of the rack in m at an angle of zero.
    """

    type: Literal["rack-and-pinion"] = "rack-and-pinion"
    pinion: JointReference
    rack: JointReference
    radius: Annotated[NonZero, Parameter("m", "radius of the pinion, or lead over 2 pi")]
    offset: Annotated[float, Parameter("m", "displacement of the rack at an angle of zero")] = 0.0

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one and −radius."""
        return {self.rack: 1.0, self.pinion: -now["radius"]}

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class Mimic(Constraint):
    """Joint that follows another one, as in URDF: q = multiplier · q_leader + offset.

    Attributes
    ----------
    joint, leader
        Names of joints of the spanning tree with one coordinate.
    multiplier
        Motion of the joint divided by that of its leader, in rad or m per rad or m.
    offset
        Coordinate in rad or m at zero of the leader.
    """

    type: Literal["mimic"] = "mimic"
    joint: JointReference
    leader: JointReference
    multiplier: Annotated[
        float, Parameter("{joint.coordinate}/{leader.coordinate}", "ratio of motion to that of the leader")
    ] = 1.0
    offset: Annotated[float, Parameter("{joint.coordinate}", "coordinate at zero of the leader")] = 0.0

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one and −multiplier."""
        return {self.joint: 1.0, self.leader: -now["multiplier"]}

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class Differential(Constraint):
    """Differential: the carrier is a weighted mean of two joints, q_carrier = share · q_one + (1 − share) · q_other.

    A share of one half is the differential of an axle. For a planetary gear set with z_sun and z_ring teeth, the share
    of its sun is z_sun / (z_sun + z_ring) [Willis].

    Attributes
    ----------
    carrier, one, other
        Names of joints of the spanning tree with one coordinate, all of them angles or all displacements.
    share
        Weight of the first joint in the carrier's motion.
    """

    type: Literal["differential"] = "differential"
    carrier: JointReference
    one: JointReference
    other: JointReference
    share: Annotated[float, Field(gt=0, lt=1), Parameter("1", "weight of the first joint in the carrier's motion")] = (
        0.5
    )

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one and the negative weights."""
        return {self.carrier: 1.0, self.one: -now["share"], self.other: now["share"] - 1.0}


class LinearCoupling(Constraint):
    """General linear coupling of joint coordinates: Σ factor · q = offset.

    Attributes
    ----------
    joints
        Names of joints of the spanning tree with one coordinate.
    factors_of_joints
        Nonzero factor of each joint.
    offset
        In rad or m.
    """

    type: Literal["linear-coupling"] = "linear-coupling"
    joints: tuple[Name, ...]
    factors_of_joints: tuple[NonZero, ...]
    offset: Annotated[float, Parameter("1", "value of the sum")] = 0.0

    @model_validator(mode="after")
    def _has_a_factor_for_each(self) -> Self:
        if not self.joints:
            raise ValueError("joints is empty; it must have at least one joint")
        if len(self.joints) != len(self.factors_of_joints):
            raise ValueError(
                f"there are {len(self.joints)} joints but {len(self.factors_of_joints)} factors_of_joints; "
                "each joint has one"
            )
        return self

    @property
    def coupled(self) -> tuple[str, ...]:
        """Names of the coupled joints."""
        return self.joints

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002 - they are no parameters
        """Return the factors."""
        return dict(zip(self.joints, self.factors_of_joints, strict=True))

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class Shaft(Block):
    """Shaft in fixed bearings: J ω̇ = Σ T − d ω.

    The inputs are torques, the outputs `angle`, `angular_velocity` and `kinetic_energy`.

    Attributes
    ----------
    inertia
        J in kg m².
    damping
        d in N m s/rad.
    torques
        Names of the inputs, torques in N m, positive in forward rotation.
    initial_angle, initial_speed
        At the start in rad and rad/s.
    """

    type: Literal["shaft"] = "shaft"
    inertia: Annotated[Positive, Parameter("kg.m2", "moment of inertia")]
    damping: Annotated[NonNegative, Parameter("N.m.s/rad", "damping of the bearings", tunable=True)] = 0.0
    torques: Annotated[tuple[Name, ...], Field(min_length=1)] = ("torque",)
    initial_angle: Annotated[float, Parameter("rad", "angle at the start")] = 0.0
    initial_speed: Annotated[float, Parameter("rad/s", "angular velocity at the start")] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        """Return angle and angular velocity."""
        return (
            Quantity("turned", "rad", description="angle, as a state"),
            Quantity("speed", "rad/s", description="angular velocity, as a state"),
        )

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the torque inputs."""
        return tuple(Quantity(name, "N.m", 0.0, description="torque on the shaft") for name in self.torques)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the outputs of motion and energy."""
        return (
            Quantity("angle", "rad", description="angle", shared=True),
            Quantity("angular_velocity", "rad/s", description="angular velocity", shared=True),
            Quantity("kinetic_energy", "J", minimum=0.0, description="kinetic energy", shared=True),
        )

    def initial_states(self, now: Numbers) -> Mapping[str, Array]:
        """Return the initial angle and angular velocity."""
        return {"turned": now["initial_angle"], "speed": now["initial_speed"]}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return angular velocity and acceleration."""
        total = sum((now[name] for name in self.torques), start=-now["damping"] * now["speed"])
        return {"turned": now["speed"], "speed": total / now["inertia"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return angle, angular velocity and kinetic energy."""
        return {
            "angle": now["turned"],
            "angular_velocity": now["speed"],
            "kinetic_energy": 0.5 * now["inertia"] * now["speed"] ** 2,
        }
