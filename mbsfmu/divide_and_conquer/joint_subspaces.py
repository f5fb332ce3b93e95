"""Motion subspace H and constrained subspace D of a tree joint.

H has a column for each slide and hinge, as the coordinates leave it. Its dual basis, H (Hᵀ H)⁻¹, has the same products
with loads and velocities as H has with the coordinates' own [Featherstone2008, sect. 3.2]; for slides and hinges that
are perpendicular, about a point on all hinge axes, it is written out.

[Featherstone2008] R. Featherstone, Rigid Body Dynamics Algorithms, Springer, 2008.
"""

from __future__ import annotations

import numpy as np

from mbsfmu.divide_and_conquer.elimination_blocks import reciprocal
from mbsfmu.equations.dual_basis import dual_basis
from mbsfmu.equations.frames import Frames, point_velocity
from mbsfmu.equations.kinematics import column
from mbsfmu.equations.rotation import cross
from mbsfmu.equations.tree_joints import JointKinematics
from mbsfmu.modelling.fields import Array
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
