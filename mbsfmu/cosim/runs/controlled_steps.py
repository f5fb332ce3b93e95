"""Runs with controlled step lengths."""

from __future__ import annotations

from collections.abc import Iterator

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.times import tolerance
from mbsfmu.cosim.control.step_control import Controller, StepAttempt
from mbsfmu.cosim.coupling.stepping import CommunicationPoint
from mbsfmu.cosim.fmus.fmu_instance import FmuEnded, FmuError
from mbsfmu.cosim.runs.compiled_steps import compile_step
from mbsfmu.cosim.runs.coupled_run_loop import PROGRESS_INTERVAL, CoupledRunLoop, RunSetup
from mbsfmu.cosim.runs.scenario import Values

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
        if not parts.texts.changes:
            parts.stepping.compiled = compile_step(parts.stepping, parts.history)

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
