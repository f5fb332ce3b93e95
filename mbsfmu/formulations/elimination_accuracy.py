"""Accuracy of reactions from an elimination along the mechanism."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.formulations.reactions import least_reactions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

Chosen = NDArray[np.bool_]
"""For each constraint whether it is active."""
LARGEST = 100
"""Largest number of coordinates for the dense equations: as many evaluations, and a matrix of at most 1 MB."""

WEAK = 1e3
"""Ratio of the largest to the smallest singular value of the active Φ_z below which elimination loses few digits: of
120 random machines 86 were below, with errors of 8e-8 at most.
"""


def elimination_error(functions: SystemFunctions) -> float:
    """Return the error of the present reactions, relative to the largest of them.

    Accelerations and multipliers that elimination has found leave a residual of M z̈ − Q + Φ_zᵀ λ = 0 and Φ̈ = 0.
    A dense solution of these equations for the residual is their error to first order, as in one step of iterative
    refinement [Higham2002, sect. 12.1].

    Parameters
    ----------
    functions
        With consistent positions, velocities, accelerations and multipliers.

    Returns
    -------
    float
        Zero also where there are more than `LARGEST` coordinates, and where no direction of the loops is `WEAK`.
    """
    n, in_use = len(functions.coordinates), functions.active != 0.0
    if n > LARGEST or not _has_weak_direction(functions.closure()[1][in_use]):
        return 0.0
    found = functions.accelerations.copy(), functions.multipliers.copy()
    reactions = least_reactions(functions).copy()
    balance, opening = _residuals(functions, *found, in_use)
    mass, jacobian = _mass(functions, in_use), functions.closure()[1][in_use].copy()
    moved, pushed = _solved(mass, jacobian, balance, opening)
    functions.accelerations[:], functions.multipliers[:] = found
    functions.accelerations[:] -= moved
    functions.multipliers[in_use] -= pushed
    refined = least_reactions(functions).copy()
    functions.accelerations[:], functions.multipliers[:] = found
    largest = np.max(np.abs(refined), initial=0.0)
    return float(np.max(np.abs(refined - reactions), initial=0.0) / largest) if largest else 0.0


def _has_weak_direction(jacobian: Floats) -> bool:
    values = np.linalg.svd(jacobian, compute_uv=False)
    return bool(values.size) and not values[-1] * WEAK > values[0]


def _residuals(functions: SystemFunctions, accelerations: Floats, multipliers: Floats, in_use: Chosen) -> list[Floats]:
    """Return the residuals of the equations of motion and of the active constraints."""
    functions.accelerations[:], functions.multipliers[:] = accelerations, multipliers
    balance, loops = functions.kinetic_residuals()
    return [balance.copy(), loops[in_use]]


def _mass(functions: SystemFunctions, in_use: Chosen) -> Floats:
    """Return M, shape (n, n): the equations are linear in accelerations."""
    n, none = len(functions.coordinates), np.zeros(len(functions.multipliers))
    resting, _ = _residuals(functions, np.zeros(n), none, in_use)
    return np.stack([_residuals(functions, unit, none, in_use)[0] - resting for unit in np.eye(n)], axis=1)


def _solved(mass: Floats, jacobian: Floats, balance: Floats, opening: Floats) -> tuple[Floats, Floats]:
    """Return δ and μ with M δ + Φ_zᵀ μ = ρ and Φ_z δ = ε by the null space of Φ_z.

    The condition number of Φ_z enters once only. Coordinates are scaled by their inertia, independent of units.
    """
    inertia = np.abs(np.diag(mass))
    scale = 1.0 / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
    mass, jacobian = scale[:, np.newaxis] * mass * scale, jacobian * scale
    inverse = np.linalg.pinv(jacobian, rcond=np.finfo(float).eps)
    free = np.linalg.svd(jacobian)[2][len(jacobian) :].T
    moved = inverse @ opening
    rest = free.T @ (scale * balance - mass @ moved)
    moved = moved + free @ np.linalg.lstsq(free.T @ mass @ free, rest)[0]
    return scale * moved, inverse.T @ (scale * balance - mass @ moved)
