"""Rotations, poses and motion of points, for numbers and symbols.

Poses of bodies, and motion of their points.

Velocities and accelerations of a body are those of its point that coincides with the origin of the inertial frame at
that time, together with the angular ones: Z = (ṡ, ω) [Jaiswal2021, eq. 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.model.force import BodyPoint
from mbsfmu.modelling.data import Array


def stack(scalars: Sequence[Array | float]) -> Array:
    """Stack scalars to a vector, which may be empty."""
    return np.stack(scalars) if scalars else np.zeros(0)


def cut(vector: Array, sizes: Sequence[int]) -> list[Array]:
    """Return pieces of a vector with the given sizes, empty ones included."""
    return [vector[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def dual_basis(vectors: Sequence[Array]) -> list[Array]:
    """Return vectors whose product with the given ones is one for the one of the same place, zero for the others.

    They are the columns of H (Hᵀ H)⁻¹, in the span of H: with H = Q R, orthogonal columns of Q and a unit diagonal of
    R, they are those of Q (Qᵀ Q)⁻¹ R⁻ᵀ, without the squared condition number of Hᵀ H.

    Parameters
    ----------
    vectors
        The columns of H, independent of each other, each of shape (n,).
    """
    orthogonal: list[Array] = []
    factors: list[list[Array]] = []  # of each column, of those before it
    for each in vectors:
        rest, own = each, []
        for before in orthogonal:
            own.append((before @ rest) / (before @ before))
            rest = rest - before * own[-1]
        orthogonal.append(rest)
        factors.append(own)
    found: list[Array] = []  # from the last to the first
    for number in reversed(range(len(orthogonal))):
        rest = orthogonal[number] / (orthogonal[number] @ orthogonal[number])
        for later, dual in zip(range(len(orthogonal) - 1, number, -1), found, strict=True):
            rest = rest - dual * factors[later][number]
        found.append(rest)
    return found[::-1]


def unit(vector: ArrayLike) -> Array:
    """Return the unit vector of a constant vector, shape (3,)."""
    direction = np.asarray(vector, dtype=float)
    return np.asarray(direction / np.linalg.norm(direction))


def perpendicular(axis: Array) -> tuple[Array, Array]:
    """Return two unit vectors that complete a constant unit axis to a right-handed frame, each shape (3,).

    The first one is in the plane of the axis and the coordinate axis that is least aligned with it. An axis along x, y
    or z gives coordinate axes again, and their zeros are removed in tracing.
    """
    helper = np.eye(3)[np.argmin(np.abs(axis))]
    first = unit(np.cross(helper, axis))
    return first, np.cross(axis, first)


def cross(a: Array, b: Array) -> Array:
    """Return the cross product of two vectors, shape (3,)."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rotation_about(axis: Array, angle: Array) -> Array:
    """Return the rotation matrix about a constant unit axis, shape (3, 3) (Rodrigues' formula).

    Parameters
    ----------
    axis
        Unit vector, shape (3,).
    angle
        In rad, a scalar.
    """
    along_axis = np.outer(axis, axis)
    skew = np.cross(np.eye(3), axis)
    return along_axis + np.cos(angle) * (np.eye(3) - along_axis) + np.sin(angle) * skew


def rotation_from_vector(vector: ArrayLike) -> Array:
    """Return the rotation matrix of a constant rotation vector in rad, shape (3, 3)."""
    angle = float(np.linalg.norm(vector))
    return np.eye(3) if angle == 0.0 else rotation_about(unit(vector), np.asarray(angle))


def quaternion_from_vector(vector: ArrayLike) -> Array:
    """Return the unit quaternion (w, x, y, z) of a constant rotation vector in rad, shape (4,)."""
    angle = float(np.linalg.norm(vector))
    return np.array([1.0, 0.0, 0.0, 0.0]) if angle == 0.0 else quaternion_about(unit(vector), np.asarray(angle))


def rotation_from_quaternion(quaternion: Array) -> Array:
    """Return the rotation matrix of a unit quaternion (w, x, y, z), shape (3, 3)."""
    return np.stack([np.stack(row) for row in rotation_elements(*quaternion)])


def rotation_elements(w: Any, x: Any, y: Any, z: Any) -> list[list[Any]]:
    """Return the elements of the same row by row, of symbols or plain numbers."""
    return [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]


def quaternion_from_rotation(rotation: Array) -> Array:
    """Return the unit quaternion (w, x, y, z) with w ≥ 0 of a rotation matrix, shape (4,).

    Each row of 4 q qᵀ is a multiple of it; that with the largest diagonal element has no cancellation [Shepperd1978].
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    rows = [
        [1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
        [zy - yz, 1.0 + xx - yy - zz, yx + xy, xz + zx],
        [xz - zx, yx + xy, 1.0 - xx + yy - zz, zy + yz],
        [yx - xy, xz + zx, zy + yz, 1.0 - xx - yy + zz],
    ]
    chosen, most = np.stack(rows[0]), rows[0][0]
    for index, row in enumerate(rows[1:], start=1):
        larger = row[index] > most
        chosen, most = np.where(larger, np.stack(row), chosen), np.where(larger, row[index], most)
    return chosen * np.where(chosen[0] < 0.0, -1.0, 1.0) / np.sqrt(chosen @ chosen)


def vector_from_rotation(rotation: Array) -> Array:
    """Return the rotation vector in rad of a rotation matrix, shape (3,), for angles up to π; discontinuous there.

    It is 2 arcsin(s)/s times the vector part of the quaternion, of length s; a series for small angles.
    """
    quaternion = quaternion_from_rotation(rotation)
    vector = quaternion[1:]
    square = vector @ vector
    small = square < 1e-3
    sine = np.sqrt(np.where(small, 1.0, square))
    far = np.arctan2(sine, quaternion[0]) / sine
    near = 1.0 + square / 6.0 + 3.0 * square**2 / 40.0 + 5.0 * square**3 / 112.0 + 35.0 * square**4 / 1152.0
    return 2.0 * np.where(small, near, far) * vector


def quaternion_about(axis: Array, angle: Array) -> Array:
    """Return the unit quaternion (w, x, y, z) of a rotation about a constant unit axis, shape (4,)."""
    half = 0.5 * angle
    return np.concatenate([np.stack([np.cos(half)]), np.sin(half) * axis])


def quaternion_conjugate(quaternion: Array) -> Array:
    """Return the quaternion of the inverse rotation, shape (4,)."""
    return np.concatenate([quaternion[:1], -quaternion[1:]])


def quaternion_product(first: Array, second: Array) -> Array:
    """Return the quaternion of the rotation `first` followed by `second` in the rotated frame, shape (4,)."""
    a, b = first[0], second[0]
    u, v = first[1:], second[1:]
    return np.concatenate([np.stack([a * b - u @ v]), a * v + b * u + cross(u, v)])


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
