"""Checkpoints and runs in files, from which another process goes on with the same bits.

Runs in files, so that another process can go on from there.

A file is a ZIP archive with `run.json`, the arrays as `.npy`, as exact as the numbers in JSON are, and bytes such as
the serialized states of FMUs. Nothing in it is executed. It has the call that the run was made with, in words: another
call is refused.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import time as clock
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.files import complete_file
from mbsfmu.io.trajectory import Trajectory


class RunError(SimulationError):
    """Failed run; `result` has the recorded part."""

    def __init__(self, message: str, result: Trajectory) -> None:
        super().__init__(message)
        self.result = result


class RunInterrupted(KeyboardInterrupt):
    """Interrupted run; `result` has the recorded part."""

    def __init__(self, result: Trajectory) -> None:
        super().__init__()
        self.result = result


_VERSION = 1
_RUN = "run.json"
_ARRAY, _BYTES = "array", "bytes"


def write_saved(
    path: str | os.PathLike[str], call: Mapping[str, str], content: Mapping[str, Any], *, compressed: bool = True
) -> None:
    """Write what was taken of a run, complete or not at all.

    Parameters
    ----------
    path
        The file.
    call
        What the run was called with, in words.
    content
        Mappings, sequences, numbers, texts, arrays and bytes.
    compressed
        Whether the file is made small, which takes time.

    Raises
    ------
    WriteError
        When the disk does not take it.
    """
    parts: dict[str, bytes] = {}
    text = json.dumps({"version": _VERSION, "call": dict(call), "content": _parted(content, parts)})
    with (
        complete_file(path) as partial,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(_RUN, text)
        for name, data in parts.items():
            archive.writestr(name, data)


def read_saved(path: str | os.PathLike[str], call: Mapping[str, str]) -> dict[str, Any]:
    """Read what was taken of a run that was called in the same way.

    Raises
    ------
    InputError
        When there is no such file, or it is of another run; the sentence says in what it differs.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    try:
        with zipfile.ZipFile(file) as archive:
            data = json.loads(archive.read(_RUN))
            if data["version"] != _VERSION:
                raise InputError(f"{file} was saved by another version of this package; repeat the run")
            content = _joined(data["content"], archive)
            saved = data["call"]
    except (MemoryError, PermissionError):
        raise
    except Exception as error:  # of any kind: what zipfile and data of other forms raise
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is no saved run: {error}") from None
    for name in (*call, *saved):
        if saved.get(name) != call.get(name):
            raise InputError(
                f"{file} was saved by a run with {name} {saved.get(name, 'none')}; this one has "
                f"{call.get(name, 'none')}"
            )
    return content


def _parted(value: Any, parts: dict[str, bytes]) -> Any:
    """Return JSON-compatible data, with arrays and bytes separated."""
    if isinstance(value, Mapping):
        return {"of": [[key, _parted(each, parts)] for key, each in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_parted(each, parts) for each in value]
    if isinstance(value, np.ndarray):
        stream = io.BytesIO()
        np.save(stream, value, allow_pickle=False)
        parts[name := f"arrays/{len(parts)}.npy"] = stream.getvalue()
        return {_ARRAY: name}
    if isinstance(value, bytes):
        parts[name := f"units/{len(parts)}.bin"] = value
        return {_BYTES: name}
    return value.item() if isinstance(value, np.generic) else value


def _joined(value: Any, archive: zipfile.ZipFile) -> Any:
    if isinstance(value, list):
        return [_joined(each, archive) for each in value]
    if not isinstance(value, dict):
        return value
    if "of" in value:
        return {key: _joined(each, archive) for key, each in value["of"]}
    if _ARRAY in value:
        return np.load(io.BytesIO(archive.read(value[_ARRAY])), allow_pickle=False)
    return archive.read(value[_BYTES])


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
