"""Control of communication steps: lengths and rejection, by extrapolation errors or by the residual power of bonds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mbsfmu.cosim.control.error_variables import BEGIN, CouplingTolerances, ErrorWeights, Watched
from mbsfmu.cosim.coupling.coupled_steps import CommunicationPoint, Stepping
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.fmus.fmu_instance import Floats

CONTROLS = ("fixed", "error", "energy")
_SAFETY = 0.9
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.2, 2.0
_INTEGRAL, _PROPORTIONAL = 0.3, 0.4
_NO_ERROR = 1e-12


@dataclass
class StepAttempt:
    """A trial step.

    Attributes
    ----------
    points
        The communication points that it leads to.
    history
        The history that ends with them.
    ratio
        Estimated error as a share of what is allowed.
    defect
        How far what is exchanged went off its extrapolation, in shares of the tolerance; where it was looked at.
    jumps
        Whether something jumped in it, so that the past says nothing of what comes.
    """

    points: list[CommunicationPoint]
    history: OutputHistory
    ratio: float
    defect: float = 0.0
    jumps: bool = False


class Controller(ABC):
    """Base of step controllers: error estimate and next step length.

    A PI controller with Gustafsson's gains, h ← 0.9 h r^(−0.7/q) r₋₁^(0.4/q): r is the estimate as a share of what is
    allowed, r₋₁ the one before, r ~ h^q.

    Parameters
    ----------
    stepping
        The members that make the steps.
    tolerances
        What is allowed.
    returns
        Whether a step can be made again.
    """

    CHANGES: ClassVar[tuple[str, ...]] = ("_last",)

    def __init__(self, stepping: Stepping, tolerances: CouplingTolerances, returns: bool) -> None:
        self.stepping = stepping
        self.tolerances = tolerances
        self.returns = returns
        self._last = 1.0

    @property
    @abstractmethod
    def power(self) -> float:
        """Exponent q of the error estimate as a function of the step."""

    def attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt:
        """Make a step in s and estimate its error; the history is unchanged.

        Raises
        ------
        SimulationError
            When an FMU refuses.
        """
        if self.returns:
            self.stepping.save(BEGIN, time)
        return self._attempt(history, time, step)

    @abstractmethod
    def _attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt: ...

    @abstractmethod
    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:
        """Store the data of a trial step from a time for later estimates, both in s."""

    def undo(self) -> None:
        """Undo the last trial step."""
        self.stepping.restore(BEGIN)

    def accept(self, attempt: StepAttempt, time: float, step: float) -> float:
        """Accept a trial step from a time in s; return the factor for the next step."""
        self._take(attempt, time, step)
        ratio = max(attempt.ratio, _NO_ERROR)
        factor = _SAFETY * ratio ** (-(_INTEGRAL + _PROPORTIONAL) / self.power)
        factor *= self._last ** (_PROPORTIONAL / self.power)
        self._last = max(ratio, 1e-4)
        return min(max(factor, _SMALLEST_FACTOR), _LARGEST_FACTOR)

    def reject(self, attempt: StepAttempt) -> float:
        """Return the factor for a rejected step."""
        return min(max(_SAFETY * attempt.ratio ** (-1.0 / self.power), _SMALLEST_FACTOR), _SAFETY)

    def restart(self) -> None:
        """Discard the history after a discontinuity of an input."""
        self._last = 1.0

    def restart_run(self) -> None:
        """Apply values set by the user to the members in the run."""
        self.restart()

    def first_step(self, step: float) -> float:
        """Return the length in s of the first step, if prescribed."""
        return step

    def notes(self) -> list[str]:
        """Return messages on the findings at the end of the run."""
        return []


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
        true = self.stepping.steps.means(history, point.outputs, step)
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
        expected = self.stepping.steps.predicted(history, step)
        point = self.stepping.advance(trial, time, step)
        weights = self._weights.of(self._watched.read(point.outputs))[: len(expected)]
        error = np.abs(point.outputs - expected) / weights
        return StepAttempt([point], trial, float(np.max(error[self._driving], initial=0.0)))

    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:  # noqa: ARG002
        self._weights.take(self._watched.read(attempt.history.now))
