"""What a file format of tables is, and the registry of formats by suffix."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.base.registry import Registry
from mbsfmu.io.formats.csv_text import header, number_lines, numbers_in_groups
from mbsfmu.io.formats.table import Table
from mbsfmu.io.tables import optional

PART = ".part"
"""Suffix behind the name of a file that grows."""


class TableFormat(ABC):
    """A file format of tables: a writer, a reader, and how rows are kept while a run goes on.

    A subclass is registered under its suffixes as soon as it is defined. It needs `write` and `read` only: while a run
    goes on, its rows are CSV text in a file with `.part` behind its name, from which the file is written at the end.
    A format that can hold rows as they come overrides `beginning`, `encoded`, `groups` and `complete`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """Lower-case suffixes of its files, such as `.csv`."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Modules that it needs besides the base installation."""
    ordered: ClassVar[bool] = True
    """Whether its files keep the order of columns, so that the first one can be that of the times."""
    extra: ClassVar[str] = "formats"
    """Optional extra of this package that installs them; empty where none does."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for suffix in cls.__dict__.get("suffixes", ()):
            if not suffix.startswith(".") or suffix != suffix.lower() or suffix == PART:
                raise InputError(
                    f"the suffix '{suffix}' of {cls.__qualname__} is refused: it must be lower case, begin with a dot "
                    f"and not be {PART}"
                )
            FORMATS.add(suffix, cls)

    @abstractmethod
    def write(self, table: Table, path: Path) -> None:
        """Write a whole table; `path` is a file that the caller renames, so that its suffix says nothing."""

    @abstractmethod
    def read(self, path: Path) -> Table:
        """Read a whole file.

        Raises
        ------
        InputError
            When it is no file of this format; the sentence names the file.
        """

    def check(self, path: str | os.PathLike[str]) -> None:
        """Check that the libraries are installed.

        Raises
        ------
        InputError
            When one is not; the sentence names the file and the extra that installs it.
        """
        for library in self.libraries:
            optional(library, str(path), self.extra)

    def beginning(self, units: Mapping[str, str]) -> bytes:
        """Return the first bytes of a file that grows, for columns of numbers with these units."""
        return header(units, units).encode()

    def encoded(self, units: Mapping[str, str], columns: list[NDArray[np.float64]]) -> bytes:  # noqa: ARG002
        """Return the bytes of further rows, given by columns, each of shape (rows,)."""
        return number_lines(columns).encode()

    def groups(self, path: Path) -> Iterator[Table]:
        """Yield the rows of a file, complete or growing, in groups.

        The first group may be empty; a row that is cut off is left out.

        Raises
        ------
        InputError
            When it is no file of this format.
        """
        if path.suffix == PART:
            yield from numbers_in_groups(path)
        else:
            yield self.read(path)

    def complete(self, partial: Path, path: Path) -> None:
        """Make the file from one that has grown; it appears complete or not at all."""
        table = _joined(list(self.groups(partial)))
        with complete_file(path) as written:
            self.write(table, written)
        partial.unlink()


FORMATS: Registry[type[TableFormat]] = Registry("file format", replaced=True)
"""All formats by suffix."""


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats."""
    return FORMATS.names()


def format_of(path: str | os.PathLike[str], what: str = "a file of signals") -> TableFormat:
    """Return the format of a file by its suffix, which may have `.part` behind it.

    Parameters
    ----------
    path
        The file.
    what
        What it is, for the message.

    Raises
    ------
    InputError
        When no format has that suffix, or its libraries are not installed.
    """
    kind = FORMATS.get(Path(str(path).removesuffix(PART)).suffix.lower())
    if kind is None:
        *most, last = suffixes()
        raise InputError(f"{path} is refused as {what}: its name must end in {', '.join(most)} or {last}")
    found = kind()
    found.check(path)
    return found


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table in the format of the suffix; the file appears complete or not at all.

    Raises
    ------
    InputError
        When no format has the suffix, or its libraries are not installed.
    """
    chosen = format_of(path)
    with complete_file(path) as partial:
        chosen.write(table, partial)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table in the format of the suffix, or one that still grows, with `.part` behind its name.

    Raises
    ------
    InputError
        When no format has the suffix, there is no such file, or it is not of that format.
    """
    chosen, file = format_of(path), Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    return _joined(list(chosen.groups(file))) if file.suffix == PART else chosen.read(file)


def _joined(groups: list[Table]) -> Table:
    """Return groups of rows of one table as one."""
    first = groups[0]
    columns = {name: np.concatenate([group.columns[name] for group in groups]) for name in first.columns}
    return Table(columns, first.units)
