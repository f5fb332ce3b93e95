"""Tables in Parquet files, with a unit for each column."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.errors import InputError
from mbsfmu.files import complete_file

if TYPE_CHECKING:
    import pyarrow

UNIT = b"unit"
"""Key of the unit in a column's metadata."""


def make_table(
    columns: Mapping[str, Sequence[Any] | NDArray[Any]], units: Mapping[str, str], facts: Mapping[str, str]
) -> pyarrow.Table:
    """Return a table whose columns know their units.

    Parameters
    ----------
    columns
        Values of each column, all of one length; None where there is none.
    units
        Units of some columns.
    facts
        Kept as metadata of the whole.
    """
    import pyarrow  # noqa: PLC0415 - only files need it: a unit on its target does without

    arrays = [pyarrow.array(values, from_pandas=False) for values in columns.values()]
    fields = [
        pyarrow.field(name, array.type, metadata={UNIT: units[name]} if name in units else None)
        for name, array in zip(columns, arrays, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, metadata=dict(facts)))


def write_parquet(table: pyarrow.Table, path: str | os.PathLike[str]) -> None:
    """Write a table to a Parquet file, complete or not at all."""
    import pyarrow.parquet  # noqa: PLC0415 - as above

    with complete_file(path) as partial:
        pyarrow.parquet.write_table(table, partial)


def read_parquet(path: str | os.PathLike[str]) -> pyarrow.Table:
    """Read a Parquet file.

    Raises
    ------
    InputError
        When it is none.
    """
    import pyarrow.parquet  # noqa: PLC0415 - as above

    try:
        return pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError(f"there is no file {path}") from None
        raise InputError(f"{path} is no Parquet file: {error}") from None


def unit_of(table: pyarrow.Table, column: str) -> str:
    """Return the unit of a column; `1` where the file says none."""
    metadata = table.schema.field(column).metadata or {}
    return metadata.get(UNIT, b"1").decode()


def column_values(table: pyarrow.Table, column: str) -> NDArray[np.float64]:
    """Return a numeric column, shape (number of rows,); not-a-number where it has no value.

    Raises
    ------
    InputError
        When it is not numeric.
    """
    import pyarrow  # noqa: PLC0415 - as above

    try:
        return table.column(column).cast(pyarrow.float64()).to_numpy()
    except (pyarrow.ArrowException, ValueError):
        raise InputError(f"the column '{column}' does not hold numbers") from None
