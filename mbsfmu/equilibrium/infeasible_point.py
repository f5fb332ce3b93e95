"""The point that shows why there is no rest: where loads balance, if states can carry them, what cannot stand still."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equilibrium.damped_newton import PRIORITY, StaticEquilibrium, newton
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import cannot_be_held, posed
from mbsfmu.tracing.workspace import Floats

_BALANCED = {**PRIORITY, "balance": 1e3}
_LEAKS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)


def contradiction(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return the point at which to say what contradicts rest; the functions are there.

    What is held has to be where loops let it be. Then loads come first: if no states carry them, what is missing at the
    point nearest to their balance is at fault. If some do, it is the states that cannot stand still there, such as an
    integral part that creeps. Where all equations count alike, the iteration ends between both, and a load is missing
    that follows from the fault.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which no way leads to rest.
    """
    guess = posed(equations, guess)
    if cannot_be_held(equations, guess):
        return newton(equations, guess, 0, _BALANCED)
    loads = equations.without_rates()
    near = carrying(loads, guess)
    if near.found:
        rest = newton(equations, near.unknowns, priority=_BALANCED)
        if np.all(np.abs(rest.residual) <= rest.allowed, where=_of_kind(equations, "balance")):
            return rest
    return newton(equations, near.unknowns, 0, _BALANCED)


def _of_kind(equations: EquilibriumEquations, kind: str) -> NDArray[np.bool_]:
    """Return which equations are of a kind."""
    chosen = np.zeros(equations.rows("held").stop, dtype=bool)
    chosen[equations.rows(kind)] = True
    return chosen


def carrying(loads: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return where loads balance as well as they can, also where saturations hide how."""
    loads.load(guess)
    straight = newton(loads, guess)
    if straight.found or (leaky := loads.leaky()) is None:
        return straight
    leaking, share = leaky
    at = guess
    for each in _LEAKS:
        share[:] = each
        leaking.load(at)
        at = newton(leaking, at).unknowns
    loads.load(at)
    around = newton(loads, at)
    if not around.found and np.linalg.norm(_missing(loads, straight)) <= np.linalg.norm(_missing(loads, around)):
        loads.load(straight.unknowns)
        return straight
    return around


def _missing(loads: EquilibriumEquations, rest: StaticEquilibrium) -> Floats:
    return rest.residual[loads.rows("balance")]
