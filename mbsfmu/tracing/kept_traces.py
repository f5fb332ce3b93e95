"""Cache of traced functions of a model.

A model's functions depend on the structure of its data, in which the numbers of parameters are left out, and on the
code of these packages. With user-defined parts nothing is cached, because their code may depend on anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling import kept

PACKAGES = ("mbsfmu", "hydraulics")
_SUFFIX = ".traces"
_FASTEST = 1  # of the levels of compression
_REMEMBERED = 16
"""Number of cached models per process: functions of the largest with unrolled code take some 10 MB."""


UNUSED = ("analysis", "cli", "comparison", "cosim", "equilibrium", "exporting", "models", "studies", "urdf", "view")
"""Folders whose code makes no functions that are kept: those of layers above use what is kept, and change nothing of
it."""
_CODE = (".py", ".c", ".h")


@cache
def toolkit() -> str:
    """Return an identity of the code that makes functions of data: these packages, CasADi and NumPy."""
    digest = hashlib.sha256(repr((ca.CasadiMeta.version(), np.__version__)).encode())
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        top = os.path.dirname(str(spec.origin))
        for folder, inner, files in os.walk(top):
            inner[:] = sorted(each for each in inner if folder != top or each not in UNUSED)
            for name in sorted(each for each in files if each.endswith(_CODE)):
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                digest.update(f"{os.path.relpath(folder, top)} {name} {len(content)} ".encode() + content)
    return digest.hexdigest()


class _Book:
    """Cache entry of one name: functions and facts.

    Parameters
    ----------
    name
        What it is kept under; None where it is forgotten with who has it.
    """

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._functions: dict[str, ca.Function] = {}
        self._texts: dict[str, bytes] = {}  # of functions, compressed, as they are in the file
        self._facts: dict[str, Any] = {}
        self._changed = False
        self._file = None if name is None else kept.find(name, toolkit(), _SUFFIX)
        if self._file is not None:
            try:
                self._texts, self._facts = _unpacked(self._file.read_bytes())
            except OSError:  # gone since
                self._file = None

    def function(self, place: str, make: Callable[[], ca.Function]) -> ca.Function:
        """Return a cached function, or make it."""
        found = self._functions.get(place)
        if found is None:
            text = self._texts.get(place)
            found = make() if text is None else ca.Function.deserialize(zlib.decompress(text).decode())
            self._functions[place] = found
            self._changed |= text is None
        return found

    def fact(self, place: str, make: Callable[[], Any]) -> Any:
        """Return a cached fact, or compute it."""
        if place not in self._facts:
            self._facts[place], self._changed = make(), True
        return self._facts[place]

    def keep(self) -> None:
        """Write new entries in place of the old file."""
        if self._name is None or not self._changed:
            return
        before, self._changed = self._file, False
        for place in self._functions.keys() - self._texts.keys():
            self._texts[place] = zlib.compress(self._functions[place].serialize().encode(), _FASTEST)
        try:
            self._file = kept.store(self._name, toolkit(), _SUFFIX, _packed(self._texts, self._facts))
            if before is not None and before != self._file:
                before.unlink(missing_ok=True)
        except OSError as error:
            kept.warn_once(f"what was traced cannot be kept: {error}; models are traced again in every process")


def _packed(texts: Mapping[str, bytes], facts: Mapping[str, Any]) -> bytes:
    """Return the content of a file: a line with facts and the sizes of texts, then the texts."""
    line = json.dumps({"facts": facts, "sizes": {place: len(text) for place, text in texts.items()}})
    return b"\n".join([line.encode(), b"".join(texts.values())])


def _unpacked(content: bytes) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return texts and facts."""
    line, _, rest = content.partition(b"\n")
    described = json.loads(line)
    ends = list(accumulate(described["sizes"].values(), initial=0))
    slices = (rest[first:last] for first, last in pairwise(ends))
    return dict(zip(described["sizes"], slices, strict=True)), described["facts"]


@lru_cache(maxsize=_REMEMBERED)
def _remembered(name: str, maker: str, folder: str | None) -> _Book:  # noqa: ARG001 - of other ones it is another
    """Return this process's entry of a name, for a toolkit version and folder."""
    return _Book(name)


class Traces:
    """Cached functions and facts of a model, by name.

    A process remembers those of its most recent models.

    Parameters
    ----------
    made_from
        What they follow from besides the toolkit; None where nothing is remembered.
    for_others
        Whether `keep` keeps them for other processes.
    """

    def __init__(self, made_from: object = None, *, for_others: bool = True) -> None:
        if made_from is None:
            self._book = _Book(None)
        else:
            self._book = _remembered(content_key("traces", made_from), toolkit(), os.environ.get(kept.FOLDER))
        self._for_others = for_others
        self._scope = ""
        self._asked: set[str] = set()

    def of(self, *scope: object) -> Traces:
        """Return the cache of a part, stored with the whole."""
        part = Traces(for_others=self._for_others)
        part._book, part._scope = self._book, f"{self._scope}{content_key(*scope)[:16]}/"
        return part

    def function(self, name: str, make: Callable[[], ca.Function]) -> ca.Function:
        """Return a cached function, or make it."""
        return self._book.function(self._place(name), make)

    def fact(self, name: str, make: Callable[[], Any]) -> Any:
        """Return cached numbers or truth values, or compute them."""
        return self._book.fact(self._place(name), make)

    def keep(self) -> None:
        """Store new entries for other processes, if enabled."""
        if self._for_others:
            self._book.keep()

    def _place(self, name: str) -> str:
        if name in self._asked:
            raise SimulationError(f"'{name}' is traced twice; each function of a system needs a name of its own")
        self._asked.add(name)
        return f"{self._scope}{name}"
