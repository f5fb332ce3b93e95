"""Poses of bodies, and motion of their points.

Velocities and accelerations of a body are those of its point that coincides with the origin of the inertial frame at
that time, together with the angular ones: Z = (ṡ, ω) [Jaiswal2021, eq. 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.rotation import cross
from mbsfmu.model.force_context import BodyPoint
from mbsfmu.modelling.fields import Array


@dataclass(frozen=True)
class Frames:
    """Poses of the bodies, and axes of the joint coordinates.

    Attributes
    ----------
    rotation
        Rotation matrix of each body, body to inertial frame, each shape (3, 3).
    origin
        Origin of each body's frame in the inertial frame in m, each shape (3,).
    axis
        Axis of each coordinate in the inertial frame, each shape (3,).
    joint_point
        A point of each coordinate's axis in the inertial frame in m, each shape (3,).
    """

    rotation: list[Array]
    origin: list[Array]
    axis: dict[int, Array]
    joint_point: dict[int, Array]

    def point(self, body: int, local: Array) -> Array:
        """Return a body's point in the inertial frame in m, shape (3,); body -1 is the ground."""
        return local if body < 0 else self.origin[body] + self.rotation[body] @ local

    def orientation(self, body: int) -> Array:
        """Return a body's rotation matrix, shape (3, 3); body -1 is the ground."""
        return np.eye(3) if body < 0 else self.rotation[body]


def point_velocity(velocity: Array, point: Array) -> Array:
    """Return the velocity in m/s of the body point at the position `point`, shape (3,)."""
    return velocity[:3] + cross(velocity[3:], point)


def point_acceleration(acceleration: Array, angular_velocity: Array, point: Array) -> Array:
    """Return the acceleration in m/s² of the body point at the position `point`, shape (3,) [Jaiswal2021, eq. 7]."""
    turning = cross(angular_velocity, cross(angular_velocity, point))
    return acceleration[:3] + cross(acceleration[3:], point) + turning


def point_of_body(frames: Frames, velocity: Array, body: int, local: Array) -> BodyPoint:
    """Return position and velocity of a body's point from the body's Z; body -1 is the ground."""
    position = frames.point(body, local)
    return BodyPoint(position, point_velocity(velocity, position), frames.orientation(body), velocity[3:])


def body_velocity(velocities: list[Array], body: int) -> Array:
    """Return Z, or Ż, of a body, zero for the ground (-1); shape (6,)."""
    return np.zeros(6) if body < 0 else velocities[body]
