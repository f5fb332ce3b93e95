"""The search for a position of rest: straight from the guess, and where that fails on ways around saturations."""

from __future__ import annotations

from mbsfmu.formulations.rest_begin import cannot_be_held, posed
from mbsfmu.formulations.rest_contradiction import contradiction
from mbsfmu.formulations.rest_equations import RestEquations
from mbsfmu.formulations.rest_motion import motion_to_its_end
from mbsfmu.formulations.rest_nearest import nearest
from mbsfmu.formulations.rest_newton import Rest, newton
from mbsfmu.formulations.rest_ways import other_ways


def search(equations: RestEquations, horizon: float | None = None) -> Rest:
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
    if horizon is None:
        direct = nearest(equations, guess)
    else:
        guess = motion_to_its_end(equations, guess, horizon, clamped=True)
        equations.load(guess)
        equations.let_slow_ones_stand(horizon)
        direct = newton(equations, guess)
        if not direct.found:
            equations.load(guess)
            direct = newton(equations, newton(equations.standing_still(), guess).unknowns)
    if direct.found:
        return direct
    rest = next(other_ways(equations, guess), None)
    if rest is None:
        return contradiction(equations, guess)
    equations.load(rest.unknowns)
    return rest
