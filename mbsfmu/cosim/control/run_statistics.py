"""Statistics of a coupled run, its communication points, and FMUs that stand still."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.times import count_steps, tolerance
from mbsfmu.cosim.control.error_variables import Watched
from mbsfmu.cosim.coupling.algorithms import ITERATED
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats

logger = logging.getLogger(__name__)


@dataclass
class RunStatistics:
    """Run statistics.

    Attributes
    ----------
    algorithm, extrapolation, control
        As called.
    step
        Communication step in s, the first one where steps are controlled.
    steps
        Communication steps made and kept.
    smallest_step, largest_step
        Of these, in s.
    iterations
        Sweeps over all FMUs, those for steps that were not kept and for error estimates too.
    rollbacks
        How often all FMUs were brought back to an earlier state.
    rejected_steps
        Steps made again with a smaller length.
    unit_steps
        Steps that each FMU made.
    unit_events
        Events that were handled of each FMU that is run by model exchange: named and state events, and those that it
        has asked for.
    notes
        Sentences for the user: what FMUs could not do.
    undriven
        Inputs that neither a connection nor a signal nor a given value drives, as `unit.variable`.
    wall_seconds
        Time that the stepping took.
    energy_residual
        Residual energy of each power bond at the end in J; the signals `energy_residual.<bond>` have it over time.
    energy_residual_largest
        Largest magnitude of the residual energy of each bond in J.
    energy_exchanged
        Energy that went through each power bond in J, to and fro added up.
    texts
        For each String output, the times in s at which it changed, with the text from then on.
    pace
        Simulated seconds to a second of the clock that were aimed at; None where nothing is waited for.
    coupling_error, coupling_error_output
        Largest error of an output as a fraction of its range, by a second run with half the step; None and nothing
        without one.
    late_steps, lateness_max
        Of a paced run: steps that ended after their time, and by how many s of the clock the latest one did.
    """

    CHANGES: ClassVar = ("notes", "rejected_steps", "wall_seconds", "late_steps", "lateness_max")

    algorithm: str = ""
    extrapolation: str = ""
    control: str = "fixed"
    step: float = 0.0
    steps: int = 0
    smallest_step: float = 0.0
    largest_step: float = 0.0
    iterations: int = 0
    rollbacks: int = 0
    rejected_steps: int = 0
    unit_steps: dict[str, int] = field(default_factory=dict)
    unit_events: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    undriven: list[str] = field(default_factory=list)
    wall_seconds: float = 0.0
    energy_residual: dict[str, float] = field(default_factory=dict)
    energy_residual_largest: dict[str, float] = field(default_factory=dict)
    energy_exchanged: dict[str, float] = field(default_factory=dict)
    texts: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    coupling_error: float | None = None
    coupling_error_output: str = ""
    pace: float | None = None
    late_steps: int = 0
    lateness_max: float = 0.0

    @property
    def better_coupling(self) -> str:
        """Advice that makes the error of the coupling smaller than that of this run."""
        ways = ["smaller steps" if self.control == "fixed" else "a smaller tolerance"]
        if self.extrapolation == Extrapolation.ZERO:
            ways.append("an extrapolation of inputs (linear)")
        if self.algorithm not in ITERATED:
            ways.append("an iterated algorithm with linear inputs (newton-linear)")
        return f"take {', or '.join(ways)}"

    def warn(self, sentence: str) -> None:
        """Store and log a warning."""
        self.notes.append(sentence)
        logger.warning("%s", sentence)


_MOST = 20  # steps on end after which it is no chance
_CHANGE = 1e-6  # of an input's magnitude, from one half of a step to the other


class Standstill:
    """Detects FMUs whose values are identical at the middle and the end of steps.

    Only FMUs that have moved before, or in another run, and whose inputs change are considered. Step doubling would
    regard such an FMU as exact.

    Parameters
    ----------
    exchange
        The members.
    watched
        What is looked at of them.
    """

    CHANGES: ClassVar = ("_counts", "_moved", "_largest", "_since")

    def __init__(self, exchange: CouplingData, watched: Watched) -> None:
        self._members = [member for member in exchange.members if len(member.sources)]
        self._columns = [watched.columns(member) for member in self._members]
        count = len(self._members)
        self._counts, self._since = np.zeros(count), np.zeros(count)
        self._moved = np.zeros(count, dtype=bool)
        self._largest = np.zeros(len(exchange.entry_sources))

    def look(
        self,
        points: tuple[Floats, Floats, Floats],
        inputs: tuple[Floats, Floats],
        elsewhere: NDArray[np.bool_],
        time: float,
    ) -> None:
        """Check an accepted step.

        Parameters
        ----------
        points
            What is watched at its beginning, middle and end.
        inputs
            Means of all inputs over both halves.
        elsewhere
            Whether a variable has moved in another run of the same members.
        time
            Its beginning in s.
        """
        begin, middle, end = points
        np.maximum(self._largest, np.abs(inputs).max(axis=0), out=self._largest)
        changes = np.abs(inputs[1] - inputs[0]) > _CHANGE * self._largest
        for index, (member, columns) in enumerate(zip(self._members, self._columns, strict=True)):
            repeats = len(columns) > 0 and bool((middle[columns] == end[columns]).all())
            if not (repeats and self._moved[index]):
                self._counts[index], self._since[index] = 0.0, time
            elif changes[member.entry_place].any():
                self._counts[index] += 1.0
            self._moved[index] |= bool((begin[columns] != end[columns]).any() or elsewhere[columns].any())

    def note(self) -> str | None:
        """Return a message on FMUs without motion, if there are any."""
        still = np.flatnonzero(self._counts >= _MOST)
        if not len(still):
            return None
        names = names_of([self._members[index].instance.name for index in still])
        return (
            f"{names} repeats its values exactly from one half of each step to the next since "
            f"t = {self._since[still].min():.9g} s, whatever its inputs do: unless it is at a limit of its own, it "
            "does not move in steps after which an earlier state may be set again, and the results are wrong; equal "
            "steps (control fixed) have none of those"
        )


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
