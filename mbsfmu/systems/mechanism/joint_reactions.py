"""Reactions of joints, apparent inertias, and motion without kinetic energy.

Apparent inertias of tree coordinates with all other joints free, and inertias of outboard bodies.

[Rodriguez1991] G. Rodriguez, A. Jain, K. Kreutz-Delgado, A spatial operator algebra for manipulator modeling and
control, International Journal of Robotics Research 10 (1991).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.divide_and_conquer.articulated_bodies import impulse
from mbsfmu.equations.bodies import MassProperties, Points, Properties
from mbsfmu.equations.constraints import CutJoint
from mbsfmu.equations.joint_coordinates import MotionState
from mbsfmu.equations.kinematics import Kinematics, tree_joints
from mbsfmu.equations.rotation import Frames, cross, point_velocity, stack
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.modelling.data import Array
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts
from mbsfmu.systems.system import LoopsInUse, starts


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


Floats = NDArray[np.float64]


def apparent_inertias(
    kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array
) -> Floats:
    """Return the apparent inertias 1 / (M⁻¹)ᵢᵢ in kg m² and kg: momentum per unit velocity of a coordinate.

    The tree is cut at a joint, which allows the relative motion S q̇. With the mobilities A and C of the two parts,
    from wrenches to body motions at the joint, the joint's block of M⁻¹ is (Sᵀ (A + C)⁻¹ S)⁻¹. Both are computed
    recursively in linear time: the contribution through a joint is T (Tᵀ A T)⁻¹ Tᵀ, with Tᵀ S = 0. This equals I − I S
    (Sᵀ I S)⁻¹ Sᵀ I of articulated bodies [Rodriguez1991], but without cancellation, which would remove light links
    before a heavy load. It takes numbers, and is not traced.

    Parameters
    ----------
    kinematics, masses, frames, parameters
        Of a mechanism, where it is.

    Returns
    -------
    Shape (n,).
    """
    joints = kinematics.joints
    own = [_about_own_origin(frames, body, each, parameters) for body, each in enumerate(masses)]
    free = [_columns(kinematics, frames, body) for body in range(len(joints))]
    fixed = [np.linalg.qr(columns, mode="complete")[0][:, columns.shape[1] :] for columns in free]
    to_inner = [_shift(frames, body, joint.parent) for body, joint in enumerate(joints)]
    whole, passed = own.copy(), own.copy()
    for body in reversed(range(len(joints))):
        transmitted = (
            fixed[body] @ np.linalg.inv(fixed[body].T @ np.linalg.inv(whole[body]) @ fixed[body]) @ fixed[body].T
        )
        passed[body] = to_inner[body].T @ transmitted @ to_inner[body]
        if (parent := joints[body].parent) >= 0:
            whole[parent] = whole[parent] + passed[body]
    result = np.zeros(sum(len(joint.elements) for joint in joints))
    rests: list[Floats] = []
    for body, joint in enumerate(joints):
        rest, parent = np.zeros((6, 6)), joint.parent
        if parent >= 0:
            # The parent moves as what hangs on it but for this body, held by its own joint to what is further in.
            mobility = np.linalg.inv(whole[parent] - passed[body])
            held = mobility @ fixed[parent]
            gives = fixed[parent].T @ (mobility + rests[parent]) @ fixed[parent]
            rest = mobility - held @ np.linalg.inv(gives) @ held.T
        rests.append(to_inner[body] @ rest @ to_inner[body].T)
        apart = np.linalg.inv(np.linalg.inv(whole[body]) + rests[body])
        block = np.linalg.inv(free[body].T @ apart @ free[body])
        result[[each.coordinate for each in joint.elements]] = 1.0 / np.diag(block)
    return result


def own_inertias(kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array) -> Floats:
    """Return the inertia of each coordinate's own body in kg m² and kg, shape (n,); arguments as above."""
    result = np.zeros(sum(len(joint.elements) for joint in kinematics.joints))
    for body, joint in enumerate(kinematics.joints):
        columns = _columns(kinematics, frames, body)
        inertia = _about_own_origin(frames, body, masses[body], parameters)
        result[[each.coordinate for each in joint.elements]] = np.diag(columns.T @ inertia @ columns)
    return result


def carried_inertias(kinematics: Kinematics, masses: list[MassProperties], frames: Frames, parameters: Array) -> Floats:
    """Return the inertia of outboard masses for each body's coordinates in kg m² and kg.

    It is Σ m s² over the joints to outboard bodies: m is the mass beyond a joint, and s the joint's velocity per unit
    velocity of the coordinate. It takes numbers, and is not traced.

    Parameters
    ----------
    kinematics, masses, frames, parameters
        Of a mechanism, where it is.

    Returns
    -------
    Shape (n,).
    """
    joints = kinematics.joints
    hanging = np.array([float(each.mass.of(parameters)) for each in masses])
    result = np.zeros(sum(len(joint.elements) for joint in joints))
    for body in reversed(range(len(joints))):
        if (parent := joints[body].parent) < 0:
            continue
        hanging[parent] += hanging[body]
        own = joints[body].elements
        place = frames.joint_point[own[0].coordinate] if own else frames.origin[body]
        for each in joints[parent].elements:
            moved = point_velocity(kinematics.transformation(frames, each.coordinate), place)
            result[each.coordinate] += hanging[body] * (moved @ moved)
    return result


