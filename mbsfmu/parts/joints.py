"""Joints between two bodies, and prescribed motion."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot
from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from mbsfmu.equations.constraints import Offset, Separation, gaps, offsets, square, tilts, turns
from mbsfmu.equations.rotation import unit
from mbsfmu.model.force import Numbers
from mbsfmu.model.joint import ClosureEquation, Constraint, Joint, JointElement
from mbsfmu.model.reference_types import Direction, JointReference, Positive, Vector
from mbsfmu.modelling import Array, Measured, Quantity, Role

_SQUARE = 1e-6  # cosine below which two directions count as perpendicular
STEEPEST = 1.2
"""Largest second start angle in rad of a spherical or free joint, below gimbal lock."""


class Revolute(Joint):
    """Revolute joint (hinge) about an axis through the joint's point.

    Attributes
    ----------
    axis
        Direction of the axis in the parent's frame.
    angle, angular_velocity
        Start values of the coordinate in rad and rad/s; ignored if the joint is cut.
    """

    type: Literal["revolute"] = "revolute"
    axis: Direction = (0.0, 0.0, 1.0)
    angle: Annotated[float, Role.PARAMETER, Measured("rad")] = 0.0
    angular_velocity: Annotated[float, Role.PARAMETER, Measured("rad/s")] = 0.0

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return one hinge."""
        return (JointElement(False, self.axis, "", self.angle, self.angular_velocity),)

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: coincident point and parallel axes."""
        return {**gaps(), **tilts(self.axis, self.orientation)}


class Prismatic(Joint):
    """Prismatic joint: translation along an axis without rotation.

    Attributes
    ----------
    axis
        Direction of the axis in the parent's frame.
    displacement, velocity
        Start values of the coordinate in m and m/s; ignored if the joint is cut.
    """

    type: Literal["prismatic"] = "prismatic"
    axis: Direction = (1.0, 0.0, 0.0)
    displacement: Annotated[float, Role.PARAMETER, Measured("m")] = 0.0
    velocity: Annotated[float, Role.PARAMETER, Measured("m/s")] = 0.0

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return one slide."""
        return (JointElement(True, self.axis, "", self.displacement, self.velocity),)

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: point on the axis, no rotation."""
        return {**offsets(self.axis), **turns(self.orientation)}


class Cylindrical(Joint):
    """Cylindrical joint: slide and hinge on one axis.

    Attributes
    ----------
    axis
        Direction of the axis in the parent's frame.
    displacement, velocity, angle, angular_velocity
        Start values in m, m/s, rad and rad/s; ignored if the joint is cut.
    """

    type: Literal["cylindrical"] = "cylindrical"
    axis: Direction = (0.0, 0.0, 1.0)
    displacement: Annotated[float, Role.PARAMETER, Measured("m")] = 0.0
    velocity: Annotated[float, Role.PARAMETER, Measured("m/s")] = 0.0
    angle: Annotated[float, Role.PARAMETER, Measured("rad")] = 0.0
    angular_velocity: Annotated[float, Role.PARAMETER, Measured("rad/s")] = 0.0

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return the slide, then the hinge."""
        return (
            JointElement(True, self.axis, "", self.displacement, self.velocity),
            JointElement(False, self.axis, "", self.angle, self.angular_velocity),
        )

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: point on the axis, parallel axes."""
        return {**offsets(self.axis), **tilts(self.axis, self.orientation)}


class Universal(Joint):
    """Universal (Cardan) joint: two perpendicular hinges that intersect.

    Attributes
    ----------
    axis
        Direction of the first axis, fixed in the parent, in the parent's frame.
    second_axis
        Direction of the second axis, fixed in the child, in the parent's frame at zero coordinates.
    angles, angular_velocities
        Start values in rad and rad/s; ignored if the joint is cut.
    """

    type: Literal["universal"] = "universal"
    axis: Direction = (0.0, 0.0, 1.0)
    second_axis: Direction = (0.0, 1.0, 0.0)
    angles: Annotated[tuple[float, float], Role.PARAMETER, Measured("rad")] = (0.0, 0.0)
    angular_velocities: Annotated[tuple[float, float], Role.PARAMETER, Measured("rad/s")] = (0.0, 0.0)

    @model_validator(mode="after")
    def _square(self) -> Self:
        _check_square("axis", self.axis, "second_axis", self.second_axis)
        return self

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return the hinge on the parent, then that on the child."""
        return (
            JointElement(False, self.axis, "_1", self.angles[0], self.angular_velocities[0]),
            JointElement(False, self.second_axis, "_2", self.angles[1], self.angular_velocities[1]),
        )

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: coincident point, perpendicular axes."""
        return {**gaps(), "square": square(self.axis, self.second_axis, self.orientation)}


class Planar(Joint):
    """Planar joint: translation in a plane and rotation about its normal.

    Attributes
    ----------
    axis
        Normal of the plane in the parent's frame.
    direction
        First direction of displacement in the parent's frame; the second is the normal × the first.
    displacements, velocities
        Start values along both directions in m and m/s; ignored if the joint is cut.
    angle, angular_velocity
        Start values in rad and rad/s; ignored if the joint is cut.
    """

    type: Literal["planar"] = "planar"
    axis: Direction = (0.0, 0.0, 1.0)
    direction: Direction = (1.0, 0.0, 0.0)
    displacements: Annotated[tuple[float, float], Role.PARAMETER, Measured("m")] = (0.0, 0.0)
    velocities: Annotated[tuple[float, float], Role.PARAMETER, Measured("m/s")] = (0.0, 0.0)
    angle: Annotated[float, Role.PARAMETER, Measured("rad")] = 0.0
    angular_velocity: Annotated[float, Role.PARAMETER, Measured("rad/s")] = 0.0

    @model_validator(mode="after")
    def _square(self) -> Self:
        _check_square("axis", self.axis, "direction", self.direction)
        return self

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return both slides, then the hinge."""
        slides = _in_plane(self.axis, self.direction, self.displacements, self.velocities)
        return (*slides, JointElement(False, self.axis, "", self.angle, self.angular_velocity))

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: point in the plane, parallel normals."""
        return {"offset": Offset(unit(self.axis)), **tilts(self.axis, self.orientation)}


_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def _cardan(angles: Vector, rates: Vector) -> tuple[JointElement, ...]:
    return tuple(
        JointElement(False, axis, f".{name}", angle, rate)
        for axis, name, angle, rate in zip((_X, _Y, _Z), "xyz", angles, rates, strict=True)
    )


class _TurnsFreely(Joint, abstract=True):
    """Base of joints with three rotational degrees of freedom.

    The three coordinates are Cardan angles about x, y, z relative to a reference quaternion. The reference changes to
    the present orientation near gimbal lock (large second angle), so that no orientation is singular.
    """

    turns_freely: ClassVar[bool] = True
    angles: Annotated[Vector, Role.PARAMETER, Measured("rad")] = (0.0, 0.0, 0.0)
    angular_velocity: Annotated[Vector, Role.PARAMETER, Measured("rad/s")] = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _away_from_gimbal_lock(self) -> Self:
        if abs(self.angles[1]) > STEEPEST:
            raise ValueError(
                f"the second of angles is {self.angles[1]:g} rad; it must be between -{STEEPEST} and {STEEPEST}, "
                "what turns further belongs into orientation"
            )
        return self


class Spherical(_TurnsFreely):
    """Spherical joint (ball and socket) about the joint's point.

    Attributes
    ----------
    angles
        Start values of the Cardan angles in rad: about x, then the turned y, then the turned z.
    angular_velocity
        Start value in rad/s, of the child relative to the parent, in the parent's frame.
    """

    type: Literal["spherical"] = "spherical"

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return three hinges."""
        return _cardan(self.angles, self.angular_velocity)

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: coincident point."""
        return {**gaps()}


class Free(_TurnsFreely):
    """Free joint with six degrees of freedom, for a floating body.

    Attributes
    ----------
    displacement, velocity
        Start values of the child's point from the parent's in m and m/s, in the parent's frame.
    angles
        Start values of the Cardan angles in rad: about x, then the turned y, then the turned z.
    angular_velocity
        Start value in rad/s, of the child relative to the parent, in the parent's frame.
    """

    type: Literal["free"] = "free"
    displacement: Annotated[Vector, Role.PARAMETER, Measured("m")] = (0.0, 0.0, 0.0)
    velocity: Annotated[Vector, Role.PARAMETER, Measured("m/s")] = (0.0, 0.0, 0.0)

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return three slides, then three hinges."""
        slides = tuple(
            JointElement(True, axis, f".{name}", start, rate)
            for axis, name, start, rate in zip((_X, _Y, _Z), "xyz", self.displacement, self.velocity, strict=True)
        )
        return (*slides, *_cardan(self.angles, self.angular_velocity))


