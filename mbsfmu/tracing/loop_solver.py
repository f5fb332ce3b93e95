"""Newton's iteration for a few equations as one function.

The iteration is damped: a step that does not reduce the residual is halved. It consists of nested functions of doubling
length, so that generated code ends at convergence, allocates no memory, and is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

SMALL = 1e-12
"""Relative size of negligible increments: one more after the iteration leaves round-off."""
ROUND_OFF = 1e-7
"""The same for increments that no longer reduce the residual."""
DECREASE = 1e-4
"""Fraction of the predicted decrease that the residual must reach."""
DOUBLINGS = 6
"""Number of doublings of the number of trials."""
MOST_TRIALS = 2**DOUBLINGS
"""Largest number of increments and halved ones."""
TRIAL = "trial"
"""Name of the function of one trial."""


def newton(name: str, equations: ca.Function, nominals: Sequence[float]) -> ca.Function:
    """Return a function that solves equations from an initial guess and further numbers.

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
    """Return a trial step, which is rejected without a decrease of the residual.

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
    """Return unknowns after one more Newton increment.

    At a solution it is the solution with its derivatives with respect to the numbers.
    """
    off, slopes = equations.call([unknowns, numbers], isinstance(unknowns, ca.SX), False)[:2]
    return unknowns - ca.solve(ca.densify(slopes), off)