def _columns(kinematics: Kinematics, frames: Frames, body: int) -> Floats:
    """Return the motion of a body's origin and its rotation per coordinate of its joint, shape (6, coordinates)."""
    columns = [kinematics.transformation(frames, each.coordinate) for each in kinematics.joints[body].elements]
    origin = frames.origin[body]
    moved = [np.concatenate([point_velocity(column, origin), column[3:]]) for column in columns]
    return np.stack(moved, axis=1) if moved else np.zeros((6, 0))


def _shift(frames: Frames, body: int, parent: int) -> Floats:
    """Return the rigid-body transformation of motion from a parent's origin to a body's, shape (6, 6)."""
    inner = np.zeros(3) if parent < 0 else frames.origin[parent]
    result = np.eye(6)
    result[:3, 3:] = np.cross(np.eye(3), frames.origin[body] - inner).T  # ω × arm
    return result


def _about_own_origin(frames: Frames, body: int, properties: MassProperties, parameters: Array) -> Floats:
    """Return M̄ of a body about the origin of its frame, shape (6, 6)."""
    rotation, mass = frames.rotation[body], properties.regular_mass(parameters)
    arm = rotation @ properties.centre.of(parameters)
    crossed = np.cross(np.eye(3), arm)  # arm × v = crossed.T @ v
    turning = rotation @ properties.regular_inertia(parameters) @ rotation.T - mass * crossed @ crossed
    return np.block([[mass * np.eye(3), -mass * crossed], [mass * crossed, turning]])


_NO_MOTION = 1e-9
"""Singular value relative to the largest below which a velocity moves no mass."""


def refuse_massless_motion(mechanism: Mechanism, coordinates: Array, references: Array, jacobian: Array) -> None:
    """Check that every velocity that the joints allow has kinetic energy.

    The mass matrix must be positive definite on Φ_z ż = 0. A slender beam on a ball joint violates it by its rotation
    about its axis, and a body without mass by any motion that moves no other one.

    Parameters
    ----------
    mechanism
        The mechanism.
    coordinates, references
        z on the loop equations, shape (n,), and the references of joints that turn freely, shape (4 r,).
    jacobian
        Φ_z there, shape (number of loop equations, n).

    Raises
    ------
    DataError
        When there is such a velocity; the sentence names body, direction and joint.
    """
    properties = Properties()
    points = Points(mechanism, properties)
    bodies = mechanism.topology.bodies
    masses = [MassProperties(body, properties, points) for body in bodies]
    if not any(mass.rod for mass in masses):
        return
    kinematics = Kinematics(tree_joints(mechanism.topology, points))
    parameters = starts(properties.variables)
    frames = kinematics.frames(coordinates, references, parameters)
    seen, turns, moves = [jacobian], [], []
    for body, columns in enumerate(_all_columns(kinematics, frames, len(coordinates))):
        mass, centre = masses[body], frames.point(body, masses[body].centre.of(parameters))
        turns.append(frames.rotation[body].T @ columns[3:])
        moves.append(columns[:3] + np.cross(columns[3:].T, centre).T)
        seen.append((np.eye(3) - mass.hollow.T @ mass.hollow) @ turns[-1])
        if not mass.massless:
            seen.append(moves[-1])
    _, sizes, velocities = np.linalg.svd(np.concatenate(seen))
    if np.sum(sizes > _NO_MOTION * np.max(sizes, initial=0.0)) == len(coordinates):
        return
    moving = velocities[-1]
    turning, moved = ([float(np.linalg.norm(each @ moving)) for each in part] for part in (turns, moves))
    if max(turning) > _NO_MOTION:
        body = int(np.argmax(turning))
        direction, what, how, missing = (
            turns[body] @ moving,
            "inertia about",
            "turn about",
            "a moment of inertia about it",
        )
    else:
        body = int(np.argmax(moved))
        direction, what, how, missing = frames.rotation[body].T @ moves[body] @ moving, "mass for", "move along", "mass"
    raise DataError(
        f"body '{bodies[body].name}' has no {what} its direction {_shown(direction)}, but can {how} it alone at joint "
        f"'{mechanism.topology.tree[body].joint.name}': nothing governs that motion; give the body {missing}, or take "
        "a joint that does not let it move so"
    )


def _all_columns(kinematics: Kinematics, frames: Frames, coordinates: int) -> list[Array]:
    """Return for each body the velocity Z per joint velocity, shape (6, n)."""
    result: list[Array] = []
    for joint in kinematics.joints:
        columns = np.zeros((6, coordinates)) if joint.parent < 0 else result[joint.parent].copy()
        for element in joint.elements:
            columns[:, element.coordinate] = kinematics.transformation(frames, element.coordinate)
        result.append(columns)
    return result


def _shown(axis: Array) -> str:
    unit = axis / axis[np.argmax(np.abs(axis))]
    return f"({', '.join(f'{each + 0.0:.3g}' for each in np.round(unit, 9))})"
