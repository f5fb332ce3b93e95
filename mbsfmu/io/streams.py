"""Growing files of signals, readable at any time during a run.

A growing file has the suffix `.part`, with rows in the form of its format. However the writing process ends, all groups
of rows are in the file except possibly the last one. Rows are buffered for a second at most.
"""

from __future__ import annotations

import math
import os
import time as clock
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import WriteError, new_file
from mbsfmu.base.interruption import deferring_interruptions
from mbsfmu.io.formats import format_of
from mbsfmu.io.formats.table_format import PART, TIME

try:
    import fcntl
except ImportError:  # where files that are open cannot be replaced anyway
    fcntl = None

_PATIENCE = 1.0  # s that rows may wait
_MOST_WAITING = 4096  # rows
Floats = NDArray[np.float64]


def _lock(file: int) -> bool:
    """Lock an open file until it is closed or its process ends; return whether the lock was acquired."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # of a file system that knows no locks
    return True


class SignalStream:
    """A growing file of signals.

    Parameters
    ----------
    path
        The file, in the format of its suffix; what is there under its name stays until `finish`.
    names, units
        Of the signals.

    Attributes
    ----------
    rows
        Rows that were taken until now.
    partial
        The file while it grows.
    end
        Time of the last row in the file in s; not-a-number where there is none.
    waiting
        Times and values that were taken and are not in the file: all are after `write`, unless the disk is full.

    Raises
    ------
    InputError
        When another run is writing it, or a signal is called `time`.
    WriteError
        When it cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str], units: Sequence[str]) -> None:
        if TIME in names:
            raise InputError(f"a signal is called '{TIME}', as the column of the times is; rename it")
        self.path = Path(path)
        self._format = format_of(path)
        self._units = {TIME: "s", **dict(zip(names, units, strict=True))}
        self.partial = self.path.with_name(self.path.name + PART)
        self.rows, self.end = 0, math.nan
        self.waiting: list[tuple[Floats, Floats]] = []
        self._since, self._count, self._size = clock.monotonic(), 0, 0
        self._ready: Path | None = None
        self._refuse_others()
        try:
            folder = self.path.absolute().parent
            if not folder.is_dir():
                raise FileNotFoundError(0, f"there is no folder {folder}")
            self._file, self._ready = new_file(folder, self.path.name[:100], PART)
        except OSError as error:
            raise WriteError(self.path, error) from error
        _lock(self._file)
        self._append(self._format.beginning(self._units))

    @property
    def found(self) -> Path:
        """Path of the rows."""
        return self.partial if self.partial.is_file() else self.path

    def begin(self) -> None:
        """Create the growing file; until then the file of an interrupted run remains.

        Raises
        ------
        InputError
            When another run has begun to write it.
        """
        if self._ready is not None:
            self._refuse_others()
            self._ready.replace(self.partial)
            self._ready = None

    def _refuse_others(self) -> None:
        try:
            there = os.open(self.partial, os.O_RDONLY)
        except OSError:
            return
        try:
            if not _lock(there):
                raise InputError(
                    f"{self.path} is being written by another run; choose another file, or wait for its end"
                )
        finally:
            os.close(there)

    def add(self, time: Floats, values: Floats) -> None:
        """Append rows: times in s, shape (k,), and values, shape (k, number of signals); they are not copied.

        Raises
        ------
        WriteError
            When they, or those that waited, cannot be written; they wait on.
        """
        self.waiting.append((time, values))
        self.rows += len(time)
        self._count += len(time)
        if self._count >= _MOST_WAITING or clock.monotonic() - self._since > _PATIENCE:
            self.write()

    def write(self) -> None:
        """Write the buffered rows.

        Raises
        ------
        WriteError
            When it cannot be written; what was there before stays whole.
        """
        with deferring_interruptions():  # rows are in the file, or wait: neither both nor none of it
            if self.waiting:
                time, values = (np.concatenate(each) for each in zip(*self.waiting, strict=True))
                self._append(self._format.encoded(self._units, [time, *np.ascontiguousarray(values.T)]))
                self.waiting, self._count, self.end = [], 0, float(time[-1])
        self._since = clock.monotonic()

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
            raise WriteError(self.path, error) from error
        self._size += len(data)

    def finish(self) -> Path:
        """Write the buffered rows and rename the file; return the path of the rows.

        Raises
        ------
        WriteError
            When something cannot be written; then the rows that were are in `partial`.
        """
        self.begin()
        try:
            self.write()
        finally:
            self.close()
        self._format.complete(self.partial, self.path)
        return self.path

    def close(self) -> None:
        """Close the file as it is."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._ready is not None:
            with suppress(OSError):
                self._ready.unlink()
            self._ready = None

    def take_over(self, rows: int, last: tuple[Floats, Floats] | None = None) -> None:
        """Start with the first rows of an earlier run's file, complete or not.

        Parameters
        ----------
        rows
            Number of rows.
        last
            Time in s of the last of them, shape (1,), and its values, shape (1, number of signals), where known.

        Raises
        ------
        InputError
            When there is none, its columns are others, it has fewer rows, or another last one.
        """
        source = self.found
        if not source.is_file():
            raise InputError(f"there is no file {self.path} that could be continued")
        left, found = rows, np.zeros((0, 0))
        for group in self._format.groups(source):
            if list(group.columns) != list(self._units) or any(group.units.get(k) != u for k, u in self._units.items()):
                raise InputError(f"{source} has other columns than those that are recorded; it cannot be continued")
            time, *values = group.arrays().values()
            if not left:
                break
            taken = np.column_stack([np.zeros((len(time), 0)), *values])[:left]
            self.add(time[:left], taken)
            found = np.column_stack([time[:left], taken])
            left -= min(left, len(time))
        if left:
            raise InputError(f"{source} has {rows - left} rows; it must have the {rows} that were recorded")
        if last is not None and not np.array_equal(found[-1:], np.column_stack(last), equal_nan=True):
            raise InputError(f"{source} has other rows than those that were recorded; it cannot be continued")
