"""Constraint equations of cut joints: closure, and their wrenches."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.rotation import (
    Frames,
    body_velocity,
    cross,
    perpendicular,
    point_of_body,
    rotation_from_vector,
    unit,
)
from mbsfmu.model.force import BodyPoint
from mbsfmu.model.joint import ClosureEquation, Joint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling.data import Array
from mbsfmu.tracing.kernels import kernel

_PARALLEL = 1e-6
"""Sine of the angle between two hinge axes below which they count as parallel."""


@dataclass(frozen=True)
class Gap(ClosureEquation):
    """Distance of the points along a direction of the inertial frame, shape (3,)."""

    unit: ClassVar[str] = "m"
    direction: Array

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation in m."""
        return self.direction @ (child.position - parent.position)

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the force at each point per unit multiplier, as wrenches."""
        return -_force(self.direction, parent.position), _force(self.direction, child.position)

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the rates of the wrenches from the points' velocities."""
        return -_moving(self.direction, parent.velocity), _moving(self.direction, child.velocity)


@dataclass(frozen=True)
class Offset(ClosureEquation):
    """Distance of the points along a direction of the parent's frame, shape (3,)."""

    unit: ClassVar[str] = "m"
    direction: Array

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation in m."""
        return (parent.rotation @ self.direction) @ (child.position - parent.position)

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the force on both bodies at the child's point per unit multiplier, as wrenches."""
        wrench = _force(parent.rotation @ self.direction, child.position)
        return -wrench, wrench

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the rates of the wrenches from the parent's rotation and the child point's velocity."""
        direction = parent.rotation @ self.direction
        rate = _force(cross(parent.angular_velocity, direction), child.position) + _moving(direction, child.velocity)
        return -rate, rate


@dataclass(frozen=True)
class Separation(ClosureEquation):
    """Distance of the points less a length: (d² − L²) / 2 L, which has derivatives where the points coincide too."""

    unit: ClassVar[str] = "m"
    length: float

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation in m, where it is small."""
        apart = child.position - parent.position
        return (apart @ apart - self.length**2) / (2.0 * self.length)

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the force at each point per unit multiplier, as wrenches."""
        force = (child.position - parent.position) / self.length
        return -_force(force, parent.position), _force(force, child.position)

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the rates of the wrenches from the points' velocities."""
        force = (child.position - parent.position) / self.length
        rate = (child.velocity - parent.velocity) / self.length
        on_parent, on_child = (_force(rate, end.position) + _moving(force, end.velocity) for end in (parent, child))
        return -on_parent, on_child


