"""Parquet files, `.parquet`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.io import tables
from mbsfmu.io.formats.table import Table, table_of
from mbsfmu.io.formats.table_format import TableFormat

if TYPE_CHECKING:
    import pyarrow


class ParquetFormat(TableFormat):
    """Apache Parquet: units in the metadata `unit` of the columns, metadata in that of the table.

    A Parquet file is unreadable without its footer, which has the positions of all columns, and cannot be extended once
    complete. A growing file is therefore an Arrow stream, in which each group of rows is complete; it is converted to
    Parquet at the end, group by group.
    """

    suffixes: ClassVar = (".parquet",)
    libraries: ClassVar = ("pyarrow.parquet",)
    extra: ClassVar = "data"

    def write(self, table: Table, path: Path) -> None:
        """Write a complete table."""
        made = tables.make_table(table.columns, table.units, table.metadata)
        tables.arrow(str(path)).parquet.write_table(made, path)

    def read(self, path: Path) -> Table:
        """Read a complete file."""
        return _table(tables.read_parquet(path), path)

    def beginning(self, units: Mapping[str, str]) -> bytes:
        """Return the start of an Arrow stream."""
        return tables.stream_beginning(tables.make_table({name: np.zeros(0) for name in units}, units, {}))

    def encoded(self, units: Mapping[str, str], columns: list[NDArray[np.float64]]) -> bytes:
        """Return a group of rows as part of an Arrow stream."""
        return tables.stream_group(tables.make_table(dict(zip(units, columns, strict=True)), units, {}))

    def groups(self, path: Path) -> Iterator[Table]:
        """Yield the groups of rows of a stream, or of a Parquet file."""
        for group in tables.read_stream(path):
            yield _table(group, path)

    def complete(self, partial: Path, path: Path) -> None:
        """Write the Parquet file from the stream with one group of rows in memory at a time."""
        tables.stream_to_parquet(partial, path)
        partial.unlink()


def _table(table: pyarrow.Table, path: Path) -> Table:
    columns = [tables.column_values(column) for column in table.columns]
    units = {name: tables.unit_of(table, name) for name in dict.fromkeys(table.column_names)}
    return table_of(path, table.column_names, columns, {name: unit for name, unit in units.items() if unit is not None})
