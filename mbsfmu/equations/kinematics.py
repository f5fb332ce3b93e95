"""Recursive kinematics of the spanning tree, from the base to the leaves.

Velocities and accelerations are those of the body point that coincides with the origin of the inertial frame at that
time, together with the angular ones: Z = (ṡ, ω) [Jaiswal2021, eq. 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from mbsfmu.equations.frames import Frames, body_velocity
from mbsfmu.equations.rotation import cross, rotation_about, rotation_from_quaternion
from mbsfmu.equations.sections import GROUND, JOINED, sections
from mbsfmu.equations.tree_joints import JointKinematics, reference_of
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import in_section, kernel, sections_wanted

Carried = TypeVar("Carried")
_PLACES, _VELOCITIES, _ACCELERATIONS = range(3)
"""Stages of the outward recursion."""


class Kinematics:
    """Positions, velocities and accelerations of bodies from joint coordinates.

    Parameters
    ----------
    joints
        Joint of each body to its parent, from the ground outwards.
    """

    def __init__(self, joints: Sequence[JointKinematics]) -> None:
        self.joints = tuple(joints)
        self._parents = tuple(joint.parent for joint in self.joints)
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

    def _outwards(
        self,
        add: Callable[[int, Carried], Carried],
        join: Callable[[Carried, Carried], Carried],
        ground: Carried,
        recorded: Array,
        stage: int,
    ) -> list[Carried]:
        """Return the result of an outward recursion for each body.

        Parameters
        ----------
        add
            Returns the result of a body from that of its parent.
        join
            Combines the result relative to another body with that body's result.
        ground
            Result of the ground.
        recorded
            Arguments of the recursion, which determine the number of sections.
        stage
            Stage of the recursion.
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
        """Return the sum of contributions from the ground to each body, shape (6,)."""
        return self._outwards(add, _sum, np.zeros(6), recorded, stage)

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
            Result of `velocities`.
        velocities, accelerations
            ż and z̈, each of shape (n,).
        """

        def add(body: int, carried: Array) -> Array:
            joint = self.joints[body]
            angular, columns = body_velocity(body_velocities, joint.parent)[3:], _columns_of(frames, joint)
            turned = carried + _quadratic(angular, columns, _along(joint, velocities), slides=_slides(joint))
            return _added(turned, columns, _along(joint, accelerations), slides=_slides(joint))

        return self._summed(add, velocities, _ACCELERATIONS)

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
def _carried(
    turned: Array, place: Array, rotation: Array, origin: Array, axes: list[Array], points: list[Array]
) -> _Placed:
    """Return a relative pose transformed by the pose of another body."""
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
