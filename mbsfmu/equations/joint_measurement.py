"""Coordinates of joints from where the bodies are: what the recursive kinematics do, the other way round."""

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
    """Joint coordinates where the bodies are.

    Attributes
    ----------
    frames
        The bodies' places, with the axes of the joints that do not turn freely.
    coordinates
        Displacements in m and angles in rad, in (-π, π], by the index of the coordinate; a joint that turns freely
        has no angles here.
    """

    frames: Frames
    coordinates: dict[int, Array]


def measure(joints: Sequence[JointKinematics], placed: Frames, parameters: Array) -> Measured:
    """Return the coordinates of joints; they are exact where the joints' constraints hold.

    Parameters
    ----------
    joints
        The joint that each body hangs on.
    placed
        Where the bodies are.
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
    # What the hinges turn, in the inner body's frame.
    turned = inner.T @ frames.orientation(body) @ joint.orientation.T
    here = frames.point(joint.parent, joint.inner.of(parameters))
    there = frames.point(body, joint.outer.of(parameters))
    gap = inner.T @ (there - here)
    passed = 0
    for element in joint.elements:
        # Before the first hinge nothing is turned, behind the last everything.
        axis = element.axis if passed == 0 else turned @ element.axis
        index = element.coordinate
        if element.slides:
            found.coordinates[index] = axis @ gap
        elif len(hinges) < 3:
            found.coordinates[index] = _angle(element, hinges, turned)
        if element.slides or len(hinges) < 3:
            frames.axis[index] = inner @ axis
            # A joint whose slides come first turns about the outer body's point.
            frames.joint_point[index] = there if joint.elements[0].slides else here
        passed += not element.slides


def _angle(hinge: ElementKinematics, hinges: Sequence[ElementKinematics], turned: Array) -> Array:
    """Return the angle of one of one or two hinges, in rad."""
    if len(hinges) == 1:
        first, second = perpendicular(hinge.axis)
        return np.arctan2(second @ (turned @ first), first @ (turned @ first))
    outer, inner = hinges[1].axis, hinges[0].axis
    normal = cross(inner, outer)
    if hinge is hinges[0]:  # the second axis shows how far the first hinge has turned it, and so on
        return np.arctan2(normal @ (turned @ outer), outer @ (turned @ outer))
    return np.arctan2(normal @ (turned.T @ inner), inner @ (turned.T @ inner))


def unwound(angle: Array, near: Array) -> Array:
    """Return the angle in rad with as many full turns as bring it within half a turn of another one."""
    return near + np.arctan2(np.sin(angle - near), np.cos(angle - near))
