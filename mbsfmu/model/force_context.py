"""Evaluation contexts of forces and sensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from mbsfmu.model.numbers import Numbers
from mbsfmu.modelling import Array, DataError, closest_match


class BodyPoint(NamedTuple):
    """Position and motion of a body's point in the inertial frame.

    Attributes
    ----------
    position
        In m, shape (3,).
    velocity
        In m/s, shape (3,).
    rotation
        Rotation matrix of the body, from its frame to the inertial frame, shape (3, 3).
    angular_velocity
        Of the body in rad/s, shape (3,).
    """

    position: Array
    velocity: Array
    rotation: Array
    angular_velocity: Array


class PointAcceleration(NamedTuple):
    """Acceleration of a body's point in the inertial frame.

    Attributes
    ----------
    linear
        Acceleration of the point, the rate of its velocity, in m/s², shape (3,).
    angular
        Angular acceleration of the body in rad/s², shape (3,).
    """

    linear: Array
    angular: Array


class JointMotion(NamedTuple):
    """Coordinate and rate of a joint with one coordinate.

    Attributes
    ----------
    coordinate, rate
        In rad and rad/s where it turns, in m and m/s where it only slides; scalars.
    """

    coordinate: Array
    rate: Array


class ForceContext(Numbers):
    """Variables of a force by their short names, and its points and joints by field names.

    `now["stiffness"]` is a parameter, a state or an input of the force, `now.point("start")` the point of its field
    `start`.

    Parameters
    ----------
    owner
        Type and name of the force, for messages.
    numbers
        Return the force's own numbers, by short name.
    points, joints
        Return where the points are, and the motions of the joints, by the field that names them; empty while nothing
        has a place yet.
    """

    def __init__(
        self,
        owner: str,
        numbers: Mapping[str, Callable[[], Array]],
        points: Mapping[str, Callable[[], BodyPoint]],
        joints: Mapping[str, Callable[[], JointMotion]],
    ) -> None:
        super().__init__(owner, numbers)
        self._points = points
        self._joints = joints

    def point(self, field: str) -> BodyPoint:
        """Return position and motion of the point of a field."""
        if field not in self._points:
            raise DataError(f"{self._owner} has no point '{field}' here; {closest_match(field, self._points)}")
        return self._points[field]()

    def joint(self, field: str) -> JointMotion:
        """Return coordinate and rate of the joint of a field."""
        if field not in self._joints:
            raise DataError(f"{self._owner} has no joint '{field}' here; {closest_match(field, self._joints)}")
        return self._joints[field]()


class SensorContext(ForceContext):
    """Evaluation context of a sensor, with accelerations.

    Parameters
    ----------
    owner, numbers, points, joints
        As there.
    accelerations
        Return the accelerations of the points, by the field that names them.
    """

    def __init__(
        self,
        owner: str,
        numbers: Mapping[str, Callable[[], Array]],
        points: Mapping[str, Callable[[], BodyPoint]],
        joints: Mapping[str, Callable[[], JointMotion]],
        accelerations: Mapping[str, Callable[[], PointAcceleration]],
    ) -> None:
        super().__init__(owner, numbers, points, joints)
        self._accelerations = accelerations

    def acceleration(self, field: str) -> PointAcceleration:
        """Return the accelerations of the point of a field, and of its body."""
        if field not in self._accelerations:
            raise DataError(f"{self._owner} has no point '{field}' here; {closest_match(field, self._accelerations)}")
        return self._accelerations[field]()
