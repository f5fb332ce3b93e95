"""Coupled steps of a run that are made and recorded many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from mbsfmu.cosim.compiled.library import pointer_to
from mbsfmu.cosim.coupling.coupled_steps import CoupledSteps
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.power_bonds import PowerBond
from mbsfmu.cosim.coupling.sweeps import Algorithm
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.runs.run_recorder import Record

_CHUNK = 4096  # steps for which signals are asked at once


class RecordedSteps(CoupledSteps):
    """Communication steps of a run, several at once.

    They work on the memory of history, members and record.

    Parameters
    ----------
    algorithm, history, bonds
        As for `CoupledSteps`; the history is that of the run.
    record
        The record of the run until now.
    times
        Communication points in s.
    lengths
        Of the steps between them in s.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        history: OutputHistory,
        bonds: Sequence[PowerBond],
        record: Record,
        times: list[float],
        lengths: Floats,
    ) -> None:
        super().__init__(algorithm, history, bonds, np.array(times), min(_CHUNK, len(lengths)))
        self._history, self._record = history, record
        self._times, self._lengths = times, lengths.tolist()
        self._changes = [*(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
        self._most = _CHUNK

    def advance(self, index: int, end: int) -> int:
        """Make steps from one of an index on, up to another one at most; return how many.

        Raises
        ------
        FmuEnded, SimulationError
            As for single steps; those before are recorded.
        """
        step, exchange = self._lengths[index], self.tables.exchange
        exchange.made = 0
        even = self._changes[bisect_right(self._changes, index)]
        count = self._signals(index, min(even - index, end - index, self._most), step)
        self._begin(index, count)
        try:
            self._run(self._history, count, step)
        finally:
            self._end(index)
        self._most = min(2 * exchange.made, _CHUNK) if exchange.made == count else exchange.made
        return exchange.made

    def _signals(self, index: int, count: int, step: float) -> int:
        """Ask the signals for so many steps in s; return for how many they have answered, one at least."""
        driven, tables = self._algorithm.exchange.driven, self.tables
        if driven.are_constant:
            if len(driven):
                tables.after[:count] = tables.before[:count] = driven.after(self._times[index])
            return count
        for place, time in enumerate(self._times[index : index + count]):
            try:
                tables.after[place] = driven.after(time)
                if self._history.rows > 1:
                    tables.before[place] = driven.before(time + step)
            except Exception:
                if not place:
                    raise
                return place  # the step is met again, behind those that can be made
        return count

    def _begin(self, index: int, count: int) -> None:
        """Set where the steps begin, and reserve rows."""
        exchange, record = self.tables.exchange, self._record
        record.reserve(count)
        exchange.recorded = pointer_to(record.rows)
        exchange.first_row, exchange.first = len(record.times), index
        for bond, residual, exchanged in zip(self.tables.bonds, record.residuals, record.exchanged, strict=True):
            bond.residual, bond.exchanged = residual, exchanged

    def _end(self, index: int) -> None:
        """Take over what was recorded."""
        exchange, made = self.tables.exchange, self.tables.exchange.made
        self._record.times.extend(self._times[index + 1 : index + made + 1])
        self._record.residuals[:] = [bond.residual for bond in self.tables.bonds]
        self._record.exchanged[:] = [bond.exchanged for bond in self.tables.bonds]
        if made:
            self._take_history(self._history)
        if exchange.has_missed:
            self._history.correction = self.tables.missed
