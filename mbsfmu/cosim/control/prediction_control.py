"""Step control by the extrapolation error of exchanged variables, for FMUs without saved states."""

from __future__ import annotations

import math

import numpy as np

from mbsfmu.cosim.control.step_control import Controller, StepAttempt
from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.control.watched import ErrorWeights, Watched
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.sweeps import predicted


class PredictionControl(Controller):
    """Estimates errors from the extrapolation errors of inputs.

    The estimate is embedded in the step and needs no state; it is of the inputs, not of what the units make of them.
    The first step cannot be made again, and nothing is known before it: it is shorter than the one that was wanted.
    """

    CHANGES = (*Controller.CHANGES, "_weights")

    def __init__(self, stepping: Stepping, tolerances: CouplingTolerances, history: OutputHistory) -> None:
        super().__init__(stepping, tolerances, returns=False)
        exchange = stepping.exchange
        self._watched = Watched(exchange)
        self._weights = ErrorWeights(self._watched, self._watched.read(history.now), tolerances, 0.0)
        driving = {exchange.columns[each.source] for each in exchange.connections}
        self._driving = np.array(sorted(driving - set(exchange.held)), dtype=np.intp)

    @property
    def power(self) -> float:
        """Exponent of the extrapolation error: h^(k+1) for degree k."""
        return self.stepping.degree + 1.0

    def first_step(self, step: float) -> float:
        """Return the length in s of the first step: the error of constant inputs is quadratic in it."""
        return max(self.tolerances.smallest, min(1.0, math.sqrt(self.tolerances.relative)) * step)

    def _attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt:
        trial = history.copy()
        expected = predicted(history, step)
        point = self.stepping.advance(trial, time, step)
        weights = self._weights.of(self._watched.read(point.outputs))[: len(expected)]
        error = np.abs(point.outputs - expected) / weights
        return StepAttempt([point], trial, float(np.max(error[self._driving], initial=0.0)))

    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:  # noqa: ARG002
        self._weights.take(self._watched.read(attempt.history.now))
