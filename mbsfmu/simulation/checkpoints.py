"""Checkpoints of runs in process: a run that was killed goes on from the last one, with the same bits."""

from __future__ import annotations

import hashlib
import json
import time as clock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any

import numpy as np

from mbsfmu.integration.solver import Statistics
from mbsfmu.io.checkpoints import PARTS, CheckpointFile
from mbsfmu.simulation.runner import Recording
from mbsfmu.tracing.workspace import Floats


@dataclass
class CheckedRun:
    """A run that is made in parts, with checkpoints between them.

    Attributes
    ----------
    file
        The checkpoint of its call.
    save, restore
        Functions that give the complete state of the simulation as bytes, and put it back.
    seconds
        Time on the clock in s that the run took in earlier processes.
    """

    file: CheckpointFile
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
        content = self.file.read()
        if content is None:
            return
        self.restore(content["state"])
        rows: Floats = content["rows"]
        assert recording.rows is not None
        recording.rows[: len(rows)] = rows
        recording.done = len(rows)
        _put_back(statistics, content["statistics"])
        self.seconds = content["seconds"]

    def parts(self, recording: Recording, statistics: Statistics) -> Iterator[Recording]:
        """Yield the parts of a recording that are left, and write checkpoints between them.

        Where a part ends, the state is taken, whether a file is written or not: inputs are moved on to there, so that
        the result does not depend on when the process ends.

        Raises
        ------
        WriteError
            When a checkpoint cannot be written.
        """
        begin = clock.monotonic()
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
            if self.file.is_due:
                self._write(saved, recording, statistics, self.seconds + clock.monotonic() - begin)

    def _write(self, saved: bytes, recording: Recording, statistics: Statistics, seconds: float) -> None:
        _, rows = recording.recorded
        content = {"state": saved, "rows": rows, "statistics": _counted(statistics), "seconds": seconds}
        self.file.write(float(recording.times[recording.done - 1]), content)


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