class PointOnLine(_TurnsFreely):
    """A point of the child on a line of the parent, free to turn: a bead on a wire, a ball in a groove.

    Attributes
    ----------
    axis
        Direction of the line through the parent's point, in the parent's frame.
    displacement, velocity
        Start values along the line in m and m/s; ignored if the joint is cut.
    angles
        Start values of the Cardan angles in rad: about x, then the turned y, then the turned z.
    angular_velocity
        Start value in rad/s, of the child relative to the parent, in the parent's frame.
    """

    type: Literal["point-on-line"] = "point-on-line"
    axis: Direction = _X
    displacement: Annotated[float, Role.PARAMETER, Measured("m")] = 0.0
    velocity: Annotated[float, Role.PARAMETER, Measured("m/s")] = 0.0

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return the slide, then three hinges."""
        slide = JointElement(True, self.axis, "", self.displacement, self.velocity)
        return (slide, *_cardan(self.angles, self.angular_velocity))

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: point on the line."""
        return {**offsets(self.axis)}


class PointOnPlane(_TurnsFreely):
    """A point of the child in a plane of the parent, free to turn.

    Attributes
    ----------
    axis
        Normal of the plane through the parent's point, in the parent's frame.
    direction
        First direction of displacement in the parent's frame; the second is the normal × the first.
    displacements, velocities
        Start values along both directions in m and m/s; ignored if the joint is cut.
    angles
        Start values of the Cardan angles in rad: about x, then the turned y, then the turned z.
    angular_velocity
        Start value in rad/s, of the child relative to the parent, in the parent's frame.
    """

    type: Literal["point-on-plane"] = "point-on-plane"
    axis: Direction = _Z
    direction: Direction = _X
    displacements: Annotated[tuple[float, float], Role.PARAMETER, Measured("m")] = (0.0, 0.0)
    velocities: Annotated[tuple[float, float], Role.PARAMETER, Measured("m/s")] = (0.0, 0.0)

    @model_validator(mode="after")
    def _square(self) -> Self:
        _check_square("axis", self.axis, "direction", self.direction)
        return self

    @property
    def elements(self) -> tuple[JointElement, ...]:
        """Return both slides, then three hinges."""
        slides = _in_plane(self.axis, self.direction, self.displacements, self.velocities)
        return (*slides, *_cardan(self.angles, self.angular_velocity))

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equation: point in the plane."""
        return {"offset": Offset(unit(self.axis))}


class Distance(Joint):
    """Constant distance of two points: a rod without mass, with a ball joint at either end.

    It always closes a loop; a body that nothing else holds has a free joint too. Its force is along the rod.

    Attributes
    ----------
    length
        Distance in m.
    """

    type: Literal["distance"] = "distance"
    only_closes: ClassVar[bool] = True
    length: Annotated[Positive, Measured("m")]

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equation: points at the distance."""
        return {"distance": Separation(self.length)}


