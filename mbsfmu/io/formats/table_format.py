"""Tables of named columns with units, their file formats by suffix, and CSV."""

from __future__ import annotations

import csv
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import WriteError, complete_file
from mbsfmu.base.registry import Registry
from mbsfmu.io.tables import optional
from mbsfmu.modelling.measurement_units import known_unit, plain_number

TIME = "time"
"""Name of the time column, in s."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    columns
        Values by name, in order: numbers, truth values or texts; None where a value is missing.
    units
        Units of some columns.
    metadata
        Facts about the table as texts, such as the model's name.
    descriptions
        Descriptions of some columns.
    lines
        Lines of the rows in a text file; nothing elsewhere.
    """

    columns: Mapping[str, Sequence[Any] | NDArray[Any]]
    units: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    lines: Sequence[int] = ()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return each column as an array of numbers, truth values or texts."""
        return {name: _array(values) for name, values in self.columns.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain data, one dictionary each."""
        lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]


def place_of(lines: Sequence[int], row: int) -> str:
    """Return the words for a row, which counts from 0: its line in the file where there are lines."""
    return f"line {lines[row]}" if lines else f"row {row + 1}"


def table_of(
    path: str | os.PathLike[str],
    names: Sequence[str],
    columns: Iterable[Sequence[Any] | NDArray[Any]],
    units: Mapping[str, str],
    lines: Sequence[int] = (),
) -> Table:
    """Return the table of a file.

    Raises
    ------
    InputError
        When two columns have one name, or columns have different lengths; the sentence names the file.
    """
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns of one name: {', '.join(names)}")
    by_name = dict(zip(names, columns, strict=True))
    lengths = {name: len(values) for name, values in by_name.items()}
    if len(set(lengths.values())) > 1:
        message = ", ".join(f"'{name}' {length}" for name, length in lengths.items())
        raise InputError(f"{path} is no table: its columns have different lengths ({message})")
    return Table(by_name, units, lines=lines)


def numbers(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any] | None:
    """Return numbers as an array, integer if all are, not-a-number for missing ones.

    None where a value is neither a number nor missing.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values
    if not all(each is None or (isinstance(each, (int, float)) and not isinstance(each, bool)) for each in values):
        return None
    whole = all(isinstance(each, int) for each in values)
    return np.array([np.nan if each is None else each for each in values], dtype=int if whole else float)


def _array(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    found = numbers(values)
    if found is not None:
        return found
    if all(isinstance(each, (bool, np.bool_)) for each in values):
        return np.array(values, dtype=bool)
    return np.array(["" if each is None else str(each) for each in values], dtype=str)


_ROWS_AT_ONCE = 65536  # rows of a group: some MB of text
_DECIMAL_COMMA = re.compile(r"\s*[+-]?(?:\d+,\d*|,\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_DECIMAL_POINT = re.compile(r"\s*[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_WORDS = {"": None, "True": True, "False": False}


def header(names: Iterable[str], units: Mapping[str, str]) -> str:
    """Return the header line: `name [unit]`, or `name` without a unit."""
    line = io.StringIO()
    csv.writer(line).writerow(f"{name} [{units[name]}]" if name in units else name for name in names)
    return line.getvalue()


def number_lines(columns: Sequence[NDArray[np.float64]]) -> str:
    """Return lines of numbers from columns of equal length."""
    rows = np.column_stack(columns).tolist()
    return "".join(",".join(map(repr, row)) + "\r\n" for row in rows)


def numbers_in_groups(path: Path) -> Iterator[Table]:
    """Yield the rows of a file of numbers in groups, an empty one first; a truncated last line is omitted.

    Raises
    ------
    InputError
        When it does not hold numbers.
    """
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            names, units = named_columns(next(csv.reader(lines), []))
            yield table_of(path, names, np.zeros((len(names), 0)), units)
            whole = (line for line in lines if line.endswith("\n"))
            while group := [[plain_number(cell) for cell in line.split(",")] for line in islice(whole, _ROWS_AT_ONCE)]:
                yield table_of(path, names, np.array(group).T, units)
    except ValueError as error:
        raise InputError(f"{path} does not hold lines of numbers: {error}") from None


class CsvRows(NamedTuple):
    """The cells of a file below its header.

    Attributes
    ----------
    names, units
        Of the columns; units of some.
    rows
        Cells of each row, as many as names; numbers have decimal points.
    lines
        Where the rows stand in the file.
    """

    names: list[str]
    units: dict[str, str]
    rows: list[list[str]]
    lines: list[int]


def read(path: Path) -> Table:
    """Read a file of any values: numbers, truth values, texts, empty for missing ones.

    Raises
    ------
    InputError
        When it is no table; the sentence names the line.
    """
    names, units, rows, lines = read_rows(path)
    if not rows:
        raise InputError(f"{path} is no table: it needs a header and at least one line of numbers")
    return table_of(path, names, [_values(cells) for cells in zip(*rows, strict=True)], units, lines)


def read_rows(path: Path) -> CsvRows:
    """Read the cells of a file, however the country or the tool writes them.

    Cells are parted by commas, semicolons or tabs, as the header has them or a line `sep=;` before it says. Beside
    semicolons and tabs numbers may have decimal commas. Lines that are empty or begin with `#` are left out, and so are
    separators at the ends of lines. A line of units may follow the header.

    Raises
    ------
    InputError
        When rows have other numbers of cells than the header, or decimal commas and points are mixed; the sentence
        names the line.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            text = stream.read()
        comments, separator = _preamble(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        found = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV file: {error}") from None
    found = [(line, cells) for line, cells in found if line > comments and not cells[0].startswith("#")]
    (_, first), *rest = found or [(0, [])]
    while len(first) > 1 and not first[-1].strip():
        first = first[:-1]
    word = {"\t": "tabs", ";": "semicolons", ",": "commas"}.get(separator, f"'{separator}'")
    rows = []
    for line, row in rest:
        cells = row
        while len(cells) > len(first) and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != len(first):
            raise InputError(
                f"{path}, line {line}: there are {len(cells)} values for {len(first)} columns, between {word}"
            )
        rows.append(cells)
    lines = [line for line, _ in rest]
    if separator != ",":
        rows = _with_points(path, rows, lines)
    names, units = named_columns(first)
    if len(rows) > 1 and (below := _units_below(rows)) is not None:
        units = {**{name: unit for name, unit in zip(names, below, strict=True) if unit}, **units}
        rows, lines = rows[1:], lines[1:]
    return CsvRows(names, units, rows, lines)


def _preamble(text: str) -> tuple[int, str]:
    """Return the number of lines before the header, and the separator."""
    for number, line in enumerate(text.splitlines()):
        if told := re.fullmatch(r'"?sep=(.)"?\s*', line):
            return number + 1, told[1]
        if line.strip() and not line.startswith("#"):
            bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\([^)]*\)', "", line)
            return number, max(",;\t", key=bare.count)
    return 0, ","


