"""Articulated bodies: subspaces of joints, motion of a tree from the tips to the ground and back, cut joints.

Motion subspace H and constrained subspace D of a tree joint.

H has a column for each slide and hinge, as the coordinates leave it. Its dual basis, H (Hᵀ H)⁻¹, has the same products
with loads and velocities as H has with the coordinates' own [Featherstone2008, sect. 3.2]; for slides and hinges that
are perpendicular, about a point on all hinge axes, it is written out.

[Featherstone2008] R. Featherstone, Rigid Body Dynamics Algorithms, Springer, 2008.

Articulated bodies: motion of a tree, from the tips to the ground and back [Featherstone1983].

A body with all that hangs on it answers a velocity V (or an acceleration) with the wrench Iᴬ V − p on its joint to the
parent. This does no work along a coordinate of the joint with the column h, hᵀ (Iᴬ V − p) = 0; with U = Iᴬ h and D =
hᵀ U

ż = (hᵀ p − Uᵀ V) / D,  Iᵃ = Iᴬ − U Uᵀ / D,  pᵃ = p − U hᵀ p / D,

where V is the velocity without this coordinate, and Iᵃ and pᵃ those of the body on the inner side of it. Coordinates of
a joint are passed one by one, from the outer body inwards. `assembly.py` is the same in inverse inertias: it has an
equation for each constraint of a joint, whereas this has one for each coordinate.

Inertias, wrenches and velocities of a body refer to a point on an axis of its joint, and of one that moves freely to
its centre of mass: with a distant point the terms of its mass would take the digits of its moments of inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.divide_and_conquer.elimination import reciprocal, triangle
from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.joint_coordinates import MotionState
from mbsfmu.equations.kinematics import JointKinematics, Kinematics, column
from mbsfmu.equations.rotation import Frames, body_velocity, cross, dual_basis, point_velocity, stack
from mbsfmu.modelling.data import Array
from mbsfmu.tracing.kernels import kernel


@kernel
def constrained_subspace(
    inner: Array, place: Array, axes: list[Array], along: list[Array], turned: list[Array], *, slides: int
) -> list[Array]:
    """Return the columns of D as wrenches about the inertial origin, each of shape (6,).

    Parameters
    ----------
    inner
        Rotation of the inner body, shape (3, 3).
    place
        The joint's point on the outer body in the inertial frame, shape (3,).
    axes
        Hinge axes in the inertial frame; the normal of a planar joint.
    along, turned
        For one slide, or one hinge: two perpendicular directions of the inner body.
    slides
        Number of slides.
    """
    forces: list[Array] = []
    if slides == 0:
        forces = list(np.eye(3))
    elif slides == 1:
        forces = [inner @ direction for direction in along]
    elif slides == 2:
        forces = [axes[0]]  # planar: the normal
    moments: list[Array] = []
    if not axes:
        moments = list(np.eye(3))
    elif len(axes) == 1:
        moments = [inner @ direction for direction in turned]
    elif len(axes) == 2:
        moments = [cross(*axes)]
    wrenches = [np.concatenate([force, cross(place, force)]) for force in forces]
    return wrenches + [np.concatenate([np.zeros(3), moment]) for moment in moments]


def impulse(frames: Frames, joint: JointKinematics, values: Array) -> Array:
    """Return H (Hᵀ H)⁻¹ v: the wrench about the inertial origin with the power v · ż, shape (6,).

    Parameters
    ----------
    frames
        Where the bodies are.
    joint
        The joint.
    values
        One generalized force or momentum for each coordinate of the mechanism.
    """
    if not joint.elements:
        return np.zeros(6)
    if not joint.is_orthogonal:
        along = [values[each.coordinate] for each in joint.elements]
        return _exerted_along(pivot(frames, joint), motion_columns(frames, joint), along)
    return _exerted(
        pivot(frames, joint),
        [frames.axis[each.coordinate] for each in joint.elements],
        [values[each.coordinate] for each in joint.elements],
        slides=tuple(each.slides for each in joint.elements),
    )


@kernel
def _exerted(pivot: Array, axes: list[Array], values: list[Array], *, slides: tuple[bool, ...]) -> Array:
    """Return the wrench about the inertial origin of generalized forces, shape (6,)."""
    force, moment = np.zeros(3), np.zeros(3)
    dual = iter(_dual([axis for axis, slide in zip(axes, slides, strict=True) if not slide]))
    for axis, value, slide in zip(axes, values, slides, strict=True):
        if slide:
            force = force + axis * value
        else:
            moment = moment + next(dual) * value
    return np.concatenate([force, moment + cross(pivot, force)])


def across(frames: Frames, outer: Array, inner: Array, joint: JointKinematics) -> dict[int, Array]:
    """Return ż (or z̈) of a joint's coordinates from Z (or the z̈ part of Ż) of its bodies at the inertial origin.

    Parameters
    ----------
    frames
        Where the bodies are.
    outer, inner
        Z of the outer and of the inner body, each of shape (6,).
    joint
        The joint.
    """
    if not joint.elements:
        return {}
    if joint.is_orthogonal:
        values = _relative(
            outer,
            inner,
            pivot(frames, joint),
            [frames.axis[each.coordinate] for each in joint.elements],
            slides=tuple(each.slides for each in joint.elements),
        )
    else:
        values = _relative_along(outer, inner, pivot(frames, joint), motion_columns(frames, joint))
    return {each.coordinate: value for each, value in zip(joint.elements, values, strict=True)}


@kernel
def _relative(outer: Array, inner: Array, pivot: Array, axes: list[Array], *, slides: tuple[bool, ...]) -> list[Array]:
    """Return ż of a joint's coordinates from Z of both bodies."""
    relative = outer - inner
    linear = point_velocity(relative, pivot)
    dual = iter(_dual([axis for axis, slide in zip(axes, slides, strict=True) if not slide]))
    return [axis @ linear if slide else next(dual) @ relative[3:] for axis, slide in zip(axes, slides, strict=True)]


