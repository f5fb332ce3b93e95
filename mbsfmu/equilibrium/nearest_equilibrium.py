"""Rest near a guess: Newton's iteration, and where it fails or has gone far, an overdamped motion that ends."""

from __future__ import annotations

import numpy as np

from mbsfmu.equilibrium.damped_newton import CONVERGED, StaticEquilibrium, newton, turn
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import fitted, posed
from mbsfmu.equilibrium.overdamped_motion import motion_to_its_end
from mbsfmu.equilibrium.small_motions import GROWING, rates_about_equilibrium
from mbsfmu.tracing.workspace import Floats

_FAR = 0.3
"""In rad or m: rest that is further from the guess may have been reached past another."""


def nearest(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return a position of rest near a guess, or else where the search comes closest to one; the functions are there.

    Where Newton's iteration fails, the overdamped motion of the system is followed to its end, with what moves clamped
    where something is held, and Newton's iteration goes on from there. With nothing held, the same is done where
    Newton's iteration has gone far to a rest that is unstable, and where rest is open, unless it is unstable and near:
    of all positions of rest, that at which a run from the guess would end is taken. Away from rest no Jacobian tells
    what the motion conserves, nor, of a body that turns freely, what no load turns.
    """
    clamped = bool(equations.held)
    direct = newton(equations, guess)
    if direct.found and (clamped or not _is_left_to_motion(equations, direct, guess)):
        return direct
    rest = _held_from(equations, guess) if clamped else _ended(equations, direct, guess)
    better = rest.found or (not direct.found and rest.off < direct.off)
    chosen = rest if better else direct
    equations.load(chosen.unknowns)
    return chosen


def _is_left_to_motion(equations: EquilibriumEquations, direct: StaticEquilibrium, guess: Floats) -> bool:
    """Tell whether motion is to decide where a rest that has been found lies."""
    far = turn(equations, direct.unknowns - guess) > _FAR
    moving = np.r_[equations.unknowns("coordinates"), equations.unknowns("states"), equations.unknowns("discrete")]
    counts = np.setdiff1d(moving, [equations.unknowns("states").start + index for index in equations.left])
    growing, slowest = rates_about_equilibrium(equations)
    # At the edge of a valve that shuts, a Jacobian may be that of the side where it is open by next to nothing.
    is_open = bool(np.max(np.abs(direct.free[counts]), initial=0.0) > CONVERGED) or slowest <= GROWING
    return (far or is_open) and (far if growing > GROWING else is_open)


def _ended(equations: EquilibriumEquations, direct: StaticEquilibrium, guess: Floats) -> StaticEquilibrium:
    """Return where motion from a guess ends, with what is asked for as it has been found, if it has."""
    if not direct.found or not equations.sought:
        return _converged(equations, guess, clamped=False)
    asked = equations.unknowns("inputs").start
    given = EquilibriumEquations(equations.functions, (), ())
    given.load(guess[:asked])
    end = motion_to_its_end(given, guess[:asked], clamped=False)
    return newton(equations, np.concatenate([end, direct.unknowns[asked:]]))


def _held_from(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return rest from where what is held is so, and what is asked for fits, or else from where states settle there.

    Where none of this is rest, states settle at the guess as it is.
    """
    begin = fitted(equations, posed(equations, guess))
    rest = newton(equations, begin)
    if not rest.found:
        rest = newton(equations, fitted(equations, motion_to_its_end(equations, begin, clamped=True)))
    return rest if rest.found else _converged(equations, guess, clamped=True)


def _converged(equations: EquilibriumEquations, guess: Floats, *, clamped: bool) -> StaticEquilibrium:
    """Return where the overdamped motion ends, or else where Newton's iteration goes from there."""
    end = motion_to_its_end(equations, guess, clamped=clamped)
    rest = newton(equations, end, steps=0)
    return rest if rest.found else newton(equations, end)
