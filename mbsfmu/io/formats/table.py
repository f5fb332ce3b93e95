"""Tables of named columns with units, the content of all formats."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError

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
