"""Signals over time: what a run gives back and what files hold."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.errors import InputError
from mbsfmu.files import complete_file


class UnknownSignalError(InputError, KeyError):
    """A name that means no signal, or more than one; as in every mapping, a `KeyError`."""

    def __str__(self) -> str:
        return str(self.args[0])


class Trajectory(Mapping[str, NDArray[np.float64]]):
    """A time grid and named signals with units.

    A signal is found by its full name, or by any trailing part of it that is unique:
    `trajectory["cylinder.length"]` finds `mechanism.cylinder.length` where no other signal ends so.

    Parameters
    ----------
    time
        Times in s, shape (k,).
    values
        One column a signal, shape (k, number of signals).
    names, units
        One a signal.
    """

    def __init__(
        self,
        time: NDArray[np.float64],
        values: NDArray[np.float64],
        names: Sequence[str],
        units: Sequence[str],
    ) -> None:
        self.time = np.asarray(time, dtype=float)
        self.values_by_column = np.asarray(values, dtype=float).reshape(len(self.time), len(names))
        self.names = tuple(names)
        self._unit_by_name = dict(zip(self.names, units, strict=True))
        self._column_by_name = {name: column for column, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.values_by_column[:, self._column_by_name[self.full_name(name)]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self.full_name(name))
        except UnknownSignalError:
            return False

    def full_name(self, name: str) -> str:
        """Return the full name of the one signal that `name` means.

        Raises
        ------
        UnknownSignalError
            When no signal or more than one is meant.
        """
        if name in self._column_by_name:
            return name
        found = [full for full in self.names if full.endswith("." + name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownSignalError(f"signal '{name}' is ambiguous: it may be {' or '.join(found)}")
        raise UnknownSignalError(f"there is no signal '{name}'; there are {', '.join(self.names)}")

    def unit(self, name: str) -> str:
        """Return the unit of a signal."""
        return self._unit_by_name[self.full_name(name)]

    def add(self, name: str, values: NDArray[np.float64], unit: str) -> None:
        """Add a signal, shape (k,).

        Raises
        ------
        InputError
            When there is one of that name.
        """
        if name in self._column_by_name:
            raise InputError(f"there is a signal '{name}' already")
        self.values_by_column = np.column_stack([self.values_by_column, values])
        self._column_by_name[name] = len(self.names)
        self.names = (*self.names, name)
        self._unit_by_name[name] = unit

    def final(self) -> dict[str, float]:
        """Return the last value of every signal."""
        return {name: float(self.values_by_column[-1, column]) for column, name in enumerate(self.names)}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write time and signals to a CSV file, numbers written so that they read back exactly, units in the header.

        The file appears complete or not at all.
        """
        header = ["time [s]"] + [f"{name} [{self._unit_by_name[name]}]" for name in self.names]
        with complete_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            rows = np.column_stack([self.time, self.values_by_column])
            writer.writerows([repr(float(value)) for value in row] for row in rows)
