"""Runners of runs from output to output, with their recording."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from mbsfmu.integration.solver import StepError
from mbsfmu.simulation.run_loop import RunLoop
from mbsfmu.tracing.workspace import Floats

_PROGRESS_INTERVAL = 100  # outputs, by the interpreter


class Recording:
    """Recording of a run from output to output.

    Parameters
    ----------
    times
        Where the run is at first, and the outputs, ascending, in s; shape (k,), two at least.
    columns
        Numbers in a row; 0 where none are recorded.
    progress
        Called with the share that is done.

    Attributes
    ----------
    times
        As given.
    rows
        The first is given, the others are written as outputs are reached; shape (k, columns). None where none are.
    done
        How many of the times have been reached.
    """

    def __init__(self, times: Floats, columns: int = 0, progress: Callable[[float], None] | None = None) -> None:
        self.times = times
        self.rows = np.empty((len(times), columns)) if columns else None
        self.done = 1
        self._progress = progress
        self._reported = 0

    def take_first(self, row: Floats) -> None:
        """Record the readings at the start."""
        assert self.rows is not None
        self.rows[0] = row

    @property
    def recorded(self) -> tuple[Floats, Floats]:
        """The times reached, shape (l,), and their rows, shape (l, columns)."""
        assert self.rows is not None
        return self.times[: self.done], self.rows[: self.done]

    def part(self, begin: int, end: int) -> Recording:
        """Return the recording from one of the times to another, by their indices; its rows are those of this one."""
        assert self.rows is not None
        progress, intervals = self._progress, len(self.times) - 1

        def tell(share: float) -> None:
            if progress is not None:
                progress((begin + share * (end - begin)) / intervals)

        part = Recording(self.times[begin : end + 1], progress=tell)
        part.rows = self.rows[begin : end + 1]
        return part

    def report_progress(self) -> None:
        """Report the completed fraction, which never decreases, even if a run is repeated."""
        self._reported = max(self._reported, self.done - 1)
        if self._progress is not None:
            self._progress(self._reported / (len(self.times) - 1))


class Runner(ABC):
    """Base of runners, which make the steps of runs.

    Attributes
    ----------
    interim_seconds
        Time on the clock in s that the last run spent in code that is not optimized, while other code is compiled.
    """

    interim_seconds: float = 0.0

    @abstractmethod
    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording.

        Raises
        ------
        SimulationError
            When a step fails; the course is at the last output that was reached.
        KeyboardInterrupt
            When somebody ends it; the same.
        """


class Interpreter(Runner):
    """Runner in Python, by the run loop's solver."""

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording; errors as for every runner."""
        times = recording.times
        last = float(times[-1])
        same = run_loop.same(float(times[1] - times[0]), float(times[0]), last)
        while recording.done < len(times):
            run_loop.passed = run_loop.time + same
            run_loop.sample()
            try:
                self._go_on(run_loop, recording, run_loop.next_halt(same, last), same)
            except StepError as error:
                raise run_loop.rank_watch.explained(error) from None

    @staticmethod
    def _go_on(run_loop: RunLoop, recording: Recording, halt: float, same: float) -> None:
        """Make steps up to a halt; pending updates come before its readings."""
        times, done = recording.times, recording.done
        count = int(np.searchsorted(times, halt + same, side="right")) - done
        targets = times[done : done + count]
        if not count or targets[-1] < halt - same:
            targets = np.append(targets, halt)
        run_loop.check_motion()
        run_loop.refresh()
        inputs = run_loop.inputs.over(run_loop.passed)
        if recording.rows is None:
            end = float(targets[-1])
            horizon = run_loop.horizon(same, end, float(times[-1] - times[0])) if count else end
            states = [run_loop.solver.advance_past(run_loop.present, run_loop.time, end, horizon, inputs)]
        else:
            states = run_loop.solver.advance(run_loop.present, np.concatenate([[run_loop.time], targets]), inputs)
        for index, state in enumerate(states):
            run_loop.arrive(state, float(targets[index]), inputs, same)
            if index == len(targets) - 1:
                run_loop.sample()
            if index < count:
                if recording.rows is not None:
                    recording.rows[recording.done] = run_loop.readings()
                recording.done += 1
                if recording.done % _PROGRESS_INTERVAL == 0:
                    recording.report_progress()
