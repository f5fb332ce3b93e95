"""Recursive kinematics of the open tree, from the base to the leaves.

Velocities and accelerations are those of the point of each body that coincides with the origin of the
inertial frame at that time, and the angular ones: Z = (ṡ, ω) [Jaiswal2021, eq. 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot
from mbsfmu.equations.properties import Slot, VectorSlot
from mbsfmu.equations.rotation import (
    Array,
    cross,
    quaternion_from_vector,
    rotation_about,
    rotation_from_quaternion,
    rotation_from_vector,
    unit,
)
from mbsfmu.equations.sections import GROUND, JOINED, sections
from mbsfmu.kernels import in_section, kernel, sections_wanted
from mbsfmu.model.present import BodyPoint
from mbsfmu.model.topology import Topology, TreeJoint

Carried = TypeVar("Carried")
_PLACES, _VELOCITIES, _ACCELERATIONS = range(3)
"""Stages of what is found from the ground outwards."""


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
        Unit axis in the frame that the elements before it have turned, shape (3,).
    pitch
        How far a hinge moves along its axis as it turns, in m/rad.
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
        Index of the reference orientation, from which the hinges turn; None where there is none.
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


@dataclass(frozen=True)
class Frames:
    """Where the bodies are.

    Attributes
    ----------
    rotation
        Rotation matrix of each body, body to inertial frame, each shape (3, 3).
    origin
        Origin of each body's frame in the inertial frame in m, each shape (3,).
    axis
        Axis of each coordinate in the inertial frame, each shape (3,).
    joint_point
        A point of each coordinate's axis in the inertial frame in m, each shape (3,).
    """

    rotation: list[Array]
    origin: list[Array]
    axis: dict[int, Array]
    joint_point: dict[int, Array]

    def point(self, body: int, local: Array) -> Array:
        """Return a body's point in the inertial frame in m, shape (3,); body -1 is the ground."""
        return local if body < 0 else self.origin[body] + self.rotation[body] @ local

    def orientation(self, body: int) -> Array:
        """Return a body's rotation matrix, shape (3, 3); body -1 is the ground."""
        return np.eye(3) if body < 0 else self.rotation[body]


