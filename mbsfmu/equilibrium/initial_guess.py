"""Start of the search: variables that are free, and the initial guess of coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.equilibrium.damped_newton import CONVERGED, LARGEST_TURN, allowed_at, bend, residual_at, weights_of
from mbsfmu.equilibrium.equilibrium_equations import PARTS, EquilibriumEquations
from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

_MOST_FREE_STEPS = 30
_REACHED = 1e-10
_SAME = 1e-12


@dataclass(frozen=True)
class StartValues:
    """Start values of a static equilibrium.

    Attributes
    ----------
    parameters
        Values by the index of the parameter.
    states
        Values, by the index, of the states that no parameter brings there.
    unreached
        Indices of the discrete states that are not there after their first update, whatever the parameters.
    """

    parameters: dict[int, float]
    states: dict[int, float]
    unreached: tuple[int, ...]


def start_values(functions: SystemFunctions, guess: Mapping[int, float], left: Sequence[int] = ()) -> StartValues:
    """Return the start parameters with which a system starts at the present equilibrium of its functions.

    Discrete states must be there after their first update.

    Parameters
    ----------
    functions
        Functions of the start system.
    guess
        Values by the index of the parameter to begin the search with.
    left
        Indices of the states on which the equilibrium does not depend, such as the oil in a line: they start where the
        parameters say.
    """
    given, system = functions.expressions, functions.system
    begun = ca.vertcat(*given.start.values())
    if system.discrete:
        begun = ca.vertcat(begun, *given.at([given.updates], {"discrete": given.initial_discrete}))
    rest = np.zeros(len(functions.coordinates))
    goal = np.concatenate([functions.coordinates, rest, functions.states, functions.discrete])
    scales = [each.nominal or 1.0 for each in (*system.states, *system.discrete)]
    counts = np.ones(len(goal), dtype=bool)
    counts[2 * len(rest) + np.array(left, dtype=np.intp)] = False
    allowed = _REACHED * np.maximum(np.concatenate([rest + 1.0, rest + 1.0, scales]), np.abs(goal))
    own = _counting_at_start(functions, begun)
    symbol = functions.symbol("parameters")[own]
    begins = functions.traced("rest_start", [begun, ca.jacobian(begun, symbol)], matrices=[1])
    values, before = functions.parameters, functions.parameters.copy()
    for index in set(own) & guess.keys():
        values[index] = guess[index]
    for _ in range(_MOST_FREE_STEPS):
        off, slope = begins()[0] - goal, begins()[1]
        moved = np.any(slope != 0.0, axis=1) & counts
        if np.all((np.abs(off) <= allowed) | ~moved):
            break
        weights = 1.0 / allowed[moved]
        values[own] += np.linalg.lstsq(slope[moved] * weights[:, None], -off[moved] * weights, rcond=1e-14)[0]
    first, last = 2 * len(rest), 2 * len(rest) + len(system.states)
    missed = (np.abs(begins()[0] - goal) > allowed) & counts
    changed = np.abs(values - before) > _SAME * np.maximum(np.abs(before), _SAME)
    found = {index: float(values[index]) for index in own if changed[index]}
    functions.parameters[:] = before
    return StartValues(
        found,
        {index: float(functions.states[index]) for index in np.flatnonzero(missed[first:last]).tolist()},
        tuple(np.flatnonzero(missed[last:]).tolist()),
    )


def _counting_at_start(functions: SystemFunctions, begins: ca.SX) -> list[int]:
    """Return the indices of the parameters that determine the start only."""
    given, system = functions.expressions, functions.system
    counting = [given.residual, given.rates, given.all_closure, given.outputs]
    counting += [given.updates] if system.discrete else []
    later = given.depends(ca.vertcat(*counting), "parameters").any(axis=0)
    free = np.array([each.settable for each in system.parameters], dtype=bool)
    return np.flatnonzero(given.depends(begins, "parameters").any(axis=0) & ~later & free).tolist()


_MOST_STEPS = 100
_SMALLEST_SHARE = 1e-3
_RANK = 1e-10
"""Fraction of the largest singular value below which others are zero."""
_LINEAR = 1e-6
"""Remaining fraction of squares after a step below which equations count as linear."""


def posed(equations: EquilibriumEquations, guess: Floats) -> Floats:
    """Return the guess with coordinates on the loops and at fixed variables, as far as possible.

    Parameters
    ----------
    equations, guess
        The equations, and the guess.
    """
    rows = np.flatnonzero(geometric(equations, guess))
    return least_squares(equations, guess, rows, np.r_[equations.unknowns("coordinates")])


def within_reach(equations: EquilibriumEquations, unknowns: Floats) -> bool:
    """Return whether loops and fixed coordinates can be satisfied near given unknowns; the functions are there then.

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
    """Return lengths, such as those of cylinders, outside their limits at the present point: name, value, limits.

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
    """Return whether fixed variables contradict the loops, or together put a length outside its limits.

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
    """Return the equations of coordinates alone: loops, and fixed variables of this kind.

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
    """Return the guess with free variables and loop multipliers fitted to the least imbalance.

    A set point of an integrating controller is then at the machine's position, a force equals the load, and a pressure
    of a source balances the flows. Otherwise the search would start with saturated commands.

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
    """Return the least-squares solution of some equations for some unknowns, by damped Gauss-Newton steps.

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
