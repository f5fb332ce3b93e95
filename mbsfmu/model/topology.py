"""The topology of a mechanism: a spanning tree of joints, and the cut joints that close its loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mbsfmu.model.body import Body
from mbsfmu.model.joint import AnyJoint, Joint
from mbsfmu.model.reference_types import GROUND, split_reference
from mbsfmu.modelling import DataError


@dataclass(frozen=True)
class TreeJoint:
    """A joint of the spanning tree, from the ground outwards.

    Attributes
    ----------
    joint
        The joint's data.
    reversed
        True where the body nearer to the ground is the joint's child.
    parent
        Index of the body nearer to the ground in `Topology.bodies`; -1 for the ground.
    coordinates
        Index of the coordinate of each of the joint's elements, in the order of these.
    reference
        Index of the joint's reference orientation; None for a joint that does not turn freely.
    """

    joint: AnyJoint
    reversed: bool
    parent: int
    coordinates: tuple[int, ...]
    reference: int | None = None


@dataclass(frozen=True)
class Topology:
    """The spanning tree and the cut joints of a mechanism.

    Attributes
    ----------
    bodies
        Bodies ordered so that each comes after its parent.
    tree
        For each body, the joint to its parent.
    cuts
        Joints that close loops.
    """

    bodies: tuple[Body, ...]
    tree: tuple[TreeJoint, ...]
    cuts: tuple[AnyJoint, ...]

    @property
    def coordinates(self) -> int:
        """Number of coordinates of the open tree."""
        return sum(len(joint.coordinates) for joint in self.tree)

    @property
    def references(self) -> int:
        """Number of ball and free joints."""
        return sum(joint.reference is not None for joint in self.tree)

    def index(self, body: str) -> int:
        """Return the index of a body by its name; -1 for the ground."""
        return -1 if body == GROUND else [each.name for each in self.bodies].index(body)

    def body_of_joint(self, joint: str) -> int | None:
        """Return the index of the outer body of a joint; None for a cut joint."""
        names = [tree_joint.joint.name for tree_joint in self.tree]
        return names.index(joint) if joint in names else None


def work_out(bodies: Sequence[Body], joints: Sequence[AnyJoint]) -> Topology:
    """Return the spanning tree, breadth first and in the order of the joints.

    Raises
    ------
    DataError
        When a body is not attached to the ground.
    """
    body_by_name = {body.name: body for body in bodies}
    order: dict[str, int] = {GROUND: -1}
    tree: list[TreeJoint] = []
    joints_of: dict[str, list[AnyJoint]] = {name: [] for name in (GROUND, *body_by_name)}
    for joint in joints:
        if not (joint.cut or joint.only_closes):
            for end in _ends(joint):
                joints_of[end].append(joint)
    coordinates = references = 0
    front = [GROUND]
    while front:
        here = front.pop(0)
        for joint in joints_of[here]:
            ends = _ends(joint)
            is_reversed = ends[1] == here
            outer = ends[0] if is_reversed else ends[1]
            if outer in order:
                continue
            order[outer] = len(tree)
            indices = tuple(range(coordinates, coordinates + len(joint.elements)))
            reference = references if joint.turns_freely else None
            tree.append(TreeJoint(joint, is_reversed, order[here], indices, reference))
            coordinates += len(indices)
            references += joint.turns_freely
            front.append(outer)
    loose = [body.name for body in bodies if body.name not in order]
    if loose:
        raise DataError(
            f"body '{loose[0]}' is not attached to the ground: no chain of joints that are not cut leads to it, "
            "and distances do not count; a body that nothing else holds has a free joint"
        )
    in_tree = {joint.joint.name for joint in tree}
    cuts = tuple(joint for joint in joints if joint.name not in in_tree)
    return Topology(tuple(body_by_name[name] for name in order if name != GROUND), tuple(tree), cuts)


def _ends(joint: Joint) -> tuple[str, str]:
    return split_reference(joint.parent)[0], split_reference(joint.child)[0]
