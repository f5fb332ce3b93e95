"""A file format of a user's own: NumPy's archives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np

from mbsfmu.io.formats import Table, TableFormat


class NumpyFormat(TableFormat):
    """One array a column, and the units as JSON."""

    suffixes: ClassVar = (".npz",)

    def write(self, table: Table, path: Path) -> None:
        with path.open("wb") as stream:
            np.savez(stream, UNITS=np.array(json.dumps(dict(table.units))), **table.arrays())

    def read(self, path: Path) -> Table:
        with np.load(path) as file:
            return Table({name: file[name] for name in file if name != "UNITS"}, json.loads(str(file["UNITS"])))
