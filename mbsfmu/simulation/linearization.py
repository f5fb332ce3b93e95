"""The beginning of a step of a linearly implicit method: rates, their derivatives, and what is solved with these."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.linear import Factors
from mbsfmu.formulations.explicit_form import DifferentiableForm
from mbsfmu.formulations.workspace import Floats
from mbsfmu.simulation.explicit import CountedRates, StageError


class Linearization:
    """The rates at the beginning of a step with their derivatives, and what is solved with these.

    Where rates of the first elements of y are the elements that follow, as those of positions are, the solution of
    (1/(h γ) − J) u = r leaves these out: of an n-fold system of second order with k states n + k equations are left.

    Parameters
    ----------
    flow
        The right-hand side.
    time
        In s, where the step begins.
    slopes
        Rates of the inputs, shape (number of inputs,).

    Attributes
    ----------
    flow, time
        As given.
    start, rates
        y and ẏ there, shape (number of elements,).
    drift
        ∂f/∂t of the same shape.
    """

    def __init__(self, flow: CountedRates, time: float, slopes: Floats) -> None:
        assert isinstance(flow.form, DifferentiableForm)
        self.flow = flow
        self.time = time
        self.start = flow.form.start
        self.rates = flow(time, self.start)
        self.drift = flow.form.drift(slopes) if slopes.any() else np.zeros_like(self.rates)
        tangent = flow.form.tangent()
        self._chained = chained = flow.form.chained
        self._solved = tangent.shape[1] - chained
        self._by_first, self._by_rest = tangent[:, :chained], tangent[:, chained:]

    @property
    def controlled(self) -> int:
        """Number of elements of y whose error is controlled: all but the integrals."""
        return self._chained + self._solved

    def factorize(self, share: float) -> None:
        """Prepare solutions for h γ in s.

        Raises
        ------
        StageError
            When the matrix is singular.
        """
        self._share = share
        matrix = -self._by_rest[: self._solved]
        matrix[:, : self._chained] -= share * self._by_first[: self._solved]
        matrix[np.diag_indices(self._solved)] += 1.0 / share
        self._factors = Factors(matrix)
        if self._factors.singular:
            raise StageError("the matrix of the step is singular")

    def solve(self, right: Floats) -> Floats:
        """Return u."""
        first, rest, integrals = np.split(right, [self._chained, self.controlled])
        by_first, by_rest, share = self._by_first, self._by_rest, self._share
        solved = self._factors.solve(rest + share * (by_first[: self._solved] @ first))
        first = share * (solved[: self._chained] + first)
        integrals = share * (integrals + by_first[self._solved :] @ first + by_rest[self._solved :] @ solved)
        return np.concatenate([first, solved, integrals])
