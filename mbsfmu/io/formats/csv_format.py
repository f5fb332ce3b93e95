"""CSV files, `.csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from mbsfmu.base.files import WriteError
from mbsfmu.io.formats import csv_text
from mbsfmu.io.formats.table import Table
from mbsfmu.io.formats.table_format import TableFormat


class CsvFormat(TableFormat):
    """Comma-separated values: `name [unit]` in the header, numbers that are read back exactly.

    A missing value is an empty cell. Metadata and descriptions are not written.
    """

    suffixes: ClassVar = (".csv",)

    def write(self, table: Table, path: Path) -> None:
        """Write a complete table."""
        lists = [each.tolist() if isinstance(each, np.ndarray) else each for each in table.columns.values()]
        with path.open("w", newline="", encoding="utf-8") as stream:
            stream.write(csv_text.header(table.columns, table.units))
            csv.writer(stream).writerows(zip(*lists, strict=True))

    def read(self, path: Path) -> Table:
        """Read a complete file."""
        return csv_text.read(path)

    def groups(self, path: Path) -> Iterator[Table]:
        """Yield the rows in groups."""
        yield from csv_text.numbers_in_groups(path)

    def complete(self, partial: Path, path: Path) -> None:
        """Rename the completed growing file."""
        try:
            partial.replace(path)
        except OSError as error:
            raise WriteError(path, error) from error
