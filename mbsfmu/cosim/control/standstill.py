"""FMUs without motion in repeatable steps: they repeat their values exactly, which is suspicious."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.control.watched import Watched
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats

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