def _with_points(path: Path, rows: list[list[str]], lines: list[int]) -> list[list[str]]:
    """Return rows whose numbers have decimal points in place of decimal commas."""
    commas = [(k, cell) for k, row in enumerate(rows) for cell in row if _DECIMAL_COMMA.fullmatch(cell)]
    points = [(k, cell) for k, row in enumerate(rows) for cell in row if _DECIMAL_POINT.fullmatch(cell)]
    if commas and points:
        (k, cell), (m, other) = commas[0], points[0]
        raise InputError(
            f"{path}: '{cell.strip()}' in line {lines[k]} has a decimal comma, '{other.strip()}' in line {lines[m]} a "
            "decimal point; write one of them"
        )
    return [[cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in row] for row in rows]


def _units_below(rows: list[list[str]]) -> list[str] | None:
    """Return the units that the first row has, as `s` or `[s]` above numbers; None where it is a row of values."""
    cells = [re.sub(r"^\[(.*)\]$|^\((.*)\)$", r"\1\2", cell.strip()) for cell in rows[0]]
    if not _is_number(rows[1][0]) or any(map(_is_number, cells)):
        return None
    try:
        return cells if cells[0] and known_unit(cells[0]) is not None else None
    except InputError:  # of several meanings, but a unit
        return cells


def _is_number(cell: str) -> bool:
    try:
        plain_number(cell.strip())
    except ValueError:
        return False
    return True


def named_columns(cells: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return names and units of header cells, `name [unit]` or `name`; numbers in brackets are indices, as `y[1]`."""
    names, units = [], {}
    for cell in cells:
        match = re.fullmatch(r"\s*(.*?)(?:\s+\[([^\[\]]*)\]|\[(?!\d[\d,\s]*\])([^\[\]]*)\])\s*", cell)
        names.append(match[1] if match else cell.strip())
        if match:
            units[match[1]] = match[2] if match[3] is None else match[3]
    return names, units


def _values(cells: Sequence[str]) -> list[Any]:
    """Return the values of a column: integers or numbers if all are, otherwise each cell by itself."""
    for kind in (_integer, plain_number):
        try:
            return [kind(cell) for cell in cells]
        except ValueError:
            continue
    return [_value(cell) for cell in cells]


def _integer(cell: str) -> int:
    """Return the integer that a cell is; see `plain_number`."""
    plain_number(cell)
    return int(cell)


def _value(cell: str) -> Any:
    """Return the value of a cell: None, a truth value, a number or a text."""
    for kind in (_WORDS.__getitem__, _integer, plain_number):
        try:
            return kind(cell)
        except (KeyError, ValueError):
            continue
    return cell


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


class CsvFormat(TableFormat):
    """Comma-separated values: `name [unit]` in the header, numbers that are read back exactly.

    A missing value is an empty cell. Metadata and descriptions are not written.
    """

    suffixes: ClassVar = (".csv",)

    def write(self, table: Table, path: Path) -> None:
        """Write a complete table."""
        lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in table.columns.values()]
        with path.open("w", newline="", encoding="utf-8") as stream:
            stream.write(header(table.columns, table.units))
            csv.writer(stream).writerows(zip(*lists, strict=True))

    def read(self, path: Path) -> Table:
        """Read a complete file."""
        return read(path)

    def groups(self, path: Path) -> Iterator[Table]:
        """Yield the rows in groups."""
        yield from numbers_in_groups(path)

    def complete(self, partial: Path, path: Path) -> None:
        """Rename the completed growing file."""
        try:
            partial.replace(path)
        except OSError as error:
            raise WriteError(path, error) from error
