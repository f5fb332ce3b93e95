"""Sums of loads on the bodies and joints of a mechanism, and the motion they depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.frames import Frames
from mbsfmu.equations.rotation import cross
from mbsfmu.modelling.fields import Array


@dataclass(frozen=True)
class MotionState:
    """Motion of a mechanism, on which forces may depend.

    Attributes
    ----------
    coordinates, velocities
        z and ż, each of shape (n,).
    frames
        Poses of the bodies.
    body_velocities
        Z of each body, each of shape (6,).
    """

    coordinates: Array
    velocities: Array
    frames: Frames
    body_velocities: list[Array]


@dataclass(frozen=True)
class Loads:
    """Sum of the loads on bodies and joints.

    Attributes
    ----------
    wrenches
        For each body, force in N and moment about the inertial origin in N m, each of shape (6,).
    joint_loads
        Generalised force of each joint coordinate in N m or N.
    """

    wrenches: list[Array]
    joint_loads: list[Array]

    @classmethod
    def none(cls, bodies: int, coordinates: int) -> Loads:
        """Return zero loads."""
        return cls([np.zeros(6)] * bodies, [np.asarray(0.0)] * coordinates)

    def add_force(self, body: int, force: Array, point: Array) -> None:
        """Add a force in N at a point of a body; without effect on the ground."""
        self.add_wrench(body, np.concatenate([force, cross(point, force)]))

    def add_moment(self, body: int, moment: Array) -> None:
        """Add a moment in N m to a body; without effect on the ground."""
        self.add_wrench(body, np.concatenate([np.zeros(3), moment]))

    def add_in_joint(self, coordinate: int, load: Array) -> None:
        """Add a load in N m or N along a joint coordinate."""
        self.joint_loads[coordinate] = self.joint_loads[coordinate] + load

    def add_wrench(self, body: int, wrench: Array) -> None:
        """Add a force in N and a moment about the inertial origin in N m, shape (6,); without effect on the ground."""
        if body >= 0:
            self.wrenches[body] = self.wrenches[body] + wrench
