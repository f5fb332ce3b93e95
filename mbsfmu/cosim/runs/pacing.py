"""Real-time pacing of runs."""

from __future__ import annotations

import time as clock

from mbsfmu.cosim.control.run_statistics import RunStatistics


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
