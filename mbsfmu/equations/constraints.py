"""Cut joints: their closure equations between two bodies, Φ(z) = 0, and what they transmit."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.kinematics import Frames, body_velocity, point_of_body
from mbsfmu.equations.rotation import Array
from mbsfmu.model.joint import Joint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.present import BodyPoint


class CutJoint:
    """The closure equations of one cut joint: what it takes away of six degrees of freedom, in m and rad.

    Attributes
    ----------
    names, units
        One name an equation, for messages, and the unit of its violation.
    parent, child
        Indices of the bodies, -1 for the ground.
    """

    def __init__(self, joint: Joint, mechanism: Mechanism, points: Points) -> None:
        self.parent, self._parent_point = body_and_point(mechanism, points, joint.parent)
        self.child, self._child_point = body_and_point(mechanism, points, joint.child)
        equations = joint.equations()
        self._equations = tuple(equations.values())
        self.names = tuple(f"{joint.name} ({kind})" for kind in equations)
        self.units = tuple(equation.unit for equation in self._equations)

    def evaluate(self, frames: Frames, parameters: Array) -> Array:
        """Return the violation of the equations, shape (number of equations,)."""
        parent, child = self._sides(frames, [], parameters)
        return np.stack([equation.value(parent, child) for equation in self._equations])

    def wrenches(self, frames: Frames, parameters: Array) -> list[tuple[Array, Array]]:
        """Return for each equation what a unit multiplier exerts on the parent and on the child."""
        parent, child = self._sides(frames, [], parameters)
        return [equation.wrenches(parent, child) for equation in self._equations]

    def wrench_rates(self, frames: Frames, velocities: list[Array], parameters: Array) -> list[tuple[Array, Array]]:
        """Return the rates of `wrenches` at the bodies' velocities Z."""
        parent, child = self._sides(frames, velocities, parameters)
        return [equation.wrench_rates(parent, child) for equation in self._equations]

    def child_place(self, frames: Frames, parameters: Array) -> Array:
        """Return the joint's point on the child in the inertial frame in m, shape (3,)."""
        return frames.point(self.child, self._child_point.of(parameters))

    def _sides(self, frames: Frames, velocities: list[Array], parameters: Array) -> tuple[BodyPoint, BodyPoint]:
        def side(body: int, point: PointSlot) -> BodyPoint:
            velocity = body_velocity(velocities, body) if velocities else np.zeros(6)
            return point_of_body(frames, velocity, body, point.of(parameters))

        return side(self.parent, self._parent_point), side(self.child, self._child_point)
