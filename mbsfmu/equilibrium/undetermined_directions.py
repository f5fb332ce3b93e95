"""Newton steps along undetermined directions: conserved quantities of the motion are kept."""

from __future__ import annotations

import numpy as np

from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.tracing.workspace import Floats

POSITIONS = 1e3
"""Weight of coordinates relative to other unknowns in magnitudes, if only their size decides."""
_INERTIA = 1e-3
"""Weight of inertia relative to damping, in 1/s; damping alone decides if there is any."""
_RANK = 1e-10
"""Fraction of the largest singular value below which others are zero."""


class OpenDirections:
    """Null directions of the equations, and the step along them.

    With F(y) = 0 at equilibrium, the slow motion towards it follows E ẏ = −F(y). E has the damping D of balances, and
    for rates the states themselves with the displacements of moving walls. Left null vectors w of F_y give the
    conserved quantities of such a motion, wᵀE ẏ = 0: the mass of trapped oil, or the position of a body held by damping
    only. Steps satisfy wᵀE Δy = 0 as well, independent of units, as implicit Euler steps of any length would
    [Kelley1998]. The remaining freedom, and all of it with fixed variables, is minimised with 1000 times the weight on
    coordinates: where states can carry the loads, positions stay.

    Parameters
    ----------
    equations
        The equations, whose functions are where the step begins.
    free
        Directions, in magnitudes, orthogonal and of length one; shape (number of unknowns, k).
    left
        The left null vectors of weighted equations, shape (number of equations, r).
    weights
        By which equations are multiplied; 0 of those that have no slope.
    """

    def __init__(self, equations: EquilibriumEquations, free: Floats, left: Floats, weights: Floats) -> None:
        self._free, self._lengths = free, np.ones(len(free))
        self._lengths[equations.unknowns("coordinates")] = POSITIONS
        self._shortest = -np.linalg.pinv(self._lengths[:, None] * free) * self._lengths
        self._conserving = None if equations.held else _conserving(equations, left, weights)
        if self._conserving is None:
            return
        _, triangle = np.linalg.qr(self._lengths[:, None] * free)
        self._turned = free @ np.linalg.inv(triangle)
        self._answer = np.linalg.pinv(self._conserving @ self._turned, rcond=_RANK)

    def along(self, step: Floats) -> Floats:
        """Return a step with the same effect on the equations, in magnitudes."""
        step = step + self._free @ (self._shortest @ step)
        if self._conserving is None:
            return step
        return step - self._turned @ (self._answer @ (self._conserving @ step))


def _conserving(equations: EquilibriumEquations, left: Floats, weights: Floats) -> Floats | None:
    """Return the rows wᵀE, shape (r, number of unknowns); None without any."""
    inertia = slow_motion(equations) * equations.scales
    sizes = np.max(np.abs(inertia), axis=1, initial=0.0)
    own = np.where(weights > 0.0, weights, 1.0 / np.where(sizes > 0.0, sizes, 1.0))
    rows = left.T @ (own[:, None] * inertia)
    lengths = np.linalg.norm(rows, axis=1)
    counts = lengths > _RANK * np.max(lengths, initial=0.0)
    return rows[counts] / lengths[counts, None] if counts.any() else None


def slow_motion(equations: EquilibriumEquations) -> Floats:
    """Return E, shape (number of equations, number of unknowns).

    Parameters
    ----------
    equations
        The equations, whose functions are where it is asked for.
    """
    mass, (damping, driven, _) = equations.functions.equilibrium()[0], equations.by_velocities()
    matrix = np.zeros((equations.rows("held").stop, len(equations.scales)))
    moving, balance, rates = (equations.unknowns("coordinates"), equations.rows("balance"), equations.rows("rates"))
    matrix[balance, moving] = _INERTIA * mass + damping
    matrix[rates, moving] = -equations.rates @ driven
    matrix[rates, equations.unknowns("states")] = equations.rates
    if equations.counts("updates"):
        first, updated = equations.unknowns("discrete").start, equations.rows("updates").start
        for each in equations.functions.system.samplings:
            for index in range(each.first, each.first + each.count):
                matrix[updated + index, first + index] = -each.sample_time
    return np.nan_to_num(matrix, nan=0.0, posinf=0.0, neginf=0.0)
