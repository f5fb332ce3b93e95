"""Kinematics of the spanning tree: charts of joints that turn freely, and recursions from the base to the leaves.

Coordinate charts of ball and free joints: Cardan angles between two quaternions.

A reference is two quaternions, that of an inner frame, L, and of an outer one, C. With the orthonormal, right-handed
hinge axes a₁, a₂, a₃ the rotation is R = L R(a₁, θ₁) R(a₂, θ₂) R(a₃, θ₃) C, and ω = A θ̇ in the inner frame with A =
[a₁, R₁ a₂, R₁ R₂ a₃]. A is singular at θ₂ = ±π/2 only (gimbal lock). Well before that the present orientation becomes
the reference: a change of coordinates, exact except for round-off.

A does not depend on θ₃. The third axis of a new reference is therefore the present axis of rotation: θ₃ of a rotor
grows evenly, and θ₁ and θ₂ are the tilts of its axis, which move slowly. Rates about axes that turn with the rotor
would have errors of (h ω)²/12 in each step of the trapezoidal rule.

Recursive kinematics of the spanning tree, from the base to the leaves.

Velocities and accelerations are those of the body point that coincides with the origin of the inertial frame at that
time, together with the angular ones: Z = (ṡ, ω) [Jaiswal2021, eq. 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby, pairwise
from typing import Self, TypeAlias, TypeVar

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, Slot, VectorSlot
from mbsfmu.equations.rotation import (
    Frames,
    body_velocity,
    cross,
    quaternion_about,
    quaternion_conjugate,
    quaternion_from_vector,
    quaternion_product,
    rotation_about,
    rotation_from_quaternion,
    rotation_from_vector,
    unit,
)
from mbsfmu.model.mechanism import Topology, TreeJoint
from mbsfmu.modelling.data import Array
from mbsfmu.tracing.kernels import kernel

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
    remaining = carry @ before.acceleration - _quadratic_rates(columns, velocities)
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
        acceleration = one * second[0] + two * second[1] + three * second[2] + _quadratic_rates(columns, rates)
        # A⁻ᵀ p in the frame after the first hinge.
        sine, cosine = np.sin(turning.coordinates[1]), np.cos(turning.coordinates[1])
        p = turning.momenta
        momentum = axes[0] * p[0] + axes[1] * p[1] + axes[2] * ((p[2] - sine * p[0]) / cosine)
        return cls(velocity, acceleration, rotation_about(axes[0], turning.coordinates[0]) @ momentum)


def _columns(axes: list[Array], angles: Array) -> list[Array]:
    """Return the columns of A."""
    first, second = (rotation_about(axis, angles[index]) for index, axis in enumerate(axes[:2]))
    return [axes[0], first @ axes[1], first @ (second @ axes[2])]


def _quadratic_rates(axes: list[Array], rates: Array) -> Array:
    """Return Ȧ θ̇ from the present directions of the axes."""
    inner = axes[0] * rates[0]
    return cross(inner, axes[1]) * rates[1] + cross(inner + axes[1] * rates[1], axes[2]) * rates[2]


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


Carried = TypeVar("Carried")


class Kinematics:
    """Positions, velocities and accelerations of bodies from joint coordinates.

    Parameters
    ----------
    joints
        Joint of each body to its parent, from the ground outwards.
    """

    def __init__(self, joints: Sequence[JointKinematics]) -> None:
        self.joints = tuple(joints)
        elements = [element for joint in self.joints for element in joint.elements]
        self._elements = {element.coordinate: element for element in elements}

    def frames(self, coordinates: Array, references: Array, parameters: Array) -> Frames:
        """Return the poses of the bodies.

        Parameters
        ----------
        coordinates
            Joint coordinates z in rad and m, shape (n,).
        references
            Of joints that turn freely, shape (8 r,); see `coordinate_charts`.
        parameters
            Parameters of the mechanism.
        """
        given = coordinates, references, parameters
        placed = self._outwards(
            lambda body, inner: self._place(body, inner, *given),
            (np.eye(3), np.zeros(3), [], []),
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
        """Return the pose of a body relative to its parent, or the ground."""
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

    def _outwards(self, add: Callable[[int, Carried], Carried], ground: Carried) -> list[Carried]:
        """Return the result of a recursion from the ground for each body, which adds it to that of its parent."""
        found: list[Carried] = []
        for body, joint in enumerate(self.joints):
            found.append(add(body, ground if joint.parent < 0 else found[joint.parent]))
        return found

    def transformation(self, frames: Frames, coordinate: int) -> Array:
        """Return b, the velocity Z of a body per unit joint rate [Jaiswal2021, eq. 2]; shape (6,)."""
        element, axis = self._elements[coordinate], frames.axis[coordinate]
        return column(axis, frames.joint_point[coordinate], np.asarray(element.pitch), slides=element.slides)

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

        return self._outwards(add, np.zeros(6))

    def accelerations(
        self, frames: Frames, body_velocities: list[Array], velocities: Array, accelerations: Array
    ) -> list[Array]:
        """Return Ż of each body in m/s² and rad/s² [Jaiswal2021, eq. 3], each shape (6,).

        Parameters
        ----------
        frames
            Where the bodies are.
        body_velocities
            Result of `velocities`.
        velocities, accelerations
            ż and z̈, each of shape (n,).
        """

        def add(body: int, carried: Array) -> Array:
            joint = self.joints[body]
            angular, columns = body_velocity(body_velocities, joint.parent)[3:], _columns_of(frames, joint)
            turned = carried + _quadratic(angular, columns, _along(joint, velocities), slides=_slides(joint))
            return _added(turned, columns, _along(joint, accelerations), slides=_slides(joint))

        return self._outwards(add, np.zeros(6))

    def quadratic(self, frames: Frames, joint: JointKinematics, angular: Array, velocities: Array) -> Array:
        """Return the contribution of a joint to Ż without z̈, d of [Jaiswal2021, eq. 3]; shape (6,).

        Parameters
        ----------
        frames, joint
            Poses of the bodies, and the joint.
        angular
            Angular velocity of the inner body in rad/s, shape (3,).
        velocities
            ż, shape (n,).
        """
        return _quadratic(angular, _columns_of(frames, joint), _along(joint, velocities), slides=_slides(joint))

    def transformation_rates(self, frames: Frames, body_velocities: list[Array], velocities: Array) -> dict[int, Array]:
        """Return ḃ of each coordinate, with the column b moving with the inner body; each of shape (6,)."""
        result: dict[int, Array] = {}
        for joint in self.joints:
            carrier = body_velocity(body_velocities, joint.parent)
            for element in joint.elements:
                column = self.transformation(frames, element.coordinate)
                angular = carrier[3:]
                linear = cross(angular, column[:3]) + cross(carrier[:3], column[3:])
                result[element.coordinate] = np.concatenate([linear, cross(angular, column[3:])])
                carrier = carrier + column * velocities[element.coordinate]
        return result


_Placed: TypeAlias = tuple[Array, Array, list[Array], list[Array]]
"""Pose of a body, and axis and point of each coordinate of its joint."""
Columns = tuple[list[Array], list[Array], list[Array]]
"""Axes, points of the axes, and pitches of a joint's coordinates."""


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
    """Return the pose of the outer body of a joint, and axis and point of each of its coordinates."""
    inner, outer = points
    place = origin + rotation @ inner
    turned: list[Array] = []
    passed: list[Array] = []
    hinges = [index for index, slide in enumerate(slides) if not slide]
    for index, (axis, pitch, coordinate, slide) in enumerate(zip(axes, pitches, coordinates, slides, strict=True)):
        if reference is not None and index == hinges[0]:
            rotation = rotation @ rotation_from_quaternion(reference[:4])
        turned.append(rotation @ axis)
        passed.append(place)
        if slide:
            place = place + turned[-1] * coordinate
        else:
            rotation = rotation @ rotation_about(axis, coordinate)
            place = place + turned[-1] * (pitch * coordinate)
        if reference is not None and index == hinges[-1]:
            rotation = rotation @ rotation_from_quaternion(reference[4:])
    rotation = rotation @ orientation
    return rotation, place - rotation @ outer, turned, passed


@kernel
def column(axis: Array, point: Array, pitch: Array, *, slides: bool) -> Array:
    """Return b of a coordinate, shape (6,)."""
    if slides:
        return np.concatenate([axis, np.zeros(3)])
    return np.concatenate([cross(point, axis) + pitch * axis, axis])


@kernel
def _added(carried: Array, columns: Columns, values: list[Array], *, slides: tuple[bool, ...]) -> Array:
    """Return Z, or Ż, of the outer body of a joint from that of its inner body, shape (6,)."""
    for axis, point, pitch, value, slide in zip(*columns, values, slides, strict=True):
        carried = carried + column(axis, point, pitch, slides=slide) * value
    return carried


@kernel
def _quadratic(angular: Array, columns: Columns, values: list[Array], *, slides: tuple[bool, ...]) -> Array:
    """Return d of a joint, shape (6,).

    Both bodies have the hinge point in common: with the accelerations of the points at the origin, s̈ + α × p + ω × (ω
    × p) is equal on both. A slide adds z̈ w + 2 ω × w ż, a hinge with a pitch that times the pitch.
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
