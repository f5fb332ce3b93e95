"""The rows of a study in a CSV file: units in the header, numbers in all digits."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.io.trajectory import parted

_TEXTS = ("status", "message")
"""Columns in which nothing means an empty text."""
_WORDS = {"": None, "True": True, "False": False}


def write_rows(columns: Mapping[str, Sequence[Any]], units: Mapping[str, str], path: str | os.PathLike[str]) -> None:
    """Write columns of one length, with the units of some of them; the file appears complete or not at all."""
    with complete_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream)
        lines.writerow(f"{name} [{units[name]}]" if name in units else name for name in columns)
        lines.writerows(zip(*columns.values(), strict=True))


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the rows that `write_rows` wrote.

    Raises
    ------
    InputError
        When the file is no table.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as stream:
            header, *lines = csv.reader(stream)
        names = [parted(cell)[0] for cell in header]
        return [
            {name: cell if name in _TEXTS else _value(cell) for name, cell in zip(names, line, strict=True)}
            for line in lines
        ]
    except (UnicodeDecodeError, csv.Error, ValueError):
        raise InputError(f"{path} is no table") from None


def _value(cell: str) -> Any:
    """Return what was written into a cell: nothing, a truth, a number or a text."""
    for kind in (_WORDS.__getitem__, int, float):
        try:
            return kind(cell)
        except (KeyError, ValueError):
            continue
    return cell
