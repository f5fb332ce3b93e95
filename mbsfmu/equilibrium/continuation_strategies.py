"""Continuation strategies for equilibria behind saturations, where Newton's iteration has a singular Jacobian."""

from __future__ import annotations

from collections.abc import Iterator

from mbsfmu.equilibrium.damped_newton import StaticEquilibrium, newton
from mbsfmu.equilibrium.dead_band_bisection import bisect_dead_bands
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import fitted, posed
from mbsfmu.equilibrium.nearest_equilibrium import nearest
from mbsfmu.tracing.workspace import Floats

_FIRST_LEAK, _LEAST_LEAK, _NO_LEAK = 0.1, 1e-2, 1e-9
"""Slope of regularised saturations: the first one, the one below which the equilibrium is tried without, and zero."""
_SHRINKING, _SLOWEST = 0.3, 0.98
"""Reduction factor of the slope at first, and the factor at which the continuation is abandoned."""
_MOST_LEAKS = 40
_FIRST_WAY, _SHORTEST_WAY, _LONGER, _SHORTER = 0.1, 1e-4, 1.7, 0.35
"""Continuation of fixed variables: first and shortest fraction, and factors after successful and failed steps."""
_MOST_STEPS = 25
"""Largest number of Newton steps at a point of a continuation, and from another initial guess."""
_GUESSES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0)
"""Offsets of free variables in magnitudes, from their guess and from zero."""


def other_ways(equations: EquilibriumEquations, guess: Floats) -> Iterator[StaticEquilibrium]:
    """Yield equilibria of the continuation strategies; each is started on demand.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which Newton's iteration has failed.
    """
    ways = [less_and_less_leaking]
    if equations.sought:
        ways += [bisect_dead_bands, carried] if equations.held else []
        ways += [from_other_start_points]
    for way in ways:
        equations.load(guess)
        found = way(equations, guess)
        if found is not None and found.found:
            yield found


def less_and_less_leaking(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium by regularised saturations: a homotopy in their slope.

    A saturated command, a spool within its overlap, a closed valve or an open end stop then has a slope, in the
    direction in which it would act.
    """
    if (leaky := equations.leaky()) is None:
        return None
    leaking, share = leaky
    at, last, factor = guess, 0.0, _SHRINKING
    share[:] = _FIRST_LEAK
    for _ in range(_MOST_LEAKS):
        present = float(share[0])
        rest = newton(leaking, at)
        if rest.found:
            at, last, factor = rest.unknowns, present, factor**1.5
            if present < _LEAST_LEAK and ((tight := newton(equations, at)).found or present < _NO_LEAK):
                return tight
        elif not last or (factor := factor**0.5) > _SLOWEST:
            return None
        share[:] = last * factor
    return None


def carried(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium by continuation of the fixed variables from the equilibrium without them.

    Free variables start at values fitted to the machine's position, or at their guess.
    """
    for begin in (fitted(equations, posed(equations, guess)), fitted(equations, guess), guess):
        equations.load(begin)
        rest = _carried_from(equations, begin)
        if rest is not None and rest.found:
            return rest
    return None


def _carried_from(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    free = nearest(EquilibriumEquations(equations.functions, (), ()), guess=_without_sought(equations, guess))
    if not free.found:
        return None
    at = equations.present()
    target = [each.value for each in equations.held]
    begin = target + equations.residual()[equations.rows("held")]
    way, step = 0.0, _FIRST_WAY
    while step >= _SHORTEST_WAY:
        further = min(way + step, 1.0)
        rest = newton(equations.at_values(begin + further * (target - begin)), at, _MOST_STEPS)
        if not rest.found:
            step *= _SHORTER
            continue
        at, way, step = rest.unknowns, further, step * _LONGER
        if way == 1.0:
            return newton(equations, at)
    return None


def _without_sought(equations: EquilibriumEquations, guess: Floats) -> Floats:
    """Return the unknowns of a guess without the free variables."""
    return guess[: equations.unknowns("inputs").start]


def from_other_start_points(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium from other initial guesses, with all free variables offset alike."""
    asked = slice(equations.unknowns("inputs").start, len(guess))
    for begin in (guess[asked], 0.0 * guess[asked])[: 2 if guess[asked].any() else 1]:
        for size in _GUESSES:
            for way in (size, -size):
                moved = guess.copy()
                moved[asked] = begin + way * equations.scales[asked]
                rest = newton(equations, moved, _MOST_STEPS)
                if rest.found:
                    return rest
    return None
