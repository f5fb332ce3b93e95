"""Step control: how long communication steps are, and which are made again."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np

from mbsfmu.cosim.coupling import means, names_of, predicted
from mbsfmu.cosim.extrapolation import Extrapolation, History
from mbsfmu.cosim.instance import Floats
from mbsfmu.cosim.jumps import BEGIN, JumpFinder, Sample
from mbsfmu.cosim.result import Facts
from mbsfmu.cosim.stepping import Point, Stepping
from mbsfmu.errors import InputError

CONTROLS = ("fixed", "error", "energy")
_SAFETY = 0.9
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.2, 2.0
_INTEGRAL, _PROPORTIONAL = 0.3, 0.4
_NO_ERROR = 1e-12
_SUSPICIOUS = 3.0  # shares of the tolerance by which what is exchanged may go off its extrapolation without a look
_SAME_DEFECT = 0.7  # of the defect in a step twice as long or more
_LARGEST_AT_JUMPS = 0.5


@dataclass(frozen=True)
class Tolerances:
    """What step control may let pass.

    Attributes
    ----------
    relative
        Share of a variable's magnitude (of a bond's power) so far.
    absolute
        Share of a variable's nominal value (W, of a bond's power).
    smallest, largest
        Bounds of the steps in s.
    """

    relative: float
    absolute: float
    smallest: float
    largest: float


@dataclass
class Attempt:
    """A step that was tried.

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

    points: list[Point]
    history: History
    ratio: float
    defect: float = 0.0
    jumps: bool = False


