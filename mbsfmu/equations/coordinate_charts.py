"""Coordinate charts of ball and free joints: Cardan angles between two quaternions.

A reference is two quaternions, that of an inner frame, L, and of an outer one, C. With the orthonormal, right-handed
hinge axes a₁, a₂, a₃ the rotation is R = L R(a₁, θ₁) R(a₂, θ₂) R(a₃, θ₃) C, and ω = A θ̇ in the inner frame with A =
[a₁, R₁ a₂, R₁ R₂ a₃]. A is singular at θ₂ = ±π/2 only (gimbal lock). Well before that the present orientation becomes
the reference: a change of coordinates, exact except for round-off.

A does not depend on θ₃. The third axis of a new reference is therefore the present axis of rotation: θ₃ of a rotor
grows evenly, and θ₁ and θ₂ are the tilts of its axis, which move slowly. Rates about axes that turn with the rotor
would have errors of (h ω)²/12 in each step of the trapezoidal rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mbsfmu.equations.rotation import (
    cross,
    quaternion_about,
    quaternion_conjugate,
    quaternion_product,
    rotation_about,
    rotation_from_quaternion,
)
from mbsfmu.modelling.fields import Array

NEAR_GIMBAL_LOCK = 1.0
"""Second angle in rad beyond which the reference changes."""
LOST = 1e-4
"""Angle about the first two axes, times the square of what is turned about these in a step, from which on the reference
changes, where the body turns less about the third: a rule of second order loses a twelfth of it of the rates."""
ALONG = 0.98
"""Cosine of the angle to an axis of the outer body's frame below which that is no axis of rotation: a rotor turns about
such an axis, and its angular velocity is a little off it as long as the axis tilts."""
NO_TURN = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
"""The reference without rotation."""
REFERENCE = len(NO_TURN)
"""Numbers of a reference: quaternions (w, x, y, z) of the inner and the outer frame."""


@dataclass(frozen=True)
class ChartedMotion:
    """Coordinates, rates, momenta and reference of one ball or free joint.

    Attributes
    ----------
    coordinates, velocities, accelerations
        θ, θ̇ and θ̈, each of shape (3,).
    momenta
        Canonical momenta of θ, shape (3,).
    reference
        Quaternions of the inner and the outer frame, shape (8,).
    """

    coordinates: Array
    velocities: Array
    accelerations: Array
    momenta: Array
    reference: Array


def orientation(axes: list[Array], angles: Array, reference: Array) -> Array:
    """Return the unit quaternion (w, x, y, z) of the present orientation, shape (4,)."""
    quaternion = reference[:4]
    for axis, angle in zip(axes, angles, strict=True):
        quaternion = quaternion_product(quaternion, quaternion_about(axis, angle))
    quaternion = quaternion_product(quaternion, reference[4:])
    return quaternion / np.sqrt(quaternion @ quaternion)


def cardan_angles(rotation: Array) -> Array:
    """Return the Cardan angles about x, y and z of a rotation matrix, shape (3,).

    The second one is within ±π/2; at these limits the other two are undetermined.
    """
    return np.stack(
        [
            np.arctan2(-rotation[1, 2], rotation[2, 2]),
            np.arctan2(rotation[0, 2], np.hypot(rotation[0, 0], rotation[0, 1])),
            np.arctan2(-rotation[0, 1], rotation[0, 0]),
        ]
    )


def angle_rates(axes: list[Array], angles: Array, angular_velocity: Array) -> Array:
    """Return θ̇ = A⁻¹ ω, shape (3,), from the angular velocity in the frame of the first hinge."""
    turned = rotation_about(axes[0], angles[0]).T @ angular_velocity
    third = axes[2] @ turned / np.cos(angles[1])
    return np.stack([axes[0] @ turned - np.sin(angles[1]) * third, axes[1] @ turned, third])


def with_present_references(axes: list[Array], turning: ChartedMotion) -> ChartedMotion:
    """Return the same motion with the present orientation as reference and the third axis along the rotation.

    The new coordinates are zero; θ̇ are the components of ω along the axes, and the momenta those of the angular
    momentum. Where the outer body rotates nearly about an axis of its frame, that is the third axis.
    """
    first, second, third = (rotation_about(axis, turning.coordinates[index]) for index, axis in enumerate(axes))
    turned = (first @ (second @ third)).T @ _Turning.of(axes, turning).velocity
    square = turned @ turned
    moves = square > 0.0
    towards = np.where(moves, turned / np.sqrt(np.where(moves, square, 1.0)), axes[2])
    outer = rotation_from_quaternion(turning.reference[4:])
    for axis in axes:
        own = outer @ axis
        towards = np.where((own @ towards) ** 2 > ALONG**2, own, towards)
    towards = np.where(towards @ axes[2] < 0.0, -1.0, 1.0) * towards
    # The shortest rotation of this direction to the third axis, by a right angle at most.
    shortest = np.concatenate([np.stack([1.0 + towards @ axes[2]]), cross(towards, axes[2])])
    shortest = shortest / np.sqrt(shortest @ shortest)
    present = orientation(axes, turning.coordinates, turning.reference)
    behind = quaternion_product(shortest, turning.reference[4:])
    behind = behind / np.sqrt(behind @ behind)
    inner = quaternion_product(present, quaternion_conjugate(behind))
    return _described(axes, turning, np.concatenate([inner, behind]), np.zeros(3))


def with_reference(axes: list[Array], turning: ChartedMotion, reference: Array) -> ChartedMotion:
    """Return the same motion with another reference."""
    present = orientation(axes, turning.coordinates, turning.reference)
    between = quaternion_product(quaternion_conjugate(reference[:4]), present)
    relative = rotation_from_quaternion(quaternion_product(between, quaternion_conjugate(reference[4:])))
    frame = np.stack(axes, axis=1)
    return _described(axes, turning, reference, cardan_angles(frame.T @ (relative @ frame)))


def _described(axes: list[Array], turning: ChartedMotion, reference: Array, angles: Array) -> ChartedMotion:
    """Return the same motion with another reference, from which the angles are known."""
    between = quaternion_product(quaternion_conjugate(reference[:4]), turning.reference[:4])
    carry = rotation_from_quaternion(between)
    before = _Turning.of(axes, turning)
    velocities = angle_rates(axes, angles, carry @ before.velocity)
    columns = _columns(axes, angles)
    remaining = carry @ before.acceleration - _quadratic(columns, velocities)
    momentum = carry @ before.momentum
    momenta = np.stack([column @ momentum for column in columns])
    return ChartedMotion(angles, velocities, angle_rates(axes, angles, remaining), momenta, reference)


@dataclass(frozen=True)
class _Turning:
    """Angular velocity, acceleration and momentum in the inner frame, each of shape (3,)."""

    velocity: Array
    acceleration: Array
    momentum: Array

    @classmethod
    def of(cls, axes: list[Array], turning: ChartedMotion) -> Self:
        """Return them from angles, their rates and momenta."""
        one, two, three = columns = _columns(axes, turning.coordinates)
        rates, second = turning.velocities, turning.accelerations
        velocity = one * rates[0] + two * rates[1] + three * rates[2]
        acceleration = one * second[0] + two * second[1] + three * second[2] + _quadratic(columns, rates)
        # A⁻ᵀ p in the frame after the first hinge.
        sine, cosine = np.sin(turning.coordinates[1]), np.cos(turning.coordinates[1])
        p = turning.momenta
        momentum = axes[0] * p[0] + axes[1] * p[1] + axes[2] * ((p[2] - sine * p[0]) / cosine)
        return cls(velocity, acceleration, rotation_about(axes[0], turning.coordinates[0]) @ momentum)


def _columns(axes: list[Array], angles: Array) -> list[Array]:
    """Return the columns of A."""
    first, second = (rotation_about(axis, angles[index]) for index, axis in enumerate(axes[:2]))
    return [axes[0], first @ axes[1], first @ (second @ axes[2])]


def _quadratic(axes: list[Array], rates: Array) -> Array:
    """Return Ȧ θ̇ from the present directions of the axes."""
    inner = axes[0] * rates[0]
    return cross(inner, axes[1]) * rates[1] + cross(inner + axes[1] * rates[1], axes[2]) * rates[2]
