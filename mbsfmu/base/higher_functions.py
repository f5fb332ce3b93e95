"""Functions of higher layers that methods of objects in lower ones stand for: the root package says where they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

_HOMES: dict[str, str] = {}


class Page(Protocol):
    """A page of its own, which notebooks show."""

    def save(self, path: str) -> None:
        """Write it to a file."""
        ...

    def widget(self) -> Any:
        """Return it as a widget of notebooks."""
        ...


def provide(name: str, module: str) -> None:
    """Say which module has a function; it is loaded when it is called for."""
    _HOMES[name] = module


def provided(name: str) -> Callable[..., Any]:
    """Return a function by its name."""
    return getattr(importlib.import_module(_HOMES[name]), name)