@kernel
def _exerted_along(pivot: Array, columns: list[Array], values: list[Array]) -> Array:
    """Return the wrench about the inertial origin of generalized forces along columns about the pivot, shape (6,)."""
    wrench = np.zeros(6)
    for dual, value in zip(dual_basis(columns), values, strict=True):
        wrench = wrench + dual * value
    return np.concatenate([wrench[:3], wrench[3:] + cross(pivot, wrench[:3])])


@kernel
def _relative_along(outer: Array, inner: Array, pivot: Array, columns: list[Array]) -> list[Array]:
    """Return ż along columns about the pivot from Z of both bodies."""
    relative = outer - inner
    moved = np.concatenate([point_velocity(relative, pivot), relative[3:]])
    return [dual @ moved for dual in dual_basis(columns)]


def motion_columns(frames: Frames, joint: JointKinematics) -> list[Array]:
    """Return the columns of H about the pivot, each of shape (6,)."""
    place = pivot(frames, joint)
    return [
        column(
            frames.axis[each.coordinate],
            np.zeros(3) if joint.is_orthogonal else frames.joint_point[each.coordinate] - place,
            np.asarray(each.pitch),
            slides=each.slides,
        )
        for each in joint.elements
    ]


def dual_axes(frames: Frames, joint: JointKinematics) -> dict[int, Array]:
    """Return the dual vector of each hinge: its product with the relative angular velocity is the hinge rate.

    One hinge, or two perpendicular ones, are their own duals; of three Cardan hinges the first and the third are not
    perpendicular.
    """
    hinges = joint.hinges
    axes = {hinge.coordinate: frames.axis[hinge.coordinate] for hinge in hinges}
    return dict(zip(axes, _dual(list(axes.values())), strict=True))


def _dual(axes: list[Array]) -> list[Array]:
    """Return the dual vectors of the axes of a joint's hinges."""
    if len(axes) < 3:
        return axes
    first, second, third = axes
    sine = first @ third
    scale = reciprocal(1.0 - sine * sine)
    return [(first - third * sine) * scale, second, (third - first * sine) * scale]


def pivot(frames: Frames, joint: JointKinematics) -> Array:
    """Return a point on all hinge axes in the inertial frame in m, shape (3,)."""
    return frames.joint_point[(joint.hinges or joint.elements)[0].coordinate]


_FREELY = 6
"""Coordinates of a joint with which a body moves independently of its parent."""
_ALL = tuple(np.eye(6))
"""Columns of a free body."""
_AT_ONCE = 2
"""Branches of a body that are added in one call."""


@dataclass(frozen=True)
class _Passed:
    """Coordinates of a joint that were passed, from the inner to the outer one.

    Attributes
    ----------
    columns, responses
        h and U about the body's point, each of shape (6,).
    weights
        1/D of each.
    """

    columns: list[Array]
    responses: list[Array]
    weights: list[Array]

    @property
    def numbers(self) -> tuple[list[Array], list[Array], list[Array]]:
        """All of them, as kernels take them."""
        return self.columns, self.responses, self.weights


