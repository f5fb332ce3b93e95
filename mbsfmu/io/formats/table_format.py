"""Base class of table file formats, and their registry by suffix."""

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
"""Suffix of a growing file, after its name."""


class TableFormat(ABC):
    """File format of tables: writer, reader, and storage of rows during a run.

    A derived class registers by its suffixes. It needs `write` and `read` only: during a run, rows are stored as CSV
    text in a file with the suffix `.part`, from which the file is written at the end. A format with its own growing
    form overrides `beginning`, `encoded`, `groups` and `complete`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """Lower-case suffixes of its files, such as `.csv`."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Modules needed besides the base installation."""
    ordered: ClassVar[bool] = True
    """Whether its files keep the order of columns, so that the first one can be the time."""
    extra: ClassVar[str] = "formats"
    """Optional extra of this package that installs them; empty without one."""

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
        """Write a complete table; `path` is temporary, so its suffix is meaningless."""

    @abstractmethod
    def read(self, path: Path) -> Table:
        """Read a complete file.

        Raises
        ------
        InputError
            When it is no file of this format; the sentence names the file.
        """

    def check(self, path: str | os.PathLike[str]) -> None:
        """Check that the needed libraries are installed.

        Raises
        ------
        InputError
            When one is not; the sentence names the file and the extra that installs it.
        """
        for library in self.libraries:
            optional(library, str(path), self.extra)

    def beginning(self, units: Mapping[str, str]) -> bytes:
        """Return the first bytes of a growing file, for columns of numbers with these units."""
        return header(units, units).encode()

    def encoded(self, units: Mapping[str, str], columns: list[NDArray[np.float64]]) -> bytes:  # noqa: ARG002
        """Return the bytes of further rows, given as columns, each of shape (rows,)."""
        return number_lines(columns).encode()

    def groups(self, path: Path) -> Iterator[Table]:
        """Yield the rows of a complete or growing file in groups.

        The first group may be empty; a truncated row is omitted.

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
        """Write the final file from the growing one, atomically."""
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
    """Return the format of a file by its suffix, before an optional `.part`.

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
    """Write a table in the format of the suffix, atomically.

    Raises
    ------
    InputError
        When no format has the suffix, or its libraries are not installed.
    """
    chosen = format_of(path)
    with complete_file(path) as partial:
        chosen.write(table, partial)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table in the format of the suffix, or a growing file with `.part` after its name.

    Raises
    ------
    InputError
        When no format has the suffix, there is no such file, or it is not of that format.
    """
    chosen, file = format_of(path), Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    try:
        return _joined(list(chosen.groups(file))) if file.suffix == PART else chosen.read(file)
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # of any kind: what the libraries of formats raise where a file is damaged
        text = " ".join(str(error).split())
        raise InputError(text if isinstance(error, InputError) else f"{path} cannot be read: {text}") from None


def _joined(groups: list[Table]) -> Table:
    """Return groups of rows concatenated."""
    first = groups[0]
    columns = {name: np.concatenate([group.columns[name] for group in groups]) for name in first.columns}
    return Table(columns, first.units)
