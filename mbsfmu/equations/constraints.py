"""Loop-closure equations of cut joints, Φ(z) = 0."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.kinematics import Frames
from mbsfmu.equations.rotation import Array, perpendicular, rotation_from_vector, unit
from mbsfmu.model.joint import Fixed, Prismatic, Revolute
from mbsfmu.model.mechanism import Mechanism


class CutJoint:
    """The closure equations of one cut joint: five for a hinge or a slide, six for a weld, in m and rad.

    Attributes
    ----------
    names
        One name an equation, for messages.
    """

    def __init__(self, joint: Revolute | Prismatic | Fixed, mechanism: Mechanism, points: Points) -> None:
        self._joint = joint
        self._parent, self._parent_point = body_and_point(mechanism, points, joint.parent)
        self._child, self._child_point = body_and_point(mechanism, points, joint.child)
        self._orientation = rotation_from_vector(joint.orientation)
        axis = np.array([0.0, 0.0, 1.0]) if isinstance(joint, Fixed) else unit(joint.axis)
        self._axis, self._across = axis, perpendicular(axis)
        if isinstance(joint, Revolute):
            kinds = ("x", "y", "z", "tilt 1", "tilt 2")
        elif isinstance(joint, Prismatic):
            kinds = ("offset 1", "offset 2", "turn x", "turn y", "turn z")
        else:
            kinds = ("x", "y", "z", "turn x", "turn y", "turn z")
        self.names = tuple(f"{joint.name} ({kind})" for kind in kinds)

    def evaluate(self, frames: Frames, parameters: Array) -> Array:
        """Return the violation of the equations, shape (number of equations,)."""
        gap = self._place(frames, parameters, self._child, self._child_point) - self._place(
            frames, parameters, self._parent, self._parent_point
        )
        parent = frames.orientation(self._parent)
        relative = parent.T @ frames.orientation(self._child) @ self._orientation.T
        if isinstance(self._joint, Revolute):
            # The axis seen from the parent must not leave itself.
            tilted = relative @ self._axis
            return np.concatenate([gap, np.stack([direction @ tilted for direction in self._across])])
        # The vector part of the relative rotation: sin θ about its axis, zero without rotation.
        turn = 0.5 * np.stack(
            [
                relative[2, 1] - relative[1, 2],
                relative[0, 2] - relative[2, 0],
                relative[1, 0] - relative[0, 1],
            ]
        )
        if isinstance(self._joint, Prismatic):
            offset = np.stack([(parent @ direction) @ gap for direction in self._across])
            return np.concatenate([offset, turn])
        return np.concatenate([gap, turn])

    @staticmethod
    def _place(frames: Frames, parameters: Array, body: int, point: PointSlot) -> Array:
        return frames.point(body, point.of(parameters))