class Fixed(Joint):
    """Fixed joint (weld)."""

    type: Literal["fixed"] = "fixed"

    def equations(self) -> Mapping[str, ClosureEquation]:
        """Return the closure equations: coincident point, no rotation."""
        return {**gaps(), **turns(self.orientation)}


def _in_plane(
    normal: Vector, direction: Vector, starts: tuple[float, float], rates: tuple[float, float]
) -> tuple[JointElement, JointElement]:
    """Return the slides in a plane, along a direction and across it."""
    (ax, ay, az), (dx, dy, dz) = normal, direction
    second = (ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx)
    return (
        JointElement(True, direction, "_1", starts[0], rates[0]),
        JointElement(True, second, "_2", starts[1], rates[1]),
    )


def _check_square(first: str, one: Vector, second: str, other: Vector) -> None:
    cosine = sum(a * b for a, b in zip(one, other, strict=True)) / (hypot(*one) * hypot(*other))
    if abs(cosine) > _SQUARE:
        raise ValueError(f"{first} is {one} and {second} is {other}; they must be perpendicular")


class PrescribedMotion(Constraint):
    """Joint whose coordinate follows an input, q = s(t); its output is the required load.

    The inputs `position`, `velocity` and `acceleration` are s, ṡ and s̈ in rad or m. They start with the joint's start
    values, and s is extrapolated by ṡ and s̈ while inputs are held. A signal for the position supplies the other two if
    it has a first and a second derivative.

    Attributes
    ----------
    joint
        Name of a joint of the spanning tree with one coordinate, such as a revolute or prismatic joint.
    """

    type: Literal["prescribed-motion"] = "prescribed-motion"
    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the motion inputs."""
        unit = "{joint.coordinate}"
        return (
            Quantity("position", unit, description="prescribed coordinate", rated=True),
            Quantity("velocity", f"{unit}/s", description="rate of the prescribed coordinate", rated=True),
            Quantity("acceleration", f"{unit}/s2", 0.0, description="rate of the prescribed velocity"),
        )

    def factors(self, now: Numbers) -> Mapping[str, Array | float]:  # noqa: ARG002 - it has no parameters
        """Return one."""
        return {self.joint: 1.0}

    def value(self, now: Numbers) -> Array | float:
        """Return s."""
        return now["position"]

    def rate(self, now: Numbers) -> Array | float:
        """Return ṡ."""
        return now["velocity"]

    def acceleration(self, now: Numbers) -> Array | float:
        """Return s̈."""
        return now["acceleration"]
