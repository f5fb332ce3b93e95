"""Rest near a guess: Newton's iteration, and where it fails or has gone far, an overdamped motion that ends."""

from __future__ import annotations

import numpy as np

from mbsfmu.formulations.rest_begin import fitted, posed
from mbsfmu.formulations.rest_equations import RestEquations
from mbsfmu.formulations.rest_motion import motion_to_its_end
from mbsfmu.formulations.rest_newton import SETTLED, Rest, newton, turn
from mbsfmu.formulations.rest_stability import GROWING, growth
from mbsfmu.formulations.workspace import Floats

_FAR = 0.3
"""In rad or m: rest that is further from the guess may have been reached past another."""


def nearest(equations: RestEquations, guess: Floats) -> Rest:
    """Return a position of rest near a guess, or else where the search comes closest to one; the functions are there.

    Where Newton's iteration fails, the overdamped motion of the system is followed to its end, with what moves clamped
    where something is held, and Newton's iteration goes on from there. The same is done where Newton's iteration has
    gone far to a rest that is unstable, or open: out of balance, the derivatives of loads by angles of a body that
    turns freely are not zero, so that steps turn what no load does.
    """
    clamped = bool(equations.held)
    direct = newton(equations, guess)
    far = _distance(equations, direct, guess)
    if direct.found and (clamped or far <= _FAR):
        return direct
    unstable = direct.found and growth(equations) > GROWING
    is_open = bool(np.max(np.abs(direct.free[equations.unknowns("coordinates")]), initial=0.0) > SETTLED)
    if direct.found and not (unstable or is_open):
        return direct
    rest = _held_from(equations, guess) if clamped else _settled(equations, guess, clamped=False)
    better = rest.found or (not direct.found and rest.off < direct.off)
    chosen = rest if better else direct
    equations.load(chosen.unknowns)
    return chosen


def _held_from(equations: RestEquations, guess: Floats) -> Rest:
    """Return rest from where what is held is so, and what is asked for fits, or else from where states settle there.

    Where none of this is rest, states settle at the guess as it is.
    """
    begin = fitted(equations, posed(equations, guess))
    rest = newton(equations, begin)
    if not rest.found:
        rest = newton(equations, fitted(equations, motion_to_its_end(equations, begin, clamped=True)))
    return rest if rest.found else _settled(equations, guess, clamped=True)


def _settled(equations: RestEquations, guess: Floats, *, clamped: bool) -> Rest:
    """Return where the overdamped motion ends, or else where Newton's iteration goes from there."""
    end = motion_to_its_end(equations, guess, clamped=clamped)
    rest = newton(equations, end, steps=0)
    return rest if rest.found else newton(equations, end)


def _distance(equations: RestEquations, rest: Rest, guess: Floats) -> float:
    return turn(equations, rest.unknowns - guess)
