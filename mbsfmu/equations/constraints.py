"""Loop-closure equations of cut joints, Φ(z) = 0, and the forces and moments that they transmit."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.kinematics import Frames, body_velocity, point_velocity
from mbsfmu.equations.rotation import Array, cross, perpendicular, rotation_from_vector, unit
from mbsfmu.model.joint import AnyJoint, Cylindrical, Fixed, Planar, Prismatic, Revolute, Spherical, Universal
from mbsfmu.model.mechanism import Mechanism


@dataclass(frozen=True)
class Side:
    """One of the two bodies of a cut joint.

    Attributes
    ----------
    point
        The joint's point in the inertial frame in m, shape (3,).
    rotation
        From the body's to the inertial frame, shape (3, 3).
    velocity
        Z of the body, shape (6,); only rates need it.
    """

    point: Array
    rotation: Array
    velocity: Array

    @property
    def point_velocity(self) -> Array:
        """Velocity of the joint's point in m/s, shape (3,)."""
        return point_velocity(self.velocity, self.point)


class Equation(ABC):
    """One closure equation; dΦ/dt = wᵀ Z on the child plus the same on the parent.

    The wrenches w are forces in N and moments about the inertial origin in N m that a unit multiplier exerts.
    """

    unit: ClassVar[str]
    """Unit of the violation."""

    @abstractmethod
    def value(self, parent: Side, child: Side) -> Array:
        """Return the violation, a scalar."""

    @abstractmethod
    def wrenches(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return w on the parent and on the child, each of shape (6,)."""

    @abstractmethod
    def wrench_rates(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return dw/dt on the parent and on the child, each of shape (6,)."""


@dataclass(frozen=True)
class Gap(Equation):
    """The distance of the points along a direction of the inertial frame, shape (3,)."""

    unit: ClassVar[str] = "m"
    direction: Array

    def value(self, parent: Side, child: Side) -> Array:
        """Return the violation in m."""
        return self.direction @ (child.point - parent.point)

    def wrenches(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return a force at each point."""
        return -_force(self.direction, parent.point), _force(self.direction, child.point)

    def wrench_rates(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return the rates that follow from the points' velocities."""
        return -_moving(self.direction, parent.point_velocity), _moving(self.direction, child.point_velocity)


@dataclass(frozen=True)
class Offset(Equation):
    """The distance of the points along a direction of the parent's frame, shape (3,)."""

    unit: ClassVar[str] = "m"
    direction: Array

    def value(self, parent: Side, child: Side) -> Array:
        """Return the violation in m."""
        return (parent.rotation @ self.direction) @ (child.point - parent.point)

    def wrenches(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return a force at the child's point on both."""
        wrench = _force(parent.rotation @ self.direction, child.point)
        return -wrench, wrench

    def wrench_rates(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return the rates that follow from the parent's turning and the child's point's velocity."""
        direction = parent.rotation @ self.direction
        rate = _force(cross(parent.velocity[3:], direction), child.point) + _moving(direction, child.point_velocity)
        return -rate, rate


@dataclass(frozen=True)
class Angle(Equation):
    """A sum of products u · v, times a factor, of vectors u of the parent's and v of the child's frame."""

    unit: ClassVar[str] = "rad"
    pairs: tuple[tuple[Array, Array, float], ...]

    def value(self, parent: Side, child: Side) -> Array:
        """Return the violation in rad, for small ones."""
        return _total(factor * (u @ v) for u, v, factor in self._turned(parent, child))

    def wrenches(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return a moment."""
        moment = _total(factor * cross(v, u) for u, v, factor in self._turned(parent, child))
        wrench = np.concatenate([np.zeros(3), moment])
        return -wrench, wrench

    def wrench_rates(self, parent: Side, child: Side) -> tuple[Array, Array]:
        """Return the rates that follow from the turning of both."""
        one, other = parent.velocity[3:], child.velocity[3:]
        turning = ((cross(one, u), cross(other, v), u, v, f) for u, v, f in self._turned(parent, child))
        moment = _total(f * (cross(v_rate, u) + cross(v, u_rate)) for u_rate, v_rate, u, v, f in turning)
        rate = np.concatenate([np.zeros(3), moment])
        return -rate, rate

    def _turned(self, parent: Side, child: Side) -> list[tuple[Array, Array, float]]:
        return [(parent.rotation @ u, child.rotation @ v, factor) for u, v, factor in self.pairs]


class CutJoint:
    """The closure equations of one cut joint: what it takes away of six degrees of freedom, in m and rad.

    Attributes
    ----------
    names, units
        One name an equation, for messages, and the unit of its violation.
    parent, child
        Indices of the bodies, -1 for the ground.
    """

    def __init__(self, joint: AnyJoint, mechanism: Mechanism, points: Points) -> None:
        self.parent, self._parent_point = body_and_point(mechanism, points, joint.parent)
        self.child, self._child_point = body_and_point(mechanism, points, joint.child)
        equations = _equations(joint)
        self._equations = tuple(equations.values())
        self.names = tuple(f"{joint.name} ({kind})" for kind in equations)
        self.units = tuple(equation.unit for equation in self._equations)

    def evaluate(self, frames: Frames, parameters: Array) -> Array:
        """Return the violation of the equations, shape (number of equations,)."""
        parent, child = self._sides(frames, [], parameters)
        return np.stack([equation.value(parent, child) for equation in self._equations])

    def wrenches(self, frames: Frames, parameters: Array) -> list[tuple[Array, Array]]:
        """Return for each equation what a unit multiplier exerts on the parent and on the child."""
        parent, child = self._sides(frames, [], parameters)
        return [equation.wrenches(parent, child) for equation in self._equations]

    def wrench_rates(self, frames: Frames, velocities: list[Array], parameters: Array) -> list[tuple[Array, Array]]:
        """Return the rates of `wrenches` at the bodies' velocities Z."""
        parent, child = self._sides(frames, velocities, parameters)
        return [equation.wrench_rates(parent, child) for equation in self._equations]

    def child_place(self, frames: Frames, parameters: Array) -> Array:
        """Return the joint's point on the child in the inertial frame in m, shape (3,)."""
        return frames.point(self.child, self._child_point.of(parameters))

    def _sides(self, frames: Frames, velocities: list[Array], parameters: Array) -> tuple[Side, Side]:
        def side(body: int, point: PointSlot) -> Side:
            velocity = body_velocity(velocities, body) if velocities else np.zeros(6)
            return Side(frames.point(body, point.of(parameters)), frames.orientation(body), velocity)

        return side(self.parent, self._parent_point), side(self.child, self._child_point)


def _equations(joint: AnyJoint) -> dict[str, Equation]:
    """Return the closure equations of a joint by their kinds."""
    turned = rotation_from_vector(joint.orientation).T  # from the joint's frame on the parent to the child's frame
    equations: dict[str, Equation] = {}
    if isinstance(joint, (Revolute, Universal, Spherical, Fixed)):
        equations.update({axis: Gap(direction) for axis, direction in zip("xyz", np.eye(3), strict=True)})
    if isinstance(joint, (Prismatic, Cylindrical)):
        for number, direction in enumerate(perpendicular(unit(joint.axis)), start=1):
            equations[f"offset {number}"] = Offset(direction)
    if isinstance(joint, Planar):
        equations["offset"] = Offset(unit(joint.axis))
    if isinstance(joint, (Revolute, Cylindrical, Planar)):
        # The axis seen from the parent must not leave itself.
        axis = unit(joint.axis)
        for number, direction in enumerate(perpendicular(axis), start=1):
            equations[f"tilt {number}"] = Angle(((direction, turned @ axis, 1.0),))
    if isinstance(joint, Universal):
        equations["square"] = Angle(((unit(joint.axis), turned @ unit(joint.second_axis), 1.0),))
    if isinstance(joint, (Prismatic, Fixed)):
        # The vector part of the relative rotation: sin θ about its axis, zero without rotation.
        e = np.eye(3)
        for name, (i, j) in zip("xyz", ((2, 1), (0, 2), (1, 0)), strict=True):
            equations[f"turn {name}"] = Angle(((e[i], turned @ e[j], 0.5), (e[j], turned @ e[i], -0.5)))
    return equations


def _force(force: Array, point: Array) -> Array:
    return np.concatenate([force, cross(point, force)])


def _moving(force: Array, velocity: Array) -> Array:
    """Return the rate of the wrench of a constant force whose point moves."""
    return np.concatenate([np.zeros(3), cross(velocity, force)])


def _total(terms: Iterable[Array]) -> Array:
    return reduce(operator.add, terms)
