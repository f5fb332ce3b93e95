"""Coupled runs in files: what changes from step to step, so that another process can go on from there.

What an object changes from one communication point to the next stands by name in the `CHANGES` of its class; all else
follows from the call and the FMUs. A file is a ZIP archive with `run.json`, the arrays as `.npy`, as exact as the
numbers in JSON are, and the states of the FMUs as they serialize them. Nothing in it is executed.
"""

from __future__ import annotations

import hashlib
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


def changes_of(thing: Any) -> dict[str, Any]:
    """Return the changes of an object since its start, by the names in `CHANGES`; arrays are copied."""
    return {name: _taken(getattr(thing, name)) for name in type(thing).CHANGES}


def put_back(thing: Any, changes: Mapping[str, Any]) -> None:
    """Let an object be as it was when its changes were taken; arrays keep their place."""
    for name in type(thing).CHANGES:
        now, then = getattr(thing, name), changes[name]
        if hasattr(type(now), "CHANGES"):
            put_back(now, then)
        elif isinstance(now, np.ndarray) and isinstance(then, np.ndarray) and now.shape == then.shape:
            now[...] = then
        else:
            setattr(thing, name, tuple(then) if isinstance(then, list) and isinstance(now, tuple) else then)


def _taken(value: Any) -> Any:
    if hasattr(type(value), "CHANGES"):
        return changes_of(value)
    return value.copy() if isinstance(value, np.ndarray) else value


def identity_of(file: Path) -> str:
    """Return the identity of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


# -- files --------------------------------------------------------------------------------------------------------


def write_saved(path: str | os.PathLike[str], call: Mapping[str, str], content: Mapping[str, Any]) -> None:
    """Write what was taken of a run, complete or not at all.

    Parameters
    ----------
    path
        The file.
    call
        What the run was called with, in words.
    content
        Mappings, sequences, numbers, texts, arrays and bytes.
    """
    parts: dict[str, bytes] = {}
    text = json.dumps({"version": _VERSION, "call": dict(call), "content": _parted(content, parts)})
    with complete_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
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
                raise InputError(f"{file} was saved by another version of the master; repeat the run")
            content = _joined(data["content"], archive)
            saved = data["call"]
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
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
