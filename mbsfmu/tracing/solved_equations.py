"""Solutions of linear equations and of loops as called functions, and symbols for them.

Newton's iteration for a few equations as one function.

The iteration is damped: a step that does not reduce the residual is halved. It consists of nested functions of doubling
length, so that generated code ends at convergence, allocates no memory, and is deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import casadi as ca
import numpy as np

NAME = "solve_linear"
"""Prefix of the function names, followed by the numbers of unknowns and right-hand sides."""


def solved(matrix: ca.SX, right: ca.SX) -> ca.SX:
    """Return the solution of linear equations without derivatives; structural zeros are preserved.

    Independent blocks of unknowns are solved separately.

    Parameters
    ----------
    matrix
        Shape (n, n), not singular.
    right
        Shape (n, k).
    """
    matrix, right = ca.sparsify(matrix), ca.sparsify(right)
    solution = ca.SX(*right.shape)
    for block in _blocks(matrix.sparsity()):
        own = right[block, :]
        columns = sorted(set(own.sparsity().get_triplet()[1]))
        if columns:
            solution[block, columns] = _solved(matrix[block, block], own[:, columns])
    return solution


def solution_operations(function: ca.Function) -> int:
    """Return the operations of the solutions in a function, each size counted once."""
    count = 0.0
    for each in function.find_functions():
        if each.name().startswith(NAME):
            unknowns, elements = math.isqrt(each.numel_in(0)), each.numel_in(1)
            count += 2.0 / 3.0 * unknowns**3 + 2.0 * unknowns * elements
    return round(count)


def _solved(matrix: ca.SX, right: ca.SX) -> ca.SX:
    if matrix.shape == (1, 1):
        return right / matrix
    function = _solver(*right.shape)
    given = [ca.vec(ca.densify(matrix)), ca.vec(ca.densify(right))]
    (found,) = function.call(given, False, True)
    return ca.reshape(found, *right.shape)


@cache
def _solver(unknowns: int, columns: int) -> ca.Function:
    """Return the function of a matrix and right-hand sides, column by column; NaN for singular matrices."""
    matrix, right = ca.MX.sym("matrix", unknowns**2), ca.MX.sym("right", unknowns * columns)
    found = ca.solve(ca.reshape(matrix, unknowns, unknowns), ca.reshape(right, unknowns, columns), "symbolicqr")
    return ca.Function(f"{NAME}_{unknowns}_{columns}", [matrix, right], [ca.vec(found)], {"never_inline": True})


def _blocks(sparsity: ca.Sparsity) -> list[list[int]]:
    """Return the independent blocks of unknowns."""
    count = sparsity.shape[0]
    block = np.arange(count)
    for row, column in zip(*sparsity.get_triplet(), strict=True):
        if block[row] != block[column]:
            block[block == block[column]] = block[row]
    return [np.flatnonzero(block == each).tolist() for each in np.unique(block)]


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


@dataclass(frozen=True)
class Solved:
    """A symbol that represents the solution of loops.

    Attributes
    ----------
    symbol
        Vector of symbols.
    find
        Returns the solution.
    """

    symbol: ca.SX
    find: Callable[[], ca.SX]

    @cached_property
    def solution(self) -> ca.SX:
        """The solution, an expression with the iteration and without derivatives."""
        return self.find()


class SolvedLoops:
    """The symbols for solutions in some expressions.

    Expressions are differentiated with the symbols in them: around these they have one more Newton increment, with the
    derivatives of the solution. At another point another symbol represents the solution.
    """

    def __init__(self) -> None:
        self._every: list[Solved] = []

    def add(self, size: int, find: Callable[[], ca.SX]) -> ca.SX:
        """Return a symbol for a solution of a size, computed on demand."""
        symbol = ca.SX.sym("solved", size)
        self._every.append(Solved(symbol, find))
        return symbol

    def within(self, values: Sequence[ca.SX]) -> list[Solved]:
        """Return those that occur in expressions."""
        if not self._every:
            return []
        every = ca.veccat(*values)
        return [each for each in self._every if ca.depends_on(every, each.symbol)]

    def moved(self, solved: Solved, changed: ca.SX, move: Callable[[ca.SX], ca.SX]) -> ca.SX:
        """Return the representation of a solution with substituted symbols; `move` substitutes in an expression."""
        if not ca.depends_on(solved.solution, changed):
            return solved.symbol
        return self.add(solved.symbol.numel(), lambda: move(solved.solution))

    def inserted(self, values: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with the solutions in place of the symbols."""
        result = list(values)
        while within := self.within(result):
            symbols, solutions = [each.symbol for each in within], [each.solution for each in within]
            result = list(ca.Function("closed", symbols, result, {"allow_free": True}).call(solutions, True, False))
        return result
