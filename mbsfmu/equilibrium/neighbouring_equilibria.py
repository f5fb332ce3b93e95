"""Neighbouring equilibria along directions in the null space of the linearization."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.linear import null_space
from mbsfmu.equilibrium.damped_newton import CONVERGED, RANK, allowed_at, residual_at, weights_of
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import least_squares
from mbsfmu.tracing.workspace import Floats

_ASIDE = 0.03
"""Distance of a neighbouring equilibrium, in magnitudes."""
_BENT = 0.1
"""Largest curvature of a line of equilibria, relative to this distance."""


def leads_to_equilibrium(equations: EquilibriumEquations) -> bool:
    """Return whether null directions lead to other equilibria; the functions are at one.

    Along a line or plane of equilibria a motion neither grows nor decays. If there is none, as with a spring force
    cubic in its length, the correction reverses the whole offset.

    Parameters
    ----------
    equations
        The equations; what is held, and what is asked for, does not count.
    """
    here, states = equations.present(), equations.unknowns("states")
    columns = np.delete(np.arange(states.stop), [states.start + index for index in equations.left])
    rows = np.arange(equations.rows("rates").stop)
    scaled = equations.finite_jacobian() * equations.scales
    weights = weights_of(equations, scaled, {})[rows]
    free = null_space(scaled[np.ix_(rows, columns)] * weights[:, None], RANK)
    moves = np.zeros((free.shape[1] + 1, len(here)))
    moves[:, columns] = np.vstack([free.T, free.sum(axis=1)])
    try:
        return all(_is_beside(equations, here, move, rows, columns) for move in moves)
    finally:
        equations.load(here)


def _is_beside(
    equations: EquilibriumEquations, here: Floats, move: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> bool:
    """Return whether there is an equilibrium along a direction, within the allowed curvature."""
    counts = np.ones(len(here), dtype=bool)
    counts[equations.unknowns("multipliers")] = False
    size = float(np.max(np.abs(move[counts]), initial=0.0))
    if size < CONVERGED:
        return True
    step = _ASIDE / size * move
    there = least_squares(equations, here + step * equations.scales, rows, columns)
    residual = residual_at(equations, there)
    if residual is None:
        return False
    allowed = allowed_at(equations, there, equations.jacobian())
    if np.any(np.abs(residual[rows]) > allowed[rows]):
        return False
    back = (there - here) / equations.scales - step
    return bool(np.max(np.abs(back[counts])) < _BENT * _ASIDE)
