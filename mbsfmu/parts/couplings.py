"""Linear couplings between the coordinates of joints: gears, racks, screws, and what URDF calls mimic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from mbsfmu.model.constraint import Constraint
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import JointReference
from mbsfmu.modelling import Array, Name, Parameter


def _not_zero(value: float) -> float:
    if value == 0.0:
        raise PydanticCustomError("zero", "it must not be zero")
    return value


NonZero = Annotated[float, AfterValidator(_not_zero)]


class Gear(Constraint):
    """Two joints that turn (or two that slide) together: q_driving = ratio · q_driven + offset.

    Attributes
    ----------
    driving, driven
        Names of joints of the spanning tree with one coordinate.
    ratio
        Speed of the driving joint by that of the driven one; negative where they turn against each other, as external
        gears on parallel axes do.
    offset
        Coordinate of the driving joint in rad (or m) where the driven one is at zero.
    """

    type: Literal["gear"] = "gear"
    driving: JointReference
    driven: JointReference
    ratio: Annotated[NonZero, Parameter("1", "speed of the driving joint by that of the driven one")]
    offset: Annotated[float, Parameter("{driving.coordinate}", "driving coordinate where the driven one is zero")] = 0.0

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one, and the ratio with the other sign."""
        return {self.driving: 1.0, self.driven: -now["ratio"]}

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class RackAndPinion(Constraint):
    """A joint that slides as another one turns: x = radius · φ + offset; a lead screw with its lead over 2 π, too.

    Attributes
    ----------
    pinion
        Name of a joint of the spanning tree with one coordinate, an angle.
    rack
        The same, with a displacement.
    radius
        Radius of the pinion in m, or lead of a screw by 2 π; negative for motion the other way.
    offset
        Displacement of the rack in m at an angle of zero.
    """

    type: Literal["rack-and-pinion"] = "rack-and-pinion"
    pinion: JointReference
    rack: JointReference
    radius: Annotated[NonZero, Parameter("m", "radius of the pinion, or lead by 2 pi")]
    offset: Annotated[float, Parameter("m", "displacement of the rack at an angle of zero")] = 0.0

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one, and the radius with the other sign."""
        return {self.rack: 1.0, self.pinion: -now["radius"]}

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class Mimic(Constraint):
    """A joint that follows another one, as in URDF: q = multiplier · q_leader + offset.

    Attributes
    ----------
    joint, leader
        Names of joints of the spanning tree with one coordinate.
    multiplier
        Motion of the joint by that of its leader, in rad or m of the one for rad or m of the other.
    offset
        Coordinate in rad or m where the leader is at zero.
    """

    type: Literal["mimic"] = "mimic"
    joint: JointReference
    leader: JointReference
    multiplier: Annotated[
        float, Parameter("{joint.coordinate}/{leader.coordinate}", "motion by that of the leader")
    ] = 1.0
    offset: Annotated[float, Parameter("{joint.coordinate}", "coordinate where the leader is at zero")] = 0.0

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one, and the multiplier with the other sign."""
        return {self.joint: 1.0, self.leader: -now["multiplier"]}

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]


class Differential(Constraint):
    """A carrier whose coordinate is a mean of two others: q_carrier = share · q_one + (1 − share) · q_other.

    With half and half it is the differential of an axle; a planetary gear set with z_sun and z_ring teeth has the share
    z_sun / (z_sun + z_ring) of its sun [Willis].

    Attributes
    ----------
    carrier, one, other
        Names of joints of the spanning tree with one coordinate, all of them angles or all displacements.
    share
        Share of the first in the carrier's motion.
    """

    type: Literal["differential"] = "differential"
    carrier: JointReference
    one: JointReference
    other: JointReference
    share: Annotated[float, Field(gt=0, lt=1), Parameter("1", "share of the first in the carrier's motion")] = 0.5

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:
        """Return one, and both shares with the other sign."""
        return {self.carrier: 1.0, self.one: -now["share"], self.other: now["share"] - 1.0}


class LinearCoupling(Constraint):
    """Any linear relation of joint coordinates: Σ factor · q = offset.

    Attributes
    ----------
    joints
        Names of joints of the spanning tree with one coordinate.
    factors_of_joints
        A number for each; not zero.
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
        """Names of the joints."""
        return self.joints

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002 - they are no parameters
        """Return the factors as given."""
        return dict(zip(self.joints, self.factors_of_joints, strict=True))

    def value(self, now: Numbers) -> Array | float:
        """Return the offset."""
        return now["offset"]