class Kinematics:
    """Positions, velocities and accelerations of the bodies from the coordinates of the joints that they hang on.

    Parameters
    ----------
    joints
        The joint of each body, from the ground outwards.
    """

    def __init__(self, joints: Sequence[JointKinematics]) -> None:
        self.joints = tuple(joints)
        self._parents = tuple(joint.parent for joint in self.joints)
        elements = [element for joint in self.joints for element in joint.elements]
        self._elements = {element.coordinate: element for element in elements}

    def frames(self, coordinates: Array, references: Array, parameters: Array) -> Frames:
        """Place the bodies.

        Parameters
        ----------
        coordinates
            Joint coordinates z in rad and m, shape (n,).
        references
            Quaternions (w, x, y, z) of the reference orientations, shape (4 r,).
        parameters
            Parameters of the mechanism.
        """
        given = coordinates, references, parameters
        placed = self._outwards(
            lambda body, inner: self._place(body, inner, *given),
            lambda base, each: _carried(base[0], base[1], *each),
            (np.eye(3), np.zeros(3), [], []),
            coordinates,
            _PLACES,
        )
        frames = Frames([], [], {}, {})
        for body, joint in enumerate(self.joints):
            rotation, origin, axes, points = placed[body]
            frames.rotation.append(rotation)
            frames.origin.append(origin)
            for element, axis, point in zip(joint.elements, axes, points, strict=True):
                frames.axis[element.coordinate] = axis
                frames.joint_point[element.coordinate] = point
        return frames

    def _place(self, body: int, inner: _Placed, coordinates: Array, references: Array, parameters: Array) -> _Placed:
        """Place a body behind another, or the ground."""
        joint = self.joints[body]
        return _placed(
            *inner[:2],
            [joint.inner.of(parameters), joint.outer.of(parameters)],
            None if joint.reference is None else reference_of(references, joint.reference),
            joint.orientation,
            [element.axis for element in joint.elements],
            [np.asarray(element.pitch) for element in joint.elements],
            [coordinates[element.coordinate] for element in joint.elements],
            slides=tuple(element.slides for element in joint.elements),
        )

    def _outwards(
        self,
        add: Callable[[int, Carried], Carried],
        join: Callable[[Carried, Carried], Carried],
        ground: Carried,
        recorded: Array,
        stage: int,
    ) -> list[Carried]:
        """Return what is found from the ground outwards, of each body.

        Parameters
        ----------
        add
            Adds a body's own to what the one has that it hangs on.
        join
            Adds what a body has relative to another one to what that has.
        ground
            What the ground has.
        recorded
            What they follow from, which tells in how many sections they are wanted.
        stage
            Which of the recursions it is.
        """
        found: dict[int, Carried] = {}
        for piece in sections(self._parents, sections_wanted(recorded)):
            base = ground if piece.parent == GROUND else found[piece.parent]
            begin = ground if piece.apart else base
            with in_section(recorded, piece.section, stage):
                relative: dict[int, Carried] = {}
                for body in piece.bodies:
                    relative[body] = add(body, relative.get(self.joints[body].parent, begin))
            if not piece.apart:
                found |= relative
                continue
            if piece.end is not None:
                with in_section(recorded, JOINED):
                    join(base, relative[piece.end])
            with in_section(recorded, piece.section, stage):
                found |= {body: join(base, each) for body, each in relative.items()}
        return [found[body] for body in range(len(self.joints))]

    def _summed(self, add: Callable[[int, Array], Array], recorded: Array, stage: int) -> list[Array]:
        """Return what is summed up from the ground outwards, of each body, shape (6,)."""
        return self._outwards(add, _sum, np.zeros(6), recorded, stage)

    def transformation(self, frames: Frames, coordinate: int) -> Array:
        """Return b, the velocity Z that a unit joint velocity gives to a body [Jaiswal2021, eq. 2]; shape (6,)."""
        element, axis = self._elements[coordinate], frames.axis[coordinate]
        return _column(axis, frames.joint_point[coordinate], np.asarray(element.pitch), slides=element.slides)

    def velocities(self, frames: Frames, velocities: Array) -> list[Array]:
        """Return Z of each body in m/s and rad/s [Jaiswal2021, eq. 2], each shape (6,).

        Parameters
        ----------
        frames
            Where the bodies are.
        velocities
            Joint velocities ż in rad/s and m/s, shape (n,).
        """

        def add(body: int, carried: Array) -> Array:
            joint = self.joints[body]
            return _added(carried, _columns_of(frames, joint), _along(joint, velocities), slides=_slides(joint))

        return self._summed(add, velocities, _VELOCITIES)

    def accelerations(
        self, frames: Frames, body_velocities: list[Array], velocities: Array, accelerations: Array
    ) -> list[Array]:
        """Return Ż of each body in m/s² and rad/s² [Jaiswal2021, eq. 3], each shape (6,).

        Parameters
        ----------
        frames
            Where the bodies are.
        body_velocities
            What `velocities` gave.
        velocities, accelerations
            ż and z̈, each of shape (n,).
        """

        def add(body: int, carried: Array) -> Array:
            joint = self.joints[body]
            angular, columns = _of(body_velocities, joint.parent)[3:], _columns_of(frames, joint)
            turned = carried + _quadratic(angular, columns, _along(joint, velocities), slides=_slides(joint))
            return _added(turned, columns, _along(joint, accelerations), slides=_slides(joint))

        return self._summed(add, velocities, _ACCELERATIONS)

    def quadratic(self, frames: Frames, joint: JointKinematics, angular: Array, velocities: Array) -> Array:
        """Return what a joint adds to Ż without z̈, d of [Jaiswal2021, eq. 3]; shape (6,).

        Parameters
        ----------
        frames, joint
            Where the bodies are, and the joint.
        angular
            Angular velocity of the inner body in rad/s, shape (3,).
        velocities
            ż, shape (n,).
        """
        return _quadratic(angular, _columns_of(frames, joint), _along(joint, velocities), slides=_slides(joint))

    def transformation_rates(self, frames: Frames, body_velocities: list[Array], velocities: Array) -> dict[int, Array]:
        """Return ḃ of each coordinate, the column b being carried along by the inner side; each of shape (6,)."""
        result: dict[int, Array] = {}
        for joint in self.joints:
            carrier = _of(body_velocities, joint.parent)
            for element in joint.elements:
                column = self.transformation(frames, element.coordinate)
                angular = carrier[3:]
                linear = cross(angular, column[:3]) + cross(carrier[:3], column[3:])
                result[element.coordinate] = np.concatenate([linear, cross(angular, column[3:])])
                carrier = carrier + column * velocities[element.coordinate]
        return result


_Placed: TypeAlias = tuple[Array, Array, list[Array], list[Array]]
"""Rotation and origin of a body, and axis and point of each coordinate of the joint that it hangs on."""
Columns = tuple[list[Array], list[Array], list[Array]]
"""Axes, points of them, and pitches of a joint's coordinates."""


def _columns_of(frames: Frames, joint: JointKinematics) -> Columns:
    coordinates = [element.coordinate for element in joint.elements]
    pitches = [np.asarray(element.pitch) for element in joint.elements]
    return [frames.axis[each] for each in coordinates], [frames.joint_point[each] for each in coordinates], pitches


def _along(joint: JointKinematics, values: Array) -> list[Array]:
    return [values[element.coordinate] for element in joint.elements]


def _slides(joint: JointKinematics) -> tuple[bool, ...]:
    return tuple(element.slides for element in joint.elements)


