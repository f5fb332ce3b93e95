"""Recursive kinematics of the open tree, from the base to the leaves.

Velocities and accelerations are those of the point of each body that coincides with the origin of the
inertial frame at that time, and the angular ones: Z = (ṡ, ω) [Jaiswal2021, eq. 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot
from mbsfmu.equations.rotation import Array, cross, rotation_about, rotation_from_vector, unit
from mbsfmu.model.joint import Fixed, Prismatic, Revolute
from mbsfmu.model.topology import Topology, TreeJoint


@dataclass(frozen=True)
class JointKinematics:
    """A joint of the tree, from the body nearer to the ground outwards.

    Attributes
    ----------
    source
        The joint's data.
    parent
        Index of the inner body, -1 for the ground.
    coordinate
        Index of the coordinate, None for a fixed joint.
    slides
        True for a prismatic joint.
    axis
        Unit axis in the inner body's frame, shape (3,).
    orientation
        Rotation from the inner to the outer body's frame at coordinate zero, shape (3, 3).
    inner, outer
        The joint's point on both bodies.
    """

    source: Revolute | Prismatic | Fixed
    parent: int
    coordinate: int | None
    slides: bool
    axis: Array
    orientation: Array
    inner: PointSlot
    outer: PointSlot


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
        Axis of each body's joint in the inertial frame, each shape (3,).
    joint_point
        Point of each body's joint on the inner body in the inertial frame in m, each shape (3,).
    """

    rotation: list[Array]
    origin: list[Array]
    axis: list[Array]
    joint_point: list[Array]

    def point(self, body: int, local: Array) -> Array:
        """Return a body's point in the inertial frame in m, shape (3,); body -1 is the ground."""
        return local if body < 0 else self.origin[body] + self.rotation[body] @ local

    def orientation(self, body: int) -> Array:
        """Return a body's rotation matrix, shape (3, 3); body -1 is the ground."""
        return np.eye(3) if body < 0 else self.rotation[body]


class Kinematics:
    """Positions, velocities and accelerations of the bodies from the joint coordinates."""

    def __init__(self, topology: Topology, points: Points) -> None:
        self.joints = [_joint(tree_joint, points) for tree_joint in topology.tree]

    def frames(self, coordinates: Array, parameters: Array) -> Frames:
        """Place the bodies.

        Parameters
        ----------
        coordinates
            Joint coordinates z in rad and m, shape (n,).
        parameters
            Parameters of the mechanism.
        """
        frames = Frames([], [], [], [])
        for joint in self.joints:
            inner = frames.orientation(joint.parent)
            rotation = inner @ joint.orientation
            place = point = frames.point(joint.parent, joint.inner.of(parameters))
            axis = inner @ joint.axis
            if joint.coordinate is not None:
                coordinate = coordinates[joint.coordinate]
                if joint.slides:
                    place = point + axis * coordinate
                else:
                    rotation = inner @ rotation_about(joint.axis, coordinate) @ joint.orientation
            frames.rotation.append(rotation)
            frames.origin.append(place - rotation @ joint.outer.of(parameters))
            frames.axis.append(axis)
            frames.joint_point.append(point)
        return frames

    def transformation(self, frames: Frames, body: int) -> Array:
        """Return b, the velocity Z that a unit joint velocity gives to a body [Jaiswal2021, eq. 2]; shape (6,)."""
        axis = frames.axis[body]
        if self.joints[body].slides:
            return np.concatenate([axis, np.zeros(3)])
        return np.concatenate([cross(frames.joint_point[body], axis), axis])

    def velocities(self, frames: Frames, velocities: Array) -> list[Array]:
        """Return Z of each body in m/s and rad/s [Jaiswal2021, eq. 2], each shape (6,).

        Parameters
        ----------
        frames
            Where the bodies are.
        velocities
            Joint velocities ż in rad/s and m/s, shape (n,).
        """
        result: list[Array] = []
        for body, joint in enumerate(self.joints):
            velocity = _of(result, joint.parent)
            if joint.coordinate is not None:
                velocity = velocity + self.transformation(frames, body) * velocities[joint.coordinate]
            result.append(velocity)
        return result

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
        result: list[Array] = []
        for body, joint in enumerate(self.joints):
            acceleration = _of(result, joint.parent)
            if joint.coordinate is not None:
                inner = _of(body_velocities, joint.parent)[3:]
                outer = body_velocities[body][3:]
                acceleration = (
                    acceleration
                    + self.transformation(frames, body) * accelerations[joint.coordinate]
                    + self._quadratic(frames, body, inner, outer, velocities[joint.coordinate])
                )
            result.append(acceleration)
        return result

    def _quadratic(self, frames: Frames, body: int, inner: Array, outer: Array, velocity: Array) -> Array:
        """Return d of [Jaiswal2021, eq. 3], shape (6,).

        Both bodies have the joint's point in common: with the accelerations of the points at the origin,
        s̈ + α × p + ω × (ω × p) is the same on both (hinge), or differs by z̈ w + 2 ω × w ż (slide).
        """
        turning = cross(inner, frames.axis[body]) * velocity
        if self.joints[body].slides:
            return np.concatenate([2.0 * turning, np.zeros(3)])
        point = frames.joint_point[body]
        linear = cross(inner, cross(inner, point)) - cross(outer, cross(outer, point)) - cross(turning, point)
        return np.concatenate([linear, turning])


def point_velocity(velocity: Array, point: Array) -> Array:
    """Return the velocity in m/s of the point of a body that is at `point`, shape (3,)."""
    return velocity[:3] + cross(velocity[3:], point)


def body_velocity(velocities: list[Array], body: int) -> Array:
    """Return Z of a body, zero for the ground (-1); shape (6,)."""
    return _of(velocities, body)


def _of(vectors: list[Array], body: int) -> Array:
    return np.zeros(6) if body < 0 else vectors[body]


def _joint(tree_joint: TreeJoint, points: Points) -> JointKinematics:
    joint = tree_joint.joint
    orientation = rotation_from_vector(joint.orientation)
    axis = unit(joint.axis) if isinstance(joint, (Revolute, Prismatic)) else np.array([0.0, 0.0, 1.0])
    inner, outer = points.find(joint.parent), points.find(joint.child)
    if tree_joint.reversed:
        # Seen from the child: the outer frame is inner · Oᵀ R(axis, -z) = inner · R(-Oᵀ axis, z) · Oᵀ.
        axis, orientation, inner, outer = -orientation.T @ axis, orientation.T, outer, inner
    return JointKinematics(
        joint,
        tree_joint.parent,
        tree_joint.coordinate,
        isinstance(joint, Prismatic),
        axis,
        orientation,
        inner,
        outer,
    )
