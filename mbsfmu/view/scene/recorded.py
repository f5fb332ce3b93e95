"""Recorded signals by the variable names of their systems."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.trajectory import Trajectory

Floats = NDArray[np.float64]


class Recorded:
    """Recorded signals of a run at viewing times.

    A variable of a system is called `boom.angle` in a run of the whole where no other system has one of that name,
    `mechanism.boom.angle` elsewhere and in coupled runs. Of a unit of several systems, `unit.mechanism` is one, whose
    variables the run may call `unit.boom.angle`.

    Parameters
    ----------
    run
        The run.
    times
        Where its signals are wanted in s, shape (k,), within the run.
    systems
        Names of the systems that the run is of.
    """

    def __init__(self, run: Trajectory, times: Floats, systems: Collection[str]) -> None:
        self.times = times
        self._run, self._systems = run, systems

    def name(self, system: str, variable: str) -> str | None:
        """Return the run's name of a variable; None if not recorded."""
        unit, inside, _ = system.rpartition(".")
        for exact in (f"{system}.{variable}", *([f"{unit}.{variable}"] if inside else []), variable):
            if exact in self._run.names:
                return exact
        # A unit of the whole model has a name of its own, which is no system's.
        units = [name.removesuffix(f".{variable}") for name in self._run.names if name.endswith(f".{variable}")]
        found = [unit for unit in units if unit not in self._systems]
        return f"{found[0]}.{variable}" if len(found) == 1 else None

    def find(self, system: str, variable: str) -> Floats | None:
        """Return a linearly interpolated signal, shape (k,); None if not recorded."""
        name = self.name(system, variable)
        return None if name is None else self.values(name)

    def values(self, name: str) -> Floats:
        """Return a signal by the run's name, linearly interpolated, shape (k,)."""
        return np.interp(self.times, self._run.time, self._run[name])

    def need(self, system: str, variable: str, what: str) -> Floats:
        """Return a signal, shape (k,).

        Raises
        ------
        InputError
            When it was not recorded; the sentence says what does not follow without it.
        """
        found = self.find(system, variable)
        if found is None:
            raise InputError(
                f"the run has no signal '{system}.{variable}', without which nobody knows {what}; let it be an output"
            )
        return found

    def quaternion(self, system: str, variable: str, what: str) -> Floats:
        """Return a unit quaternion (w, x, y, z), needed as by `need`, shape (k, 4).

        A quaternion and its negative mean one orientation: between rows it goes the short way.
        """
        names = [f"{variable}.{part}" for part in "wxyz"]
        for name in names:
            self.need(system, name, what)
        rows = np.stack([self._run[self.name(system, name) or name] for name in names], axis=1)
        turns = np.sign(np.sum(rows[1:] * rows[:-1], axis=1))
        rows = rows * np.cumprod(np.concatenate([[1.0], np.where(turns < 0.0, -1.0, 1.0)]))[:, None]
        found = np.stack([np.interp(self.times, self._run.time, column) for column in rows.T], axis=1)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def viewing_times(run: Trajectory, rate: float, fewest: int, most: int) -> Floats:
    """Return equally spaced times in s over a run, shape (k,), with limits of their number.

    Raises
    ------
    InputError
        When the run has no two times.
    """
    if len(run.time) < 2:
        raise InputError("the run has one time only; there is no motion to show")
    begin, end = float(run.time[0]), float(run.time[-1])
    count = int(np.clip(round((end - begin) * rate), fewest, most))
    return np.linspace(begin, end, count + 1)