@kernel
def _placed(
    rotation: Array,
    origin: Array,
    points: list[Array],
    reference: Array | None,
    orientation: Array,
    axes: list[Array],
    pitches: list[Array],
    coordinates: list[Array],
    *,
    slides: tuple[bool, ...],
) -> _Placed:
    """Return rotation and origin of the body behind a joint, and axis and point of each of its coordinates."""
    inner, outer = points
    place = origin + rotation @ inner
    turned: list[Array] = []
    passed: list[Array] = []
    referred = reference is None
    for axis, pitch, coordinate, slide in zip(axes, pitches, coordinates, slides, strict=True):
        if not slide and not referred and reference is not None:
            rotation, referred = rotation @ rotation_from_quaternion(reference), True
        turned.append(rotation @ axis)
        passed.append(place)
        if slide:
            place = place + turned[-1] * coordinate
        else:
            rotation = rotation @ rotation_about(axis, coordinate)
            place = place + turned[-1] * (pitch * coordinate)
    rotation = rotation @ orientation
    return rotation, place - rotation @ outer, turned, passed


@kernel
def _carried(
    turned: Array, place: Array, rotation: Array, origin: Array, axes: list[Array], points: list[Array]
) -> _Placed:
    """Return the same of a body that is placed relative to another one, from rotation and origin of that."""
    return (
        turned @ rotation,
        place + turned @ origin,
        [turned @ axis for axis in axes],
        [place + turned @ point for point in points],
    )


@kernel
def _sum(one: Array, other: Array) -> Array:
    return one + other


@kernel
def _column(axis: Array, point: Array, pitch: Array, *, slides: bool) -> Array:
    """Return b of a coordinate, shape (6,)."""
    if slides:
        return np.concatenate([axis, np.zeros(3)])
    return np.concatenate([cross(point, axis) + pitch * axis, axis])


@kernel
def _added(carried: Array, columns: Columns, values: list[Array], *, slides: tuple[bool, ...]) -> Array:
    """Return Z, or Ż, of the body behind a joint from that of the body before it, shape (6,)."""
    for axis, point, pitch, value, slide in zip(*columns, values, slides, strict=True):
        carried = carried + _column(axis, point, pitch, slides=slide) * value
    return carried


@kernel
def _quadratic(angular: Array, columns: Columns, values: list[Array], *, slides: tuple[bool, ...]) -> Array:
    """Return d of a joint, shape (6,).

    Both sides of a hinge have its point in common: with the accelerations of the points at the origin,
    s̈ + α × p + ω × (ω × p) is the same on both; on a slide it differs by z̈ w + 2 ω × w ż, on a hinge with a pitch
    by that times the pitch.
    """
    total = np.zeros(6)
    for axis, point, pitch, velocity, slide in zip(*columns, values, slides, strict=True):
        turning = cross(angular, axis) * velocity
        if slide:
            total = total + np.concatenate([2.0 * turning, np.zeros(3)])
            continue
        outer = angular + axis * velocity
        linear = cross(angular, cross(angular, point)) - cross(outer, cross(outer, point)) - cross(turning, point)
        total = total + np.concatenate([linear + 2.0 * pitch * turning, turning])
        angular = outer
    return total


def reference_of(references: Array, index: int) -> Array:
    """Return one reference orientation (w, x, y, z), shape (4,)."""
    return references[4 * index : 4 * index + 4]


def point_velocity(velocity: Array, point: Array) -> Array:
    """Return the velocity in m/s of the point of a body that is at `point`, shape (3,)."""
    return velocity[:3] + cross(velocity[3:], point)


def point_acceleration(acceleration: Array, angular_velocity: Array, point: Array) -> Array:
    """Return the acceleration in m/s² of the point of a body that is at `point`, shape (3,) [Jaiswal2021, eq. 7]."""
    turning = cross(angular_velocity, cross(angular_velocity, point))
    return acceleration[:3] + cross(acceleration[3:], point) + turning


def point_of_body(frames: Frames, velocity: Array, body: int, local: Array) -> BodyPoint:
    """Return where a body's point is and how it moves, from the body's Z; body -1 is the ground."""
    position = frames.point(body, local)
    return BodyPoint(position, point_velocity(velocity, position), frames.orientation(body), velocity[3:])


def body_velocity(velocities: list[Array], body: int) -> Array:
    """Return Z, or Ż, of a body, zero for the ground (-1); shape (6,)."""
    return _of(velocities, body)


def _of(vectors: list[Array], body: int) -> Array:
    return np.zeros(6) if body < 0 else vectors[body]


def tree_joints(topology: Topology, points: Points) -> list[JointKinematics]:
    """Return the joints of the spanning tree."""
    return [_joint(tree_joint, points) for tree_joint in topology.tree]


def floating_joints(centres: Sequence[PointSlot]) -> list[JointKinematics]:
    """Return for each body a joint that lets it float: its coordinates say where the body is.

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