@dataclass(frozen=True)
class Angle(ClosureEquation):
    """Sum of products u · v, times a factor, of vectors u of the parent's and v of the child's frame."""

    unit: ClassVar[str] = "rad"
    pairs: tuple[tuple[Array, Array, float], ...]

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation in rad, for small angles."""
        return _total(factor * (u @ v) for u, v, factor in self._turned(parent, child))

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the moment per unit multiplier, as wrenches."""
        moment = _total(factor * cross(v, u) for u, v, factor in self._turned(parent, child))
        wrench = np.concatenate([np.zeros(3), moment])
        return -wrench, wrench

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the rates of the wrenches from the rotation of both bodies."""
        one, other = parent.angular_velocity, child.angular_velocity
        turning = ((cross(one, u), cross(other, v), u, v, f) for u, v, f in self._turned(parent, child))
        moment = _total(f * (cross(v_rate, u) + cross(v, u_rate)) for u_rate, v_rate, u, v, f in turning)
        rate = np.concatenate([np.zeros(3), moment])
        return -rate, rate

    def _turned(self, parent: BodyPoint, child: BodyPoint) -> list[tuple[Array, Array, float]]:
        return [(parent.rotation @ u, child.rotation @ v, factor) for u, v, factor in self.pairs]


class Relation(ClosureEquation, ABC):
    """Relation F = 0 between the violations of other equations: a distance and an angle, for example.

    Attributes
    ----------
    measures
        Equations whose violations are the arguments of the relation.
    """

    measures: tuple[ClosureEquation, ...]

    @abstractmethod
    def relate(self, measured: Sequence[Array]) -> Array:
        """Return F."""

    @abstractmethod
    def slopes(self, measured: Sequence[Array]) -> Sequence[Array]:
        """Return the derivatives of F with respect to each violation."""

    @abstractmethod
    def slope_rates(self, measured: Sequence[Array], rates: Sequence[Array]) -> Sequence[Array]:
        """Return the rates of these derivatives."""

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation."""
        return self.relate(self._measured(parent, child))

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the wrenches of the equations, weighted by the derivatives of F."""
        slopes = self.slopes(self._measured(parent, child))
        on_parent, on_child = zip(*(each.wrenches(parent, child) for each in self.measures), strict=True)
        return _weighted(slopes, on_parent), _weighted(slopes, on_child)

    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the rates of the wrenches by the product rule."""
        measured = self._measured(parent, child)
        wrenches = [each.wrenches(parent, child) for each in self.measures]
        rates = [on_parent @ _of_origin(parent) + on_child @ _of_origin(child) for on_parent, on_child in wrenches]
        slopes, changing = self.slopes(measured), self.slope_rates(measured, rates)
        moved = [each.wrench_rates(parent, child) for each in self.measures]
        on_parent, on_child = (
            _weighted(slopes, [pair[side] for pair in moved]) + _weighted(changing, [pair[side] for pair in wrenches])
            for side in (0, 1)
        )
        return on_parent, on_child

    def _measured(self, parent: BodyPoint, child: BodyPoint) -> list[Array]:
        return [each.value(parent, child) for each in self.measures]


@dataclass(frozen=True)
class Misalignment(Relation):
    """1 − cos θ of an angle θ that closure equations, odd in θ, leave at zero or at half a turn: 0 or 2 there.

    Attributes
    ----------
    measures
        cos θ plus a constant; of a thread the displacement d, and sine and cosine of its turn φ, with θ = d / p − φ.
    aligned
        What is measured at θ = 0.
    pitch
        p in m/rad; 0 without a thread.
    """

    unit: ClassVar[str] = "1"
    measures: tuple[ClosureEquation, ...]
    aligned: float = 1.0
    pitch: float = 0.0

    def relate(self, measured: Sequence[Array]) -> Array:
        """Return 1 − cos θ."""
        if not self.pitch:
            return self.aligned - measured[0]
        way, sine, cosine = measured
        return self.aligned - np.cos(way / self.pitch) * cosine - np.sin(way / self.pitch) * sine

    def slopes(self, measured: Sequence[Array]) -> Sequence[Array]:
        """Return its derivatives with respect to the measures."""
        if not self.pitch:
            return (np.asarray(-1.0),)
        way, sine, cosine = measured
        turn = way / self.pitch
        along = (np.sin(turn) * cosine - np.cos(turn) * sine) / self.pitch
        return along, -np.sin(turn), -np.cos(turn)

    def slope_rates(self, measured: Sequence[Array], rates: Sequence[Array]) -> Sequence[Array]:
        """Refuse: no acceleration of it is needed."""
        raise NotImplementedError


def misalignments(joint: Joint) -> dict[str, ClosureEquation]:
    """Return what tells whether a joint closes a loop as its elements hold it in the tree, or turned by half a turn.

    The closure equations of parallel axes, of equal orientations and of threads hold for both. Joints with hinges about
    different axes reach every orientation that their equations allow.
    """
    hinges = [element for element in joint.elements if not element.slides]
    back, found = turned_back(joint.orientation), {}
    if joint.only_closes or not joint.equations():
        return found
    if not hinges:
        trace = Angle(tuple((direction, back @ direction, 0.5) for direction in np.eye(3)))
        return {"orientation": Misalignment((trace,), 1.5)}  # tr R = 1 + 2 cos θ
    axis = unit(hinges[0].axis)
    if any(np.linalg.norm(cross(axis, unit(hinge.axis))) > _PARALLEL for hinge in hinges):
        return found
    found["axis"] = Misalignment((Angle(((axis, back @ axis, 1.0),)),))
    if pitch := hinges[0].pitch:
        first = perpendicular(axis)[0]
        turn = (Angle(((direction, back @ first, 1.0),)) for direction in (cross(axis, first), first))
        found["thread"] = Misalignment((Offset(axis), *turn), pitch=pitch)
    return found


