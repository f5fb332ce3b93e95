"""The error of a run by a second one, which is more exact: for every formulation and solver the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.muted import muted
from mbsfmu.integration.error_measure import SAME_STEPS, ErrorEstimate, ErrorMeasure
from mbsfmu.integration.solver import Statistics
from mbsfmu.simulation.energy_watch import EnergyWatch
from mbsfmu.simulation.run_loop import RunLoop
from mbsfmu.simulation.runner import Recording, Runner
from mbsfmu.simulation.saved_state import SavedState
from mbsfmu.tracing.workspace import Floats

TIGHTER = 0.01
"""Of the tolerances. Of the four-bar by rodas5p and dop853, tolerances from 1e-4 to 1e-9, errors were told 0.99 to
1.14 times as large as they were; by a hundred times the tolerance, a cheaper run, 0.02 to 5.9 times."""
LEAST_TOLERANCE = 1e-13
"""The relative tolerance that round-off leaves …"""
SMALLER = 0.1
"""… which must be at most this share of that of the first run: its own error is then a tenth of what is told."""
LONGER = 0.6
"""A run of steps of double length makes at most this share of the steps, where nothing else asks for shorter ones."""
ROUND_OFF = 0.25
"""Of the round-off of a run, what one of twice the step has: of accelerations, by the square of the step."""
FIRST_SHARE = 0.3
"""Of the time that all runs take, what the first one takes: for those who wait."""


class SecondRun:
    """Makes a run once more from where it began, more exactly, and compares: the difference is the error of the first.

    Solvers that choose their steps get a hundredth of the tolerances. Equal steps are halved: of the order p, their
    error is the difference divided by 1 − 2⁻ᵖ [Hairer1993, sect. II.4]. Round-off of accelerations, differences of
    positions by the square of the step, is four times as large with half of it: where a run with steps of double length
    differs less, its difference is told, or a quarter of the other one.

    Parameters
    ----------
    run_loop, watch, runner
        Of the simulation, at the start of the first run, what follows its energies, and what makes the steps.
    names
        Of the columns that are recorded.
    """

    def __init__(self, run_loop: RunLoop, watch: EnergyWatch, runner: Runner, names: Sequence[str]) -> None:
        self._run_loop = run_loop
        self._watch = watch
        self._runner = runner
        self._start = SavedState.of(run_loop, watch)
        self._measure = ErrorMeasure(run_loop.functions.system)
        place = {name: index for index, name in enumerate(names)}
        self._turned = False
        self._columns = [place[name] for name in self._measure.names]

    def estimate(self, first: Recording, progress: Callable[[float], None] | None) -> ErrorEstimate:
        """Return the error of the run that the course has just made; the course stays at its end.

        Parameters
        ----------
        first
            What was recorded of it.
        progress
            Called with the share that is done of all runs.
        """
        solver, statistics = self._run_loop.solver, self._run_loop.solver.statistics
        times, rows = first.recorded
        if len(times) < 2:
            return _not_known("the run ends before its first output")
        relative = float(solver.tolerances[0])
        tell = None if progress is None else lambda share: progress(FIRST_SHARE + (1.0 - FIRST_SHARE) * share)
        second = Recording(times, rows.shape[1], tell)
        with self._staying():
            if relative:
                return self._by_tolerance(first, second, relative, statistics.steps)
            # Steps as they were made: updates and bends of signals may ask for shorter ones than the solver's own.
            step = min(solver.step, float(times[-1] - times[0]) / max(statistics.steps, 1))
            return self._by_steps(first, second, step, statistics.steps)

    def _by_tolerance(self, first: Recording, second: Recording, relative: float, steps: int) -> ErrorEstimate:
        """Return the estimate of a run with a relative tolerance, which has made so many steps."""
        tight = max(TIGHTER * relative, LEAST_TOLERANCE)
        if tight > SMALLER * relative:
            return _not_known(
                f"a second run has to be more exact than a relative tolerance of {relative:.3g}, and none is below "
                f"{LEAST_TOLERANCE:g}, round-off"
            )
        solver = self._run_loop.solver
        tolerances = solver.tolerances * (tight / relative)
        try:
            made = self._again(first, second, solver.step, tolerances)
        except SimulationError as error:
            return _not_known(f"the second run, with a relative tolerance of {tight:.3g}, ends before: {error}")
        errors = self._difference(first, second)
        if made == steps and not errors.any() and np.ptp(first.recorded[1], axis=0).any():
            return ErrorEstimate(None, None, SAME_STEPS)
        return self._estimate(first, errors)

    def _by_steps(self, first: Recording, second: Recording, step: float, steps: int) -> ErrorEstimate:
        """Return the estimate of a run of equal steps in s, so many."""
        solver = self._run_loop.solver
        try:
            self._again(first, second, 0.5 * step, solver.tolerances)
        except SimulationError as error:
            return _not_known(f"the second run, with steps of {0.5 * step:.3g} s, ends before: {error}")
        shorter = self._difference(first, second)
        errors = shorter / (1.0 - 2.0**-solver.order)
        times, rows = first.recorded
        longer = Recording(times[::2], rows.shape[1])
        if len(longer.times) > 1:
            try:
                made = self._again(first, longer, 2.0 * step, solver.tolerances)
            except SimulationError:  # steps are too long then: their error is no round-off
                return self._estimate(first, errors)
            if made <= LONGER * steps:
                errors = np.minimum(errors, np.maximum(self._difference(first, longer), ROUND_OFF * shorter))
        return self._estimate(first, errors)

    @contextmanager
    def _staying(self) -> Iterator[None]:
        """Make runs from the start, and leave everything as it was."""
        run_loop, solver, runner = self._run_loop, self._run_loop.solver, self._runner
        end, since, seconds = SavedState.of(run_loop, self._watch), run_loop.inputs.since, runner.interim_seconds
        statistics, counts = solver.statistics, {}
        for name, count in statistics.iterations.items():
            counts[name] = replace(count)
        self._turned = self._has_turned
        try:
            with muted():
                yield
        finally:
            solver.statistics = statistics
            for name, count in statistics.iterations.items():
                count.clear()
                count.join(counts[name])
            end.put_back(run_loop, self._watch)
            run_loop.inputs.since = since
            runner.interim_seconds = seconds

    def _again(self, first: Recording, recording: Recording, step: float, tolerances: Floats) -> int:
        """Make the run once more with a step in s and tolerances; return how many steps it took."""
        solver = self._run_loop.solver
        self._start.put_back(self._run_loop, self._watch)
        solver.step, solver.tolerances = step, tolerances
        solver.statistics = Statistics(iterations=solver.statistics.iterations)
        recording.take_first(first.recorded[1][0])
        self._runner.run(self._run_loop, recording)
        self._turned = self._turned or self._has_turned
        return solver.statistics.steps

    @property
    def _has_turned(self) -> bool:
        """Whether references of orientations have moved since the start."""
        begin = self._start.place.state
        assert begin is not None
        return not np.array_equal(self._run_loop.present.references, begin.references)

    def _difference(self, first: Recording, other: Recording) -> Floats:
        """Return the largest distances of two runs where both were recorded, shape (number of variables,)."""
        rows, others = first.recorded[1], other.recorded[1]
        every = 1 if len(rows) == len(others) else 2
        return np.abs(rows[::every, self._columns] - others[:, self._columns]).max(axis=0)

    def _estimate(self, first: Recording, errors: Floats) -> ErrorEstimate:
        """Return the estimate by the largest error of each variable.

        Cardan angles do not count where their references have moved: at other times in each of the runs.
        """
        values = first.recorded[1][:, self._columns]
        if self._turned:
            errors[self._measure.relative] = 0.0
        return ErrorEstimate.of(*self._measure.worst(errors, values.min(axis=0), values.max(axis=0)))


def _not_known(why: str) -> ErrorEstimate:
    return ErrorEstimate(None, None, f"the error is not known: {why}")
