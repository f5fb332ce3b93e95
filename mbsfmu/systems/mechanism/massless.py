"""Detection of motion without kinetic energy, which is refused before a run."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.bodies import MassProperties, Points
from mbsfmu.equations.frames import Frames
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.tree_joints import tree_joints
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.modelling.fields import Array
from mbsfmu.systems.system import starts

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
    for body, columns in enumerate(_columns(kinematics, frames, len(coordinates))):
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


def _columns(kinematics: Kinematics, frames: Frames, coordinates: int) -> list[Array]:
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
