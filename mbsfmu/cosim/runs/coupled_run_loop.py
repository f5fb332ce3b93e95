"""Run loop of coupled runs, from one communication point to the next."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mbsfmu.base.errors import InputError
from mbsfmu.base.times import resolution, tolerance
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.driven import DrivenInputs
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.string_outputs import Texts
from mbsfmu.cosim.runs.notes import environment_notes, loop_notes
from mbsfmu.cosim.runs.pacing import Pacer
from mbsfmu.cosim.runs.run_recorder import Record
from mbsfmu.cosim.runs.scenario import Scenario, Values

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
