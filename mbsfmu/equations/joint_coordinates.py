"""Joint coordinates for sensors and loads: coordinates of the spanning tree, and measured ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.closure_equations import Angle, Offset, turned_back
from mbsfmu.equations.dual_basis import dual_basis
from mbsfmu.equations.frames import body_velocity, point_of_body
from mbsfmu.equations.loads import Loads, MotionState
from mbsfmu.equations.rotation import cross, perpendicular, unit
from mbsfmu.model.force_context import BodyPoint, JointMotion
from mbsfmu.model.joint import Joint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.modelling.fields import Array


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
