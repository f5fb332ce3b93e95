"""Error of a run by a second, more accurate one, for all formulations and solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.repeated_warnings import muted
from mbsfmu.integration.error_measure import SAME_STEPS, ErrorEstimate, ErrorMeasure, grown_rounding
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.solver import Statistics
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.run_loop import Recording, RunLoop, Runner
from mbsfmu.simulation.saved_state import SavedState
from mbsfmu.simulation.watches import EnergyWatch
from mbsfmu.tracing.workspace import Floats

TIGHTER = 0.01
"""Factor of the tolerances. For the four-bar with rodas5p and dop853, tolerances from 1e-4 to 1e-9, errors were
estimated at 0.99 to 1.14 times their size; with a hundred times the tolerance, a less expensive run, at 0.02 to 5.9
times.
"""
LEAST_TOLERANCE = 1e-13
"""Least relative tolerance above round-off …"""
SMALLER = 0.1
"""… which must be at most this fraction of that of the first run: its own error is then a tenth of the estimate."""
LONGER = 0.6
"""Largest relative number of steps of a run with double steps, unless other events require shorter ones."""
ROUND_OFF = 0.25
"""Round-off with double steps relative to that of a run: of accelerations, by the square of the step."""
ACCELERATED = ("m/s2", "rad/s2", "N", "N.m", "W")
"""Units of what contains accelerations. Of all else, double steps may be more exact where references move otherwise."""
FIRST_SHARE = 0.3
"""Fraction of the total time for the first run, for the progress."""


class SecondRun:
    """Repeats a run more accurately and compares: the difference is the error of the first.

    Adaptive solvers get a hundredth of the tolerances. Equal steps are halved: with order p, the error is the
    difference divided by 1 − 2⁻ᵖ [Hairer1993, sect. II.4]. Round-off of accelerations, differences of positions over
    the square of the step, is four times as large with half of it: if a run with double steps differs less, its
    difference, or a quarter of the other one, is used.

    Parameters
    ----------
    run_loop, watch, runner
        Of the simulation, at the start of the first run, what follows its energies, and what makes the steps.
    variables
        Of the columns that are recorded; energies count beside what a run without a second one measures.
    """

    def __init__(self, run_loop: RunLoop, watch: EnergyWatch, runner: Runner, variables: Sequence[Variable]) -> None:
        self._run_loop = run_loop
        self._watch = watch
        self._runner = runner
        self._start = SavedState.of(run_loop, watch)
        differences = isinstance(run_loop.solver, ImplicitSolver) and run_loop.formulation.second_order
        energies = [variable for variable in variables if variable.unit == "J"]
        functions = run_loop.functions
        self._measure = ErrorMeasure(functions.system, energies, second_order=differences, arm=functions.lever_arm)
        place = {variable.name: index for index, variable in enumerate(variables)}
        self._turned = False
        self._columns = [place[name] for name in self._measure.names]
        self._accelerated = np.array([variables[column].unit in ACCELERATED for column in self._columns], dtype=bool)

    def estimate(self, first: Recording, progress: Callable[[float], None] | None) -> ErrorEstimate:
        """Return the error of the run just made; the run loop stays at its end.

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
            return _not_known("the run ends before its first output: take shorter output steps")
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
        """Return the estimate of a run with a relative tolerance and its number of steps."""
        tight = max(TIGHTER * relative, LEAST_TOLERANCE)
        if tight > SMALLER * relative:
            return _not_known(
                f"a second run has to be more exact than a relative tolerance of {relative:.3g}, and none is below "
                f"{LEAST_TOLERANCE:g}, round-off: take a larger tolerance"
            )
        solver = self._run_loop.solver
        tolerances = solver.tolerances * (tight / relative)
        try:
            made = self._again(first, second, solver.step, tolerances)
        except SimulationError as error:
            return _not_known(f"the second run, with a relative tolerance of {tight:.3g}, ends before: {error}")
        errors, exact = self._difference(first, second), second.recorded[1][:, self._columns]
        if made == steps and not errors.any() and np.ptp(first.recorded[1], axis=0).any():
            return ErrorEstimate(None, None, SAME_STEPS)
        return self._estimate(first, exact, errors)

    def _by_steps(self, first: Recording, second: Recording, step: float, steps: int) -> ErrorEstimate:
        """Return the estimate of a run with equal steps in s and their number."""
        solver = self._run_loop.solver
        try:
            self._again(first, second, 0.5 * step, solver.tolerances)
        except SimulationError as error:
            return _not_known(f"the second run, with steps of {0.5 * step:.3g} s, ends before: {error}")
        shorter = self._difference(first, second)
        errors = shorter / (1.0 - 2.0**-solver.order)
        exact = self._extrapolated(first, second)
        times, rows = first.recorded
        longer = Recording(times[::2], rows.shape[1])
        if len(longer.times) > 1:
            try:
                made = self._again(first, longer, 2.0 * step, solver.tolerances)
            except SimulationError:  # steps are too long then: their error is no round-off
                return self._estimate(first, exact, errors)
            if made <= LONGER * steps:
                least = np.minimum(errors, np.maximum(self._difference(first, longer), ROUND_OFF * shorter))
                errors = np.where(self._accelerated | (not self._turned), least, errors)
        return self._estimate(first, exact, errors)

    @contextmanager
    def _staying(self) -> Iterator[None]:
        """Make runs from the start, and restore everything afterwards."""
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
        """Repeat the run with a step in s and tolerances; return its number of steps."""
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
        """Return whether reference orientations have changed since the start."""
        begin = self._start.place.state
        assert begin is not None
        return not np.array_equal(self._run_loop.present.references, begin.references)

    def _difference(self, first: Recording, other: Recording) -> Floats:
        """Return the largest differences of two runs at common times, shape (number of variables,)."""
        rows, others = first.recorded[1], other.recorded[1]
        every = 1 if len(rows) == len(others) else 2
        return np.abs(rows[::every, self._columns] - others[:, self._columns]).max(axis=0)

    def _extrapolated(self, first: Recording, shorter: Recording) -> Floats:
        """Return the variables of the exact solution from runs with steps and with half of them, shape (t, v)."""
        rows, others = first.recorded[1][:, self._columns], shorter.recorded[1][:, self._columns]
        return others + (others - rows) / (2.0**self._run_loop.solver.order - 1.0)

    def _estimate(self, first: Recording, exact: Floats, errors: Floats) -> ErrorEstimate:
        """Return the estimate from the largest error of each variable, and from those of the exact solution.

        Ranges are the smaller ones, as round-off makes them larger. Cardan angles do not count after changes of their
        references, which occur at different times in the runs.
        """
        values = first.recorded[1][:, self._columns]
        lowest, highest = values.min(axis=0), values.max(axis=0)
        smaller = np.ptp(exact, axis=0) < highest - lowest
        lowest[smaller], highest[smaller] = exact.min(axis=0)[smaller], exact.max(axis=0)[smaller]
        if self._turned:
            errors[self._measure.relative] = 0.0
        rounding = grown_rounding(self._run_loop.solver.step, len(values))
        return ErrorEstimate.of(*self._measure.worst(errors, lowest, highest, rounding))


def _not_known(why: str) -> ErrorEstimate:
    return ErrorEstimate(None, None, f"the error is not known: {why}")
