"""Sums of loads on the bodies of a mechanism and in its joints, and the motion that they may depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.frames import Frames
from mbsfmu.equations.rotation import cross
from mbsfmu.modelling.fields import Array


@dataclass(frozen=True)
class MotionState:
    """What a force may depend on.

    Attributes
    ----------
    coordinates, velocities
        z and ż, each of shape (n,).
    frames
        Where the bodies are.
    body_velocities
        Z of each body, each of shape (6,).
    """

    coordinates: Array
    velocities: Array
    frames: Frames
    body_velocities: list[Array]


@dataclass(frozen=True)
class Loads:
    """Sums up what acts on the bodies and in the joints.

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
        """Return loads of zero."""
        return cls([np.zeros(6)] * bodies, [np.asarray(0.0)] * coordinates)

    def add_force(self, body: int, force: Array, point: Array) -> None:
        """Add a force in N at a point of a body; on the ground it has no effect."""
        self.add_wrench(body, np.concatenate([force, cross(point, force)]))

    def add_moment(self, body: int, moment: Array) -> None:
        """Add a moment in N m to a body; on the ground it has no effect."""
        self.add_wrench(body, np.concatenate([np.zeros(3), moment]))

    def add_in_joint(self, coordinate: int, load: Array) -> None:
        """Add a load in N m or N along a joint's coordinate."""
        self.joint_loads[coordinate] = self.joint_loads[coordinate] + load

    def add_wrench(self, body: int, wrench: Array) -> None:
        """Add a force in N and a moment about the inertial origin in N m, shape (6,); on the ground without effect."""
        if body >= 0:
            self.wrenches[body] = self.wrenches[body] + wrench
