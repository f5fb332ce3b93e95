"""What was traced of a model, kept for the next time that it is run.

A model's functions follow from its data and from the code of these packages. Where a part is a user's, nothing is kept:
what its code computes may follow from anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling import kept

PACKAGES = ("mbsfmu", "hydraulics")
_SUFFIX = ".traces"


@cache
def toolkit() -> str:
    """Return a name for all that makes functions of data: these packages to the last character, CasADi and NumPy."""
    digest = hashlib.sha256(repr((ca.CasadiMeta.version(), np.__version__)).encode())
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        folder = Path(str(spec.origin)).parent
        for file in sorted(each for each in folder.rglob("*") if each.suffix in (".py", ".c", ".h")):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder)} {len(content)} ".encode() + content)
    return digest.hexdigest()


class _Book:
    """What is kept under one name, all of it: texts of functions, and facts."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.entries: dict[str, Any] = {}
        self.changed = False
        self._file = None if name is None else kept.find(name, toolkit(), _SUFFIX)
        if self._file is not None:
            try:
                self.entries = json.loads(self._file.read_bytes())
            except OSError:  # gone since
                self._file = None

    def keep(self) -> None:
        """Write what is new, in the place of what was there."""
        if self.name is None or not self.changed:
            return
        before, self.changed = self._file, False
        try:
            self._file = kept.store(self.name, toolkit(), _SUFFIX, json.dumps(self.entries).encode())
            if before is not None and before != self._file:
                before.unlink(missing_ok=True)
        except OSError as error:
            kept.warn_once(f"what was traced cannot be kept: {error}; models are traced again in every process")


class Traces:
    """Functions and facts of a model, by names; those that are not kept are made.

    Parameters
    ----------
    made_from
        What they follow from besides the toolkit; None where nothing is kept.
    """

    def __init__(self, made_from: object = None) -> None:
        self._book = _Book(None if made_from is None else content_key("traces", made_from))
        self._scope = ""
        self._asked: set[str] = set()

    def of(self, *scope: object) -> Traces:
        """Return those of a part of what is traced, kept with the rest."""
        part = Traces()
        part._book, part._scope = self._book, f"{self._scope}{content_key(*scope)[:16]}/"
        return part

    def function(self, name: str, make: Callable[[], ca.Function]) -> ca.Function:
        """Return a function that is kept, or make it."""
        place = self._place(name)
        if text := self._book.entries.get(place):
            return ca.Function.deserialize(text)
        function = make()
        self._book.entries[place], self._book.changed = function.serialize(), True
        return function

    def fact(self, name: str, make: Callable[[], Any]) -> Any:
        """Return numbers or truths, in lists where there are several, that are kept, or work them out."""
        place = self._place(name)
        if place not in self._book.entries:
            self._book.entries[place], self._book.changed = make(), True
        return self._book.entries[place]

    def keep(self) -> None:
        """Keep what was made, for the next time."""
        self._book.keep()

    def _place(self, name: str) -> str:
        if name in self._asked:
            raise SimulationError(f"'{name}' is traced twice; each function of a system needs a name of its own")
        self._asked.add(name)
        return f"{self._scope}{name}"