class Controller(ABC):
    """Estimates errors of steps, and proposes the length of the next one.

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

    def __init__(self, stepping: Stepping, tolerances: Tolerances, returns: bool) -> None:
        self.stepping = stepping
        self.tolerances = tolerances
        self.returns = returns
        self._last = 1.0

    @property
    @abstractmethod
    def power(self) -> float:
        """The power q with which the estimate falls with the step."""

    def attempt(self, history: History, time: float, step: float) -> Attempt:
        """Make a step in s and estimate its error; the history stays as it is.

        Raises
        ------
        SimulationError
            When a unit refuses.
        """
        if self.returns:
            self.stepping.save(BEGIN, time)
        return self._attempt(history, time, step)

    @abstractmethod
    def _attempt(self, history: History, time: float, step: float) -> Attempt: ...

    @abstractmethod
    def _take(self, attempt: Attempt, step: float) -> None:
        """Remember what the next estimates need of an attempt."""

    def undo(self) -> None:
        """Go back to before the last attempt."""
        self.stepping.restore(BEGIN)

    def accept(self, attempt: Attempt, step: float) -> float:
        """Take an attempt of a step in s for good; return the factor for the next step."""
        self._take(attempt, step)
        ratio = max(attempt.ratio, _NO_ERROR)
        factor = _SAFETY * ratio ** (-(_INTEGRAL + _PROPORTIONAL) / self.power)
        factor *= self._last ** (_PROPORTIONAL / self.power)
        self._last = max(ratio, 1e-4)
        return min(max(factor, _SMALLEST_FACTOR), _LARGEST_FACTOR)

    def reject(self, attempt: Attempt) -> float:
        """Return the factor for the step that is to be made again."""
        return min(max(_SAFETY * attempt.ratio ** (-1.0 / self.power), _SMALLEST_FACTOR), _SAFETY)

    def restart(self) -> None:
        """Forget the past after a jump of an input."""
        self._last = 1.0


class _Weights:
    """What is allowed for each output: a share of the magnitude so far and one of the nominal value."""

    CHANGES: ClassVar = ("_magnitudes",)

    def __init__(self, nominals: Floats, start: Floats, tolerances: Tolerances) -> None:
        self._least = tolerances.absolute * nominals
        self._relative = tolerances.relative
        self._magnitudes = np.abs(start)

    def of(self, outputs: Floats) -> Floats:
        return self._least + self._relative * np.maximum(self._magnitudes, np.abs(outputs))

    def take(self, outputs: Floats) -> None:
        np.maximum(self._magnitudes, np.abs(outputs), out=self._magnitudes)


@dataclass(frozen=True)
class _Suspect:
    """A step that was not taken and in which something may have jumped.

    Attributes
    ----------
    end, length
        Of the step in s.
    defect
        How far what is exchanged went off its extrapolation in it.
    """

    end: float
    length: float
    defect: float

    def is_jump(self, length: float, defect: float) -> bool:
        """Tell whether a much shorter step in s at the same place is off nearly as far: what is smooth falls with h."""
        return length <= 0.5 * self.length and defect >= _SAME_DEFECT * self.defect


class RichardsonControl(Controller):
    """Makes each step once as a whole and once in two halves, and keeps the halves.

    The difference, over 2^p − 1 for a coupling of order p, estimates what the halves have done wrong (Richardson).
    What extrapolates over the whole step knows the ends of whole steps only, so that both do the same at different
    lengths. Tolerances hold for the whole run: a step may use its share of the run's time, for errors add up. Outputs
    that depend directly on inputs show what these are off by at the end, which does not add up: they may use all of
    it. So may a step in which something jumps, which is where a step that is made again with a smaller length is
    still off as much as before; see `JumpFinder`.
    """

    CHANGES = (*Controller.CHANGES, "_coarse", "_weights", "_suspected")

    def __init__(self, stepping: Stepping, tolerances: Tolerances, history: History, duration: float) -> None:
        super().__init__(stepping, tolerances, returns=True)
        self._coarse = history.copy()
        self._duration = duration
        exchange = stepping.exchange
        self._weights = _Weights(exchange.nominals(), history.now, tolerances)
        members = [exchange.member(name) for name, _ in exchange.names]
        # A step cannot make the error of an input that shows at its end a share of its own length. Where steps are
        # iterated, there is none at the end for units that interpolate.
        self._gathering = np.array(
            [
                variable not in member.direct or (stepping.algorithm.iterates and member.instance.interpolates)
                for member, (_, variable) in zip(members, exchange.names, strict=True)
            ],
            dtype=bool,
        )
        self._continuous = np.setdiff1d(np.arange(len(exchange.names)), exchange.held)
        self._finder = JumpFinder(stepping)
        self._absolute, self._relative = tolerances.absolute, tolerances.relative
        self._signal_nominals = exchange.driven.nominals()
        self._suspect: _Suspect | None = None

    @property
    def power(self) -> float:
        """The order of the coupling: errors of steps go with one more, their sum over a time with this one."""
        return self.stepping.order

    def _attempt(self, history: History, time: float, step: float) -> Attempt:
        coarse, fine = self._coarse.copy(), history.copy()
        whole = self.stepping.advance(coarse, time, step).outputs
        self.undo()
        half = 0.5 * step
        first = self.stepping.advance(fine, time, half)
        middle = fine.copy()
        points = [first, self.stepping.advance(fine, time + half, half)]
        weights = self._weights.of(fine.now)
        error = np.abs(fine.now - whole) / (2.0**self.power - 1.0) / weights
        sample = self._finder.sample(time, step)
        defect = max(
            self._finder.defect(history, half, middle.now, weights),
            self._finder.defect(middle, half, fine.now, weights),
            float(np.max(sample.defect(self.stepping.degree == 0) / self._of_signals(sample), initial=0.0)),
        )
        effect = np.zeros_like(error)
        if defect > _SUSPICIOUS:
            effect = self._finder.effect(history.now, fine.now, sample, time, step) - fine.now
            effect = np.abs(effect) / weights
        jumps = self._suspect is not None and self._suspect.is_jump(step, defect)
        if not jumps:
            error[self._gathering] *= self._duration / step
        ratio = float(np.max(np.maximum(error, effect)[self._continuous], initial=0.0))
        return Attempt(points, fine, ratio, defect, jumps)

    @property
    def _suspected(self) -> tuple[float, ...]:
        """What is known of a step in which something may have jumped; nothing where there is none."""
        return () if self._suspect is None else astuple(self._suspect)

    @_suspected.setter
    def _suspected(self, known: tuple[float, ...]) -> None:
        self._suspect = _Suspect(*known) if known else None

    def _of_signals(self, sample: Sample) -> Floats:
        return self._absolute * self._signal_nominals + self._relative * np.abs(sample.values).max(axis=0)

    def reject(self, attempt: Attempt) -> float:
        """Return the factor for the step that is to be made again; what a jump does falls with its length."""
        if attempt.defect <= _SUSPICIOUS:
            return super().reject(attempt)
        end = attempt.points[-1].time
        length = 2.0 * (end - attempt.points[0].time)
        if self._suspect is None or not self._suspect.is_jump(length, attempt.defect):
            self._suspect = _Suspect(end, length, attempt.defect)
        return min(max(_SAFETY / attempt.ratio, _SMALLEST_FACTOR), _LARGEST_AT_JUMPS)

    def _take(self, attempt: Attempt, step: float) -> None:
        self._coarse.push(attempt.history.now, step, attempt.history.rates)
        self._coarse.correction = attempt.history.correction
        self._weights.take(attempt.history.now)
        if self._suspect is not None and (attempt.jumps or attempt.points[-1].time >= self._suspect.end):
            self._suspect = None

    def restart(self) -> None:
        """Forget the past after a jump of an input."""
        super().restart()
        self._coarse.restart()


class PredictionControl(Controller):
    """Estimates errors from how far the outputs that others took went off their extrapolation.

    The estimate is embedded in the step and needs no state; it is of the inputs, not of what the units make of them.
    """

    CHANGES = (*Controller.CHANGES, "_weights")

    def __init__(self, stepping: Stepping, tolerances: Tolerances, history: History) -> None:
        super().__init__(stepping, tolerances, returns=False)
        exchange = stepping.exchange
        self._weights = _Weights(exchange.nominals(), history.now, tolerances)
        driving = {exchange.columns[each.source] for each in exchange.connections}
        self._driving = np.array(sorted(driving - set(exchange.held)), dtype=np.intp)

    @property
    def power(self) -> float:
        """Extrapolation of degree k is off by h^(k+1)."""
        return self.stepping.degree + 1.0

    def _attempt(self, history: History, time: float, step: float) -> Attempt:
        trial = history.copy()
        expected = predicted(history, step)
        point = self.stepping.advance(trial, time, step)
        error = np.abs(point.outputs - expected) / self._weights.of(point.outputs)
        return Attempt([point], trial, float(np.max(error[self._driving], initial=0.0)))

    def _take(self, attempt: Attempt, step: float) -> None:  # noqa: ARG002
        self._weights.take(attempt.history.now)


class EnergyControl(Controller):
    """Estimates errors from the residual power of the power bonds.

    After Sadjina, Kyllingstad, Skjong and Pedersen (2017), "Energy conservation and power bonds in co-simulations:
    non-iterative adaptive step size control and error estimation": r = √(mean (δP/(a + b P))²) over the bonds, δP
    being the residual power. There it is e'f' − e f of the effort e, the flow f and what was taken of them, e' and
    f', at the end of the step. Deviations: δP = |e' − e| F + |f' − f| E of means over the step and the largest
    magnitudes E and F so far, and P = E F. A power that passes through zero, or errors of both sides that cancel in
    it, would let steps grow in which motion and force are wrong; equal steps of the same cost then are better.
    Steps that are far off are made again where units save their states.
    """

    CHANGES = (*Controller.CHANGES, "_largest")

    def __init__(self, stepping: Stepping, tolerances: Tolerances, returns: bool) -> None:
        super().__init__(stepping, tolerances, returns)
        self._largest = np.zeros((len(stepping.bonds), 2))

    @property
    def power(self) -> float:
        """Inputs extrapolated with degree k are off by h^(k+1), and so is the residual power."""
        return self.stepping.degree + 1.0

    def _attempt(self, history: History, time: float, step: float) -> Attempt:
        trial, bonds = history.copy(), self.stepping.bonds
        point = self.stepping.advance(trial, time, step)
        true = means(history, point.outputs, step)
        missed = np.abs([bond.missed(true) for bond in bonds])
        largest = self._largest_with(history.now, point.outputs)
        residual = missed[:, 0] * largest[:, 1] + missed[:, 1] * largest[:, 0]
        shares = residual / (self.tolerances.absolute + self.tolerances.relative * largest.prod(axis=1))
        return Attempt([point], trial, math.sqrt(float(np.mean(shares**2))))

    def _take(self, attempt: Attempt, step: float) -> None:  # noqa: ARG002
        self._largest = self._largest_with(attempt.points[0].outputs)

    def _largest_with(self, *points: Floats) -> Floats:
        """Return the largest magnitudes of effort and flow so far and at some points, shape (bonds, 2)."""
        found = [np.abs([bond.factors(outputs) for bond in self.stepping.bonds]) for outputs in points]
        return np.max([self._largest, *found], axis=0)


def make_controller(
    control: str, stepping: Stepping, tolerances: Tolerances, history: History, facts: Facts, duration: float
) -> Controller | None:
    """Make what the control needs and the units allow; tell the user what they do not."""
    if control == "fixed":
        return None
    without = stepping.exchange.without_states()
    if control == "energy":
        if not stepping.bonds:
            raise InputError(
                "no power bond was found between the units, so control energy has nothing to go by: two connections "
                "in opposite directions whose units make a power (N and m/s, N.m and rad/s, Pa and m3/s)"
            )
        if without:
            facts.tell(f"{names_of(without)} cannot save the state: steps with too much residual energy stay")
        if facts.algorithm == "gauss-seidel" and facts.extrapolation == Extrapolation.ZERO:
            facts.tell(
                "with inputs that are held in turn, errors of both directions cancel in equal steps, which control "
                "energy loses: equal steps of the same cost may be nearer; take linear extrapolation with it",
            )
        return EnergyControl(stepping, tolerances, returns=not without)
    if without:
        facts.tell(
            f"{names_of(without)} cannot save the state: errors are estimated from the extrapolation of what is "
            "exchanged, and no step is made again",
        )
        return PredictionControl(stepping, tolerances, history)
    return RichardsonControl(stepping, tolerances, history, duration)
