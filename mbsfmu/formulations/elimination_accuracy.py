"""Accuracy of accelerations and reactions from an elimination along the mechanism."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.formulations.reactions import least_reactions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LOST, have_weak_direction
from mbsfmu.tracing.workspace import Floats

Chosen = NDArray[np.bool_]
"""For each constraint whether it is active."""
LARGEST = 100
"""Largest number of coordinates for the dense equations: as many evaluations, and a matrix of at most 1 MB."""


def elimination_error(functions: SystemFunctions, stabilisation: float) -> float:
    """Return the error of the present accelerations and reactions, relative to the largest of each.

    Accelerations and multipliers that elimination has found leave a residual of M z̈ − Q + Φ_zᵀ λ = 0 and
    Φ̈ + 2 a Φ̇ + a² Φ = 0.
    A dense solution of these equations for the residual is their error to first order, as in one step of iterative
    refinement [Higham2002, sect. 12.1].

    Parameters
    ----------
    functions
        With consistent positions, velocities, accelerations and multipliers.
    stabilisation
        Rate a in 1/s with which the elimination closes loops, Φ̈ + 2 a Φ̇ + a² Φ = 0.

    Returns
    -------
    float
        Zero where elimination loses no digits: loops have no weak direction, and inertias are not very unequal. With
        more than `LARGEST` coordinates NaN where inertias are so unequal that nothing may be left; else zero.
    """
    n, in_use = len(functions.coordinates), functions.active != 0.0
    uneven = functions.system.inertia_spread(functions.parameters) > LOST
    if n > LARGEST:
        return np.nan if uneven else 0.0
    jacobian = functions.closure()[1][in_use].copy()
    if not functions.weak and not uneven and not have_weak_direction(jacobian, len(jacobian)):
        return 0.0
    found = functions.accelerations.copy(), functions.multipliers.copy()
    reactions = least_reactions(functions).copy()
    balance, opening = _residuals(functions, *found, in_use, stabilisation)
    moved, pushed = _solved(_mass(functions, in_use), jacobian, balance, opening)
    functions.accelerations[:], functions.multipliers[:] = found
    functions.accelerations[:] -= moved
    functions.multipliers[in_use] -= pushed
    refined = least_reactions(functions).copy()
    functions.accelerations[:], functions.multipliers[:] = found
    return max(_relative(moved, found[0] - moved), _relative(refined - reactions, refined))


def _relative(error: Floats, values: Floats) -> float:
    """Return the largest error as a fraction of the largest value; 0 where all values are zero."""
    largest = np.max(np.abs(values), initial=0.0)
    return float(np.max(np.abs(error), initial=0.0) / largest) if largest else 0.0


def _residuals(
    functions: SystemFunctions, accelerations: Floats, multipliers: Floats, in_use: Chosen, stabilisation: float = 0.0
) -> list[Floats]:
    """Return the residuals of the equations of motion and of the stabilised active constraints."""
    functions.accelerations[:], functions.multipliers[:] = accelerations, multipliers
    balance, loops, rates, violations = functions.kinetic_residuals()
    stabilised = loops + 2.0 * stabilisation * rates + stabilisation**2 * violations
    return [balance.copy(), stabilised[in_use]]


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
