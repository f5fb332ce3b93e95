"""Step control by the residual power of power bonds."""

from __future__ import annotations

import math

import numpy as np

from mbsfmu.cosim.control.step_control import Controller, StepAttempt
from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.sweeps import means
from mbsfmu.cosim.fmus.fmu_instance import Floats


class EnergyControl(Controller):
    """Estimates errors from the residual power of the power bonds.

    After Sadjina, Kyllingstad, Skjong and Pedersen (2017), "Energy conservation and power bonds in co-simulations:
    non-iterative adaptive step size control and error estimation": r = √(mean (δP/(a + b P))²) over the bonds, δP
    being the residual power. There it is e'f' − e f of the effort e, the flow f and what was taken of them, e' and
    f', at the end of the step. Deviations: δP = |e' − e| F + |f' − f| E of means over the step and the largest
    magnitudes E and F so far, and P = E F. A power that passes through zero, or errors of both sides that cancel in
    it, would let steps grow in which motion and force are wrong; equal steps of the same cost then are better.
    Steps that are far off are made again where FMUs save their states.
    """

    CHANGES = (*Controller.CHANGES, "_largest")

    def __init__(self, stepping: Stepping, tolerances: CouplingTolerances, returns: bool) -> None:
        super().__init__(stepping, tolerances, returns)
        self._largest = np.zeros((len(stepping.bonds), 2))

    @property
    def power(self) -> float:
        """Inputs extrapolated with degree k are off by h^(k+1), and so is the residual power."""
        return self.stepping.degree + 1.0

    def _attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt:
        trial, bonds = history.copy(), self.stepping.bonds
        point = self.stepping.advance(trial, time, step)
        true = means(history, point.outputs, step)
        missed = np.abs([bond.missed(true) for bond in bonds])
        largest = self._largest_with(history.now, point.outputs)
        residual = missed[:, 0] * largest[:, 1] + missed[:, 1] * largest[:, 0]
        shares = residual / (self.tolerances.absolute + self.tolerances.relative * largest.prod(axis=1))
        return StepAttempt([point], trial, math.sqrt(float(np.mean(shares**2))))

    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:  # noqa: ARG002
        self._largest = self._largest_with(attempt.points[0].outputs)

    def _largest_with(self, *points: Floats) -> Floats:
        """Return the largest magnitudes of effort and flow so far and at some points, shape (bonds, 2)."""
        found = [np.abs([bond.factors(outputs) for bond in self.stepping.bonds]) for outputs in points]
        return np.max([self._largest, *found], axis=0)
