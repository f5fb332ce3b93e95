"""Joint coordinates for sensors and loads: of the spanning tree or measured, and sums of loads along them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.constraints import Angle, Offset, turned_back
from mbsfmu.equations.kinematics import ElementKinematics, JointKinematics
from mbsfmu.equations.rotation import (
    Frames,
    body_velocity,
    cross,
    dual_basis,
    perpendicular,
    point_of_body,
    rotation_about,
    unit,
)
from mbsfmu.model.force import BodyPoint, JointMotion
from mbsfmu.model.joint import Joint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.modelling.data import Array


@dataclass(frozen=True)
class MotionState:
    """Motion of a mechanism, on which forces may depend.

    Attributes
    ----------
    coordinates, velocities
        z and ż, each of shape (n,).
    frames
        Poses of the bodies.
    body_velocities
        Z of each body, each of shape (6,).
    """

    coordinates: Array
    velocities: Array
    frames: Frames
    body_velocities: list[Array]


@dataclass(frozen=True)
class Loads:
    """Sum of the loads on bodies and joints.

    Attributes
    ----------
    wrenches
        For each body, force in N and moment about the inertial origin in N m, each of shape (6,).
    joint_loads
        Generalised force of each joint coordinate in N m or N.
    """

    wrenches: list[Array]
    joint_loads: list[Array]

    @classmethod
    def none(cls, bodies: int, coordinates: int) -> Loads:
        """Return zero loads."""
        return cls([np.zeros(6)] * bodies, [np.asarray(0.0)] * coordinates)

    def add_force(self, body: int, force: Array, point: Array) -> None:
        """Add a force in N at a point of a body; without effect on the ground."""
        self.add_wrench(body, np.concatenate([force, cross(point, force)]))

    def add_moment(self, body: int, moment: Array) -> None:
        """Add a moment in N m to a body; without effect on the ground."""
        self.add_wrench(body, np.concatenate([np.zeros(3), moment]))

    def add_in_joint(self, coordinate: int, load: Array) -> None:
        """Add a load in N m or N along a joint coordinate."""
        self.joint_loads[coordinate] = self.joint_loads[coordinate] + load

    def add_wrench(self, body: int, wrench: Array) -> None:
        """Add a force in N and a moment about the inertial origin in N m, shape (6,); without effect on the ground."""
        if body >= 0:
            self.wrenches[body] = self.wrenches[body] + wrench


_PARALLEL = 1e-6
"""Sine of the angle between two hinge axes below which their angles cannot be told apart."""


@dataclass(frozen=True)
class Measured:
    """Joint coordinates of given poses.

    Attributes
    ----------
    frames
        Poses of the bodies, with the axes of all but ball and free joints.
    coordinates
        Displacements in m and angles in rad, in (-π, π], by the index of the coordinate; without angles of ball and
        free joints.
    """

    frames: Frames
    coordinates: dict[int, Array]


def measure(joints: Sequence[JointKinematics], placed: Frames, parameters: Array) -> Measured:
    """Return the joint coordinates; exact on the constraint manifold of the joints.

    Parameters
    ----------
    joints
        Joint of each body to its parent.
    placed
        Poses of the bodies.
    parameters
        Parameters of the mechanism.
    """
    found = Measured(Frames(placed.rotation, placed.origin, {}, {}), {})
    for body, joint in enumerate(joints):
        _measure_joint(found, body, joint, parameters)
    return found


def is_measurable(joint: JointKinematics) -> bool:
    """Return whether poses of the bodies determine the angles of a joint: of one hinge, or of two across each other."""
    axes = [hinge.axis for hinge in joint.hinges]
    return len(axes) < 2 or (len(axes) == 2 and bool(np.linalg.norm(cross(*axes)) > _PARALLEL))


def _measure_joint(found: Measured, body: int, joint: JointKinematics, parameters: Array) -> None:
    frames, hinges = found.frames, joint.hinges
    inner = frames.orientation(joint.parent)
    # Rotation of the hinges, in the inner body's frame.
    turned = inner.T @ frames.orientation(body) @ joint.orientation.T
    here = frames.point(joint.parent, joint.inner.of(parameters))
    there = frames.point(body, joint.outer.of(parameters))
    gap = inner.T @ (there - here)
    passed = 0
    axes: dict[int, Array] = {}
    for element in joint.elements:
        # Identity before the first hinge, the whole rotation after the last; a hinge does not turn its own axis.
        index, axis = element.coordinate, element.axis
        if element.slides and passed == 1 and len(hinges) == 2:
            axis = _turned_by(hinges[0], found.coordinates) @ axis
        elif passed:
            axis = turned @ axis
        if not element.slides and len(hinges) < 3:
            found.coordinates[index] = _angle(element, hinges, turned)
        if element.slides or len(hinges) < 3:
            axes[index] = axis
            frames.axis[index] = inner @ axis
        passed += not element.slides
    slides = [element.coordinate for element in joint.elements if element.slides]
    along = [axes[index] for index in slides]
    for index, dual in zip(slides, along if joint.is_orthogonal else dual_basis(along), strict=True):
        found.coordinates[index] = dual @ gap
    place = here
    for element in joint.elements:
        index = element.coordinate
        if joint.is_orthogonal:  # with slides first, it rotates about the outer body's point
            frames.joint_point[index] = there if joint.elements[0].slides else here
            continue
        frames.joint_point[index] = place
        if element.slides:
            place = place + frames.axis[index] * found.coordinates[index]


def _turned_by(hinge: ElementKinematics, coordinates: Mapping[int, Array]) -> Array:
    return rotation_about(hinge.axis, coordinates[hinge.coordinate])


def _angle(hinge: ElementKinematics, hinges: Sequence[ElementKinematics], turned: Array) -> Array:
    """Return the angle of a hinge of a joint with one or two hinges, in rad."""
    if len(hinges) == 1:
        first, second = perpendicular(hinge.axis)
        return np.arctan2(second @ (turned @ first), first @ (turned @ first))
    outer, inner = hinges[1].axis, hinges[0].axis
    normal, cosine = cross(inner, outer), inner @ outer
    if hinge is hinges[0]:  # the second axis gives the angle of the first hinge, and so on
        there = turned @ outer
        return np.arctan2(normal @ there, outer @ there - cosine * (inner @ there))
    there = turned.T @ inner
    return np.arctan2(normal @ there, inner @ there - cosine * (outer @ there))


def unwound(angle: Array, near: Array) -> Array:
    """Return the angle in rad plus full turns, within half a turn of a reference angle."""
    return near + np.arctan2(np.sin(angle - near), np.cos(angle - near))


class JointCoordinate(ABC):
    """A coordinate of a joint."""

    @abstractmethod
    def motion(self, motion: MotionState, parameters: Array) -> JointMotion:
        """Return the coordinate and its rate."""

    @abstractmethod
    def add_load(self, loads: Loads, load: Array, motion: MotionState, parameters: Array) -> None:
        """Add a load along it in N m or N: on the joint's child, and the opposite on the parent."""


