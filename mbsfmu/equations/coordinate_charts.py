"""Coordinate charts of ball and free joints: Cardan angles relative to a reference quaternion.

With the orthonormal, right-handed hinge axes a₁, a₂, a₃, R = R(a₁, θ₁) R(a₂, θ₂) R(a₃, θ₃) is the rotation from the
reference orientation, and ω = A θ̇ with A = [a₁, R₁ a₂, R₁ R₂ a₃]. A is singular at θ₂ = ±π/2 only (gimbal lock). Well
before that the present orientation becomes the reference: a change of coordinates, exact except for round-off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.rotation import cross, quaternion_about, quaternion_product, rotation_about
from mbsfmu.modelling.fields import Array

NEAR_GIMBAL_LOCK = 1.0
"""Second angle in rad beyond which the reference quaternion changes."""


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
        Reference orientation (w, x, y, z), shape (4,).
    """

    coordinates: Array
    velocities: Array
    accelerations: Array
    momenta: Array
    reference: Array


def orientation(axes: list[Array], angles: Array, reference: Array) -> Array:
    """Return the unit quaternion (w, x, y, z) of the present orientation, shape (4,)."""
    for axis, angle in zip(axes, angles, strict=True):
        reference = quaternion_product(reference, quaternion_about(axis, angle))
    return reference / np.sqrt(reference @ reference)


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
    """Return the same motion with the present orientation as reference.

    The new coordinates are zero; θ̇ are the components of ω along the axes, and the momenta those of the angular
    momentum.
    """
    first, second, third = (rotation_about(axis, turning.coordinates[index]) for index, axis in enumerate(axes))
    one, two, three = axes[0], first @ axes[1], first @ (second @ axes[2])
    rates = turning.velocities
    angular_velocity = one * rates[0] + two * rates[1] + three * rates[2]
    angular_acceleration = (
        one * turning.accelerations[0]
        + two * turning.accelerations[1]
        + three * turning.accelerations[2]
        + _quadratic([one, two, three], rates)
    )
    # A⁻ᵀ p in the frame after the first hinge.
    sine, cosine = np.sin(turning.coordinates[1]), np.cos(turning.coordinates[1])
    p = turning.momenta
    momentum = axes[0] * p[0] + axes[1] * p[1] + axes[2] * ((p[2] - sine * p[0]) / cosine)
    present = first @ (second @ third)
    turned_back = present.T @ angular_velocity
    velocities = np.stack([axis @ turned_back for axis in axes])
    remaining = present.T @ angular_acceleration - _quadratic(axes, velocities)
    momentum = (second @ third).T @ momentum
    return ChartedMotion(
        np.zeros(3),
        velocities,
        np.stack([axis @ remaining for axis in axes]),
        np.stack([axis @ momentum for axis in axes]),
        orientation(axes, turning.coordinates, turning.reference),
    )


def _quadratic(axes: list[Array], rates: Array) -> Array:
    """Return Ȧ θ̇ from the present directions of the axes."""
    inner = axes[0] * rates[0]
    return cross(inner, axes[1]) * rates[1] + cross(inner + axes[1] * rates[1], axes[2]) * rates[2]
