"""Where a search for rest begins better than at the guess: where what is held is so, and what is asked for fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equilibrium.damped_newton import CONVERGED, LARGEST_TURN, allowed_at, bend, residual_at, weights_of
from mbsfmu.equilibrium.equilibrium_equations import PARTS, EquilibriumEquations
from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

_MOST_STEPS = 100
_SMALLEST_SHARE = 1e-3
_RANK = 1e-10
"""Share of the largest singular value up to which others are zero: what hardly counts does not move."""
_LINEAR = 1e-6
"""Share of the squares that is left after a step where equations are as good as linear."""


def posed(equations: EquilibriumEquations, guess: Floats) -> Floats:
    """Return the guess with its coordinates where loops are closed and what is held of them is so, as far as can be.

    Parameters
    ----------
    equations, guess
        The equations, and the guess.
    """
    rows = np.flatnonzero(geometric(equations, guess))
    return least_squares(equations, guess, rows, np.r_[equations.unknowns("coordinates")])


def within_reach(equations: EquilibriumEquations, unknowns: Floats) -> bool:
    """Tell whether loops close, and what is held of coordinates is so, next to unknowns; the functions are there then.

    Parameters
    ----------
    equations, unknowns
        The equations, and where the coordinates begin.
    """
    counts = geometric(equations, unknowns)
    at = posed(equations, unknowns)
    residual, allowed = equations.residual(), allowed_at(equations, at, equations.jacobian())
    equations.load(unknowns)
    return bool(np.all(np.abs(residual) <= allowed, where=counts))


def beyond_limits(equations: EquilibriumEquations) -> list[tuple[Variable, float, float, float]]:
    """Return which lengths, as of cylinders, are beyond their limits where the functions are: what, its value, limits.

    Parameters
    ----------
    equations
        The equations.
    """
    system, limits = equations.functions.system, equations.functions.start_limits()[0].reshape(-1, 3).tolist()
    return [
        (variable, value, low, high)
        for variable, (value, low, high) in zip(system.limited, limits, strict=True)
        if variable.unit == "m" and not low <= value <= high
    ]


def cannot_be_held(equations: EquilibriumEquations, at: Floats) -> bool:
    """Tell whether what is held is where loops do not let it be, or where all of them together put a length too far.

    Parameters
    ----------
    equations, at
        The equations, and coordinates where what is held is so as far as can be; the functions are there then.
    """
    if not within_reach(equations, at):
        return True
    slopes = equations.jacobian()[geometric(equations, at)][:, equations.unknowns("coordinates")]
    fixed = len(slopes) > 0 and np.linalg.matrix_rank(slopes, _RANK) == slopes.shape[1]
    return bool(fixed and beyond_limits(equations))


def geometric(equations: EquilibriumEquations, guess: Floats) -> NDArray[np.bool_]:
    """Return which equations are of coordinates alone: those of loops, and of what is held those that are.

    Parameters
    ----------
    equations, guess
        The equations, and where they are looked at.
    """
    equations.load(guess)
    slopes, moving = equations.jacobian() != 0.0, equations.unknowns("coordinates")
    alone = slopes[:, moving].any(axis=1) & ~np.delete(slopes, np.r_[moving], axis=1).any(axis=1)
    counts = np.zeros(len(slopes), dtype=bool)
    counts[equations.rows("closure")] = True
    counts[equations.rows("held")] = alone[equations.rows("held")]
    return counts


def fitted(equations: EquilibriumEquations, guess: Floats) -> Floats:
    """Return the guess with what is asked for, and what loops carry, as it leaves least out of balance.

    A set point of a controller that integrates is where the machine is then, a force what the loads need, a pressure of
    a source what lets as much flow in as out. From elsewhere a search begins with commands that are at their limits.

    Parameters
    ----------
    equations, guess
        The equations, and the guess.
    """
    columns = np.concatenate([np.r_[equations.unknowns(part)] for part in ("multipliers", *PARTS[-2:])])
    kinds = ("balance", "rates", "updates")
    rows = np.concatenate([np.r_[equations.rows(kind)] for kind in kinds])
    return least_squares(equations, guess, rows.astype(np.intp), columns.astype(np.intp))


def least_squares(
    equations: EquilibriumEquations, begin: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> Floats:
    """Return where some of the unknowns leave least of some of the equations, by damped Gauss-Newton steps.

    Parameters
    ----------
    equations, begin
        The equations, and all unknowns where it begins.
    rows, columns
        Indices of the equations and of the unknowns that count.
    """
    unknowns, residual = begin, residual_at(equations, begin)
    if residual is None or not len(rows) or not len(columns):
        return begin
    for _ in range(_MOST_STEPS):
        scaled = equations.finite_jacobian() * equations.scales
        weights = weights_of(equations, scaled, {})[rows]
        matrix, weighted = scaled[np.ix_(rows, columns)] * weights[:, None], weights * residual[rows]
        step = np.zeros(len(unknowns))
        step[columns] = np.linalg.lstsq(matrix, -weighted, rcond=_RANK)[0]
        size, gain = float(weighted @ weighted), -float(weighted @ (matrix @ step[columns]))
        share = 1.0
        while share > _SMALLEST_SHARE:
            trial = unknowns + share * step * equations.scales
            off = residual_at(equations, trial)
            left = np.inf if off is None else float(np.sum((weights * off[rows]) ** 2))
            # what is linear goes there at once, however far that is
            near = share * bend(equations, step) <= LARGEST_TURN or left < _LINEAR * size
            if off is not None and near and size - left > 0.25 * share * gain:
                break
            share = 0.5 * share if near else min(0.5 * share, LARGEST_TURN / bend(equations, step))
        else:
            break
        unknowns, residual = trial, off
        if share * np.linalg.norm(step) < CONVERGED:
            break
    equations.load(unknowns)
    return unknowns
