"""Tables as CSV text: header with units, numbers that are read back exactly."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats.table import Table, table_of
from mbsfmu.modelling.measured_numbers import plain_number

_ROWS_AT_ONCE = 65536  # rows of a group: some MB of text
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


def read(path: Path) -> Table:
    """Read a file of any values: numbers, truth values, texts, empty for missing ones.

    Raises
    ------
    InputError
        When it is no table; the sentence names the line.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            first, *lines = [line for line in csv.reader(stream) if line] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV file: {error}") from None
    if not lines:
        raise InputError(f"{path} is no table: it needs a header and at least one line of numbers")
    for number, line in enumerate(lines, start=2):
        if len(line) != len(first):
            raise InputError(f"{path}, line {number}: there are {len(line)} values for {len(first)} columns")
    names, units = named_columns(first)
    return table_of(path, names, [_values(cells) for cells in zip(*lines, strict=True)], units)


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
