"""Files of user-defined parts: loading, and packing with models."""

from __future__ import annotations

import ast
import linecache
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from mbsfmu.base import registry
from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.base.registry import Registry
from mbsfmu.io.formats import table_format
from mbsfmu.modelling import Data, DataError
from mbsfmu.modelling.part import (
    BUILT_IN,
    KindKey,
    PartFile,
    file_of,
    given_kinds,
    is_built_in,
    kept_apart,
    key_of,
    kinds_in,
)
from mbsfmu.rules import rule
from mbsfmu.rules.rule import Rule


class _FileContents(NamedTuple):
    """Content of a file: parts, and registered classes such as rules, by registry and name."""

    kinds: Mapping[KindKey, type[Data]]
    named: Mapping[tuple[str, str], type]


_loaded: dict[tuple[str, str], _FileContents] = {}
_loaded_named: dict[tuple[str, str], str] = {}  # where that is defined what names mean since the last call for users
_lock = threading.RLock()
logger = logging.getLogger(__name__)


class UserParts:
    """User-defined parts: classes and the files that define them; equal files give equal parts.

    They can be sent to other processes, where the stored file texts are run again.

    Attributes
    ----------
    files
        The files.
    """

    def __init__(self, files: Iterable[PartFile], kinds: Mapping[KindKey, type[Data]]) -> None:
        self.files = tuple(files)
        self._kinds = dict(kinds)

    @classmethod
    def from_files(cls, files: Iterable[PartFile]) -> UserParts:
        """Return the parts of files, which are kept apart from other modules and versions.

        Raises
        ------
        InputError
            When one cannot be run or defines nothing, or two of them define the same part, or rules or formats of one
        name.
        """
        wanted = tuple(dict.fromkeys(files))
        return cls(wanted, _kinds_together([_defined_by(file) for file in wanted]))

    @classmethod
    def of(cls, data: Data) -> UserParts:
        """Return the user-defined parts of data.

        Raises
        ------
        InputError
            When data of two versions of a part are put together.
        """
        kinds: dict[KindKey, type[Data]] = {}
        files: list[PartFile] = []
        for kind in dict.fromkeys(type(part) for part in _data_in(data)):
            key = key_of(kind)
            if key is None or is_built_in(kind):
                continue
            kinds = _joined(kinds, {key: kind})
            files += [file for each in reversed(kind.__mro__) if issubclass(each, Data) and (file := file_of(each))]
        return cls(dict.fromkeys(files), kinds)

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the files."""
        return tuple(file.text for file in self.files)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._kinds)

    def given(self) -> AbstractContextManager[None]:
        """Return a context in which data refer to these parts by their types."""
        return given_kinds(self._kinds)

    def with_rule(self, chosen: Rule | None) -> UserParts:
        """Return these parts plus the file of a user-defined integration rule.

        Raises
        ------
        InputError
            When it is defined in no file.
        """
        if chosen is None or registry.is_built_in(type(chosen)):
            return self
        path = getattr(sys.modules.get(type(chosen).__module__), "__file__", None)
        if path is None or not Path(path).is_file():
            raise InputError(
                f"the rule '{chosen.name}' is defined in no file; put the class into one, "
                "which goes where the model goes"
            )
        return UserParts([*self.files, read_part_file(path)], self._kinds)

    def alone(self) -> dict[str, str]:
        """Return the file texts by distinct names, if these alone define the parts.

        Raises
        ------
        InputError
            When a part is defined in no file, or a file cannot be run without others beside it.
        """
        for kind in self._kinds.values():
            if file_of(kind) is None:
                raise InputError(
                    f"{kind.__name__} is defined in no file; put the class into one, which goes where the model goes"
                )
        texts: dict[str, str] = {}
        for file in self.files:
            _refuse_neighbours(file)
            name = f"{len(texts)}_{file.name}" if file.name in texts else file.name
            texts[name] = file.text
        UserParts.from_files(self.files)
        return texts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserParts) and self.files == other.files

    def __hash__(self) -> int:
        return hash(self.files)

    def __reduce__(self) -> tuple[Any, ...]:
        self.alone()
        return UserParts.from_files, (self.files,)


def load_parts(paths: Iterable[str | os.PathLike[str]]) -> UserParts:
    """Load files that define parts, for example classes of components.

    Within `with load_parts(["relief_valve.py"]).given():` data refer to their parts; `CoupledModel.from_file` takes the
    files directly. An imported, unchanged file is not run again. Of two nested contexts, the inner one has precedence.
    Rules and file formats have no context: names refer to the last loaded ones, and the log reports a replacement.

    Raises
    ------
    InputError
        When a file is not there or cannot be run, defines nothing, or two of them define the same part, or rules or
        formats of one name.
    """
    if isinstance(paths, (str, os.PathLike)):
        raise InputError(f"files of parts are given in a list, as [{os.fspath(paths)!r}]")
    files = [read_part_file(path) for path in paths]
    defined = [_imported_from(file) or _defined_by(file) for file in files]
    before = dict(_loaded_named)
    parts = UserParts(files, _kinds_together(defined))
    for (kind, name), known in {key: known for each in defined for key, known in each.named.items()}.items():
        place, last = sys.modules[known.__module__].__file__, before.get((kind, name))
        _loaded_named[kind, name] = str(place)
        if last is not None and last != place:
            logger.warning("the %s '%s' is from now on that of %s, no longer that of %s", kind, name, place, last)
    return parts


def read_part_file(path: str | os.PathLike[str]) -> PartFile:
    """Return a file of parts without running it.

    Raises
    ------
    InputError
        When it cannot be read.
    """
    try:
        return PartFile(str(Path(path).resolve()), Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the file of parts {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the file of parts {path} cannot be read: it is no text in UTF-8") from None


def _imported_from(file: PartFile) -> _FileContents | None:
    """Return the imported definitions of an unchanged file; None if it defines no part or was not imported."""
    kinds = kinds_in(file)
    modules = {kind.__module__ for kind in kinds.values()}
    named = {key: known for name in modules for key, known in _named_in(name).items()}
    return _FileContents(kinds, named) if kinds else None


def _defined_by(file: PartFile) -> _FileContents:
    """Run a file as a module, once per process."""
    key = (file.name, file.text)
    with _lock:
        if key not in _loaded:
            _loaded[key] = _run(file)
        return _loaded[key]


def _run(file: PartFile) -> _FileContents:
    name = f"parts_{content_key(file.name, file.text)[:16]}"
    module = ModuleType(name)
    module.__file__ = file.path
    sys.modules[name] = module  # where classes look for what their annotations name
    if not Path(file.path).exists():
        linecache.cache[file.path] = (len(file.text), None, file.text.splitlines(keepends=True), file.path)
    try:
        with kept_apart(name, file) as kinds:
            exec(compile(file.text, file.path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        sys.modules.pop(name, None)
        message, text = f"the file of parts {file.path} cannot be loaded: ", " ".join(str(error).split())
        reason = text if isinstance(error, (InputError, DataError)) else f"{type(error).__name__}: {text}"
        raise InputError(message + reason.removeprefix(message)) from error
    named = _named_in(name)
    if not kinds and not named:
        raise InputError(
            f"the file of parts {file.path} defines no part, a class that derives from Component, Force, Joint or Block"
        )
    return _FileContents(kinds, named)


def _registries() -> dict[str, Registry[Any]]:
    """Return the registries of definitions other than parts, by kind."""
    return {each.kind: each for each in (rule.RULES, table_format.FORMATS)}


def _named_in(module: str) -> dict[tuple[str, str], type]:
    """Return the registered definitions of a module."""
    return {
        (kind, name): known for kind, each in _registries().items() for name, known in each.defined_in(module).items()
    }


def _kinds_together(files: Iterable[_FileContents]) -> dict[KindKey, type[Data]]:
    """Return the kinds of several files, and activate their rules and formats."""
    kinds: dict[KindKey, type[Data]] = {}
    named: dict[tuple[str, str], type] = {}
    for defined in files:
        kinds = _joined(kinds, defined.kinds)
        for (kind, name), known in defined.named.items():
            if named.setdefault((kind, name), known) is not known:
                places = [sys.modules[each.__module__].__file__ for each in (named[kind, name], known)]
                raise InputError(f"the {kind} '{name}' is defined twice, in {places[0]} and in {places[1]}")
    registries = _registries()
    for (kind, name), known in named.items():
        registries[kind].add(name, known)
    return kinds


def _joined(kinds: Mapping[KindKey, type[Data]], more: Mapping[KindKey, type[Data]]) -> dict[KindKey, type[Data]]:
    for key, kind in more.items():
        known = kinds.get(key, kind)
        if known is not kind:
            family, word = key
            places = [getattr(file_of(each), "path", each.__module__) for each in (known, kind)]
            raise InputError(f"the {family} type '{word}' is defined twice, in {places[0]} and in {places[1]}")
    return {**kinds, **more}


def _data_in(value: Any) -> Iterator[Data]:
    """Yield all data within data, themselves first."""
    if isinstance(value, Data):
        yield value
        for name in type(value).model_fields:
            yield from _data_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _data_in(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _data_in(each)


def _refuse_neighbours(file: PartFile) -> None:
    """Refuse a file that imports another one of its folder, which would be missing elsewhere."""
    folder = Path(file.path).parent
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["" if node.level else node.module or ""]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            beside = not top or (folder / f"{top}.py").exists() or (folder / top / "__init__.py").exists()
            if beside and top not in BUILT_IN:
                raise InputError(
                    f"{file.path}, line {node.lineno}, imports from its own folder; a file of parts goes alone where "
                    "the model goes, and must hold all that its parts need"
                )