class ArticulatedBodies:
    """Articulated inertias of a tree at given poses, for several loads.

    Parameters
    ----------
    joints
        Joint of each body to its parent, parents first.
    masses, inertias, centres
        Mass properties, inertia tensors in body axes, each of shape (3, 3), and centres of mass in the inertial frame
        in m, each of shape (3,).
    frames, parameters
        Poses of the bodies, and parameters of the mechanism.
    """

    def __init__(
        self,
        joints: Sequence[JointKinematics],
        masses: Sequence[MassProperties],
        inertias: Sequence[Array],
        centres: Sequence[Array],
        frames: Frames,
        parameters: Array,
    ) -> None:
        self._joints = joints
        self._frames = frames
        self._places = [
            pivot(frames, joint) if 0 < len(joint.elements) < _FREELY else centre
            for joint, centre in zip(joints, centres, strict=True)
        ]
        hung: list[list[Array]] = [[] for _ in joints]
        passed: list[_Passed] = []
        for body, joint in reversed(list(enumerate(joints))):
            columns, inner = self._columns(joint), self._inner(joint)
            responses, weights, carried = _inertia(
                frames.rotation[body],
                masses[body].mass.of(parameters),
                inertias[body],
                [centres[body], self._places[body]],
                _few(hung[body]),
                columns,
                inner,
            )
            passed.append(_Passed(columns, responses, weights))
            if carried is not None:
                hung[joint.parent].append(carried)
        self._passed = passed[::-1]

    def _columns(self, joint: JointKinematics) -> list[Array]:
        """Return h of each coordinate about the body's point."""
        if len(joint.elements) == _FREELY:
            return list(_ALL)
        return motion_columns(self._frames, joint) if joint.elements else []

    def _inner(self, joint: JointKinematics) -> Array | None:
        """Return the point of the parent; None where that is the ground, or does not feel the body."""
        return None if joint.parent < 0 or len(joint.elements) == _FREELY else self._places[joint.parent]

    def solve(self, wrenches: Sequence[Array]) -> Array:
        """Return ż (or z̈) of all coordinates, shape (n,).

        Parameters
        ----------
        wrenches
            On each body about the inertial origin, each of shape (6,).
        """
        hung: list[list[Array]] = [[] for _ in self._joints]
        rests: list[list[Array]] = []
        for body, joint in reversed(list(enumerate(self._joints))):
            places = self._places[body], self._inner(joint)
            left, carried = _load(wrenches[body], *places, _few(hung[body]), *self._passed[body].numbers)
            rests.append(left)
            if carried is not None:
                hung[joint.parent].append(carried)
        found: dict[int, Array] = {}
        moved: list[Array] = []
        for (body, joint), left in zip(enumerate(self._joints), reversed(rests), strict=True):
            inner = self._inner(joint)
            base = None if inner is None else moved[joint.parent]
            values, velocity = _motion(base, self._places[body], inner, left, *self._passed[body].numbers)
            moved.append(velocity)
            if len(joint.elements) == _FREELY:
                found |= self._freely(moved, body)
            else:
                found |= {each.coordinate: value for each, value in zip(joint.elements, values, strict=True)}
        return stack([found[index] for index in range(len(found))])

    def _freely(self, moved: Sequence[Array], body: int) -> dict[int, Array]:
        """Return ż of a free body's coordinates from the velocities of bodies about their points."""
        joint = self._joints[body]
        outer, inner = (
            at_origin(self._places[each], moved[each]) if each >= 0 else np.zeros(6) for each in (body, joint.parent)
        )
        return across(self._frames, outer, inner, joint)


def _few(branches: list[Array]) -> list[Array]:
    """Return branches whose sum is the same, at most `_AT_ONCE`."""
    while len(branches) > _AT_ONCE:
        branches = [branches[0] + branches[1], *branches[2:]]
    return branches


