"""Stages of a step, (1/(h γ) − J) u = r: sparsity pattern, elimination order, linear solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.linear import LuFactors
from mbsfmu.tracing.workspace import Floats, TracedFunction

Pattern = NDArray[np.bool_]
FULL = 0.25
"""Fill ratio from which on dense factorization is as fast."""
PIVOT_SHARE = 0.1
"""Fraction of the largest element of a scaled column that is sufficient for a diagonal pivot."""


def nonzero(sparsity: ca.Sparsity) -> Pattern:
    """Return the structural nonzeros."""
    pattern = np.zeros(sparsity.shape, dtype=bool)
    rows, columns = sparsity.get_triplet()
    pattern[rows, columns] = True
    return pattern


def reduced_pattern(slope: TracedFunction, by_accelerations: TracedFunction | None = None) -> Pattern:
    """Return the sparsity pattern of the derivative of ẏ; the mass matrix counts as dense.

    Parameters
    ----------
    slope
        M'', and derivatives of what M'' is solved with and of the rates of states and integrals by (z^i, ż^i, x).
    by_accelerations
        Derivative of these rates by the accelerations, where they depend on them.
    """
    _, load, rates = map(nonzero, slope.sparsities)
    pushed = np.broadcast_to(load.any(axis=0), load.shape)
    if by_accelerations is not None:
        fed_through: Pattern = nonzero(by_accelerations.sparsities[0])
        rates = rates | (fed_through @ pushed)
    return np.concatenate([pushed, rates])


def stage_pattern(slope: Pattern, chained: int) -> Pattern:
    """Return the sparsity pattern of 1/(h γ) − J after elimination of the chained elements of y.

    Parameters
    ----------
    slope
        Pattern of the derivative of ẏ, chained elements apart, by y.
    chained
        Number of first elements of y whose rates are the elements that follow.
    """
    solved = slope.shape[1] - chained
    matrix = slope[:solved, chained:] | np.eye(solved, dtype=bool)
    matrix[:, :chained] |= slope[:solved, :chained]
    return matrix


def elimination_order(pattern: Pattern) -> tuple[list[int], float]:
    """Return a diagonal elimination order with little fill-in, and the fill ratio.

    Each pivot takes the fewest products [Markowitz1957].

    Parameters
    ----------
    pattern
        Where a square matrix may have elements, shape (n, n).
    """
    left = pattern | np.eye(len(pattern), dtype=bool)
    remaining, order, filled = list(range(len(pattern))), list[int](), 0
    while remaining:
        among = left[np.ix_(remaining, remaining)]
        costs = (among.sum(axis=0) - 1) * (among.sum(axis=1) - 1)
        place = int(np.argmin(costs))
        chosen = remaining.pop(place)
        filled += int(among[place].sum() + among[:, place].sum()) - 1
        left |= left[:, [chosen]] & left[[chosen]]
        order.append(chosen)
    return order, filled / len(pattern) ** 2 if order else 1.0


class Stages(ABC):
    """Solver with the derivatives at the start of a step.

    Attributes
    ----------
    controlled
        Number of elements of y that rates depend on: all but the integrals.
    """

    controlled: int

    @abstractmethod
    def factorize(self, share: float) -> bool:
        """Compute the factors for h γ in s; return whether the matrix is regular."""

    @abstractmethod
    def solve(self, right: Floats) -> Floats:
        """Return u."""

    def missing(self, right: Floats, solution: Floats) -> Floats | None:  # noqa: ARG002 - as said
        """Return the residual of a solution, without integrals; None with row pivoting."""
        return None


class DenseStages(Stages):
    """Solver with a dense matrix.

    If rates of the first elements of y are the following elements, as those of positions are, these are eliminated: for
    n second-order coordinates with k states n + k equations remain.

    Parameters
    ----------
    jacobian
        Derivative of ẏ, chained elements apart, by y, integrals apart.
    chained
        Number of first elements of y whose rates are the elements that follow these.
    """

    def __init__(self, jacobian: Floats, chained: int) -> None:
        self.controlled = jacobian.shape[1]
        self._chained = chained
        self._solved = self.controlled - chained
        self._by_first, self._by_rest = jacobian[:, :chained], jacobian[:, chained:]

    def factorize(self, share: float) -> bool:
        """Compute the factors for h γ in s; return whether the matrix is regular."""
        self._share = share
        matrix = -self._by_rest[: self._solved]
        matrix[:, : self._chained] -= share * self._by_first[: self._solved]
        matrix[np.diag_indices(self._solved)] += 1.0 / share
        self._factors = LuFactors(matrix)
        return not self._factors.singular

    def solve(self, right: Floats) -> Floats:
        """Return u."""
        first, rest, integrals = np.split(right, [self._chained, self.controlled])
        by_first, by_rest, share = self._by_first, self._by_rest, self._share
        solved = self._factors.solve(rest + share * (by_first[: self._solved] @ first))
        first = share * (solved[: self._chained] + first)
        integrals = share * (integrals + by_first[self._solved :] @ first + by_rest[self._solved :] @ solved)
        return np.concatenate([first, solved, integrals])
