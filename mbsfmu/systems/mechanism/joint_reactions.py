"""Joint reactions: force and moment on the child at the joint's point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mbsfmu.divide_and_conquer.joint_subspaces import impulse
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.frames import Frames
from mbsfmu.equations.loads import MotionState
from mbsfmu.equations.rotation import cross
from mbsfmu.equations.vector_pieces import stack
from mbsfmu.modelling.fields import Array
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts
from mbsfmu.systems.system import LoopsInUse


def tree_reactions(
    parts: MechanismParts, motion: MotionState, balance: Sequence[Array], parameters: Array, loops: LoopsInUse
) -> Array:
    """Return the reactions of tree joints, then of cut ones, in N and N m, then loads of relations.

    The reaction of a tree joint is the wrench needed for the motion of its outboard bodies minus loads and cut-joint
    wrenches. Loads of drives and springs in a joint are part of its reaction. Inactive loop equations have none.

    Parameters
    ----------
    parts, motion, parameters
        The mechanism, and how it moves.
    balance
        M̄ Ż − Q̄ of each body, each of shape (6,).
    loops
        The loop equations in use with their multipliers.
    """
    missing, of_cuts, of_tree = list(balance), [], []
    pulls = relating_pulls(parts.cuts, parts, loops)
    for cut, pulled in _pulls(parts.cuts, motion.frames, parameters, loops):
        total = np.zeros(6)
        for (on_parent, on_child), multiplier in pulled:
            total = total + on_child * multiplier
            for body, wrench in ((cut.parent, on_parent), (cut.child, on_child)):
                if body >= 0:
                    missing[body] = missing[body] - wrench * multiplier
        of_cuts.append(_moved_to(cut.child_place(motion.frames, parameters), total))
    for body in reversed(range(len(missing))):
        joint, data = parts.kinematics.joints[body], parts.topology.tree[body]
        if joint.parent >= 0:
            missing[joint.parent] = missing[joint.parent] + missing[body]
        if not data.joint.constrains:
            continue
        if data.reversed:
            place = motion.frames.point(joint.parent, joint.inner.of(parameters))
            of_tree.append(_moved_to(place, -missing[body]))
        else:
            place = motion.frames.point(body, joint.outer.of(parameters))
            of_tree.append(_moved_to(place, missing[body]))
    return np.concatenate([*reversed(of_tree), *of_cuts, stack(_relating_loads(parts, pulls, parameters))])


def relating_pulls(joints: Sequence[CutJoint], parts: MechanismParts, loops: LoopsInUse) -> list[Array]:
    """Return −λ of each relation, zero if inactive; they come after those of the joints."""
    used = {row: -loops.multipliers[index] for index, row in enumerate(loops.rows)}
    first = sum(len(joint.names) for joint in joints)
    return [used.get(row, np.asarray(0.0)) for row, _ in enumerate(parts.relations, start=first)]


def _relating_loads(parts: MechanismParts, pulls: Sequence[Array], parameters: Array) -> list[Array]:
    """Return the loads of relations along their coordinates in N and N m, −a λ, in their order."""
    pairs = zip(pulls, parts.relations, strict=True)
    return [factor * pull for pull, relation in pairs for factor in relation.factors(parameters)]


def constraint_reactions(
    parts: MechanismParts,
    constraints: Sequence[CutJoint],
    hung: Sequence[int],
    motion: MotionState,
    joint_loads: Sequence[Array],
    parameters: Array,
    loops: LoopsInUse,
) -> Array:
    """Return the reactions of joints that are all constraints, in N and N m, then loads of relations.

    Parameters
    ----------
    parts, motion, parameters
        The mechanism, and how it moves.
    constraints
        Its joints, those of the tree first.
    hung
        The bodies that hang on these.
    joint_loads
        Loads of springs and drives along the joints' coordinates.
    loops
        The equations in use with their multipliers.
    """
    result = []
    pulls = relating_pulls(constraints, parts, loops)
    related = _relating_loads(parts, pulls, parameters)
    along = list(joint_loads)
    coordinates = (index for relation in parts.relations for index in relation.coordinates)
    for index, load in zip(coordinates, related, strict=True):
        along[index] = along[index] + load
    loaded = stack(along)
    for number, (cut, pulled) in enumerate(_pulls(constraints, motion.frames, parameters, loops)):
        total = np.zeros(6)
        for (_, on_child), multiplier in pulled:
            total = total + on_child * multiplier
        if number < len(hung) and parts.kinematics.joints[hung[number]].reference is None:
            load = impulse(motion.frames, parts.kinematics.joints[hung[number]], loaded)
            total = total - load if parts.topology.tree[hung[number]].reversed else total + load
        result.append(_moved_to(cut.child_place(motion.frames, parameters), total))
    return np.concatenate([*result, stack(related)])


def _pulls(
    joints: Sequence[CutJoint], frames: Frames, parameters: Array, loops: LoopsInUse
) -> Iterator[tuple[CutJoint, list[tuple[tuple[Array, Array], Array]]]]:
    """Yield each joint with the wrenches of its active equations on parent and child, and the factors −λ."""
    used, first = {row: -loops.multipliers[index] for index, row in enumerate(loops.rows)}, 0
    for joint in joints:
        pairs = enumerate(joint.wrenches(frames, parameters), start=first)
        yield joint, [(pair, used[row]) for row, pair in pairs if row in used]
        first += len(joint.names)


def _moved_to(place: Array, wrench: Array) -> Array:
    """Return a wrench about the inertial origin as one about a point, shape (6,)."""
    return np.concatenate([wrench[:3], wrench[3:] - cross(place, wrench[:3])])
