"""Open families of parts: a class registers under the word that data call it by, a user's class like a built-in one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin
from weakref import WeakKeyDictionary

from pydantic_core import PydanticCustomError

from hydraulics.data import Data, DataError, meant

_BUILT_IN = ("hydraulics", "mbsfmu")
_OWN = "a type of your own needs the file that defines it: --parts FILE, or parts=[FILE] in Python"

Part = TypeVar("Part", bound=Data)


class PartFile(NamedTuple):
    """A file that defines parts, as it was when they were defined.

    Attributes
    ----------
    path
        Where it was.
    text
        What it said.
    """

    path: str
    text: str

    @property
    def name(self) -> str:
        """Its name without folders."""
        return Path(self.path).name


KindKey = tuple[str, str]
"""The family of a kind and the word for it."""

_apart: ContextVar[dict[KindKey, type[Data]] | None] = ContextVar("kinds of a file that is loaded", default=None)
_given: ContextVar[Mapping[KindKey, type[Data]]] = ContextVar("kinds that were given", default={})  # noqa: B039
_files: WeakKeyDictionary[type[Data], PartFile] = WeakKeyDictionary()


@contextmanager
def kept_apart() -> Iterator[dict[KindKey, type[Data]]]:
    """Collect the kinds that are defined within; other code of the process does not see them."""
    collected: dict[KindKey, type[Data]] = {}
    token = _apart.set(collected)
    try:
        yield collected
    finally:
        _apart.reset(token)


@contextmanager
def given_kinds(kinds: Mapping[KindKey, type[Data]]) -> Iterator[None]:
    """Let data within mean these kinds by their words, before those that were imported."""
    token = _given.set({**_given.get(), **kinds})
    try:
        yield
    finally:
        _given.reset(token)


def is_built_in(kind: type[Data]) -> bool:
    """Tell whether a class is of these packages."""
    return kind.__module__.partition(".")[0] in _BUILT_IN


def file_of(kind: type[Data]) -> PartFile | None:
    """Return the file that defines a class; None where there is no file, as in a notebook."""
    return _files.get(kind)


def place_of(kind: type[Data]) -> str:
    """Say where a class is defined: its file, or its module where that has none."""
    file = file_of(kind)
    return kind.__module__ if file is None else file.path


class Kinds(Generic[Part]):
    """The kinds of one family of parts.

    Parameters
    ----------
    family
        What a part is called in messages, as `component`.
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self._known: dict[str, type[Part]] = {}

    def add(self, kind: type[Part]) -> None:
        """Register a class under its `type`.

        Raises
        ------
        DataError
            When it has no type of its own, or another class has it already.
        """
        word = self.word(kind)
        module = sys.modules.get(kind.__module__)
        path = getattr(module, "__file__", None)
        if path is not None and not is_built_in(kind):
            _files[kind] = PartFile(str(path), Path(path).read_text(encoding="utf-8"))
        apart = _apart.get()
        self._refuse_second(kind, word, self._known.get(word), replaceable=apart is not None)
        if apart is None:
            self._known[word] = kind
        else:
            self._refuse_second(kind, word, apart.get((self.family, word)))
            apart[self.family, word] = kind

    def word(self, kind: type[Part]) -> str:
        """Return the word for a class, its `type`.

        Raises
        ------
        DataError
            When it has none of its own.
        """
        field = kind.model_fields.get("type")
        words = get_args(field.annotation) if field is not None and get_origin(field.annotation) is Literal else ()
        if field is None or len(words) != 1 or field.default != words[0] or "type" not in kind.__annotations__:
            raise DataError(
                f"class {kind.__name__}: a {self.family} has a type of its own, "
                'as `type: Literal["my-part"] = "my-part"`; a base for others is said to be one by abstract=True'
            )
        return words[0]

    def _refuse_second(self, kind: type[Part], word: str, other: type[Data] | None, replaceable: bool = False) -> None:
        """Refuse a word that is taken, but for the same class defined anew, as by a cell of a notebook."""
        if other is None or (replaceable and not is_built_in(other)):
            return
        if not is_built_in(other) and (place_of(other), other.__qualname__) == (place_of(kind), kind.__qualname__):
            return
        raise DataError(
            f"class {kind.__name__} of {place_of(kind)}: the {self.family} type '{word}' is taken by "
            f"{other.__name__} of {place_of(other)}"
        )

    def words(self) -> list[str]:
        """Return the words of all kinds that data may mean here."""
        given = [word for family, word in (*_given.get(), *(_apart.get() or {})) if family == self.family]
        return list(dict.fromkeys([*self._known, *given]))

    def find(self, word: object) -> type[Part] | None:
        """Return the class of a word; None where there is none."""
        if not isinstance(word, str):
            return None
        for kinds in (_apart.get() or {}, _given.get()):
            if (self.family, word) in kinds:
                return kinds[self.family, word]  # pyright: ignore[reportReturnType] - of this family
        return self._known.get(word)

    def made(self, data: Any) -> Any:
        """Make the part that a dictionary describes; give back all else as it is: the check of a field."""
        if not isinstance(data, dict):
            return data
        if "type" not in data:
            raise PydanticCustomError("kind_missing", "the type is missing")
        kind = self.find(data["type"])
        if kind is None:
            told = f"{meant(str(data['type']), sorted(self.words()))} ({_OWN})"
            raise PydanticCustomError("kind_unknown", "{told}", {"told": told})
        return kind.from_dict(data)
