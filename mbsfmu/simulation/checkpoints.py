"""Checkpoints of runs in process: a run that was killed goes on from the last one, with the same bits."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time as clock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.integration.solver import Statistics
from mbsfmu.io.saved_files import read_saved, write_saved
from mbsfmu.simulation.runner import Recording
from mbsfmu.tracing.workspace import Floats

PARTS = 256
"""Parts of a run with checkpoints, between which one may be written: they follow from the outputs alone, and not from
the clock, as steps end there."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """File that a run is saved to on its way, so that the same call goes on from there after its process was killed.

    Parameters
    ----------
    path
        The file. It is written whole or not at all; `remove` it when what the run has given is safe.
    seconds
        Time on the clock in s between two checkpoints.

    Raises
    ------
    InputError
        When the time is not positive.
    """

    path: str | Path
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if not (self.seconds > 0.0 and math.isfinite(self.seconds)):
            raise InputError(f"the time between checkpoints is {self.seconds:g} s; it must be positive and finite")

    @cached_property
    def file(self) -> Path:
        """The file."""
        return Path(self.path)

    def remove(self) -> None:
        """Remove the file, and what killed processes have left of writing it."""
        self.file.unlink(missing_ok=True)
        self.remove_partial()

    def remove_partial(self) -> None:
        """Remove what killed processes have left of writing the file."""
        for left in self.file.absolute().parent.glob(f"{self.file.name}*.part"):
            left.unlink(missing_ok=True)


@dataclass
class CheckedRun:
    """A run that is made in parts, with checkpoints between them.

    Attributes
    ----------
    checkpoint
        File and time.
    call
        What the run was called with, in words; checkpoints of other calls are refused.
    save, restore
        Functions that give the complete state of the simulation as bytes, and put it back.
    seconds
        Time on the clock in s that the run took in earlier processes.
    """

    checkpoint: Checkpoint
    call: Mapping[str, str]
    save: Callable[[], bytes]
    restore: Callable[[bytes], None]
    seconds: float = 0.0

    def go_on(self, recording: Recording, statistics: Statistics) -> None:
        """Bring the run to its last checkpoint, if there is one.

        Parameters
        ----------
        recording
            Gets the rows until then.
        statistics
            Get what it has cost until then.

        Raises
        ------
        InputError
            When the checkpoint is of another call, or damaged.
        """
        self.checkpoint.remove_partial()
        if not self.checkpoint.file.exists():
            return
        content = read_saved(self.checkpoint.file, self.call)
        self.restore(content["state"])
        rows: Floats = content["rows"]
        assert recording.rows is not None
        recording.rows[: len(rows)] = rows
        recording.done = len(rows)
        _put_back(statistics, content["statistics"])
        self.seconds = content["seconds"]
        time = float(recording.times[recording.done - 1])
        _LOGGER.info("the run goes on from the checkpoint at t = %.6g s in %s", time, self.checkpoint.file)

    def parts(self, recording: Recording, statistics: Statistics) -> Iterator[Recording]:
        """Yield the parts of a recording that are left, and write checkpoints between them.

        Where a part ends, the state is saved and put back, whether a file is written or not: what a run gives does not
        depend on when somebody ends it.

        Raises
        ------
        WriteError
            When a checkpoint cannot be written.
        """
        begin = last = clock.monotonic()
        count = len(recording.times) - 1
        ends = [-(-count * part // PARTS) for part in range(1, PARTS + 1)]
        for end in dict.fromkeys(ends):
            start = recording.done - 1
            if end <= start:
                continue
            part = recording.part(start, end)
            try:
                yield part
            finally:
                recording.done = start + part.done
            recording.report_progress()
            if end == count:
                return
            saved = self.save()
            self.restore(saved)
            now = clock.monotonic()
            if now - last >= self.checkpoint.seconds:
                self._write(saved, recording, statistics, self.seconds + now - begin)
                last = clock.monotonic()

    def _write(self, saved: bytes, recording: Recording, statistics: Statistics, seconds: float) -> None:
        _, rows = recording.recorded
        content = {"state": saved, "rows": rows, "statistics": _counted(statistics), "seconds": seconds}
        write_saved(self.checkpoint.file, self.call, content, compressed=False)


def call_in_words(
    name: str, identity: str, values: Mapping[str, Floats], stop: float, output_step: float
) -> dict[str, str]:
    """Return what a run was called with, for comparisons of calls.

    Parameters
    ----------
    name, identity
        The model, and its equations and options.
    values
        Arrays that may be set before a run.
    stop, output_step
        In s.
    """
    numbers = json.dumps({each: np.asarray(array, dtype=float).tolist() for each, array in values.items()})
    return {
        "the model": name,
        "the stop time": f"{float(stop)!r} s",
        "the output step": f"{float(output_step)!r} s",
        "the equations and options": hashlib.sha256(identity.encode()).hexdigest()[:12],
        "the values": hashlib.sha256(numbers.encode()).hexdigest()[:12],
        "the version": version("mbsfmu"),
    }


def _counted(statistics: Statistics) -> dict[str, Any]:
    numbers = {each.name: getattr(statistics, each.name) for each in fields(statistics) if each.name != "iterations"}
    levels = {name: [count.solutions, count.total, count.most] for name, count in statistics.iterations.items()}
    return {**numbers, "iterations": levels}


def _put_back(statistics: Statistics, counted: Mapping[str, Any]) -> None:
    for name, value in counted.items():
        if name != "iterations":
            setattr(statistics, name, value)
    for name, (solutions, total, most) in counted["iterations"].items():
        count = statistics.iterations[name]
        count.solutions, count.total, count.most = solutions, total, most
