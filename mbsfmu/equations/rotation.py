"""Rotations and cross products for numbers and symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.modelling.fields import Array


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
