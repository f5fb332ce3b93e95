"""Force and moment of a load along a joint coordinate on the outer body."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.joint_coordinates import TreeCoordinate, coordinate_at
from mbsfmu.equations.loads import Loads, MotionState
from mbsfmu.model.reference_types import GROUND, split_reference
from mbsfmu.view.scene.poses import Placement
from mbsfmu.view.scene.recorded import Floats


class LoadedJoint:
    """A joint coordinate with a load.

    Parameters
    ----------
    placement
        The mechanism.
    reference
        `joint`, or `joint.coordinate`.

    Attributes
    ----------
    point
        The joint's point, as `body.point`, on the body that the load is shown on: the outer one of the tree, or the
        child, but the parent where the child is the ground.
    """

    def __init__(self, placement: Placement, reference: str) -> None:
        mechanism = placement.mechanism
        joint, index = mechanism.joint_element(reference)
        self._placement = placement
        self._slides = joint.elements[index].slides
        self._coordinate = coordinate_at(mechanism, placement.points, reference)
        outer = mechanism.topology.body_of_joint(joint.name)
        on_parent = split_reference(joint.child)[0] == GROUND
        if outer is not None and isinstance(self._coordinate, TreeCoordinate):
            on_parent = mechanism.topology.tree[outer].reversed
        self.point = joint.parent if on_parent else joint.child

    def exerted(self, load: Floats, motion: MotionState) -> tuple[Floats | None, Floats | None]:
        """Return the force in N and the moment in N m, each of shape (3,) or None, that a load exerts at the point."""
        if isinstance(self._coordinate, TreeCoordinate):
            along = np.asarray(load * motion.frames.axis[self._coordinate.index], dtype=float)
            return (along, None) if self._slides else (None, along)
        body, _ = self._placement.point(self.point)
        loads = Loads.none(len(motion.body_velocities), len(motion.coordinates))
        self._coordinate.add_load(loads, load, motion, self._placement.parameters)
        force, moment = np.split(np.asarray(loads.wrenches[body], dtype=float), 2)
        return (force, None) if self._slides else (None, moment)
