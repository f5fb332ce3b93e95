"""Equilibrium near a guess: Newton's iteration, then overdamped motion."""

from __future__ import annotations

import numpy as np

from mbsfmu.equilibrium.damped_newton import CONVERGED, StaticEquilibrium, newton, turn
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import fitted, posed
from mbsfmu.equilibrium.overdamped_motion import motion_to_its_end
from mbsfmu.equilibrium.small_motions import GROWING, rates_about_equilibrium
from mbsfmu.tracing.workspace import Floats

_FAR = 0.3
"""Distance from the guess in rad or m above which an equilibrium may not be the nearest."""


def nearest(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return an equilibrium near a guess, or the closest point of the search; the functions are there.

    If Newton's iteration fails, the overdamped motion of the system is followed to its end, with moving parts clamped
    if variables are fixed, and Newton's iteration continues from there. Without fixed variables, the same is done if
    Newton's iteration has ended far away at an unstable equilibrium, or at an undetermined one unless unstable and
    near: the equilibrium that a run from the guess would reach is preferred. Away from equilibrium the Jacobian does
    not give the conserved quantities of the motion, nor the free rotations of a body.
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
    """Return whether the motion shall select among equilibria."""
    far = turn(equations, direct.unknowns - guess) > _FAR
    moving = np.r_[equations.unknowns("coordinates"), equations.unknowns("states"), equations.unknowns("discrete")]
    counts = np.setdiff1d(moving, [equations.unknowns("states").start + index for index in equations.left])
    growing, slowest = rates_about_equilibrium(equations)
    # At the edge of a valve that shuts, a Jacobian may be that of the side where it is open by next to nothing.
    is_open = bool(np.max(np.abs(direct.free[counts]), initial=0.0) > CONVERGED) or slowest <= GROWING
    return (far or is_open) and (far if growing > GROWING else is_open)


def _ended(equations: EquilibriumEquations, direct: StaticEquilibrium, guess: Floats) -> StaticEquilibrium:
    """Return the end of the motion from a guess, with the free variables found, if it ends."""
    if not direct.found or not equations.sought:
        return _converged(equations, guess, clamped=False)
    asked = equations.unknowns("inputs").start
    given = EquilibriumEquations(equations.functions, (), ())
    given.load(guess[:asked])
    end = motion_to_its_end(given, guess[:asked], clamped=False)
    return newton(equations, np.concatenate([end, direct.unknowns[asked:]]))


def _held_from(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return the equilibrium from fitted coordinates and free variables, or after states have settled there.

    If neither converges, states settle at the unchanged guess.
    """
    begin = fitted(equations, posed(equations, guess))
    rest = newton(equations, begin)
    if not rest.found:
        rest = newton(equations, fitted(equations, motion_to_its_end(equations, begin, clamped=True)))
    return rest if rest.found else _converged(equations, guess, clamped=True)


def _converged(equations: EquilibriumEquations, guess: Floats, *, clamped: bool) -> StaticEquilibrium:
    """Return the end of the overdamped motion, or of Newton's iteration from there."""
    end = motion_to_its_end(equations, guess, clamped=clamped)
    rest = newton(equations, end, steps=0)
    return rest if rest.found else newton(equations, end)
