"""Open families of parts: classes, built-in or user-defined, register by their `type`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin
from weakref import WeakKeyDictionary

from pydantic_core import PydanticCustomError

from mbsfmu.modelling.data import Data, DataError, closest_match

BUILT_IN = ("hydraulics", "mbsfmu")
"""Packages of the built-in parts."""
_OWN = "a type of your own needs the file that defines it: --parts FILE, or parts=[FILE] in Python"

Part = TypeVar("Part", bound=Data)


class PartFile(NamedTuple):
    """A file that defines parts, with its content at that time.

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
"""Family and `type` of a kind."""


class _Loading(NamedTuple):
    module: str
    file: PartFile
    kinds: dict[KindKey, type[Data]]


_loading: ContextVar[_Loading | None] = ContextVar("the file that is loaded", default=None)
_given: ContextVar[Mapping[KindKey, type[Data]]] = ContextVar("kinds that were given", default={})  # noqa: B039
_files: WeakKeyDictionary[type[Data], PartFile] = WeakKeyDictionary()
_keys: WeakKeyDictionary[type[Data], KindKey] = WeakKeyDictionary()


@contextmanager
def kept_apart(module: str, file: PartFile) -> Iterator[dict[KindKey, type[Data]]]:
    """Collect the kinds that a module defines while its file runs, invisible to other code.

    Raises
    ------
    DataError
        When the file is being run already: it uses its own parts where it defines them.
    """
    known = _loading.get()
    if known is not None and known.file == file:
        raise DataError(
            f'{file.path} runs a model where it is to define parts; put that below `if __name__ == "__main__":`'
        )
    loading = _Loading(module, file, {})
    token = _loading.set(loading)
    try:
        yield loading.kinds
    finally:
        _loading.reset(token)


@contextmanager
def given_kinds(kinds: Mapping[KindKey, type[Data]]) -> Iterator[None]:
    """Give these kinds precedence over imported ones within the context."""
    token = _given.set({**_given.get(), **kinds})
    try:
        yield
    finally:
        _given.reset(token)


def is_built_in(kind: type[Data]) -> bool:
    """Return whether a class is built in."""
    return kind.__module__.partition(".")[0] in BUILT_IN


def file_of(kind: type[Data]) -> PartFile | None:
    """Return the file that defines a class; None without a file, as in a notebook."""
    return _files.get(kind)


def key_of(kind: type[Data]) -> KindKey | None:
    """Return the family and `type` of a class; None if it is no kind of any family."""
    return _keys.get(kind)


def kinds_in(file: PartFile) -> dict[KindKey, type[Data]]:
    """Return the kinds that were imported from the present content of a file."""
    return {
        (family.family, word): kind for family in FAMILIES for word, kind in family.known() if _files.get(kind) == file
    }


def place_of(kind: type[Data]) -> str:
    """Return the file that defines a class, or its module, in words."""
    file = file_of(kind)
    return kind.__module__ if file is None else file.path


FAMILIES: list[Kinds[Any]] = []
"""All families of parts."""


class Kinds(Generic[Part]):
    """The kinds of one family of parts.

    Parameters
    ----------
    family
        What a part is called in messages, as `component`.
    home
        The package that defines the built-in ones, where it is above the family's own: it is loaded when they are
        first asked for.
    """

    def __init__(self, family: str, home: str | None = None) -> None:
        self.family = family
        self._home = home
        self._known: dict[str, type[Part]] = {}
        FAMILIES.append(self)

    def _loaded(self) -> dict[str, type[Part]]:
        """Return the known kinds, after loading the built-in ones."""
        if self._home is not None:
            home, self._home = self._home, None
            import_module(home)
        return self._known

    def known(self) -> list[tuple[str, type[Part]]]:
        """Return the built-in and imported classes by type."""
        return list(self._loaded().items())

    def add(self, kind: type[Part]) -> None:
        """Register a class by its `type`.

        Raises
        ------
        DataError
            When it has no type of its own, or another class has it already.
        """
        word = self.word(kind)
        key = (self.family, word)
        known = self._known if is_built_in(kind) else self._loaded()
        loading = _loading.get()
        if loading is not None and loading.module == kind.__module__:
            _files[kind] = loading.file
            self._refuse_second(kind, word, known.get(word), replaceable=True)
            self._refuse_second(kind, word, loading.kinds.get(key))
            loading.kinds[key] = kind
        else:
            path = Path(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")
            if path.is_file() and not is_built_in(kind):
                _files[kind] = PartFile(str(path.resolve()), path.read_text(encoding="utf-8"))
            self._refuse_second(kind, word, known.get(word))
            known[word] = kind
        _keys[kind] = key

    def word(self, kind: type[Part]) -> str:
        """Return the `type` of a class.

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
        """Refuse a `type` in use, except for the same class defined again, as in a notebook cell."""
        if other is None or (replaceable and not is_built_in(other)):
            return
        if not is_built_in(other) and (place_of(other), other.__qualname__) == (place_of(kind), kind.__qualname__):
            return
        raise DataError(
            f"class {kind.__name__} of {place_of(kind)}: the {self.family} type '{word}' is taken by "
            f"{other.__name__} of {place_of(other)}"
        )

    def words(self) -> list[str]:
        """Return the types of all kinds that data may refer to here."""
        given = [word for kinds in self._nearer() for family, word in kinds if family == self.family]
        return list(dict.fromkeys([*self._loaded(), *given]))

    def find(self, word: object) -> type[Part] | None:
        """Return the class of a type; None if unknown."""
        if not isinstance(word, str):
            return None
        for kinds in self._nearer():
            if (self.family, word) in kinds:
                return kinds[self.family, word]  # pyright: ignore[reportReturnType] - of this family
        return self._loaded().get(word)

    @staticmethod
    def _nearer() -> list[Mapping[KindKey, type[Data]]]:
        """Return the kinds of the context, those of a file being loaded first."""
        loading = _loading.get()
        return [*([] if loading is None else [loading.kinds]), _given.get()]

    def made(self, data: Any) -> Any:
        """Return the part described by a dictionary; other values unchanged. Used as a field validator."""
        if not isinstance(data, dict):
            return data
        if "type" not in data:
            raise PydanticCustomError("kind_missing", "the type is missing")
        kind = self.find(data["type"])
        if kind is None:
            message = f"{closest_match(str(data['type']), sorted(self.words()))} ({_OWN})"
            raise PydanticCustomError("kind_unknown", "{told}", {"told": message})
        return kind.from_dict(data)
