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

_NO_INERTIA = 1e-12
"""Fraction of a body's largest principal moment below which another one counts as zero."""
_NO_MOTION = 1e-9
"""Singular value relative to the largest below which a velocity moves no mass."""


def refuse_massless_motion(mechanism: Mechanism, coordinates: Array, references: Array, jacobian: Array) -> None:
    """Check that every velocity that the joints allow has kinetic energy.

    The mass matrix must be positive definite on Φ_z ż = 0. As all bodies have mass, this can only fail for a rotation
    about the centre of mass and about a direction without inertia, such as a slender beam on a ball joint.

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
    kinematics = Kinematics(tree_joints(mechanism.topology, points))
    parameters = starts(properties.variables)
    heavy = [_directions_with_inertia(mass.inertia(parameters)) for mass in masses]
    if all(axes.shape[1] == 3 for axes in heavy):
        return
    frames = kinematics.frames(coordinates, references, parameters)
    seen, turns = [jacobian], []
    for body, columns in enumerate(_columns(kinematics, frames, len(coordinates))):
        centre = frames.point(body, masses[body].centre.of(parameters))
        turns.append(frames.rotation[body].T @ columns[3:])
        seen += [columns[:3] + np.cross(columns[3:].T, centre).T, heavy[body].T @ turns[-1]]
    _, sizes, velocities = np.linalg.svd(np.concatenate(seen))
    if np.sum(sizes > _NO_MOTION * np.max(sizes, initial=0.0)) == len(coordinates):
        return
    axes = [turn @ velocities[-1] for turn in turns]
    body = int(np.argmax([np.linalg.norm(axis) for axis in axes]))
    raise DataError(
        f"body '{bodies[body].name}' has no inertia about its direction {_shown(axes[body])}, but can turn about it "
        f"alone at joint '{mechanism.topology.tree[body].joint.name}': nothing governs that motion; give the body a "
        "moment of inertia about it, or take a joint that does not let it turn so"
    )


def _directions_with_inertia(inertia: Array) -> Array:
    """Return the principal directions about which a body has inertia, in its frame; shape (3, up to 3)."""
    moments, axes = np.linalg.eigh(inertia)
    return axes[:, moments > _NO_INERTIA * moments[-1]]


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
