"""Joints of the spanning tree for the recursions: slides and hinges from the inner body outwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby, pairwise

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot
from mbsfmu.equations.coordinate_charts import REFERENCE
from mbsfmu.equations.properties import Slot, VectorSlot
from mbsfmu.equations.rotation import cross, quaternion_from_vector, rotation_from_vector, unit
from mbsfmu.model.topology import Topology, TreeJoint
from mbsfmu.modelling.fields import Array

_ALIGNED = 1e-12
"""Cosine, or sine, of an angle below which two axes are perpendicular, or parallel, to round-off."""


@dataclass(frozen=True)
class ElementKinematics:
    """A slide or hinge of a joint.

    Attributes
    ----------
    coordinate
        Index of its coordinate.
    slides
        True for a slide.
    axis
        Unit axis in the frame after the previous elements, shape (3,).
    pitch
        Displacement of a hinge along its axis per angle, in m/rad.
    """

    coordinate: int
    slides: bool
    axis: Array
    pitch: float = 0.0


@dataclass(frozen=True)
class JointKinematics:
    """A joint of the tree, from the body nearer to the ground outwards.

    Attributes
    ----------
    parent
        Index of the inner body, -1 for the ground.
    elements
        Its slides and hinges, from the inner body outwards.
    reference
        Index of the reference orientation of the hinges; None without one.
    orientation
        Rotation from the inner to the outer body's frame at coordinates zero, shape (3, 3).
    quaternion
        The same as a quaternion (w, x, y, z), shape (4,).
    inner, outer
        The joint's point on both bodies.
    """

    parent: int
    elements: tuple[ElementKinematics, ...]
    reference: int | None
    orientation: Array
    quaternion: Array
    inner: PointSlot
    outer: PointSlot

    @property
    def hinges(self) -> tuple[ElementKinematics, ...]:
        """The elements that turn."""
        return tuple(element for element in self.elements if not element.slides)

    @cached_property
    def is_orthogonal(self) -> bool:
        """Whether slides are perpendicular to each other, consecutive hinges too, and all hinge axes meet in a point.

        All joints of the package are so. Slides or hinges with the other kind in between are not: the former turn
        relative to each other, the axes of the latter move apart.
        """
        kinds = [slides for slides, _ in groupby(element.slides for element in self.elements)]
        slides = [element.axis for element in self.elements if element.slides]
        hinges = [element.axis for element in self.hinges]
        pairs = [*combinations(slides, 2), *pairwise(hinges)]
        return len(kinds) == len(set(kinds)) and all(abs(one @ other) < _ALIGNED for one, other in pairs)

    @cached_property
    def has_fixed_normals(self) -> bool:
        """Whether the directions of its constraint forces are fixed in the inner body, or those of hinge axes.

        Then no force is along a slide that a hinge turns, and that of two slides is along the hinge about their normal.
        A hinge with a pitch relates a force to a moment.
        """
        slides = [number for number, element in enumerate(self.elements) if element.slides]
        axes = [self.elements[number].axis for number in slides]
        if any(element.pitch for element in self.elements):
            return False
        if len(slides) == 1:
            return all(_parallel(hinge.axis, axes[0]) for hinge in self.elements[: slides[0]])
        if len(slides) == 2:
            return len(self.hinges) == 1 and all(abs(self.hinges[0].axis @ axis) < _ALIGNED for axis in axes)
        return True


def _parallel(one: Array, other: Array) -> bool:
    return bool(np.linalg.norm(cross(one, other)) < _ALIGNED)


def reference_of(references: Array, index: int) -> Array:
    """Return the reference of one joint, quaternions of an inner and an outer frame, shape (8,)."""
    return references[REFERENCE * index : REFERENCE * (index + 1)]


def tree_joints(topology: Topology, points: Points) -> list[JointKinematics]:
    """Return the joints of the spanning tree."""
    return [_joint(tree_joint, points) for tree_joint in topology.tree]


def floating_joints(centres: Sequence[PointSlot]) -> list[JointKinematics]:
    """Return a free joint for each body, whose coordinates are the pose of the body.

    Parameters
    ----------
    centres
        Centre of mass of each body; its position in the inertial frame is the first half of the coordinates.
    """
    origin = PointSlot(VectorSlot((Slot(0.0, None),) * 3), Slot(0.0, None), Slot(0.0, None))
    no_turn = np.array([1.0, 0.0, 0.0, 0.0])
    joints = []
    for body, centre in enumerate(centres):
        elements = [
            ElementKinematics(6 * body + index, slides=index < 3, axis=np.eye(3)[index % 3]) for index in range(6)
        ]
        joints.append(JointKinematics(-1, tuple(elements), body, np.eye(3), no_turn, origin, centre))
    return joints


def _joint(tree_joint: TreeJoint, points: Points) -> JointKinematics:
    joint = tree_joint.joint
    vector = np.array(joint.orientation)
    orientation = rotation_from_vector(vector)
    inner, outer = points.find(joint.parent), points.find(joint.child)
    elements = [
        ElementKinematics(coordinate, element.slides, unit(element.axis), element.pitch)
        for coordinate, element in zip(tree_joint.coordinates, joint.elements, strict=True)
    ]
    if tree_joint.reversed:
        # Seen from the child, the elements come in reverse: (R(a, y) R(b, z) O)ᵀ = R(-Oᵀ b, z) R(-Oᵀ a, y) Oᵀ.
        elements = [replace(element, axis=-orientation.T @ element.axis) for element in reversed(elements)]
        orientation, vector, inner, outer = orientation.T, -vector, outer, inner
    return JointKinematics(
        tree_joint.parent,
        tuple(elements),
        tree_joint.reference,
        orientation,
        quaternion_from_vector(vector),
        inner,
        outer,
    )
