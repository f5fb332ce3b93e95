"""Newton's iteration for a few equations as one function, which is called where expressions need its solution.

The iteration is damped: a step that does not bring the residual down is halved. It is made of functions that call each
other twice as long as they are not done, so that generated code ends it where it has converged, allocates nothing, and
does with the same numbers the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

SMALL = 1e-12
"""Share of the magnitudes up to which increments are negligible: one more, behind the iteration, leaves round-off."""
ROUND_OFF = 1e-7
"""The same for increments that no longer bring the residual down."""
DECREASE = 1e-4
"""Share of what an increment promises that the residual has to shrink by."""
DOUBLINGS = 6
"""How often the number of trials doubles."""
MOST_TRIALS = 2**DOUBLINGS
"""Increments and halved ones after which it is given up."""
TRIAL = "trial"
"""Name of the function that makes one."""


def newton(name: str, equations: ca.Function, nominals: Sequence[float]) -> ca.Function:
    """Return a function of a guess and of numbers that the equations take besides, which solves them.

    Parameters
    ----------
    name
        Its name.
    equations
        Function of the unknowns and these numbers: residuals, and their derivatives by the unknowns.
    nominals
        Least magnitude of each unknown.

    Returns
    -------
    ca.Function
        Gives the solution, NaN where there is none near the guess, and how far the equations stay off then, else 0.
    """
    size, given = len(nominals), equations.numel_in(1)
    trial = _trial(equations, nominals)
    state, numbers = ca.MX.sym("state", trial.numel_in(0)), ca.MX.sym("numbers", given)
    advance = trial
    for _ in range(DOUBLINGS + 1):
        further = advance(state, numbers) if advance is trial else advance(advance(state, numbers), numbers)
        advance = ca.Function("advance", [state, numbers], [ca.if_else(_goes_on(state), further, state, True)])
    guess = ca.MX.sym("guess", size)
    begun = ca.vertcat(guess, ca.DM.zeros(size), ca.DM([ca.inf, ca.inf, 0.5]))
    ended = advance(begun, numbers)
    residual, left = ended[-3], ended[-2]
    found = left <= ROUND_OFF**2
    results = [ca.if_else(found, ended[:size], ca.DM.nan(size)), ca.if_else(found, 0.0, ca.sqrt(residual))]
    return ca.Function(name, [guess, numbers], results, {"never_inline": True})


def _goes_on(state: ca.MX) -> ca.MX:
    left, share = state[-2], state[-1]
    return ca.logic_not(ca.logic_or(left <= SMALL**2, ca.logic_and(left <= ROUND_OFF**2, share < 1.0)))


def _trial(equations: ca.Function, nominals: Sequence[float]) -> ca.Function:
    """Return what goes a share of the increment and stays where that does not help.

    Its state is where the iteration is, Newton's increment there, the sum of squares of the residuals, that of the
    increments by the magnitudes, and the share to try next. The sums are not finite where an element is not.
    """
    size = len(nominals)
    unknowns, increment = ca.SX.sym("unknowns", size), ca.SX.sym("increment", size)
    rest, numbers = ca.SX.sym("rest", 3), ca.SX.sym("numbers", equations.numel_in(1))
    residual, left, share = rest[0], rest[1], rest[2]
    tried = unknowns + share * increment
    off, slopes = equations.call([tried, numbers], True, False)[:2]
    following = -ca.solve(ca.densify(slopes), off)
    magnitudes = ca.fmax(ca.fabs(tried), ca.DM(list(nominals)))
    size_there = ca.sumsqr(following / magnitudes)
    there = ca.sumsqr(off)
    better = there <= (1.0 - DECREASE * share) ** 2 * residual
    moved = ca.vertcat(tried, following, there, size_there, ca.fmin(1.0, 2.0 * share))
    stays = ca.vertcat(unknowns, increment, residual, left, 0.5 * share)
    state = ca.vertcat(unknowns, increment, rest)
    return ca.Function(TRIAL, [state, numbers], [ca.if_else(better, moved, stays)])


def improved(equations: ca.Function, unknowns: ca.SX | ca.DM, numbers: ca.SX | ca.DM) -> ca.SX | ca.DM:
    """Return unknowns behind one more of Newton's increments.

    At a solution it is the solution, and its derivatives by the numbers are those of the solution, whatever the
    unknowns are taken to depend on.
    """
    off, slopes = equations.call([unknowns, numbers], isinstance(unknowns, ca.SX), False)[:2]
    return unknowns - ca.solve(ca.densify(slopes), off)
