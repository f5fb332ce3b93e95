"""The course of a run: from one communication point to the next, to the end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np

from mbsfmu.cosim.compiled.steps import compile_steps
from mbsfmu.cosim.control import Attempt, Controller
from mbsfmu.cosim.coupling import names_of
from mbsfmu.cosim.driven import DrivenInputs
from mbsfmu.cosim.extrapolation import History
from mbsfmu.cosim.instance import UnitEnded, UnitError
from mbsfmu.cosim.result import Facts, Record
from mbsfmu.cosim.stepping import Point, Stepping
from mbsfmu.cosim.texts import Texts
from mbsfmu.errors import SimulationError
from mbsfmu.times import check_grid, counted, resolution, tolerance

_TELL_EVERY = 100
Progress = Callable[[float], None]


def communication_points(start: float, stop: float, step: float, events: list[float]) -> list[float]:
    """Return the times start + n·step in s up to the stop time, and the events between them.

    Times are counted, not added up. An event that misses one of them by round-off takes its place, but not that of
    start and stop, which stay as they are; events outside these are left out.
    """
    same = tolerance(step, start, stop)
    times = counted(start, stop, step)
    inside = np.array([event for event in events if start + same < event < stop - same])
    after = np.searchsorted(times, inside)
    nearest = after - (inside - times[after - 1] < times[after] - inside)
    on_grid = np.abs(times[nearest] - inside) <= same
    times[nearest[on_grid]] = inside[on_grid]
    return np.insert(times, after[~on_grid], inside[~on_grid]).tolist()


class Course:
    """A run between start and stop.

    Parameters
    ----------
    stepping
        What makes the steps.
    history
        The history, which holds the start.
    record, facts
        Where points and costs go.
    driven
        Inputs that follow signals.
    texts
        Strings, which are handed on between steps.
    start, stop
        In s.
    progress
        Called with the share that is done.
    """

    def __init__(
        self,
        stepping: Stepping,
        history: History,
        record: Record,
        facts: Facts,
        driven: DrivenInputs,
        texts: Texts,
        start: float,
        stop: float,
        progress: Progress | None,
    ) -> None:
        self._stepping, self._history = stepping, history
        self._record, self._facts = record, facts
        self._texts = texts
        self._driven, self._start, self._stop = driven, start, stop
        self._progress = progress
        self._events = driven.events(start, stop)

    def run_fixed(self, step: float) -> None:
        """Make steps of one length in s, cut at the events."""
        check_grid(self._start, self._stop, step, self._record.columns)
        times = communication_points(self._start, self._stop, step, self._events)
        # Differences of counted times differ from the step by round-off, which none of the units needs to see.
        lengths = np.diff(times)
        lengths[np.abs(lengths - step) <= tolerance(step, self._start, self._stop)] = step
        self._check_lengths(lengths, step)
        jumping = {time for time in self._events if self._driven.jumps(time)}
        jumps = [index for index, time in enumerate(times) if time in jumping]
        compiled = (
            None if self._texts.changes else compile_steps(self._stepping, self._history, self._record, times, lengths)
        )
        ends, index = self._stepping.exchange.ends, 0
        self._texts.pass_on(self._start)
        while index < len(lengths) and not ends:
            if times[index] in jumping:
                self._history.restart()
            try:
                made = compiled.advance(index, self._until(index, jumps, len(lengths))) if compiled else 0
                if not made:
                    self._step(times[index], times[index + 1], float(lengths[index]))
                    made = 1
            except UnitEnded as ended:
                self._end_within(self._record.times[-1], ended.time)
                return
            index += made
            if self._progress is not None and (index - 1) % _TELL_EVERY == 0 and not ends:
                self._progress(index / len(lengths))
        if ends:
            self._tell_end(times[index])

    def _until(self, index: int, jumps: list[int], count: int) -> int:
        """Return up to which step one may go from another one until there is a jump, or the share done is told."""
        until = [*jumps, count][bisect_right(jumps, index)]
        return until if self._progress is None else min(until, -(-index // _TELL_EVERY) * _TELL_EVERY + 1)

    def _step(self, time: float, end: float, length: float) -> None:
        """Make one step in s and record it."""
        point = self._stepping.advance(self._history, time, length)
        self._record.add(end, point.outputs, point.energies)
        self._texts.pass_on(end)

    def run_controlled(self, controller: Controller, step: float) -> None:
        """Make steps whose length a controller chooses, beginning with one in s, cut at the events.

        Events are those of the followed signals, and those inside units that tell the next one.
        """
        bounds, time, count = controller.tolerances, self._start, 0
        same, ends = tolerance(bounds.smallest, self._start, self._stop), self._stepping.exchange.ends
        wanted = min(max(step, bounds.smallest), bounds.largest)
        last = self._stop
        self._texts.pass_on(time)
        inside = self._stepping.exchange.next_event(time + same)
        while time < last:
            end = min(inside, last, *(event for event in self._events if event > time + same))
            end = last if last - end <= same else end
            length, reaches = _fitted(wanted, end - time, same)
            target = end if reaches else time + length
            try:
                attempt = self._attempt(controller, time, target - time)
            except UnitEnded as ended:
                if not controller.returns or ended.time <= time + same:
                    self._end_within(time, ended.time)
                    return
                controller.undo()
                last = ended.time
                continue
            if attempt is None:
                wanted = 0.5 * length
                continue
            if attempt.ratio > 1.0 and controller.returns and length > bounds.smallest + same:
                controller.undo()
                self._facts.rejected_steps += 1
                wanted = max(length * controller.reject(attempt), bounds.smallest)
                continue
            if attempt.ratio > 1.0 and length <= bounds.smallest + same:
                self._tell_smallest(time, bounds.smallest)
            wanted = self._next_length(controller, attempt, length, wanted, reaches)
            self._take(attempt, target)
            time, count = target, count + 1
            if ends:
                break
            if attempt.jumps or (end < self._stop and reaches and (end == inside or self._driven.jumps(end))):
                self._history.restart()
                controller.restart()
                wanted = min(max(wanted, step) if attempt.jumps else wanted, step)
            inside = self._stepping.exchange.next_event(time + same)
            if self._progress is not None and count % _TELL_EVERY == 0:
                self._progress((time - self._start) / (self._stop - self._start))
        if ends or last < self._stop:
            self._tell_end(time)

    @staticmethod
    def _next_length(controller: Controller, attempt: Attempt, length: float, wanted: float, reaches: bool) -> float:
        """Return the length in s that the next step shall have, after an attempt of one that was taken."""
        bounds = controller.tolerances
        proposed = length * controller.accept(attempt, length)
        # A step that was cut short says nothing against the longer one that was wanted.
        proposed = max(proposed, wanted) if reaches and attempt.ratio <= 1.0 else proposed
        return min(max(proposed, bounds.smallest), bounds.largest)

    def _take(self, attempt: Attempt, target: float) -> None:
        """Record what an attempt led to, up to a time in s."""
        self._history = attempt.history
        for point in self._ended(attempt.points, target):
            self._record.add(point.time, point.outputs, point.energies)
        self._texts.pass_on(target)

    # -- units that end the run -------------------------------------------------------------------------------

    def _end_within(self, time: float, end: float) -> None:
        """End a run in a step from a time in s which a unit ended at another one.

        A unit alone leaves the row of where it ended; among several, the last row is the last one that all reached.
        """
        members = self._stepping.exchange.members
        if len(members) == 1 and end > time:
            self._record.add(end, self._stepping.exchange.read().copy(), [])
            self._texts.pass_on(end)
            time = end
        self._tell_end(time)

    def _tell_end(self, time: float) -> None:
        for name, ended in self._stepping.exchange.ends.items():
            sentence = f"{name} ended the run at t = {ended:.9g} s"
            if time < ended - resolution(ended):
                sentence += f"; the last point that all units reached is at {time:.9g} s"
            self._facts.tell(sentence)

    def _attempt(self, controller: Controller, time: float, length: float) -> Attempt | None:
        """Try a step; None where it failed but can be tried again with half the length."""
        try:
            return controller.attempt(self._history, time, length)
        except UnitError as error:
            if error.fatal or not controller.returns or 0.5 * length < controller.tolerances.smallest:
                raise
        except SimulationError:
            if not controller.returns or 0.5 * length < controller.tolerances.smallest:
                raise
        controller.undo()
        self._facts.rejected_steps += 1
        return None

    @staticmethod
    def _ended(points: list[Point], target: float) -> Iterator[Point]:
        """Give the points, the last one at the very time that was aimed at."""
        yield from points[:-1]
        yield points[-1]._replace(time=target)

    def _tell_smallest(self, time: float, smallest: float) -> None:
        sentence = f"steps of the smallest length, {smallest:.3g} s, do not meet the tolerance"
        if not any(note.startswith(sentence) for note in self._facts.notes):
            self._facts.tell(f"{sentence}, first at t = {time:.9g} s")

    def _check_lengths(self, lengths: np.ndarray, step: float) -> None:
        fixed = [m.instance.name for m in self._stepping.exchange.members if not m.instance.takes_any_step]
        if fixed and np.any(lengths != step):
            self._facts.tell(
                f"{names_of(fixed)} may not take steps of other lengths, but {np.min(lengths):.6g} s stands beside "
                f"{step:.6g} s: the stop time or an event is off the grid"
            )


def _fitted(wanted: float, left: float, same: float) -> tuple[float, bool]:
    """Return the length of a step in s so that no tiny one is left before the end, and whether it reaches the end."""
    if wanted >= left - same:
        return left, True
    if 2.0 * wanted > left:
        return 0.5 * left, False
    return wanted, False
