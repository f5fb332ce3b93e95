"""Joint coordinates from the poses of the bodies: the inverse of the recursive kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.frames import Frames
from mbsfmu.equations.rotation import cross, perpendicular
from mbsfmu.equations.tree_joints import ElementKinematics, JointKinematics
from mbsfmu.modelling.fields import Array


@dataclass(frozen=True)
class Measured:
    """Joint coordinates of given poses.

    Attributes
    ----------
    frames
        Poses of the bodies, with the axes of all but ball and free joints.
    coordinates
        Displacements in m and angles in rad, in (-π, π], by the index of the coordinate; without angles of ball and
        free joints.
    """

    frames: Frames
    coordinates: dict[int, Array]


def measure(joints: Sequence[JointKinematics], placed: Frames, parameters: Array) -> Measured:
    """Return the joint coordinates; exact on the constraint manifold of the joints.

    Parameters
    ----------
    joints
        Joint of each body to its parent.
    placed
        Poses of the bodies.
    parameters
        Parameters of the mechanism.
    """
    found = Measured(Frames(placed.rotation, placed.origin, {}, {}), {})
    for body, joint in enumerate(joints):
        _measure_joint(found, body, joint, parameters)
    return found


def _measure_joint(found: Measured, body: int, joint: JointKinematics, parameters: Array) -> None:
    frames, hinges = found.frames, joint.hinges
    inner = frames.orientation(joint.parent)
    # Rotation of the hinges, in the inner body's frame.
    turned = inner.T @ frames.orientation(body) @ joint.orientation.T
    here = frames.point(joint.parent, joint.inner.of(parameters))
    there = frames.point(body, joint.outer.of(parameters))
    gap = inner.T @ (there - here)
    passed = 0
    for element in joint.elements:
        # Identity before the first hinge, the whole rotation after the last.
        axis = element.axis if passed == 0 else turned @ element.axis
        index = element.coordinate
        if element.slides:
            found.coordinates[index] = axis @ gap
        elif len(hinges) < 3:
            found.coordinates[index] = _angle(element, hinges, turned)
        if element.slides or len(hinges) < 3:
            frames.axis[index] = inner @ axis
            # With slides first, a joint rotates about the outer body's point.
            frames.joint_point[index] = there if joint.elements[0].slides else here
        passed += not element.slides


def _angle(hinge: ElementKinematics, hinges: Sequence[ElementKinematics], turned: Array) -> Array:
    """Return the angle of a hinge of a joint with one or two hinges, in rad."""
    if len(hinges) == 1:
        first, second = perpendicular(hinge.axis)
        return np.arctan2(second @ (turned @ first), first @ (turned @ first))
    outer, inner = hinges[1].axis, hinges[0].axis
    normal = cross(inner, outer)
    if hinge is hinges[0]:  # the second axis gives the angle of the first hinge, and so on
        return np.arctan2(normal @ (turned @ outer), outer @ (turned @ outer))
    return np.arctan2(normal @ (turned.T @ inner), inner @ (turned.T @ inner))


def unwound(angle: Array, near: Array) -> Array:
    """Return the angle in rad plus full turns, within half a turn of a reference angle."""
    return near + np.arctan2(np.sin(angle - near), np.cos(angle - near))
