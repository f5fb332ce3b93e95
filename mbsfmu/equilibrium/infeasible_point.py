"""Infeasible point of a failed search, at which the report is made."""

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
    """Return the point of the infeasibility report; the functions are there.

    Fixed variables must be compatible with the loops. Then loads have priority: if no states can carry them, the report
    is on the missing loads at the nearest point. If states can, it is on the states that cannot be constant there, such
    as a creeping integral part. With equal weights the iteration would end between both, with a missing load as a
    consequence of the actual cause.

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
    """Return the point of best load balance, also behind saturations."""
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