@kernel
def _inertia(
    rotation: Array,
    mass: Array,
    inertia: Array,
    points: list[Array],
    hung: list[Array],
    columns: list[Array],
    inner: Array | None,
) -> tuple[list[Array], list[Array], Array | None]:
    """Return U and 1/D of a joint's coordinates, and Iᵃ about the parent's point, shape (6, 6).

    Parameters
    ----------
    rotation, mass, inertia
        Rotation matrix of the body, its mass, and its inertia tensor about the centre of mass in body axes.
    points
        Centre of mass, and the body's point.
    hung
        Iᵃ of the bodies that hang on it, about its point.
    columns
        h of each coordinate about the body's point.
    inner
        The parent's point; None for no Iᵃ.
    """
    centre, place = points
    none = np.zeros((3, 3))
    turned = _symmetric(rotation @ inertia @ rotation.T)
    central = np.concatenate([np.concatenate([mass * np.eye(3), none], axis=1), np.concatenate([none, turned], axis=1)])
    whole = _about(centre - place, central)
    for each in hung:
        whole = whole + each
    responses: list[Array] = []
    weights: list[Array] = []
    for each in reversed(columns):
        response = whole @ each
        weight = reciprocal(each @ response)
        whole = _symmetric(whole - (response * weight)[:, np.newaxis] * response)
        responses.append(response)
        weights.append(weight)
    return responses[::-1], weights[::-1], None if inner is None else _about(place - inner, whole)


def _about(arm: Array, inertia: Array) -> Array:
    """Return an inertia about a point from that about another one, which is `arm` away; shape (6, 6)."""
    turning = np.stack([cross(arm, row) for row in np.eye(3)], axis=1)  # arm × …
    moving, coupling = inertia[:3, :3], inertia[:3, 3:]
    beside = turning @ coupling
    coupled = coupling - moving @ turning
    inner = _symmetric(inertia[3:, 3:] + beside.T + turning @ coupled)
    return np.concatenate([np.concatenate([moving, coupled], axis=1), np.concatenate([coupled.T, inner], axis=1)])


def _symmetric(matrix: Array) -> Array:
    """Return a symmetric matrix from the lower triangle of one that is so but for round-off."""
    one, other, mirrored = triangle(len(matrix))
    return matrix[one, other][mirrored]


@kernel
def _load(
    wrench: Array,
    place: Array,
    inner: Array | None,
    hung: list[Array],
    columns: list[Array],
    responses: list[Array],
    weights: list[Array],
) -> tuple[list[Array], Array | None]:
    """Return hᵀ p of a joint's coordinates, and pᵃ about the parent's point, shape (6,).

    Parameters
    ----------
    wrench
        On the body, about the inertial origin.
    place, inner
        The points of the body and of its parent.
    hung
        pᵃ of the bodies that hang on it.
    columns, responses, weights
        Of the coordinates.
    """
    load = shifted(wrench, place)
    for each in hung:
        load = load + each
    rests: list[Array] = []
    for each, response, weight in zip(reversed(columns), reversed(responses), reversed(weights), strict=True):
        rest = each @ load
        load = load - response * (weight * rest)
        rests.append(rest)
    return rests[::-1], None if inner is None else shifted(load, inner - place)


def shifted(wrench: Array, way: Array) -> Array:
    """Return a wrench about a point that is a `way` from the one that it is about, shape (6,)."""
    return np.concatenate([wrench[:3], wrench[3:] - cross(way, wrench[:3])])


@kernel
def _motion(
    base: Array | None,
    place: Array,
    inner: Array | None,
    rests: list[Array],
    columns: list[Array],
    responses: list[Array],
    weights: list[Array],
) -> tuple[list[Array], Array]:
    """Return ż of a joint's coordinates, and the velocity of the body's point, shape (6,).

    Parameters
    ----------
    base
        Velocity of the parent's point; None for rest.
    place, inner
        The points of the body and of its parent.
    rests
        hᵀ p of each coordinate.
    columns, responses, weights
        Of the coordinates.
    """
    velocity = np.zeros(6)
    if base is not None and inner is not None:
        velocity = np.concatenate([point_velocity(base, place - inner), base[3:]])
    values: list[Array] = []
    for each, response, weight, rest in zip(columns, responses, weights, rests, strict=True):
        values.append(weight * (rest - response @ velocity))
        velocity = velocity + each * values[-1]
    return values, velocity


@kernel
def at_origin(place: Array, moved: Array) -> Array:
    """Return the velocity of a body's point at the inertial origin from that of another one, shape (6,)."""
    return np.concatenate([moved[:3] - cross(moved[3:], place), moved[3:]])


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
    for own, at, values in entries:
        place[list(own), at] = first + np.arange(len(values))
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
