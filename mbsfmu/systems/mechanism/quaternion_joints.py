"""Ball and free joints: three angles relative to references."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mbsfmu.equations.coordinate_charts import ChartedMotion, orientation, with_present_references, with_reference
from mbsfmu.equations.tree_joints import JointKinematics, reference_of
from mbsfmu.equations.vector_pieces import stack
from mbsfmu.modelling.fields import Array
from mbsfmu.systems.system import SystemContext

_PARTS = ("coordinates", "velocities", "accelerations", "momenta")


class QuaternionJoints:
    """The ball and free joints of a system.

    Parameters
    ----------
    joints
        Joints of the system.

    Attributes
    ----------
    turning_angles
        Indices of the three coordinates of each, from the inner body outwards.
    """

    def __init__(self, joints: Iterable[JointKinematics]) -> None:
        self._joints = [joint for joint in joints if joint.reference is not None]
        self.turning_angles = tuple(
            (first.coordinate, second.coordinate, third.coordinate)
            for first, second, third in (joint.hinges for joint in self._joints)
        )

    def with_references(self, instant: SystemContext, references: Array | None) -> SystemContext:
        """Return the same motion with other references, shape (8 r,); None for the present orientations."""
        parts = {name: list(getattr(instant, name)) for name in _PARTS}
        found = []
        for joint in self._joints:
            axes, turning = [hinge.axis for hinge in joint.hinges], _turning(joint, instant)
            assert joint.reference is not None
            if references is None:
                new = with_present_references(axes, turning)
            else:
                new = with_reference(axes, turning, reference_of(references, joint.reference))
            for name, values in parts.items():
                for hinge, index in zip(joint.hinges, range(3), strict=True):
                    values[hinge.coordinate] = getattr(new, name)[index]
            found.append(new.reference)
        moved = {name: stack(values) for name, values in parts.items()}
        return replace(instant, **moved, references=np.concatenate(found) if found else np.zeros(0))


def orientation_of(joint: JointKinematics, instant: SystemContext) -> Array:
    """Return the quaternion from the angles of a ball or free joint and its reference, shape (4,)."""
    turning = _turning(joint, instant)
    return orientation([hinge.axis for hinge in joint.hinges], turning.coordinates, turning.reference)


def _turning(joint: JointKinematics, instant: SystemContext) -> ChartedMotion:
    assert joint.reference is not None
    three = [hinge.coordinate for hinge in joint.hinges]
    numbers = {name: getattr(instant, name)[three] for name in _PARTS}
    return ChartedMotion(**numbers, reference=reference_of(instant.references, joint.reference))
