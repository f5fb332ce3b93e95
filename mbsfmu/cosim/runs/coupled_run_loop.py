"""Run loop of coupled runs, in equal steps or controlled ones, with real-time pacing."""

from __future__ import annotations

import math
import time as clock
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import resolution, tolerance
from mbsfmu.cosim.control.run_statistics import Grid, RunStatistics
from mbsfmu.cosim.control.step_control import Controller, StepAttempt
from mbsfmu.cosim.coupling.coupled_steps import CommunicationPoint, Stepping
from mbsfmu.cosim.coupling.coupling_data import DrivenInputs, Texts
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuEnded, FmuError
from mbsfmu.cosim.runs.preparation import environment_notes, loop_notes
from mbsfmu.cosim.runs.recorded_steps import RecordedSteps
from mbsfmu.cosim.runs.run_recorder import Record
from mbsfmu.cosim.runs.scenario import Scenario, Values


class Pacer:
    """Lets a run wait for the clock, and records delays.

    A step that is ready after its time is late by what it is behind; those after it are not waited for until the run
    has caught up.

    Parameters
    ----------
    pace
        Simulated seconds to a second of the clock.
    statistics
        Where lateness goes.
    """

    def __init__(self, pace: float, statistics: RunStatistics) -> None:
        self._pace, self._statistics = pace, statistics
        self._origin: float | None = None
        statistics.pace = pace

    def begin(self, time: float) -> None:
        """Take the present for a time in s, where nothing was waited for before."""
        if self._origin is None:
            self._origin = clock.perf_counter() - time / self._pace

    def wait(self, time: float) -> None:
        """Wait for a time in s, at which the run is."""
        assert self._origin is not None
        ahead = self._origin + time / self._pace - clock.perf_counter()
        if ahead > 0.0:
            clock.sleep(ahead)
        else:
            self._statistics.late_steps += 1
            self._statistics.lateness_max = max(self._statistics.lateness_max, -ahead)


PROGRESS_INTERVAL = 100
Progress = Callable[[float], None]


@dataclass
class RunSetup:
    """Parts of a run.

    Attributes
    ----------
    stepping
        What makes the steps.
    history
        What is known of the past; it holds the start.
    record, statistics
        Where points and costs go.
    driven
        Inputs that follow signals.
    scenario
        Values that are set at times.
    texts
        Strings, which are handed on between steps.
    start, stop
        In s.
    progress
        Called with the share that is done.
    """

    stepping: Stepping
    history: OutputHistory
    record: Record
    statistics: RunStatistics
    driven: DrivenInputs
    scenario: Scenario
    texts: Texts
    start: float
    stop: float
    progress: Progress | None


