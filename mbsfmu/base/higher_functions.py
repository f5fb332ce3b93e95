"""Functions of higher layers that methods of objects in lower ones stand for: the root package says where they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_HOMES: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Say which module has a function; it is loaded when it is called for."""
    _HOMES[name] = module


def provided(name: str) -> Callable[..., Any]:
    """Return a function by its name."""
    return getattr(importlib.import_module(_HOMES[name]), name)
