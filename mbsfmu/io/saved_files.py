"""Runs in files, so that another process can go on from there.

A file is a ZIP archive with `run.json`, the arrays as `.npy`, as exact as the numbers in JSON are, and bytes such as
the serialized states of FMUs. Nothing in it is executed. It has the call that the run was made with, in words: another
call is refused.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file

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
