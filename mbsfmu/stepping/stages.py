"""Linear solvers of the stages of a step, (1/(h γ) − J) u = r."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from mbsfmu.equations.linear import LuFactors
from mbsfmu.tracing.workspace import Floats


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
