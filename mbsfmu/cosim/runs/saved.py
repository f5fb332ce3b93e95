"""What changes from step to step in coupled runs, so that another process can go on from there.

What an object changes from one communication point to the next stands by name in the `CHANGES` of its class; all else
follows from the call and the FMUs. `mbsfmu.io.saved_files` writes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


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
