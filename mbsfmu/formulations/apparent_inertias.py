"""Inertias that the coordinates of a tree have while all other joints are free, and those of what they carry.

[Rodriguez1991] G. Rodriguez, A. Jain, K. Kreutz-Delgado, A spatial operator algebra for manipulator modeling and
control, International Journal of Robotics Research 10 (1991).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.frames import Frames, point_velocity
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.rotation import Array

Floats = NDArray[np.float64]


def apparent_inertias(
    kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array
) -> Floats:
    """Return 1 / (M⁻¹)ᵢᵢ in kg m² and kg: the momentum along a coordinate that is worth a unit of its velocity.

    The diagonal of M⁻¹ comes from two recursions, in a time that grows as the number of bodies [Rodriguez1991]:
    inertias of the articulated bodies from the tips to the ground, and outwards what a wrench on each body moves it.
    It takes numbers, and is not traced.

    Parameters
    ----------
    kinematics, masses, frames, parameters
        Of a mechanism, where it is.

    Returns
    -------
    Shape (n,).
    """
    joints = kinematics.joints
    inertias = [_at_origin(frames, body, each, parameters) for body, each in enumerate(masses)]
    columns, pivots, carried = [], [], []
    for body in reversed(range(len(joints))):
        own = [kinematics.transformation(frames, each.coordinate) for each in joints[body].elements]
        column = np.stack(own, axis=1) if own else np.zeros((6, 0))
        pressed = inertias[body] @ column
        pivot = np.linalg.inv(column.T @ pressed)
        through = pressed @ pivot
        if (parent := joints[body].parent) >= 0:
            inertias[parent] = inertias[parent] + inertias[body] - through @ pressed.T
        columns.append(column)
        pivots.append(pivot)
        carried.append(through)
    result = np.zeros(sum(len(joint.elements) for joint in joints))
    moved: list[Floats] = []
    for joint, column, pivot, through in zip(joints, columns[::-1], pivots[::-1], carried[::-1], strict=True):
        inner = moved[joint.parent] if joint.parent >= 0 else np.zeros((6, 6))
        compliance = pivot + through.T @ inner @ through
        result[[each.coordinate for each in joint.elements]] = 1.0 / np.diag(compliance)
        passed = np.eye(6) - through @ column.T
        moved.append(column @ pivot @ column.T + passed.T @ inner @ passed)
    return result


def carried_inertias(kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array) -> Floats:
    """Return what the masses that hang on each body weigh against its coordinates, in kg m² and kg.

    It is Σ m s² over the joints that other bodies hang on it by: m is the mass of all that hangs there, and s how fast
    a unit of the coordinate's velocity moves the joint. It takes numbers, and is not traced.

    Parameters
    ----------
    kinematics, masses, frames, parameters
        Of a mechanism, where it is.

    Returns
    -------
    Shape (n,).
    """
    joints = kinematics.joints
    hanging = np.array([float(each.mass.of(parameters)) for each in masses])
    result = np.zeros(sum(len(joint.elements) for joint in joints))
    for body in reversed(range(len(joints))):
        if (parent := joints[body].parent) < 0:
            continue
        hanging[parent] += hanging[body]
        own = joints[body].elements
        place = frames.joint_point[own[0].coordinate] if own else frames.origin[body]
        for each in joints[parent].elements:
            moved = point_velocity(kinematics.transformation(frames, each.coordinate), place)
            result[each.coordinate] += hanging[body] * (moved @ moved)
    return result


def _at_origin(frames: Frames, body: int, properties: MassProperties, parameters: Array) -> Floats:
    """Return M̄ of a body about the inertial origin, shape (6, 6)."""
    rotation, mass = frames.rotation[body], properties.mass.of(parameters)
    arm = frames.point(body, properties.centre.of(parameters))
    crossed = np.cross(np.eye(3), arm)  # arm × v = crossed @ v
    turning = rotation @ properties.regular_inertia(parameters) @ rotation.T - mass * crossed @ crossed
    return np.block([[mass * np.eye(3), -mass * crossed], [mass * crossed, turning]])
