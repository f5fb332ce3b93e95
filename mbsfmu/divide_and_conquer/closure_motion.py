"""Rates Φ̇ and Jacobian Φ_z of cut joints from wrenches of unit multipliers, without derivatives of Φ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.frames import Frames, body_velocity
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.loads import MotionState
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import kernel


def joint_rates(joints: Sequence[CutJoint], frames: Frames, velocities: list[Array], parameters: Array) -> list[Array]:
    """Return dΦ/dt of each closure equation, scalars.

    Parameters
    ----------
    joints
        The joints.
    frames, velocities
        Poses of the bodies, and their Z, each of shape (6,).
    parameters
        Parameters of the mechanism.
    """
    result = []
    for joint in joints:
        on_parent, on_child = zip(*joint.wrenches(frames, parameters), strict=True)
        sides = [body_velocity(velocities, body) for body in joint.ends]
        result += list(_powers([*on_parent, *on_child], sides))
    return result


@kernel
def _powers(wrenches: list[Array], velocities: list[Array]) -> Array:
    """Return the power of each equation's wrenches on the parent and on the child at both bodies' Z."""
    count = len(wrenches) // 2
    pairs = zip(wrenches[:count], wrenches[count:], strict=True)
    return np.stack([one @ velocities[0] + other @ velocities[1] for one, other in pairs])


def joint_accelerations(
    joints: Sequence[CutJoint], motion: MotionState, accelerations: list[Array], parameters: Array
) -> list[Array]:
    """Return d²Φ/dt² of each closure equation, scalars.

    Parameters
    ----------
    joints, parameters
        As for `joint_rates`.
    motion
        Poses and velocities of the bodies.
    accelerations
        Derivative of Z at the fixed inertial origin, each of shape (6,).
    """
    result = []
    for joint in joints:
        frames, velocities = motion.frames, motion.body_velocities
        on_parent, on_child = zip(*joint.wrenches(frames, parameters), strict=True)
        of_parent, of_child = zip(*joint.wrench_rates(frames, velocities, parameters), strict=True)
        sides = [[body_velocity(each, body) for body in joint.ends] for each in (accelerations, velocities)]
        result += list(_quickenings([*on_parent, *on_child], [*of_parent, *of_child], *sides))
    return result


@kernel
def _quickenings(
    wrenches: list[Array], rates: list[Array], accelerations: list[Array], velocities: list[Array]
) -> Array:
    return _powers(wrenches, accelerations) + _powers(rates, velocities)


def joint_jacobian(
    joints: Sequence[CutJoint], kinematics: Kinematics, frames: Frames, parameters: Array, count: int
) -> Array:
    """Return Φ_z of joints, shape (equations, count): w · b of each coordinate up to the common ancestor.

    Parameters
    ----------
    joints, parameters
        As for `joint_rates`.
    kinematics, frames
        The joints of the spanning tree, and the poses of the bodies.
    count
        Number of coordinates.
    """
    entries: list[Entry] = []
    first = 0
    for joint in joints:
        rows = range(first, first := first + len(joint.names))
        on_both = zip(*joint.wrenches(frames, parameters), strict=True)
        own = [_behind(kinematics, body) for body in joint.ends]
        shared = set(own[0]) & set(own[1])
        for wrenches, bodies in zip(on_both, own, strict=True):
            for body in bodies:
                if body not in shared:
                    entries += along_coordinates(kinematics, frames, body, rows, list(wrenches))
    return filled(entries, first, count)


Entry = tuple[Sequence[int], int, Array]
"""Rows and column of elements of a matrix, and the elements."""


def along_coordinates(
    kinematics: Kinematics, frames: Frames, body: int, rows: Sequence[int], wrenches: list[Array]
) -> list[Entry]:
    """Return w · b of the coordinates of a body's joint, for the wrench of each row."""
    return [
        (rows, each.coordinate, _along(wrenches, kinematics.transformation(frames, each.coordinate)))
        for each in kinematics.joints[body].elements
    ]


def filled(entries: Sequence[Entry], rows: int, columns: int) -> Array:
    """Return a zero matrix with some elements set."""
    place, first = np.zeros((rows, columns), dtype=np.intp), 1
    for own, column, values in entries:
        place[list(own), column] = first + np.arange(len(values))
        first += len(values)
    return np.concatenate([np.zeros(1), *(values for _, _, values in entries)])[place]


@kernel
def _along(wrenches: list[Array], column: Array) -> Array:
    return np.stack([wrench @ column for wrench in wrenches])


def _behind(kinematics: Kinematics, body: int) -> list[int]:
    """Return a body and its ancestors, from the outermost; none for the ground."""
    found = []
    while body >= 0:
        found.append(body)
        body = kinematics.joints[body].parent
    return found
