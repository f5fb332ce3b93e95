"""Linearization at the start of a step of a linearly implicit method."""

from __future__ import annotations

import numpy as np

from mbsfmu.formulations.formulation import DifferentiableForm
from mbsfmu.integration.explicit import CountedRates
from mbsfmu.tracing.workspace import Floats


class Linearization:
    """Rates at the start of a step, their derivatives, and the solver of the stages.

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
        self.rates = flow.rates(time, self.start)
        self.drift = flow.form.drift(slopes) if slopes.any() else np.zeros_like(self.rates)
        self._stages = flow.form.stages()

    @property
    def controlled(self) -> int:
        """Number of elements of y whose error is controlled: all but the integrals."""
        return self._stages.controlled

    def factorize(self, share: float) -> bool:
        """Compute the factors for h γ in s; return whether the matrix is regular."""
        return self._stages.factorize(share)

    def solve(self, right: Floats) -> Floats:
        """Return u."""
        return self._stages.solve(right)

    def missing(self, right: Floats, solution: Floats) -> Floats | None:
        """Return the residual of a solution, without integrals; None at round-off."""
        return self._stages.missing(right, solution)
