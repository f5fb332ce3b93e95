"""Rotations and cross products for numbers and symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[Any]


def unit(vector: ArrayLike) -> Array:
    """Return the unit vector of a constant vector, shape (3,)."""
    direction = np.asarray(vector, dtype=float)
    return np.asarray(direction / np.linalg.norm(direction))


def perpendicular(axis: Array) -> tuple[Array, Array]:
    """Return two unit vectors that make a right-handed frame with a constant unit axis, each shape (3,).

    The first one lies in the plane of the axis and the coordinate axis that is least aligned with it, so that
    an axis along x, y or z gives coordinate axes again and its zeros fold away.
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
    return np.asarray(Rotation.from_rotvec(np.asarray(vector, dtype=float)).as_matrix())
