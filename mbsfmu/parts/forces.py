"""Forces between points of bodies: along lines, bushings, contacts with planes, applied loads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.equations.rotation import cross, rotation_from_vector, unit, vector_from_rotation
from mbsfmu.model.force import Force, ForceContext, PointLoad
from mbsfmu.model.reference_types import (
    GROUND,
    Direction,
    NonNegative,
    PointReference,
    Positive,
    Vector,
    split_reference,
)
from mbsfmu.modelling import Array, Measured, Parameter, Quantity


class LineOfAction:
    """The line of action between the two points of a force.

    Parameters
    ----------
    now
        Evaluation context of the force.
    start, end
        Names of the fields with the two points.
    """

    def __init__(self, now: ForceContext, start: str = "start", end: str = "end") -> None:
        self._start, self._end = start, end
        self._ends = now.point(start), now.point(end)

    @cached_property
    def _gap(self) -> Array:
        start, end = self._ends
        return end.position - start.position

    @cached_property
    def length(self) -> Array:
        """|s| in m [Jaiswal2021, eq. 45]."""
        return np.sqrt(self._gap @ self._gap)

    @cached_property
    def velocity(self) -> Array:
        """d|s|/dt in m/s [Jaiswal2021, eq. 45]."""
        start, end = self._ends
        return (end.velocity - start.velocity) @ self._gap / self.length

    def push(self, force: Array) -> Iterable[PointLoad]:
        """Return the loads of a force in N that pushes the points apart."""
        vector = self._gap / self.length * force
        return (PointLoad(self._end, vector), PointLoad(self._start, -vector))


class Actuator(Force):
    """Actuator between two points with an external force, for example a hydraulic cylinder.

    The outputs are `length` and `velocity`, the input is `force`; a positive force pushes the points apart.
    `static_force` is the force of static equilibrium at the start.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    """

    balancing: ClassVar[tuple[str, ...]] = ("force",)
    symbol: ClassVar[str] = "cylinder"
    type: Literal["actuator"] = "actuator"
    start: PointReference
    end: PointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the force input."""
        return (Quantity("force", "N", 0.0, description="force that pushes the ends apart"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return length and velocity."""
        return (
            Quantity("length", "m", minimum=0.0, description="distance of its ends", shared=True),
            Quantity("velocity", "m/s", description="rate of its length", shared=True),
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the force at both points."""
        return LineOfAction(now).push(now["force"])

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the force in W."""
        return now["force"] * LineOfAction(now).velocity

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return length and velocity."""
        line = LineOfAction(now)
        return {"length": line.length, "velocity": line.velocity}


class SpringDamper(Force):
    """Spring and damper in parallel between two points.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    stiffness
        In N/m.
    damping
        In N s/m.
    free_length
        Unloaded length in m.
    """

    symbol: ClassVar[str] = "spring"
    type: Literal["spring-damper"] = "spring-damper"
    start: PointReference
    end: PointReference
    stiffness: Annotated[NonNegative, Parameter("N/m", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("N.s/m", "damping", tunable=True)] = 0.0
    free_length: Annotated[NonNegative, Parameter("m", "length without force")] = 0.0

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the spring and damper force at both points."""
        line = LineOfAction(now)
        return line.push(-now["stiffness"] * (line.length - now["free_length"]) - now["damping"] * line.velocity)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by the damper in W."""
        return now["damping"] * LineOfAction(now).velocity ** 2

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        return 0.5 * now["stiffness"] * (LineOfAction(now).length - now["free_length"]) ** 2


_Three = tuple[NonNegative, NonNegative, NonNegative]


class _Strain(NamedTuple):
    """Deformation of a bushing along its axes: deflection, rotation, and their rates; and the axes, shape (3, 3)."""

    axes: Array
    shift: Array
    shift_rate: Array
    turn: Array
    turn_rate: Array


class Bushing(Force):
    """Linear springs and dampers along and about three axes between points of two bodies.

    The outputs are `deflection.x` to `.z` and `turn.x` to `.z` along the axes, which are fixed in the parent. The
    rotation is the rotation vector from parent to child; a spring of equal stiffnesses gives the moment stiffness times
    angle about it. It is discontinuous at half turns.

    Attributes
    ----------
    parent, child
        The two points, which coincide in the unloaded bushing.
    stiffness, damping
        Along the axes in N/m and N s/m.
    turning_stiffness, turning_damping
        About the axes in N m/rad and N m s/rad.
    orientation
        Rotation vector in rad from the parent's to the child's frame in the unloaded bushing.
    axes
        Rotation vector in rad from the parent's frame to the axes of the bushing.
    """

    symbol: ClassVar[str] = "none"
    type: Literal["bushing"] = "bushing"
    parent: PointReference
    child: PointReference
    stiffness: Annotated[_Three, Parameter("N/m", "stiffness")]
    turning_stiffness: Annotated[_Three, Parameter("N.m/rad", "rotational stiffness")]
    damping: Annotated[_Three, Parameter("N.s/m", "damping")] = (0.0, 0.0, 0.0)
    turning_damping: Annotated[_Three, Parameter("N.m.s/rad", "rotational damping")] = (0.0, 0.0, 0.0)
    orientation: Annotated[Vector, Measured("rad")] = (0.0, 0.0, 0.0)
    axes: Vector = (0.0, 0.0, 0.0)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return deflection and rotation."""
        return tuple(
            Quantity(
                f"{what}.{axis}", unit, description=f"{what} of {self.child} from {self.parent}, {axis}", shared=True
            )
            for what, unit in (("deflection", "m"), ("turn", "rad"))
            for axis in "xyz"
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the spring and damper loads to both bodies."""
        strain = self._strain(now)
        force = strain.axes @ (-now["stiffness"] * strain.shift - now["damping"] * strain.shift_rate)
        along = -now["turning_stiffness"] * strain.turn - now["turning_damping"] * strain.turn_rate
        moment = strain.axes @ (_turning(strain.turn).T @ along)
        gap = now.point("child").position - now.point("parent").position
        return (PointLoad("child", force, moment), PointLoad("parent", -force, -moment - cross(gap, force)))

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by the dampers in W."""
        strain = self._strain(now)
        return now["damping"] @ strain.shift_rate**2 + now["turning_damping"] @ strain.turn_rate**2

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        strain = self._strain(now)
        return 0.5 * (now["stiffness"] @ strain.shift**2 + now["turning_stiffness"] @ strain.turn**2)

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return deflection and rotation."""
        strain = self._strain(now)
        told = (("deflection", strain.shift), ("turn", strain.turn))
        return {f"{what}.{axis}": vector[index] for what, vector in told for index, axis in enumerate("xyz")}

    def _strain(self, now: ForceContext) -> _Strain:
        parent, child = now.point("parent"), now.point("child")
        own = rotation_from_vector(self.axes)
        axes = parent.rotation @ own
        gap = child.position - parent.position
        passing = child.velocity - parent.velocity - cross(parent.angular_velocity, gap)
        turn = vector_from_rotation(axes.T @ (child.rotation @ rotation_from_vector(self.orientation).T @ own))
        turning = axes.T @ (child.angular_velocity - parent.angular_velocity)
        return _Strain(axes, axes.T @ gap, axes.T @ passing, turn, _turning(turn) @ turning)


def _turning(turn: Array) -> Array:
    """Return the matrix from the relative angular velocity to the rate of the rotation vector φ, shape (3, 3).

    I − [φ]/2 + (1 − (θ/2) cot(θ/2)) [φ]²/θ², θ = |φ| [Bullo1995]; for small angles by its series.
    """
    x, y, z = turn
    none = 0.0 * x
    skew = np.stack([np.stack([none, -z, y]), np.stack([z, none, -x]), np.stack([-y, x, none])])
    square = turn @ turn
    small = square < 1e-2
    half = 0.5 * np.sqrt(np.where(small, 1.0, square))
    far = (1.0 - half * np.cos(half) / np.sin(half)) / (4.0 * half**2)
    near = 1.0 / 12.0 + square / 720.0 + square**2 / 30240.0 + square**3 / 1209600.0 + square**4 / 47900160.0
    return np.eye(3) - 0.5 * skew + np.where(small, near, far) * (skew @ skew)


class _Touch(NamedTuple):
    """A contact in one evaluation: normal, position and slip of shape (3,), forces in N, other values in m and m/s."""

    normal: Array
    place: Array
    gap: Array
    depth: Array
    rate: Array
    slip: Array
    elastic: Array
    force: Array


class PlaneContact(Force):
    """Contact between a sphere, or a point, and a plane of the ground or of another body.

    The outputs are `normal_force` and `penetration`. At the penetration δ the normal force is N = k δⁿ max(0, 1 + D
    δ̇), zero at first contact and never tensile [Hunt1975]. Friction is regularised Coulomb friction, μ N v/√(v² + v₀²)
    against the slip v. The coefficient of restitution at the impact velocity v₀ is v₁/v₀ ≈ 1 − 2/3 D v₀ for small D v₀.

    Attributes
    ----------
    sphere
        Centre of the sphere, or the point, as `body.point`.
    plane
        A point of the plane, of the ground or of another body.
    normal
        Outward normal in the frame of the plane's body; the sphere is free on this side.
    radius
        In m; zero for a point.
    stiffness
        k in N/mⁿ.
    exponent
        n; 1.5 for spheres (Hertz).
    damping
        D in s/m.
    friction
        μ.
    creep_speed
        v₀ in m/s, the slip at which friction reaches 71 %.
    """

    symbol: ClassVar[str] = "none"
    type: Literal["plane-contact"] = "plane-contact"
    sphere: PointReference
    plane: PointReference
    normal: Direction = (0.0, 1.0, 0.0)
    radius: Annotated[NonNegative, Parameter("m", "radius")] = 0.0
    stiffness: Annotated[Positive, Parameter("N", "force at a penetration of 1 m")]
    exponent: Annotated[float, Field(ge=1.0, le=3.0)] = 1.5
    damping: Annotated[NonNegative, Parameter("s/m", "damping")] = 0.0
    friction: Annotated[NonNegative, Parameter("1", "coefficient of friction", tunable=True)] = 0.0
    creep_speed: Annotated[Positive, Parameter("m/s", "slip velocity of regularised friction", tunable=True)] = 1e-3

    def outputs(self) -> tuple[Quantity, ...]:
        """Return normal force and penetration."""
        return (
            Quantity("normal_force", "N", minimum=0.0, description="normal force of the contact", shared=True),
            Quantity(
                "penetration", "m", minimum=0.0, description="penetration of the sphere into the plane", shared=True
            ),
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply normal force and friction to both bodies at the contact point."""
        touch = self._touch(now)
        force = touch.normal * touch.force + self._rubbing(now, touch)
        sphere, plane = (touch.place - now.point(each).position for each in ("sphere", "plane"))
        return (PointLoad("sphere", force, cross(sphere, force)), PointLoad("plane", -force, -cross(plane, force)))

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        touch = self._touch(now)
        return touch.elastic * touch.depth / (self.exponent + 1.0)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by damping and friction in W."""
        touch = self._touch(now)
        return (touch.force - touch.elastic) * touch.rate - self._rubbing(now, touch) @ touch.slip

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return normal force and penetration."""
        touch = self._touch(now)
        return {"normal_force": touch.force, "penetration": touch.depth}

    def event_indicators(self) -> tuple[Quantity, ...]:
        """Return the gap."""
        return (Quantity("gap", "m", description="distance from sphere to plane, negative in contact"),)

    def evaluate_event_indicators(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the gap."""
        return {"gap": self._touch(now).gap}

    def _rubbing(self, now: ForceContext, touch: _Touch) -> Array:
        """Return the friction force on the sphere in N."""
        speed = np.sqrt(touch.slip @ touch.slip + now["creep_speed"] ** 2)
        return -now["friction"] * touch.force / speed * touch.slip

    def _touch(self, now: ForceContext) -> _Touch:
        sphere, plane = now.point("sphere"), now.point("plane")
        normal = plane.rotation @ unit(self.normal)
        height = normal @ (sphere.position - plane.position)
        place = sphere.position - normal * height  # contact point on the plane
        passing = sphere.velocity + cross(sphere.angular_velocity, place - sphere.position)
        passing = passing - plane.velocity - cross(plane.angular_velocity, place - plane.position)
        approach = -(normal @ passing)
        gap = height - now["radius"]
        depth = np.maximum(-gap, 0.0)
        touching = depth > 0.0
        # The second derivative of δⁿ at δ = 0 is infinite for n < 2, and of no contact it is 0.
        elastic = now["stiffness"] * np.where(touching, np.where(touching, depth, 1.0) ** self.exponent, 0.0)
        force = elastic * np.maximum(1.0 + now["damping"] * approach, 0.0)
        return _Touch(normal, place, gap, depth, approach, passing + normal * approach, elastic, force)


Frame = Literal["inertial", "body"]
"""Frame of the components: the inertial frame, or the body frame."""


class _Applied(Force, abstract=True):
    """Base of a vector of inputs that acts on a body, in a chosen frame."""

    point: PointReference
    frame: Frame = "inertial"

    @model_validator(mode="after")
    def _acts_on_a_body(self) -> Self:
        if split_reference(self.point)[0] == GROUND:
            raise ValueError(f"it acts on '{self.point}', which does not move; it must be a point of a body")
        return self

    def _inertial(self, now: ForceContext, name: str) -> Array:
        """Return the input vector in the inertial frame, shape (3,)."""
        given = np.stack([now[f"{name}.{axis}"] for axis in "xyz"])
        return now.point("point").rotation @ given if self.frame == "body" else given

    def _vector(self, name: str, unit: str) -> tuple[Quantity, ...]:
        """Return the components of an input vector."""
        axes = "inertial frame" if self.frame == "inertial" else "body"
        return tuple(
            Quantity(f"{name}.{axis}", unit, 0.0, description=f"{name} on the body, {axis} of the {axes}")
            for axis in "xyz"
        )


class AppliedForce(_Applied):
    """External force at a point of a body, for example a bucket load, a hand force, or wind.

    It takes the inputs `force.x`, `force.y` and `force.z` in N.

    Attributes
    ----------
    point
        Point of application, as `body.point`.
    frame
        `inertial`, or `body` for a force that rotates with the body.
    """

    type: Literal["applied-force"] = "applied-force"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the force components."""
        return self._vector("force", "N")

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the force at the point."""
        return (PointLoad("point", force=self._inertial(now, "force")),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the force in W."""
        return self._inertial(now, "force") @ now.point("point").velocity


class AppliedMoment(_Applied):
    """External moment on a body.

    It takes the inputs `moment.x`, `moment.y` and `moment.z` in N m.

    Attributes
    ----------
    point
        Any point of the body, as `body.point`; a moment does not depend on the point.
    frame
        `inertial`, or `body` for a moment that rotates with the body.
    """

    type: Literal["applied-moment"] = "applied-moment"

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the moment components."""
        return self._vector("moment", "N.m")

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the moment to the body."""
        return (PointLoad("point", moment=self._inertial(now, "moment")),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the moment in W."""
        return self._inertial(now, "moment") @ now.point("point").angular_velocity