class CoupledRunLoop(ABC):
    """A run between start and stop, which may be interrupted and continued at any communication point.

    Parameters
    ----------
    parts
        What it is made of.
    step
        Communication step in s, or the first one.

    Attributes
    ----------
    parts
        What it is made of.
    over
        Whether an FMU has ended it.
    """

    CHANGES: ClassVar[tuple[str, ...]]

    def __init__(self, parts: RunSetup, step: float) -> None:
        self.parts, self.step = parts, step
        self.over = False
        self._same = tolerance(step, parts.start, parts.stop)
        self._events = sorted({*parts.driven.events(parts.start, parts.stop), *parts.scenario.events})

    @property
    @abstractmethod
    def time(self) -> float:
        """Present time in s."""

    @property
    def done(self) -> bool:
        """Whether it is at its end."""
        return self.over or self.time >= self.parts.stop

    def notes(self) -> list[str]:
        """Return sentences for the user on what the run has come to."""
        stepping = self.parts.stepping
        notes = environment_notes(stepping.exchange)
        algorithm = stepping.algorithm
        closed = algorithm.iterates or algorithm.settings.linear_correction
        return notes if closed else [*notes, *loop_notes(stepping.exchange)]

    def begin(self) -> None:
        """Record the start."""
        self.parts.record.begin(self.parts.start, self.parts.history.now, self.parts.stepping.algorithm.reactions)
        self.parts.texts.pass_on(self.parts.start)

    def run(self, until: float | None = None, pacer: Pacer | None = None) -> None:
        """Go on to the first communication point that is not before a time in s, to the end by default.

        Raises
        ------
        SimulationError
            When an FMU refuses, an iteration does not converge or an output is not finite.
        WriteError
            When rows cannot be written.
        """
        until = math.inf if until is None else until
        if pacer is None:
            self._advance(until, math.inf)
        while pacer is not None and not self.done and self.time < until - self._same:
            self.make_step(pacer)

    def make_step(self, pacer: Pacer | None = None) -> None:
        """Make one step."""
        if pacer is not None:
            pacer.begin(self.time)
        self._advance(math.inf, 1)
        if pacer is not None:
            pacer.wait(self.time)

    def set(self, values: Values) -> None:
        """Set inputs and parameters at the present time; the history is discarded."""
        for (name, variable), value in values.items():
            self.parts.stepping.exchange.member(name).instance.set_start(variable, value)
        if values:
            self.restart()

    def restart(self) -> None:
        """Discard the history at a discontinuity."""
        self.parts.history.restart()

    @abstractmethod
    def _advance(self, until: float, most: float) -> None:
        """Make steps up to a time in s, but not more than so many."""

    def _begin_step(self, time: float) -> None:
        """Apply pending changes at the start of a step."""
        self.set(self.parts.scenario.due(time))

    def _report_progress(self) -> None:
        parts = self.parts
        if parts.progress is not None:
            parts.progress((self.time - parts.start) / (parts.stop - parts.start))

    # -- FMUs that end the run -------------------------------------------------------------------------------

    def _end_within(self, time: float, end: float) -> float:
        """End a run in a step from a time in s which an FMU ended at another one; return where it is then.

        An FMU alone leaves the row of where it ended; among several, the last row is the last one that all reached.
        """
        parts, exchange = self.parts, self.parts.stepping.exchange
        if len(exchange.members) == 1 and end > time:
            parts.record.add(end, exchange.read().copy(), [], parts.stepping.algorithm.reactions)
            parts.texts.pass_on(end)
            time = end
        self._report_end(time)
        return time

    def _report_end(self, time: float) -> None:
        self.over = True
        for name, ended in self.parts.stepping.exchange.ends.items():
            sentence = f"{name} ended the run at t = {ended:.9g} s"
            if time < ended - resolution(ended):
                sentence += f"; the last point that all FMUs reached is at {time:.9g} s"
            self.parts.statistics.warn(sentence)


def check_until(until: float, run_loop: CoupledRunLoop) -> None:
    """Check a time in s to which a run shall go on.

    Raises
    ------
    InputError
        When it is not between where the run is and its end.
    """
    if not run_loop.time <= until <= run_loop.parts.stop:
        raise InputError(
            f"the run is at {run_loop.time:.9g} s and shall go on to {until:g} s; it can to any time up to its end, "
            f"{run_loop.parts.stop:g} s"
        )


_PIECE = 1 << 18  # communication points that are laid out at once


