"""Runs with equal steps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.control.grid import Grid
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuEnded
from mbsfmu.cosim.runs.compiled_steps import CompiledSteps, compile_steps
from mbsfmu.cosim.runs.coupled_run_loop import PROGRESS_INTERVAL, CoupledRunLoop, RunSetup

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
        self._compiled: CompiledSteps | None = None
        self._is_compiled = False

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

    def _compile(self) -> CompiledSteps | None:
        if not self._is_compiled:
            self._is_compiled, parts = True, self.parts
            if not parts.texts.changes:
                self._compiled = compile_steps(parts.stepping, parts.history, parts.record, self._times, self._lengths)
        return self._compiled

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
        compiled = self._compile()
        try:
            made = compiled.advance(index, self._until(index, end)) if compiled else 0
            if not made:
                self._step(self._times[index], self._times[index + 1], float(self._lengths[index]))
                made = 1
        except FmuEnded as ended:
            self._ended_at = self._end_within(parts.record.time, ended.time)
            return 1
        self._index = index + made
        if compiled:
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
