"""Articulated bodies: motion of a tree, from the tips to the ground and back [Featherstone1983].

A body with all that hangs on it answers a velocity V (or an acceleration) with the wrench Iᴬ V − p on its joint to the
parent. This does no work along a coordinate of the joint with the column h, hᵀ (Iᴬ V − p) = 0; with U = Iᴬ h and D =
hᵀ U

ż = (hᵀ p − Uᵀ V) / D,  Iᵃ = Iᴬ − U Uᵀ / D,  pᵃ = p − U hᵀ p / D,

where V is the velocity without this coordinate, and Iᵃ and pᵃ those of the body on the inner side of it. Coordinates of
a joint are passed one by one, from the outer body inwards. `sequential.py` is the same in inverse inertias: it has an
equation for each constraint of a joint, whereas this has one for each coordinate.

Inertias, wrenches and velocities of a body refer to a point on an axis of its joint, and of one that moves freely to
its centre of mass: with a distant point the terms of its mass would take the digits of its moments of inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.divide_and_conquer.elimination_blocks import reciprocal, triangle
from mbsfmu.divide_and_conquer.joint_subspaces import across, motion_columns, pivot
from mbsfmu.equations.bodies import MassProperties
from mbsfmu.equations.frames import Frames, point_velocity
from mbsfmu.equations.rotation import cross
from mbsfmu.equations.tree_joints import JointKinematics
from mbsfmu.equations.vector_pieces import stack
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import kernel

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