class FixedRunLoop(CoupledRunLoop):
    """Run loop with equal steps in s, divided at events."""

    CHANGES = ("_point",)

    def __init__(self, parts: RunSetup, step: float) -> None:
        super().__init__(parts, step)
        self._grid = Grid(parts.start, parts.stop, step, self._events)
        self._jumping = {*parts.scenario.events, *(time for time in self._events if parts.driven.jumps(time))}
        for member in parts.stepping.exchange.members:
            member.finishes = True  # the grid is kept
        self._lay_out(0)

    def _lay_out(self, first: int) -> None:
        """Lay out the piece of the grid from a place on."""
        self._first, self._index = first, 0
        self._last = min(first + _PIECE, self._grid.count)
        points = self._grid.points(first, self._last)
        # Differences of counted times differ from the step by round-off, which none of the FMUs needs to see.
        self._lengths = np.diff(points)
        self._lengths[np.abs(self._lengths - self.step) <= self._same] = self.step
        self._times: list[float] = points.tolist()
        self._jumps = [index for index, time in enumerate(self._times) if time in self._jumping]
        self._steps: RecordedSteps | None = None

    @property
    def time(self) -> float:
        """Where it is, in s."""
        return self._ended_at if self.over else self._times[self._index]

    _ended_at = 0.0

    @property
    def _point(self) -> float:
        return self.time

    @_point.setter
    def _point(self, time: float) -> None:
        """Go to a communication point in s.

        Raises
        ------
        InputError
            When it is none.
        """
        place = min(self._grid.place_of(time), self._grid.count - 1)
        self._lay_out(place - place % _PIECE)
        index = bisect_left(self._times, time - self._same)
        if index == len(self._times) or abs(self._times[index] - time) > self._same:
            raise InputError(f"the saved run is at {time:.9g} s, where steps of {self.step:g} s have no point")
        self._index = index

    def begin(self) -> None:
        """Record the start."""
        super().begin()
        self._check_lengths(self._lengths)

    def _many(self) -> RecordedSteps | None:
        """Return what makes many steps at once; None where texts are handed on between them."""
        parts = self.parts
        if self._steps is None and not parts.texts.changes:
            self._steps = RecordedSteps(
                parts.stepping.algorithm, parts.history, parts.stepping.bonds, parts.record, self._times, self._lengths
            )
        return self._steps

    def _advance(self, until: float, most: float) -> None:
        while most > 0 and not self.done:
            if self._index == len(self._lengths):
                self._lay_out(self._last)
                self._check_lengths(self._lengths)
            end = min(bisect_left(self._times, until - self._same), len(self._lengths))
            if self._index >= end:
                break
            made = self._make(int(min(end, self._index + most)))
            most -= made

    def _make(self, end: int) -> int:
        """Make steps up to one of an index at most; return how many."""
        index, parts, ends = self._index, self.parts, self.parts.stepping.exchange.ends
        self._begin_step(self._times[index])
        if self._times[index] in self._jumping:
            self.restart()
        many = self._many()
        try:
            if many is not None:
                made = many.advance(index, self._until(index, end))
            else:
                self._step(self._times[index], self._times[index + 1], float(self._lengths[index]))
                made = 1
        except FmuEnded as ended:
            self._ended_at = self._end_within(parts.record.time, ended.time)
            return 1
        self._index = index + made
        if many is not None:
            parts.record.flush()
        if ends:
            self._report_end(self._times[self._index])
            self._ended_at = self._times[self._index]
        elif (self._index - 1) % PROGRESS_INTERVAL == 0:
            self._report_progress()
        return made

    def _until(self, index: int, end: int) -> int:
        """Return the last step before a discontinuity or a progress report."""
        until = [*self._jumps, end][bisect_right(self._jumps, index)]
        until = min(until, end)
        return (
            until if self.parts.progress is None else min(until, -(-index // PROGRESS_INTERVAL) * PROGRESS_INTERVAL + 1)
        )

    def _step(self, time: float, end: float, length: float) -> None:
        """Make one step in s and record it."""
        point = self.parts.stepping.advance(self.parts.history, time, length)
        self.parts.record.add(end, point.outputs, point.energies, point.reactions)
        self.parts.texts.pass_on(end)

    def _check_lengths(self, lengths: Floats) -> None:
        statistics, members = self.parts.statistics, self.parts.stepping.exchange.members
        fixed = [member.instance.name for member in members if not member.instance.takes_any_step]
        if fixed and np.any(lengths != self.step):
            statistics.warn(
                f"{names_of(fixed)} may not take steps of other lengths, but {np.min(lengths):.6g} s stands beside "
                f"{self.step:.6g} s: the stop time or an event is off the grid"
            )


_CRAWLING = 1e-2  # of the first step, from which on a hundred steps crawl; the smallest one is a thousandth


class ControlledRunLoop(CoupledRunLoop):
    """Run loop with controlled step lengths and events.

    Events are those of the followed signals and of the scenario, and those inside FMUs: what these tell beforehand,
    and others, to which a step is made again in which they have happened.
    """

    CHANGES = ("_time", "_last", "_count", "_wanted", "_inside", "_reported_at", "_crawls", "controller")

    def __init__(self, parts: RunSetup, step: float, controller: Controller) -> None:
        super().__init__(parts, step)
        bounds = controller.tolerances
        self.controller = controller
        self._same = tolerance(bounds.smallest, parts.start, parts.stop)
        self._time, self._last, self._count = parts.start, parts.stop, 0
        self._wanted = min(max(controller.first_step(step), bounds.smallest), bounds.largest)
        self._inside: float | None = None
        self._reported_at, self._crawls = parts.start, False
        for member in parts.stepping.exchange.members:
            member.finishes = not controller.returns  # else the step is made again, to where the FMU has come

    @property
    def time(self) -> float:
        """Present time in s."""
        return self._time

    def restart(self) -> None:
        """Discard the history at a discontinuity."""
        super().restart()
        self.controller.restart()

    def notes(self) -> list[str]:
        """Return messages on the findings of the run."""
        return [*super().notes(), *self.controller.notes()]

    def set(self, values: Values) -> None:
        """Set inputs and parameters; the next step is not longer than the first one."""
        super().set(values)
        if values:
            self.controller.restart_run()
            self._wanted = min(self._wanted, self.step)

    def _advance(self, until: float, most: float) -> None:
        while most > 0 and not self.over and self._time < min(self._last, until - self._same):
            self._begin_step(self._time)
            if self._inside is None:
                self._inside = self.parts.stepping.exchange.next_event(self._time + self._same)
            most -= self._try(self._inside)
        if not self.over and self._last < self.parts.stop and self._time >= self._last:
            self._report_end(self._time)

    def _try(self, inside: float) -> int:
        """Try a step; return whether it was taken. `inside` is the next event in s inside an FMU."""
        controller, statistics, time, same = self.controller, self.parts.statistics, self._time, self._same
        bounds = controller.tolerances
        end = min(inside, self._last, *(event for event in self._events if event > time + same))
        end = self._last if self._last - end <= same else end
        length, reaches = _fitted(self._wanted, end - time, same)
        target = end if reaches else time + length
        try:
            attempt = self._attempt(time, target - time)
        except FmuEnded as ended:
            if not controller.returns or ended.time <= time + same:
                self._time = self._end_within(time, ended.time)
            else:
                controller.undo()
                self._last = ended.time
            return 0
        if attempt is None or self._ends_at_event(time, target):
            return 0
        if attempt.ratio > 1.0 and controller.returns and length > bounds.smallest + same:
            controller.undo()
            statistics.rejected_steps += 1
            self._wanted = max(length * controller.reject(attempt), bounds.smallest)
            return 0
        if attempt.ratio > 1.0 and length <= bounds.smallest + same:
            self._warn_smallest(time, bounds.smallest)
        self._wanted = self._next_length(attempt, length, reaches)
        self._take(attempt, target)
        self._go_on(attempt, end, reaches and (end == inside or self._jumps(end)))
        return 1

    def _ends_at_event(self, time: float, target: float) -> bool:
        """Return whether a step between two times in s is repeated up to an event inside an FMU.

        So that all FMUs are there, and nothing is extrapolated over what jumps.
        """
        event, least = self.parts.stepping.exchange.first_event(), self.controller.tolerances.smallest
        if not (self.controller.returns and time + least < event < target - least):
            return False
        self.controller.undo()
        self.parts.statistics.rejected_steps += 1
        self._inside = event
        return True

    def _go_on(self, attempt: StepAttempt, end: float, jumps: bool) -> None:
        """Handle an accepted step: end of the run by an FMU, and discontinuities at its end."""
        self._count += 1
        if self.parts.stepping.exchange.ends:
            self._report_end(self._time)
            return
        if attempt.jumps or (end < self.parts.stop and jumps):
            self.restart()
            self._wanted = min(max(self._wanted, self.step) if attempt.jumps else self._wanted, self.step)
        self._inside = None
        if self._count % PROGRESS_INTERVAL == 0:
            self._report_progress()
            self._warn_crawling()

    def _jumps(self, time: float) -> bool:
        return self.parts.driven.jumps(time)

    def _next_length(self, attempt: StepAttempt, length: float, reaches: bool) -> float:
        """Return the length in s of the next step after an accepted one."""
        bounds = self.controller.tolerances
        proposed = length * self.controller.accept(attempt, self._time, length)
        # A step that was cut short says nothing against the longer one that was wanted.
        proposed = max(proposed, self._wanted) if reaches and attempt.ratio <= 1.0 else proposed
        return min(max(proposed, bounds.smallest), bounds.largest)

    def _take(self, attempt: StepAttempt, target: float) -> None:
        """Record an accepted step up to a time in s."""
        self.parts.history = attempt.history
        for point in _ended(attempt.points, target):
            self.parts.record.add(point.time, point.outputs, point.energies, point.reactions)
        self.parts.texts.pass_on(target)
        self._time = target

    def _attempt(self, time: float, length: float) -> StepAttempt | None:
        """Try a step; None where it failed but can be tried again with a smaller length, which is wanted then.

        Half of it, or what an FMU that discards the step has made of it.
        """
        smallest, reached = self.controller.tolerances.smallest, 0.5 * length
        self.parts.stepping.exchange.forget_events()
        try:
            return self.controller.attempt(self.parts.history, time, length)
        except FmuError as error:
            if error.reached is not None and time + smallest < error.reached < time + length:
                reached = error.reached - time
            if error.fatal or not self.controller.returns or reached < smallest:
                raise
        except SimulationError:
            if not self.controller.returns or reached < smallest:
                raise
        self.controller.undo()
        self.parts.statistics.rejected_steps += 1
        self._wanted = reached
        return None

    def _warn_crawling(self) -> None:
        """Warn once, with advice, of steps that have become much shorter than the first one."""
        begin, self._reported_at = self._reported_at, self._time
        mean = (self._time - begin) / PROGRESS_INTERVAL
        stepping = self.parts.stepping
        if self._crawls or mean > _CRAWLING * self.step:
            return
        self._crawls = True
        if not stepping.degree:
            helps = "inputs are held, whose errors fall no faster than steps do; --extrapolation linear takes far fewer"
        elif stepping.order < stepping.degree + 1:
            helps = "FMUs that hold their inputs make the coupling one of low order; a larger tolerance takes fewer"
        else:
            helps = (
                "a larger tolerance takes fewer, or a smaller one for the FMUs (--unit-tolerance), if what their own "
                "solvers do wrong is what differs"
            )
        self.parts.statistics.warn(
            f"steps are {mean:.2g} s long about t = {self._time:.9g} s, {self.step / mean:.0f} times shorter than the "
            f"first one: {helps}"
        )

    def _warn_smallest(self, time: float, smallest: float) -> None:
        statistics = self.parts.statistics
        sentence = f"steps of the smallest length, {smallest:.3g} s, do not meet the tolerance"
        if not any(note.startswith(sentence) for note in statistics.notes):
            statistics.warn(f"{sentence}, first at t = {time:.9g} s")


def _ended(points: list[CommunicationPoint], target: float) -> Iterator[CommunicationPoint]:
    """Give the points, the last one at the very time that was aimed at."""
    yield from points[:-1]
    yield points[-1]._replace(time=target)


def _fitted(wanted: float, left: float, same: float) -> tuple[float, bool]:
    """Return the length of a step in s so that no tiny one is left before the end, and whether it reaches the end."""
    if wanted >= left - same:
        return left, True
    if 2.0 * wanted > left:
        return 0.5 * left, False
    return wanted, False
