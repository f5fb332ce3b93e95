"""Share of the excess inertias of rods in what turns with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.frames import Frames
from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.modelling.fields import Array
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts

Floats = NDArray[np.float64]


def excess_shares(
    parts: MechanismParts, rods: Mapping[int, int], frames: Frames, parameters: Array, mass: Floats, jacobian: Floats
) -> dict[str, tuple[float, float]]:
    """Return the excess inertia of rods in kg m², and its ratio to the apparent inertia about their axes, by body.

    The latter is 1 / (r N (Nᵀ M N)⁻¹ Nᵀ rᵀ), with the spin r of the rod about its axis per velocity of the coordinates,
    and a null space N of Φ_z.

    Parameters
    ----------
    parts, rods
        A mechanism, and its rods that turn about their axes, see `turning_rods`.
    frames, parameters
        Where it is.
    mass, jacobian
        M, shape (n, n), and Φ_z, shape (m, n), there.
    """
    joints, found = parts.kinematics.joints, {}
    free = null_space(jacobian, RANK_TOLERANCE)
    inverse = np.linalg.inv(free.T @ mass @ free)
    for body, axis in rods.items():
        direction, spin, inner = frames.rotation[body][:, axis], np.zeros(len(mass)), body
        while inner >= 0:
            for hinge in joints[inner].hinges:
                spin[hinge.coordinate] = frames.axis[hinge.coordinate] @ direction
            inner = joints[inner].parent
        moved, excess = spin @ free, float(parts.masses[body].excess(parameters))
        found[parts.masses[body].body.name] = excess, excess * float(moved @ inverse @ moved)
    return found