def gaps() -> dict[str, ClosureEquation]:
    """Return three equations of coincident points."""
    return {axis: Gap(direction) for axis, direction in zip("xyz", np.eye(3), strict=True)}


def offsets(axis: ArrayLike) -> dict[str, ClosureEquation]:
    """Return two equations that keep the child's point on an axis of the parent."""
    return {
        f"offset {number}": Offset(direction) for number, direction in enumerate(perpendicular(unit(axis)), start=1)
    }


def tilts(axis: ArrayLike, orientation: ArrayLike) -> dict[str, ClosureEquation]:
    """Return two equations that keep an axis of the parent parallel to the same axis of the child."""
    there = turned_back(orientation) @ unit(axis)
    return {
        f"tilt {number}": Angle(((direction, there, 1.0),))
        for number, direction in enumerate(perpendicular(unit(axis)), start=1)
    }


def turns(orientation: ArrayLike) -> dict[str, ClosureEquation]:
    """Return three equations against rotation: the vector part of the relative rotation, sin θ about its axis."""
    e, back = np.eye(3), turned_back(orientation)
    return {
        f"turn {name}": Angle(((e[i], back @ e[j], 0.5), (e[j], back @ e[i], -0.5)))
        for name, (i, j) in zip("xyz", ((2, 1), (0, 2), (1, 0)), strict=True)
    }


def square(axis: ArrayLike, second_axis: ArrayLike, orientation: ArrayLike) -> ClosureEquation:
    """Return one equation that keeps an axis of the parent perpendicular to one of the child."""
    return Angle(((unit(axis), turned_back(orientation) @ unit(second_axis), 1.0),))


def turned_back(orientation: ArrayLike) -> Array:
    """Return the rotation from the joint frame on the parent to the child frame, at zero coordinates."""
    return rotation_from_vector(orientation).T


def _force(force: Array, point: Array) -> Array:
    return np.concatenate([force, cross(point, force)])


def _moving(force: Array, velocity: Array) -> Array:
    """Return the rate of the wrench of a constant force at a moving point."""
    return np.concatenate([np.zeros(3), cross(velocity, force)])


def _total(terms: Iterable[Array]) -> Array:
    return reduce(operator.add, terms)


def _weighted(factors: Sequence[Array], vectors: Sequence[Array]) -> Array:
    return _total(factor * vector for factor, vector in zip(factors, vectors, strict=True))


def _of_origin(point: BodyPoint) -> Array:
    """Return Z of the body of a point, shape (6,)."""
    linear = point.velocity - cross(point.angular_velocity, point.position)
    return np.concatenate([linear, point.angular_velocity])


