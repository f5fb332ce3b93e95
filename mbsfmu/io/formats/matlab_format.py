"""MATLAB files, `.mat`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats.table import Table, table_of
from mbsfmu.io.formats.table_format import TableFormat

COLUMNS = "columns"
"""Name of the struct that describes the variables."""
_LONGEST = 63  # namelengthmax of MATLAB
_KEYWORDS = frozenset(  # iskeyword of MATLAB
    [
        "break",
        "case",
        "catch",
        "classdef",
        "continue",
        "else",
        "elseif",
        "end",
        "for",
        "function",
        "global",
        "if",
        "otherwise",
        "parfor",
        "persistent",
        "return",
        "spmd",
        "switch",
        "try",
        "while",
    ]
)


class MatlabFormat(TableFormat):
    """MATLAB MAT-file, version 5: one vector per column, and the struct `columns` of cell arrays about them.

    `columns.variables`, `columns.names`, `columns.units` and `columns.descriptions` have, in the order of the columns,
    the names of the variables, the names of the columns, their units and descriptions; `columns.metadata` has names and
    texts in two columns. Of a name, what is neither letter, digit nor underscore becomes an underscore.
    """

    suffixes: ClassVar = (".mat",)

    def write(self, table: Table, path: Path) -> None:
        """Write a complete table."""
        from scipy.io import savemat  # noqa: PLC0415 - few runs are written so

        legal = legal_names(table.columns)
        arrays = table.arrays()
        variables: dict[str, Any] = {
            legal[name]: _cells(values) if values.dtype.kind == "U" else values.reshape(-1, 1)
            for name, values in arrays.items()
        }
        about = {
            "variables": _cells(legal.values()),
            "names": _cells(legal),
            "units": _cells(table.units.get(name, "") for name in legal),
            "descriptions": _cells(table.descriptions.get(name, "") for name in legal),
            "metadata": np.column_stack([_cells(table.metadata), _cells(table.metadata.values())]),
        }
        savemat(path, {COLUMNS: about, **variables}, appendmat=False, format="5", long_field_names=True)

    def read(self, path: Path) -> Table:
        """Read a complete file: its vectors, with names and units from `columns` if present."""
        from scipy.io import loadmat, whosmat  # noqa: PLC0415 - few runs are read so

        try:
            found = loadmat(path, appendmat=False)
            logical = {name for name, _, kind in whosmat(path, appendmat=False) if kind == "logical"}
        except (OSError, ValueError, NotImplementedError, TypeError) as error:
            raise InputError(f"{path} is no MAT-file of version 5 to 7: {error}") from None
        if COLUMNS in found and (found[COLUMNS].dtype.names or ())[:3] == ("variables", "names", "units"):
            about = found[COLUMNS][0, 0]
            variables, names, units = (_texts(about[each]) for each in ("variables", "names", "units"))
            columns = [_column(found[variable], variable in logical) for variable in variables]
            return table_of(path, names, columns, {k: unit for k, unit in zip(names, units, strict=True) if unit})
        vectors = {
            name: each.ravel()
            for name, each in found.items()
            if isinstance(each, np.ndarray) and each.dtype.kind in "fiub" and each.ndim == 2 and 1 in each.shape
        }
        if not vectors:
            raise InputError(f"{path} is no table: it has no vector of numbers")
        return table_of(path, list(vectors), vectors.values(), {})


def legal_names(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct MATLAB name for each name: letters, digits and underscores, 63 at most."""
    legal: dict[str, str] = {}
    taken = {COLUMNS}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not plain[:1].isalpha() or plain in _KEYWORDS:
            plain = f"x_{plain}"
        unique, count = plain[:_LONGEST], 1
        while unique in taken:
            count += 1
            unique = f"{plain[: _LONGEST - len(str(count)) - 1]}_{count}"
        taken.add(unique)
        legal[name] = unique
    return legal


def _cells(texts: Iterable[Any]) -> NDArray[Any]:
    """Return texts as a cell array of one column."""
    cells = list(map(str, texts))
    result = np.empty((len(cells), 1), dtype=object)
    result[:, 0] = cells
    return result


def _texts(cells: NDArray[Any]) -> list[str]:
    """Return the texts of a cell array; an empty one has no characters at all."""
    return ["".join(np.ravel(cell).tolist()) for cell in cells.ravel()]


def _column(values: NDArray[Any], logical: bool) -> list[str] | NDArray[Any]:
    if values.dtype == object:
        return _texts(values)
    return values.ravel().astype(bool) if logical else values.ravel()
