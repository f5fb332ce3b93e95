"""Joint coordinates from the poses of the bodies: the inverse of the recursive kinematics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.dual_basis import dual_basis
from mbsfmu.equations.frames import Frames
from mbsfmu.equations.rotation import cross, perpendicular, rotation_about
from mbsfmu.equations.tree_joints import ElementKinematics, JointKinematics
from mbsfmu.modelling.fields import Array

_PARALLEL = 1e-6
"""Sine of the angle between two hinge axes below which their angles cannot be told apart."""


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


def is_measurable(joint: JointKinematics) -> bool:
    """Return whether poses of the bodies determine the angles of a joint: of one hinge, or of two across each other."""
    axes = [hinge.axis for hinge in joint.hinges]
    return len(axes) < 2 or (len(axes) == 2 and bool(np.linalg.norm(cross(*axes)) > _PARALLEL))


def _measure_joint(found: Measured, body: int, joint: JointKinematics, parameters: Array) -> None:
    frames, hinges = found.frames, joint.hinges
    inner = frames.orientation(joint.parent)
    # Rotation of the hinges, in the inner body's frame.
    turned = inner.T @ frames.orientation(body) @ joint.orientation.T
    here = frames.point(joint.parent, joint.inner.of(parameters))
    there = frames.point(body, joint.outer.of(parameters))
    gap = inner.T @ (there - here)
    passed = 0
    axes: dict[int, Array] = {}
    for element in joint.elements:
        # Identity before the first hinge, the whole rotation after the last; a hinge does not turn its own axis.
        index, axis = element.coordinate, element.axis
        if element.slides and passed == 1 and len(hinges) == 2:
            axis = _turned_by(hinges[0], found.coordinates) @ axis
        elif passed:
            axis = turned @ axis
        if not element.slides and len(hinges) < 3:
            found.coordinates[index] = _angle(element, hinges, turned)
        if element.slides or len(hinges) < 3:
            axes[index] = axis
            frames.axis[index] = inner @ axis
        passed += not element.slides
    slides = [element.coordinate for element in joint.elements if element.slides]
    along = [axes[index] for index in slides]
    for index, dual in zip(slides, along if joint.is_orthogonal else dual_basis(along), strict=True):
        found.coordinates[index] = dual @ gap
    place = here
    for element in joint.elements:
        index = element.coordinate
        if joint.is_orthogonal:  # with slides first, it rotates about the outer body's point
            frames.joint_point[index] = there if joint.elements[0].slides else here
            continue
        frames.joint_point[index] = place
        if element.slides:
            place = place + frames.axis[index] * found.coordinates[index]


def _turned_by(hinge: ElementKinematics, coordinates: Mapping[int, Array]) -> Array:
    return rotation_about(hinge.axis, coordinates[hinge.coordinate])


def _angle(hinge: ElementKinematics, hinges: Sequence[ElementKinematics], turned: Array) -> Array:
    """Return the angle of a hinge of a joint with one or two hinges, in rad."""
    if len(hinges) == 1:
        first, second = perpendicular(hinge.axis)
        return np.arctan2(second @ (turned @ first), first @ (turned @ first))
    outer, inner = hinges[1].axis, hinges[0].axis
    normal, cosine = cross(inner, outer), inner @ outer
    if hinge is hinges[0]:  # the second axis gives the angle of the first hinge, and so on
        there = turned @ outer
        return np.arctan2(normal @ there, outer @ there - cosine * (inner @ there))
    there = turned.T @ inner
    return np.arctan2(normal @ there, inner @ there - cosine * (outer @ there))


def unwound(angle: Array, near: Array) -> Array:
    """Return the angle in rad plus full turns, within half a turn of a reference angle."""
    return near + np.arctan2(np.sin(angle - near), np.cos(angle - near))
