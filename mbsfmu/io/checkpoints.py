"""Checkpoints of runs: files from which the same call goes on, with the same bits, after its process was killed."""

from __future__ import annotations

import logging
import math
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.io.saved_files import read_saved, write_saved

PARTS = 256
"""Parts of a run with checkpoints, between which one may be written: they follow from the run alone, and not from the
clock, as steps may end there."""

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

    @classmethod
    def beside(cls, output: str | None, seconds: float | None) -> Checkpoint | None:
        """Return the checkpoint next to an output file; None where no time is given.

        Raises
        ------
        InputError
            When there is no output, or the time is not positive.
        """
        if seconds is None:
            return None
        if output is None:
            raise InputError(f"--checkpoint {seconds:g} needs --output: the run is saved beside it")
        return cls(f"{output}.checkpoint", seconds)

    @cached_property
    def file(self) -> Path:
        """The file, also after the working directory has changed."""
        return Path(self.path).absolute()

    def remove(self) -> None:
        """Remove the file, and what killed processes have left of writing it."""
        self.file.unlink(missing_ok=True)
        self.remove_partial()

    def remove_partial(self) -> None:
        """Remove what killed processes have left of writing the file."""
        for left in self.file.parent.glob(f"{self.file.name}*.part"):
            left.unlink(missing_ok=True)


class CheckpointFile:
    """The checkpoint of one call: what an earlier process has saved, and what this one saves.

    Parameters
    ----------
    checkpoint
        File and time.
    call
        What the run was called with, in words; checkpoints of other calls are refused.
    """

    def __init__(self, checkpoint: Checkpoint, call: Mapping[str, str]) -> None:
        self._checkpoint, self._call = checkpoint, call
        self._last = clock.monotonic()

    def read(self) -> dict[str, Any] | None:
        """Return the content of the last checkpoint, from which the run goes on; None where there is none.

        Raises
        ------
        InputError
            When the checkpoint is of another call, or damaged.
        """
        self._checkpoint.remove_partial()
        if not self._checkpoint.file.exists():
            return None
        content = read_saved(self._checkpoint.file, self._call)
        time = float(content["time"])
        _LOGGER.info("the run goes on from the checkpoint at t = %.6g s in %s", time, self._checkpoint.path)
        return content

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return clock.monotonic() - self._last >= self._checkpoint.seconds

    def write(self, time: float, content: Mapping[str, Any]) -> None:
        """Write a checkpoint at a time in s in place of the last one.

        Raises
        ------
        WriteError
            When the disk does not take it.
        """
        write_saved(self._checkpoint.file, self._call, {"time": time, **content}, compressed=False)
        self._last = clock.monotonic()
