"""Constraint equations of joints between two handles.

A handle's motion is an array of position (3), velocity (3), unit quaternion w, x, y, z (4) and angular velocity (3) in
the inertial frame. With the velocities V = (v, ω) of both, the rates of the constraints are G₁ V₁ + G₂ V₂; multipliers
λ load the handles by the wrenches G₁ᵀ λ and G₂ᵀ λ (force, moment), which do no work together.

Gaps and rows are found in plain numbers, in the order of `compiled/joint_equations.h`, for the same result to the last
bit; that is also many times as fast as in arrays of three.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.cosim.coupling.coupled_joint import CoupledJoint
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.equations.rotation import perpendicular, rotation_elements, unit

POSITION, VELOCITY, QUATERNION, ANGULAR_VELOCITY = slice(0, 3), slice(3, 6), slice(6, 10), slice(10, 13)
Vector = Sequence[float]
Matrix = Sequence[Vector]
MOTION = 13
"""Length of the array of a handle's motion."""


class JointEquations:
    """Equations of one joint.

    Parameters
    ----------
    joint
        The joint.

    Attributes
    ----------
    count
        Number of its constraints.
    turns
        Whether orientations matter.
    are_moments
        Which multipliers are moments, shape (count,); the others are forces.
    reference
        How the handles stood at the start, shape (2, 3, 3): the rotation matrix from the second body to the first one,
        and as rows, in the first body, the axis of the joint and two unit vectors perpendicular to it (of a joint
        without an axis the axes of the body). `begin` sets it.
    """

    def __init__(self, joint: CoupledJoint) -> None:
        self.kind = joint.kind
        self._axis = None if joint.axis is None else unit(joint.axis)
        self.count = {"spherical": 3, "revolute": 5, "prismatic": 5, "fixed": 6}[joint.kind]
        self.turns = joint.kind != "spherical"
        self.are_moments = np.arange(self.count) >= (2 if joint.kind == "prismatic" else 3)
        self.reference = np.stack([np.eye(3), np.eye(3)])
        none = np.zeros((3, 3))
        self._straight = np.hstack([-np.eye(3), none]), np.hstack([np.eye(3), none])

    def begin(self, first: Floats, second: Floats) -> None:
        """Take the motions of the handles at the start, from which angles are counted."""
        axes = np.eye(3)
        if self._axis is not None:
            axes = np.stack([self._axis, *perpendicular(self._axis)])
        self.reference[:] = rotation(first).T @ rotation(second), axes

    def gap(self, first: Floats, second: Floats) -> Floats:
        """Return what the joint is open by, in m and rad, shape (count,)."""
        apart = _difference(second, first)
        if not self.turns:
            return np.array(apart)
        inner, outer = _elements(first), _elements(second)
        if self.kind == "revolute":
            carried = self._carried(outer)
            return np.array([*apart, *(_dot(normal, carried) for normal in self._normals(inner))])
        angles = self._angles(inner, outer)
        if self.kind == "prismatic":
            return np.array([*(_dot(normal, apart) for normal in self._normals(inner)), *angles])
        return np.array([*apart, *angles])

    def rows(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Return G₁ and G₂, each of shape (count, 6)."""
        if not self.turns:
            return self._straight
        inner = _elements(first)
        begins, ends = np.zeros((self.count, 6)), np.zeros((self.count, 6))
        turning = self.are_moments
        if self.kind == "prismatic":
            apart, normals = _difference(second, first), self._normals(inner)
            ends[:2, :3] = normals
            begins[:2, :3] = -ends[:2, :3]
            begins[:2, 3:] = [[-each for each in _crossed(apart, normal)] for normal in normals]
        else:
            begins[:3], ends[:3] = self._straight
        if self.kind == "revolute":
            carried = self._carried(_elements(second))
            ends[turning, 3:] = [_crossed(carried, normal) for normal in self._normals(inner)]
        else:
            ends[turning, 3:] = list(zip(*inner, strict=True))
        begins[turning, 3:] = -ends[turning, 3:]
        return begins, ends

    def _normals(self, inner: Matrix) -> list[Vector]:
        """Return the two vectors perpendicular to the axis, as the first body carries them."""
        return [_turned(inner, axis) for axis in self.reference[1, 1:].tolist()]

    def _carried(self, outer: Matrix) -> Vector:
        """Return the axis of a revolute joint as the second body carries it."""
        x, y, z = self.reference[1, 0].tolist()
        return _turned(outer, [a * x + b * y + c * z for a, b, c in zip(*self.reference[0].tolist(), strict=True)])

    def _angles(self, inner: Matrix, outer: Matrix) -> Vector:
        """Return the angles by which the second body's orientation is off, about the axes of the first one."""
        reference = self.reference[0].tolist()
        back = [[_dot(row, other) for other in reference] for row in outer]
        off = [[_dot(column, other) for other in zip(*back, strict=True)] for column in zip(*inner, strict=True)]
        return [0.5 * (off[2][1] - off[1][2]), 0.5 * (off[0][2] - off[2][0]), 0.5 * (off[1][0] - off[0][1])]

    def rate(self, first: Floats, second: Floats) -> Floats:
        """Return the velocities over the constraints in m/s and rad/s, shape (count,)."""
        if not self.turns:
            return second[VELOCITY] - first[VELOCITY]
        inner, outer = self.rows(first, second)
        return inner @ speeds(first) + outer @ speeds(second)

    def bias(self, first: Floats, second: Floats) -> Floats:
        """Return Ġ₁ V₁ + Ġ₂ V₂ in m/s² and rad/s², shape (count,): with G a it is the constraints' acceleration."""
        straight = np.zeros(3)
        if not self.turns:
            return straight
        spin, faster = first[ANGULAR_VELOCITY], second[ANGULAR_VELOCITY]
        relative = faster - spin
        axes = self.reference[1] @ rotation(first).T
        if self.kind == "revolute":
            axis = self._outer_axis(second)
            normals = axes[1:]
            changing = _cross(_cross(faster, axis), normals) + _cross(axis, _cross(spin, normals))
            return np.concatenate([straight, changing @ relative])
        turning = _cross(spin, rotation(first).T) @ relative
        if self.kind == "prismatic":
            apart, passing = second[POSITION] - first[POSITION], second[VELOCITY] - first[VELOCITY]
            moving = _cross(spin, axes[1:])
            straight = 2.0 * moving @ passing + _cross(spin, moving) @ apart
        return np.concatenate([straight, turning])

    def _outer_axis(self, second: Floats) -> Floats:
        """Return the axis of a revolute joint as the second body carries it, in the inertial frame, shape (3,)."""
        return rotation(second) @ (self.reference[0].T @ self.reference[1][0])


def _cross(vector: Floats, others: Floats) -> Floats:
    """Return the cross products of a vector with another one, or with the rows of a matrix."""
    x, y, z = vector
    return others @ np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # many times as fast as NumPy's


def _elements(motion: Floats) -> Matrix:
    """Return the rotation matrix of a handle's body, row by row."""
    return rotation_elements(*motion[QUATERNION].tolist())


def _difference(second: Floats, first: Floats) -> Vector:
    """Return the vector from one handle to the other one."""
    return (second[POSITION] - first[POSITION]).tolist()


def _dot(one: Vector, other: Vector) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def _turned(matrix: Matrix, vector: Vector) -> Vector:
    return [_dot(row, vector) for row in matrix]


def _crossed(one: Vector, other: Vector) -> Vector:
    return [
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    ]


def rotation(motion: Floats) -> Floats:
    """Return the rotation matrix of a handle's body, shape (3, 3)."""
    return np.array(_elements(motion))


def speeds(motion: Floats) -> Floats:
    """Return velocity and angular velocity of a handle, shape (6,)."""
    return np.concatenate([motion[VELOCITY], motion[ANGULAR_VELOCITY]])