@dataclass(frozen=True)
class TreeCoordinate(JointCoordinate):
    """One of the coordinates of the equations of motion.

    Attributes
    ----------
    index
        Its index among them.
    """

    index: int

    def motion(self, motion: MotionState, parameters: Array) -> JointMotion:  # noqa: ARG002
        """Return where it is and its rate."""
        return JointMotion(motion.coordinates[self.index], motion.velocities[self.index])

    def add_load(self, loads: Loads, load: Array, motion: MotionState, parameters: Array) -> None:  # noqa: ARG002
        """Add a load along it."""
        loads.add_in_joint(self.index, load)


class _End(NamedTuple):
    """A point of a joint: index of its body, -1 for the ground, and the point."""

    body: int
    point: PointSlot


class Measure(Protocol):
    """A quantity measured from the points of a joint, like a `ClosureEquation` without rates of wrenches."""

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the measured value, a scalar."""
        ...

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the wrenches of a unit load along it on parent and child, each of shape (6,)."""
        ...


class MeasuredCoordinate(JointCoordinate):
    """Coordinate of a cut, ball or free joint, computed from the poses of parent and child.

    Its rate is the exact derivative of the measured value, so that the work of a load equals load times rate, also off
    the constraint manifold. Angles are within ±π.

    Parameters
    ----------
    measure
        Measured quantity of the joint's points.
    parent, child
        The points on both bodies.
    """

    def __init__(self, measure: Measure, parent: _End, child: _End) -> None:
        self._measure = measure
        self._ends = parent, child

    def motion(self, motion: MotionState, parameters: Array) -> JointMotion:
        """Return where it is and its rate."""
        parent, child = self._placed(motion, parameters)
        rates = [
            wrench @ body_velocity(motion.body_velocities, end.body)
            for wrench, end in zip(self._measure.wrenches(parent, child), self._ends, strict=True)
        ]
        return JointMotion(self._measure.value(parent, child), rates[0] + rates[1])

    def add_load(self, loads: Loads, load: Array, motion: MotionState, parameters: Array) -> None:
        """Add a load along it."""
        for wrench, end in zip(self._measure.wrenches(*self._placed(motion, parameters)), self._ends, strict=True):
            loads.add_wrench(end.body, load * wrench)

    def _placed(self, motion: MotionState, parameters: Array) -> tuple[BodyPoint, BodyPoint]:
        parent, child = (
            point_of_body(motion.frames, body_velocity(motion.body_velocities, body), body, point.of(parameters))
            for body, point in self._ends
        )
        return parent, child


