"""Apparent inertias of tree coordinates with all other joints free, and inertias of outboard bodies.

[Rodriguez1991] G. Rodriguez, A. Jain, K. Kreutz-Delgado, A spatial operator algebra for manipulator modeling and
control, International Journal of Robotics Research 10 (1991).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.frames import Frames, point_velocity
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.modelling.fields import Array

Floats = NDArray[np.float64]


def apparent_inertias(
    kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array
) -> Floats:
    """Return the apparent inertias 1 / (M⁻¹)ᵢᵢ in kg m² and kg: momentum per unit velocity of a coordinate.

    The tree is cut at a joint, which allows the relative motion S q̇. With the mobilities A and C of the two parts,
    from wrenches to body motions at the joint, the joint's block of M⁻¹ is (Sᵀ (A + C)⁻¹ S)⁻¹. Both are computed
    recursively in linear time: the contribution through a joint is T (Tᵀ A T)⁻¹ Tᵀ, with Tᵀ S = 0. This equals I − I S
    (Sᵀ I S)⁻¹ Sᵀ I of articulated bodies [Rodriguez1991], but without cancellation, which would remove light links
    before a heavy load. It takes numbers, and is not traced.

    Parameters
    ----------
    kinematics, masses, frames, parameters
        Of a mechanism, where it is.

    Returns
    -------
    Shape (n,).
    """
    joints = kinematics.joints
    own = [_about_own_origin(frames, body, each, parameters) for body, each in enumerate(masses)]
    free = [_columns(kinematics, frames, body) for body in range(len(joints))]
    fixed = [np.linalg.qr(columns, mode="complete")[0][:, columns.shape[1] :] for columns in free]
    to_inner = [_shift(frames, body, joint.parent) for body, joint in enumerate(joints)]
    whole, passed = own.copy(), own.copy()
    for body in reversed(range(len(joints))):
        transmitted = (
            fixed[body] @ np.linalg.inv(fixed[body].T @ np.linalg.inv(whole[body]) @ fixed[body]) @ fixed[body].T
        )
        passed[body] = to_inner[body].T @ transmitted @ to_inner[body]
        if (parent := joints[body].parent) >= 0:
            whole[parent] = whole[parent] + passed[body]
    result = np.zeros(sum(len(joint.elements) for joint in joints))
    rests: list[Floats] = []
    for body, joint in enumerate(joints):
        rest, parent = np.zeros((6, 6)), joint.parent
        if parent >= 0:
            # The parent moves as what hangs on it but for this body, held by its own joint to what is further in.
            mobility = np.linalg.inv(whole[parent] - passed[body])
            held = mobility @ fixed[parent]
            gives = fixed[parent].T @ (mobility + rests[parent]) @ fixed[parent]
            rest = mobility - held @ np.linalg.inv(gives) @ held.T
        rests.append(to_inner[body] @ rest @ to_inner[body].T)
        apart = np.linalg.inv(np.linalg.inv(whole[body]) + rests[body])
        block = np.linalg.inv(free[body].T @ apart @ free[body])
        result[[each.coordinate for each in joint.elements]] = 1.0 / np.diag(block)
    return result


def own_inertias(kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array) -> Floats:
    """Return the inertia of each coordinate's own body in kg m² and kg, shape (n,); arguments as above."""
    result = np.zeros(sum(len(joint.elements) for joint in kinematics.joints))
    for body, joint in enumerate(kinematics.joints):
        columns = _columns(kinematics, frames, body)
        inertia = _about_own_origin(frames, body, masses[body], parameters)
        result[[each.coordinate for each in joint.elements]] = np.diag(columns.T @ inertia @ columns)
    return result


def carried_inertias(kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array) -> Floats:
    """Return the inertia of outboard masses for each body's coordinates in kg m² and kg.

    It is Σ m s² over the joints to outboard bodies: m is the mass beyond a joint, and s the joint's velocity per unit
    velocity of the coordinate. It takes numbers, and is not traced.

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


def _columns(kinematics: Kinematics, frames: Frames, body: int) -> Floats:
    """Return the motion of a body's origin and its rotation per coordinate of its joint, shape (6, coordinates)."""
    columns = [kinematics.transformation(frames, each.coordinate) for each in kinematics.joints[body].elements]
    origin = frames.origin[body]
    moved = [np.concatenate([point_velocity(column, origin), column[3:]]) for column in columns]
    return np.stack(moved, axis=1) if moved else np.zeros((6, 0))


def _shift(frames: Frames, body: int, parent: int) -> Floats:
    """Return the rigid-body transformation of motion from a parent's origin to a body's, shape (6, 6)."""
    inner = np.zeros(3) if parent < 0 else frames.origin[parent]
    result = np.eye(6)
    result[:3, 3:] = np.cross(np.eye(3), frames.origin[body] - inner).T  # ω × arm
    return result


def _about_own_origin(frames: Frames, body: int, properties: MassProperties, parameters: Array) -> Floats:
    """Return M̄ of a body about the origin of its frame, shape (6, 6)."""
    rotation, mass = frames.rotation[body], properties.regular_mass(parameters)
    arm = rotation @ properties.centre.of(parameters)
    crossed = np.cross(np.eye(3), arm)  # arm × v = crossed.T @ v
    turning = rotation @ properties.regular_inertia(parameters) @ rotation.T - mass * crossed @ crossed
    return np.block([[mass * np.eye(3), -mass * crossed], [mass * crossed, turning]])
