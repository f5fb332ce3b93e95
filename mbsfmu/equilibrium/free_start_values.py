"""Start values with which a system starts in static equilibrium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbsfmu.systems.functions import SystemFunctions

_MOST_STEPS = 30
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
    for _ in range(_MOST_STEPS):
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
