"""Constraint equations of joints between two handles.

A handle's motion is an array of position (3), velocity (3), unit quaternion w, x, y, z (4) and angular velocity (3) in
the inertial frame. With the velocities V = (v, ω) of both, the rates of the constraints are G₁ V₁ + G₂ V₂; multipliers
λ load the handles by the wrenches G₁ᵀ λ and G₂ᵀ λ (force, moment), which do no work together.
"""

from __future__ import annotations

import numpy as np

from mbsfmu.cosim.coupling.coupled_joint import CoupledJoint
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.equations.rotation import perpendicular, rotation_elements, unit

POSITION, VELOCITY, QUATERNION, ANGULAR_VELOCITY = slice(0, 3), slice(3, 6), slice(6, 10), slice(10, 13)
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
        self.reference = np.stack([rotation(first).T @ rotation(second), axes])

    def gap(self, first: Floats, second: Floats) -> Floats:
        """Return what the joint is open by, in m and rad, shape (count,)."""
        apart = second[POSITION] - first[POSITION]
        if not self.turns:
            return apart
        inner = rotation(first)
        turned = inner.T @ rotation(second) @ self.reference[0].T
        axes = self.reference[1]
        if self.kind == "revolute":
            return np.concatenate([apart, axes[1:] @ (turned @ axes[0])])
        angles = 0.5 * np.array([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]])
        if self.kind == "prismatic":
            return np.concatenate([axes[1:] @ (inner.T @ apart), angles])
        return np.concatenate([apart, angles])

    def rows(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Return G₁ and G₂, each of shape (count, 6)."""
        if not self.turns:
            return self._straight
        inner = rotation(first)
        axes = self.reference[1] @ inner.T
        begins, ends = np.zeros((self.count, 6)), np.zeros((self.count, 6))
        shifting, turning = ~self.are_moments, self.are_moments
        if self.kind == "prismatic":
            normals = axes[1:]
            ends[shifting, :3] = normals
            begins[shifting, :3] = -normals
            begins[shifting, 3:] = -_cross(second[POSITION] - first[POSITION], normals)
        else:
            begins[:3], ends[:3] = self._straight
        ends[turning, 3:] = _cross(self._outer_axis(second), axes[1:]) if self.kind == "revolute" else inner.T
        begins[turning, 3:] = -ends[turning, 3:]
        return begins, ends

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


def rotation(motion: Floats) -> Floats:
    """Return the rotation matrix of a handle's body, shape (3, 3)."""
    return np.array(rotation_elements(*motion[QUATERNION].tolist()))  # in numbers: many times as fast as in arrays


def speeds(motion: Floats) -> Floats:
    """Return velocity and angular velocity of a handle, shape (6,)."""
    return np.concatenate([motion[VELOCITY], motion[ANGULAR_VELOCITY]])
