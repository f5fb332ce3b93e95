"""The search for a position of rest: straight from the guess, and where that fails on ways around saturations."""

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
    """Return a position of rest, or else the point that shows what contradicts it; the functions are there.

    Newton's iteration is damped by its natural monotonicity, which no choice of units decides [Deuflhard2011, ch. 3];
    where equations are less than unknowns, each step is the shortest one, so that what they leave open stays near the
    guess. Where it fails, the overdamped motion is followed to its end by implicit Euler steps that grow [Kelley1998];
    see `nearest`. Where that fails too, rest may lie behind saturations; see `other_ways`.

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
    """Return a position where all that changes within a time in s is at rest.

    By its eigenvalue, an integral part changes as slowly as a leak, but it may stand still where a leak does not: so it
    has to, if that can be. Where nothing is found that way, all may be at rest where the machine is.
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
