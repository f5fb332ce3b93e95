"""Tables as CSV text: header with units, numbers that are read back exactly."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats.table import Table, table_of
from mbsfmu.modelling.measured_numbers import plain_number
from mbsfmu.modelling.measurement_units import known_unit

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
