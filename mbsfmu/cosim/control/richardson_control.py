"""Step control by step doubling and the integrated defect of inputs, and the choice of a controller."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import ClassVar, NamedTuple

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.control.error_variables import (
    END,
    CouplingTolerances,
    DiscontinuityFinder,
    ErrorWeights,
    Sample,
    Suspect,
    Watched,
)
from mbsfmu.cosim.control.run_statistics import RunStatistics, Standstill
from mbsfmu.cosim.control.step_control import Controller, EnergyControl, PredictionControl, StepAttempt
from mbsfmu.cosim.coupling.coupled_steps import Stepping
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, OutputHistory
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuEnded


class Defects:
    """Compares the means of inputs over a step with those of their sources.

    Of the outputs at the beginning, the middle and the end of a step Simpson's rule makes the mean that inputs should
    have had, to an order more than any extrapolation here. Its difference from the mean that they had, times the
    length of the step, is what an FMU was given too much [Busch and Schweizer 2011, "An explicit approach for
    controlling the macro-step size of co-simulation methods"; Arnold, Clauß, Schierz 2014, "Error analysis and error
    estimates for co-simulation in FMI for model exchange and co-simulation v2.0"; arXiv:2406.17353]. It needs no
    states, and is of the inputs: what units make of it nobody knows.

    Parameters
    ----------
    stepping
        The members that make the steps. What drives an input and shows at the end of a step what its own inputs are off
        by there is left out: the next step begins with that, however short it is.
    seen
        Names of those whose states are seen, in which the effect of defects shows.
    """

    def __init__(self, stepping: Stepping, seen: Collection[str]) -> None:
        exchange = stepping.exchange
        left_out = np.zeros(len(exchange.columns), dtype=bool)
        left_out[exchange.held] = True
        left_out[: len(exchange.names)] |= stepping.shows_inputs
        sources = exchange.entry_sources
        hidden = [
            np.full(len(member.sources), member.instance.name not in seen, dtype=bool) for member in exchange.members
        ]
        factors = np.concatenate([member.factors for member in exchange.members])
        self._chosen = np.flatnonzero(np.concatenate(hidden) & ~left_out[sources] & (factors != 0.0))
        self._sources = sources[self._chosen]
        self._factors = factors[self._chosen]
        self._offsets = np.concatenate([member.offsets for member in exchange.members])[self._chosen]

    def largest(
        self,
        points: tuple[Floats, Floats, Floats],
        sample: Sample,
        inputs: tuple[Floats, Floats],
        weights: Floats,
        of_signals: Floats,
    ) -> float:
        """Return the largest defect over a step, relative to the tolerance of the input's source.

        Parameters
        ----------
        points
            Outputs at the beginning, the middle and the end of the step.
        sample
            The followed signals in it.
        inputs
            Means that all inputs had over both of its halves.
        weights, of_signals
            What may be wrong about outputs (and states) and about signals.
        """
        if not len(self._chosen):
            return 0.0
        begin, middle, end = points
        true = np.concatenate([(begin + 4.0 * middle + end) / 6.0, sample.mean()])[self._sources]
        applied = 0.5 * (inputs[0] + inputs[1])[self._chosen]
        allowed = np.concatenate([weights[: len(begin)], of_signals])[self._sources] * np.abs(self._factors)
        return float(np.max(np.abs(true * self._factors + self._offsets - applied) / allowed))


_DOUBLE_LENGTH = "run in whole steps"
"""Slot of that run's states."""


class DoubleLengthRun:
    """A run of the same members with whole steps, each from the end of its own last one.

    The difference of one step estimates what that step does wrong, the distance of both runs what all of them have done
    until now, and what the system has made of it: of two runs of order p the one in halves is off by their distance
    over 2^p − 1 (Richardson; Hairer, Nørsett, Wanner 1993, section II.4, estimate global errors by two runs as well).

    Parameters
    ----------
    stepping
        The members that make the steps.
    history
        The history of the run, at its start.
    watched
        What is compared.

    Attributes
    ----------
    errors
        Distance over 2^p − 1, with what it was where it began anew, shape (watched,).
    has_moved
        Whether a variable has ever been another one than in the run in halves.
    """

    CHANGES: ClassVar = ("errors", "has_moved", "_carried", "_history", "_states")

    def __init__(self, stepping: Stepping, history: OutputHistory, watched: Watched) -> None:
        self._stepping, self._watched = stepping, watched
        self._history = history.copy()
        self._carried, self.errors = np.zeros(len(watched)), np.zeros(len(watched))
        self.has_moved = np.zeros(len(watched), dtype=bool)
        self._is_apart = False

    def advance(self, history: OutputHistory, time: float, step: float) -> None:
        """Make a step in s after the members have made it in halves; they keep their state.

        Parameters
        ----------
        history
            That of the run in halves, at the end of the step.
        time, step
            Beginning and length of the step in s.
        """
        stepping, end = self._stepping, time + step
        reached = self._watched.read(history.now)
        stepping.save(END, end)
        try:
            stepping.restore(_DOUBLE_LENGTH)
            stepping.advance(self._history, time, step)
            found = self._watched.read(self._history.now)
            stepping.save(_DOUBLE_LENGTH, end)
        except (SimulationError, FmuEnded) as error:
            if getattr(error, "fatal", False):
                raise
            stepping.restore(END)
            self.join(history)
        else:
            stepping.restore(END)
            distance = np.abs(found - reached) / (2.0**stepping.order - 1.0)
            self.errors = self._carried + distance
            self.has_moved |= distance > 0.0
        stepping.exchange.release(END)

    def begin(self, time: float) -> None:
        """Start at the members' state at a time in s, unless already running."""
        if not self._is_apart:
            self._stepping.save(_DOUBLE_LENGTH, time)
            self._is_apart = True

    def join(self, history: OutputHistory) -> None:
        """Continue from the members' state; the error so far is kept."""
        self._carried = self.errors.copy()
        self._history = history.copy()
        self._is_apart = False

    def drop(self, history: OutputHistory) -> None:
        """Continue from the members' state, and discard the distance since the last time."""
        self.errors = self._carried.copy()
        self.join(history)

    def restart(self) -> None:
        """Discard the history at a discontinuity."""
        self._history.restart()

    @property
    def _states(self) -> list[bytes]:
        """States of the members in this run for another process; empty if it restarts."""
        members = self._stepping.exchange.members
        if not self._is_apart:
            return []
        states = []
        for member in members:
            instance = member.instance
            instance.save(END, instance.time)
            instance.restore(_DOUBLE_LENGTH)
            states.append(instance.serialize())
            instance.restore(END)
            instance.release(END)
        return states

    @_states.setter
    def _states(self, states: list[bytes]) -> None:
        self._is_apart = bool(states)
        for member, state in zip(self._stepping.exchange.members, states, strict=False):
            instance = member.instance
            instance.save(END, instance.time)
            instance.deserialize(state)
            instance.save(_DOUBLE_LENGTH, instance.time)
            instance.restore(END)
            instance.release(END)


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
        self.stepping.steps.append(self._coarse, attempt.history, step)
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


def make_controller(
    control: str,
    stepping: Stepping,
    tolerances: CouplingTolerances,
    history: OutputHistory,
    statistics: RunStatistics,
    start: float,
    stop: float,
) -> Controller | None:
    """Return the step controller; warn of features that FMUs lack."""
    if control == "fixed":
        return None
    without = stepping.exchange.without_states()
    if control == "energy":
        if not stepping.bonds:
            raise InputError(
                "no power bond was found between the FMUs, so control energy has nothing to go by: two connections "
                "in opposite directions whose units make a power (N and m/s, N.m and rad/s, Pa and m3/s)"
            )
        if without:
            statistics.warn(f"{names_of(without)} cannot save the state: steps with too much residual energy stay")
        if statistics.algorithm == "gauss-seidel" and statistics.extrapolation == Extrapolation.ZERO:
            statistics.warn(
                "with inputs that are held in turn, errors of both directions cancel in equal steps, which control "
                "energy loses: equal steps of the same cost may be nearer; take linear extrapolation with it",
            )
        return EnergyControl(stepping, tolerances, returns=not without)
    if without:
        statistics.warn(
            f"{names_of(without)} cannot save the state: errors are estimated from the extrapolation of what is "
            "exchanged, and no step is made again",
        )
        return PredictionControl(stepping, tolerances, history)
    return RichardsonControl(stepping, tolerances, history, start, stop)
