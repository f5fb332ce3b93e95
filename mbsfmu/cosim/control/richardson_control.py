"""Step control by step doubling and the integrated defect of inputs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mbsfmu.cosim.control.defects import Defects
from mbsfmu.cosim.control.discontinuities import DiscontinuityFinder, Suspect
from mbsfmu.cosim.control.double_length_run import DoubleLengthRun
from mbsfmu.cosim.control.standstill import Standstill
from mbsfmu.cosim.control.step_control import Controller, StepAttempt
from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.control.watched import ErrorWeights, Watched
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.sweeps import names_of

_SUSPICIOUS = 3.0  # shares of the tolerance by which what is exchanged may go off its extrapolation without a look
_LARGEST_AT_DISCONTINUITIES = 0.5
_SAFETY_AT_DISCONTINUITIES, _SMALLEST_AT_DISCONTINUITIES = 0.9, 0.2
_HORIZON = 0.05  # of the run, for the magnitude of what has just begun to move, but not more than the largest step
_SHARE_OF_ONE = 0.1  # of the tolerance, which one step may use up where shorter ones are hardly better
_REPORTED = 1.0  # times the tolerance that an error is estimated at, from which on it is told
_UNTIL_KNOWN = 0.05  # of the tolerance, before which little is known of what the system makes of errors
_UNSTABLE, _OWN = 1.5, 3.0  # times the distance before a step and what that does wrong, beyond which it is unstable
_UNSTABLE_FROM = 0.1  # of the tolerance
_GOAL = 0.5  # of the tolerance, for what is wrong at the end
_LEAST_SHARE = 0.1  # of what a step may do wrong by itself, where the steps before have used the tolerance up
_LARGEST_SHARE = 2.0  # where errors cancel or die out


class Tried(NamedTuple):
    """A trial step.

    Attributes
    ----------
    time, length
        Its beginning and length in s.
    ratio
        What it does wrong that adds up over the run, as a share of what is allowed.
    """

    time: float
    length: float
    ratio: float

    def stays(self, shorter: Tried) -> bool:
        """Return whether a shorter step hardly reduces the error.

        It begins with an output that shows what its inputs were off by, or what differs is round-off of the FMUs.
        """
        if shorter.time != self.time or shorter.length >= self.length:
            return False
        return shorter.ratio > self.ratio * math.sqrt(shorter.length / self.length)


class RichardsonControl(Controller):
    """Makes each step once as a whole and once in two halves, and keeps the halves.

    The difference, over 2^p − 1 for a coupling of order p, estimates what the halves have done wrong (Richardson), in
    outputs and in the states that FMUs name. Where an FMU names none, the integrated defect of its inputs counts with
    it, the larger of both; see `Defects`. What extrapolates over the whole step knows the ends of whole steps only, so
    that both do the same at different lengths. Tolerances hold for the whole run: a step may use its share of the
    run's time, for errors add up. Outputs that depend directly on inputs show what these are off by at the end, which
    does not add up: they may use all of it. So may a step in which something jumps, which is where a step that is made
    again with a smaller length is still off as much as before; see `DiscontinuityFinder`.

    What the system makes of the errors of steps is seen by a second run in whole steps; see `DoubleLengthRun`. Where it
    is more than their sum, steps are held to less, and to somewhat more where it is less.
    """

    CHANGES = (
        *Controller.CHANGES,
        "_coarse",
        "_weights",
        "_suspected",
        "_beside",
        "_standstill",
        "_sum",
        "_worst",
        "_shares",
    )

    def __init__(
        self, stepping: Stepping, tolerances: CouplingTolerances, history: OutputHistory, start: float, stop: float
    ) -> None:
        super().__init__(stepping, tolerances, returns=True)
        self._coarse = history.copy()
        self._start, self._stop = start, stop
        horizon = min(tolerances.largest, _HORIZON * (stop - start))
        exchange = stepping.exchange
        self.watched = Watched(exchange)
        # A step cannot make the error of an input that shows at its end a share of its own length.
        self._gathering = np.ones(len(self.watched), dtype=bool)
        self._gathering[: len(stepping.shows_inputs)] = ~stepping.shows_inputs
        self._weights = ErrorWeights(self.watched, self.watched.read(history.now), tolerances, horizon, self._gathering)
        self._continuous = np.setdiff1d(np.arange(len(self.watched)), exchange.held)
        self._gathered = self._continuous[self._gathering[self._continuous]]
        self._tried: Tried | None = None
        self._finder = DiscontinuityFinder(stepping, self.watched)
        self._defects = Defects(stepping, self.watched.seen)
        self._standstill = Standstill(exchange, self.watched)
        self._beside = DoubleLengthRun(stepping, history, self.watched)
        self._sum = self._worst = 0.0
        self._shares = np.zeros(len(self.watched))
        self._suspect: Suspect | None = None

    @property
    def power(self) -> float:
        """Order of the coupling: errors of steps have one order more, their sum over a time this one."""
        return self.stepping.order

    def _attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt:
        self._beside.begin(time)
        begin = self.watched.read(history.now)
        coarse, fine = self._coarse.copy(), history.copy()
        whole = self.watched.read(self.stepping.advance(coarse, time, step).outputs)
        self.undo()
        half = 0.5 * step
        first = self.stepping.advance(fine, time, half)
        middle, inside = fine.copy(), self.watched.read(first.outputs)
        exchange = self.stepping.exchange
        given = exchange.applied()
        points = [first, self.stepping.advance(fine, time + half, half)]
        inputs = given, exchange.applied()
        end = self.watched.read(fine.now)
        weights = self._weights.of(begin, inside, end, step=step)
        error = np.abs(end - whole) / (2.0**self.power - 1.0) / weights
        sample = self._finder.sample(time, step)
        of_signals = self._finder.weights(sample, self.tolerances)
        defect = max(
            self._finder.defect(history, half, middle.now, weights),
            self._finder.defect(middle, half, fine.now, weights),
            float(np.max(sample.defect(self.stepping.degree == 0) / of_signals, initial=0.0)),
        )
        effect = np.zeros_like(error)
        if defect > _SUSPICIOUS:
            effect = np.abs(self._finder.effect(history.now, fine.now, sample, time, step) - end) / weights
        jumps = self._suspect is not None and self._suspect.is_discontinuity(step, defect)
        duration = self._stop - self._start
        missed = self._defects.largest((history.now, middle.now, fine.now), sample, inputs, weights, of_signals)
        gathered = max(missed, float(np.max(error[self._gathered], initial=0.0)) * duration / step)
        tried = Tried(time, step, gathered)
        self._own, self._length = float(np.max(error[self._gathered], initial=0.0)), step
        if jumps:
            gathered *= step / duration
        elif self._tried is not None and self._tried.stays(tried):
            gathered *= step / duration / _SHARE_OF_ONE
        else:
            gathered /= self._allowed(time)
        shown = np.maximum(error * ~self._gathering, effect)
        ratio = float(np.max(shown[self._continuous], initial=gathered))
        self._points, self._inputs, self._try = (begin, inside, end), inputs, tried
        return StepAttempt(points, fine, ratio, defect, jumps)

    def _allowed(self, time: float) -> float:
        """Return the allowed error of a step from a time in s, relative to its part of the tolerance.

        What is left of the tolerance, by what the system has made of errors so far: more than their sum, or less.
        """
        growth = (self._worst + _UNTIL_KNOWN) / (self._sum + _UNTIL_KNOWN)
        left = (self._stop - time) / (self._stop - self._start)
        return min(max((_GOAL - self._worst) / (growth * left), _LEAST_SHARE), _LARGEST_SHARE)

    @property
    def _suspected(self) -> tuple[float, ...]:
        """Data of a step with a possible discontinuity; None without one."""
        return () if self._suspect is None else tuple(self._suspect)

    @_suspected.setter
    def _suspected(self, known: tuple[float, ...]) -> None:
        self._suspect = Suspect(*known) if known else None

    def reject(self, attempt: StepAttempt) -> float:
        """Return the factor for a rejected step; the effect of a discontinuity decreases with its length."""
        if self._tried is None or self._tried.time != self._try.time:
            self._tried = self._try
        if attempt.defect <= _SUSPICIOUS:
            return super().reject(attempt)
        end = attempt.points[-1].time
        length = 2.0 * (end - attempt.points[0].time)
        if self._suspect is None or not self._suspect.is_discontinuity(length, attempt.defect):
            self._suspect = Suspect(end, length, attempt.defect)
        return min(
            max(_SAFETY_AT_DISCONTINUITIES / attempt.ratio, _SMALLEST_AT_DISCONTINUITIES), _LARGEST_AT_DISCONTINUITIES
        )

    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:
        self._sum += self._try.ratio * step / (self._stop - self._start)
        self._tried = None
        self._coarse.push(attempt.history.now, step, attempt.history.rates)
        self._coarse.correction = attempt.history.correction
        if not self.stepping.exchange.ends:
            self._go_beside(attempt.history, time, step)
        self._standstill.look(self._points, self._inputs, self._beside.has_moved, time)
        self._weights.take(*self._points, time=time, step=step)
        self._weights.take_errors(self._beside.errors)
        shares = self._beside.errors / self._weights.of(*self._points, step=step)
        np.maximum(self._shares, shares, out=self._shares)
        self._worst = float(np.max(self._shares[self._gathered], initial=0.0))
        if self._suspect is not None and (attempt.jumps or attempt.points[-1].time >= self._suspect.end):
            self._suspect = None

    def _go_beside(self, history: OutputHistory, time: float, step: float) -> None:
        """Advance the run with whole steps by a step in s; an unstable one restarts.

        Its steps are twice as long: what is stable in halves need not be so in it. Then its distance grows in single
        steps, by more than these do wrong; errors that a system lets grow do so by little in a step that resolves it.
        """
        before = self._distance()
        self._beside.advance(history, time, step)
        if self._distance() > max(_UNSTABLE_FROM, _UNSTABLE * before + _OWN * self._own):
            self._beside.drop(history)

    def _distance(self) -> float:
        """Return the distance of the run with whole steps, relative to the tolerance."""
        shares = self._beside.errors / self._weights.of(*self._points, step=self._length)
        return float(np.max(shares[self._gathered], initial=0.0))

    def restart(self) -> None:
        """Discard the history after a discontinuity of an input."""
        super().restart()
        self._weights.restart()
        self._coarse.restart()
        self._beside.restart()

    def restart_run(self) -> None:
        """Apply values set by the user to the members in the run."""
        self.restart()
        self._beside.join(self._coarse)

    def notes(self) -> list[str]:
        """Return messages on the findings at the end of the run."""
        notes = [self._weights.note(), self._standstill.note()]
        if self.watched.unread:
            notes.append(f"{names_of(self.watched.unread)} cannot be read: errors are estimated without these states")
        shares = np.where(np.isin(np.arange(len(self._shares)), self._continuous), self._shares, 0.0)
        worst = int(np.argmax(shares))
        if shares[worst] > _REPORTED:
            enough = self.tolerances.relative / shares[worst]
            notes.append(
                f"the error of {self.watched.names[worst]} is estimated at {shares[worst]:.2g} times the tolerance: "
                "the system lets what steps do wrong grow beyond its sum, which is what the tolerance holds; one of "
                f"{enough:.1g} would keep it to {self.tolerances.relative:g}"
            )
        return [each for each in notes if each]