class CutJoint:
    """The closure equations of one cut joint, in m and rad.

    Parameters
    ----------
    joint, mechanism, points
        The joint, its mechanism, and the points of the bodies.
    equations
        The equations by their kinds; those of the joint by default.

    Attributes
    ----------
    names, units
        One name an equation, for messages, and the unit of its violation.
    parent, child
        Indices of the bodies, -1 for the ground.
    """

    def __init__(
        self,
        joint: Joint,
        mechanism: Mechanism,
        points: Points,
        equations: Mapping[str, ClosureEquation] | None = None,
    ) -> None:
        self.parent, self._parent_point = body_and_point(mechanism, points, joint.parent)
        self.child, self._child_point = body_and_point(mechanism, points, joint.child)
        equations = joint.equations() if equations is None else equations
        self._equations = _Equations.of(tuple(equations.values()))
        self.names = tuple(f"{joint.name} ({kind})" for kind in equations)
        self.units = tuple(equation.unit for equation in equations.values())

    @property
    def ends(self) -> tuple[int, int]:
        """Parent and child."""
        return self.parent, self.child

    def evaluate(self, frames: Frames, parameters: Array) -> Array:
        """Return the violation of the equations, shape (number of equations,)."""
        return np.stack(_values(*self._sides(frames, [], parameters), equations=self._equations))

    def wrenches(self, frames: Frames, parameters: Array) -> list[tuple[Array, Array]]:
        """Return the wrench of a unit multiplier of each equation on the parent and on the child."""
        return _wrenches(*self._sides(frames, [], parameters), equations=self._equations)

    def wrench_rates(self, frames: Frames, velocities: list[Array], parameters: Array) -> list[tuple[Array, Array]]:
        """Return the rates of `wrenches` at the body velocities Z."""
        return _wrench_rates(*self._sides(frames, velocities, parameters), equations=self._equations)

    def child_place(self, frames: Frames, parameters: Array) -> Array:
        """Return the joint's point on the child in the inertial frame in m, shape (3,)."""
        return frames.point(self.child, self._child_point.of(parameters))

    def points(self, parameters: Array) -> Iterator[tuple[int, Array]]:
        """Yield the bodies of its ends, except the ground, each with the joint's point in the body frame in m."""
        for body, point in ((self.parent, self._parent_point), (self.child, self._child_point)):
            if body >= 0:
                yield body, point.of(parameters)

    def _sides(self, frames: Frames, velocities: list[Array], parameters: Array) -> tuple[_Side, _Side]:
        def side(body: int, point: PointSlot) -> _Side:
            velocity = body_velocity(velocities, body) if velocities else np.zeros(6)
            return tuple(point_of_body(frames, velocity, body, point.of(parameters)))

        return side(self.parent, self._parent_point), side(self.child, self._child_point)


def aligning(joints: Iterable[Joint], mechanism: Mechanism, points: Points) -> list[CutJoint]:
    """Return the joints that their equations let turn over by half a turn, with their misalignments as equations."""
    measured = ((joint, misalignments(joint)) for joint in joints)
    return [CutJoint(joint, mechanism, points, equations) for joint, equations in measured if equations]


_Side = tuple[Array, ...]
"""The fields of a `BodyPoint`."""


@dataclass(frozen=True)
class _Equations:
    """Equations of a joint; equal for joints of the same kind and data.

    Attributes
    ----------
    members
        The equations.
    key
        Their classes and numbers.
    """

    members: tuple[ClosureEquation, ...] = field(compare=False)
    key: Hashable

    @classmethod
    def of(cls, members: tuple[ClosureEquation, ...]) -> _Equations:
        """Return equations with their comparison key."""
        return cls(members, _hashable(members))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return tuple(map(_hashable, value))
    if is_dataclass(value):
        return type(value), tuple(_hashable(getattr(value, each.name)) for each in fields(value))
    return value if isinstance(value, Hashable) else id(value)


@kernel
def _values(parent: _Side, child: _Side, *, equations: _Equations) -> list[Array]:
    ends = BodyPoint(*parent), BodyPoint(*child)
    return [equation.value(*ends) for equation in equations.members]


@kernel
def _wrenches(parent: _Side, child: _Side, *, equations: _Equations) -> list[tuple[Array, Array]]:
    ends = BodyPoint(*parent), BodyPoint(*child)
    return [equation.wrenches(*ends) for equation in equations.members]


@kernel
def _wrench_rates(parent: _Side, child: _Side, *, equations: _Equations) -> list[tuple[Array, Array]]:
    ends = BodyPoint(*parent), BodyPoint(*child)
    return [equation.wrench_rates(*ends) for equation in equations.members]