@dataclass(frozen=True)
class _Turn:
    """Angle from multiples of its sine and cosine; within ±π."""

    sine: Angle
    cosine: Angle

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the angle in rad."""
        return np.arctan2(self.sine.value(parent, child), self.cosine.value(parent, child))

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return the moments, as wrenches."""
        sine, cosine = self.sine.value(parent, child), self.cosine.value(parent, child)
        of_sine, of_cosine = self.sine.wrenches(parent, child), self.cosine.wrenches(parent, child)
        one, other = (
            (cosine * by_sine - sine * by_cosine) / (sine**2 + cosine**2)
            for by_sine, by_cosine in zip(of_sine, of_cosine, strict=True)
        )
        return one, other


@dataclass(frozen=True)
class _Lean:
    """Angle within ±π/2 from its sine."""

    sine: Angle

    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the angle in rad."""
        return np.arcsin(np.clip(self.sine.value(parent, child), -1.0, 1.0))

    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return moments."""
        cosine = np.sqrt(np.maximum(1.0 - self.sine.value(parent, child) ** 2, 1e-24))
        one, other = (wrench / cosine for wrench in self.sine.wrenches(parent, child))
        return one, other


def coordinate_at(mechanism: Mechanism, points: Points, reference: str) -> JointCoordinate:
    """Return the joint coordinate for `joint` or `joint.coordinate`.

    Raises
    ------
    DataError
        If it cannot be measured.
    """
    joint, index = mechanism.joint_element(reference)
    body = mechanism.topology.body_of_joint(joint.name)
    if body is not None and not joint.turns_freely:
        return TreeCoordinate(mechanism.topology.tree[body].coordinates[index])
    ends = (_End(*body_and_point(mechanism, points, end)) for end in (joint.parent, joint.child))
    return MeasuredCoordinate(_measure(joint, index), *ends)


def _measure(joint: Joint, index: int) -> Measure:
    """Return the measurement of a joint coordinate from the joint's points."""
    element = joint.elements[index]
    hinges = [unit(each.axis) for each in joint.elements if not each.slides]
    turned_before = any(not each.slides for each in joint.elements[:index])
    square = np.allclose(np.abs(np.stack(hinges) @ np.stack(hinges).T), np.eye(len(hinges))) if hinges else True
    if (element.slides and turned_before) or not square:
        raise DataError(
            f"{joint.type} '{joint.name}' closes a loop; its coordinate '{joint.coordinate_names[index]}' cannot be "
            "measured there, for slides must come before hinges, and hinges be perpendicular"
        )
    if element.slides:
        slides = [number for number, each in enumerate(joint.elements) if each.slides]
        return Offset(dual_basis([unit(joint.elements[number].axis) for number in slides])[slides.index(index)])
    back = turned_back(joint.orientation)

    def product(one: Array, other: Array, factor: float = 1.0) -> Angle:
        """Return one · T other, where T is the rotation of the hinges."""
        return Angle(((one, back @ other, factor),))

    place = sum(not each.slides for each in joint.elements[:index])
    if len(hinges) == 1:
        first, second = perpendicular(hinges[0])
        return _Turn(product(second, first), product(first, first))
    if len(hinges) == 2:
        inner, outer = hinges
        normal = cross(inner, outer)
        # The second axis gives the angle of the first hinge, the first axis that of the second hinge.
        return (
            _Turn(product(inner, normal), product(inner, inner))
            if place
            else _Turn(product(normal, outer), product(outer, outer))
        )
    one, two, three = hinges
    return (
        _Turn(product(two, three, -1.0), product(three, three)),
        _Lean(product(one, three)),
        _Turn(product(one, two, -1.0), product(one, one)),
    )[place]
