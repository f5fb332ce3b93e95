"""Search for a static equilibrium: from the guess, then by continuation strategies."""

from __future__ import annotations

from copy import copy

from mbsfmu.equilibrium.continuation_strategies import other_ways
from mbsfmu.equilibrium.damped_newton import StaticEquilibrium, newton
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.infeasible_point import contradiction
from mbsfmu.equilibrium.initial_guess import cannot_be_held, posed
from mbsfmu.equilibrium.nearest_equilibrium import nearest
from mbsfmu.equilibrium.overdamped_motion import motion_to_its_end
from mbsfmu.tracing.workspace import Floats


def search(equations: EquilibriumEquations, horizon: float | None = None) -> StaticEquilibrium:
    """Return an equilibrium, or the infeasible point for the report; the functions are there.

    Newton's iteration is damped by its natural monotonicity test, which is independent of units [Deuflhard2011, ch. 3].
    With fewer equations than unknowns each step is the shortest one, so that undetermined variables stay near the
    guess. If it fails, the overdamped motion is followed to its end by growing implicit Euler steps [Kelley1998]; see
    `nearest`. If that fails too, the equilibrium may be behind saturations; see `continuation_strategies`.

    Parameters
    ----------
    equations
        The equations, whose functions hold the guess.
    horizon
        Time in s after which states come to rest with what moves clamped; those that are slower are left to stand. None
        where nothing may move.
    """
    guess = equations.present()
    if equations.held and cannot_be_held(equations, posed(equations, guess)):
        return contradiction(equations, guess)
    equations.load(guess)
    if horizon is not None:
        return _within(equations, guess, horizon)
    direct = nearest(equations, guess)
    rest = direct if direct.found else next(other_ways(equations, guess), None)
    if rest is None:
        return contradiction(equations, guess)
    equations.load(rest.unknowns)
    return rest


def _within(equations: EquilibriumEquations, guess: Floats, horizon: float) -> StaticEquilibrium:
    """Return an equilibrium of all changes within a time in s.

    By its eigenvalue, an integral part may be as slow as a leak, but it can be constant and a leak cannot; it must be
    constant if possible. If this finds nothing, all states may be constant with the machine clamped.
    """
    whole = copy(equations)
    begin = motion_to_its_end(equations, guess, horizon, clamped=True)
    for warned in (True, False) if equations.untold else (False,):
        equations.rates = whole.rates
        equations.load(begin)
        equations.let_slow_ones_stand(horizon, warned=warned)
        rest: StaticEquilibrium | None = newton(equations, begin)
        if not rest.found:
            equations.load(begin)
            rest = newton(equations, newton(equations.standing_still(), begin).unknowns)
        if not rest.found:
            rest = next(other_ways(equations, begin), None)
        if rest is not None:
            equations.load(rest.unknowns)
            return rest
    whole.load(posed(whole, guess))
    still = search(whole.standing_still())
    if not still.found:
        return contradiction(equations, begin)
    equations.rates = whole.rates
    return newton(equations, still.unknowns, steps=0)
