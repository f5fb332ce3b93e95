"""Communication points of steps of one length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.base.times import count_steps, tolerance
from mbsfmu.cosim.fmus.fmu_instance import Floats


class Grid:
    """The times start + n·step in s up to the stop time, and the events between them.

    Times are counted, not added up. An event that misses one of them by round-off takes its place, but not that of
    start and stop, which stay as they are; events outside these are left out. They are made piece by piece, for all of
    them may be more than fit into memory.

    Parameters
    ----------
    start, stop, step
        In s.
    events
        Times in s, ascending.

    Attributes
    ----------
    count
        Number of whole and cut steps on the grid, without those that events add.
    """

    def __init__(self, start: float, stop: float, step: float, events: Sequence[float]) -> None:
        self._start, self._stop, self._step = start, stop, step
        self.count = int(count_steps(start, stop, step))
        same = tolerance(step, start, stop)
        self._moved: dict[int, float] = {}
        self._added: dict[int, list[float]] = {}
        for event in events:
            if not start + same < event < stop - same:
                continue
            after = self._first_from(event)
            nearest = after - (event - self._time(after - 1) < self._time(after) - event)
            if abs(self._time(nearest) - event) <= same:
                self._moved[nearest] = event
            else:
                self._added.setdefault(after, []).append(event)

    def _time(self, place: int) -> float:
        return self._stop if place == self.count else self._start + self._step * float(place)

    def place_of(self, time: float) -> int:
        """Return the last grid index not after a time in s."""
        return min(max(round((time - self._start) / self._step), 0), self.count)

    def _first_from(self, event: float) -> int:
        """Return the first grid index not before an inner event."""
        place = min(int((event - self._start) / self._step), self.count)
        while self._time(place) < event:
            place += 1
        while place > 0 and self._time(place - 1) >= event:
            place -= 1
        return place

    def points(self, first: int, last: int) -> Floats:
        """Return the times from a grid index to another time in s, with the events between them."""
        times = self._start + self._step * np.arange(float(first), last + 1.0)
        if last == self.count:
            times[-1] = self._stop
        for place, event in self._moved.items():
            if first <= place <= last:
                times[place - first] = event
        added = [(place - first, event) for place, events in self._added.items() for event in events]
        inside = [(place, event) for place, event in added if 0 < place <= last - first]
        return np.insert(times, [place for place, _ in inside], [event for _, event in inside])


def communication_points(start: float, stop: float, step: float, events: Sequence[float]) -> list[float]:
    """Return all communication points of a run in s, as `Grid` has them."""
    grid = Grid(start, stop, step, events)
    return grid.points(0, grid.count).tolist()
