"""netCDF files, `.nc`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats.table import TIME, Table, table_of
from mbsfmu.io.formats.table_format import TableFormat
from mbsfmu.io.tables import optional

_ENGINE = "h5netcdf"  # netCDF-4: whole numbers of 64 bits, texts, more than 4 GB a column
_SLASH = "\N{DIVISION SLASH}"
"""Replacement of `/`, which variable names cannot have."""


class NetcdfFormat(TableFormat):
    """netCDF-4: one variable per column with the attributes `units` and `description`, over the coordinate `time`.

    A table without times has the dimension `row`. Metadata are attributes of the file. A `/` in a name is written as
    `∕` (U+2215), and the attribute `name` has the original name.
    """

    suffixes: ClassVar = (".nc",)
    libraries: ClassVar = ("xarray", "h5netcdf")

    def write(self, table: Table, path: Path) -> None:
        """Write a complete table."""
        xarray = optional("xarray", "a netCDF file", self.extra)
        dimension = TIME if TIME in table.columns else "row"
        variables: dict[str, Any] = {}
        for name, values in table.arrays().items():
            attributes = {"name": name} if "/" in name else {}
            for attribute, words in (("units", table.units), ("description", table.descriptions)):
                if name in words:
                    attributes[attribute] = words[name]
            variables[name.replace("/", _SLASH)] = (dimension, values, attributes)
        dataset = xarray.Dataset(variables, attrs=dict(table.metadata))
        encoding = {name: {"_FillValue": None} for name in dataset.variables}
        path.write_bytes(dataset.to_netcdf(engine=_ENGINE, encoding=encoding))  # as in HDF5 files

    def read(self, path: Path) -> Table:
        """Read a complete file: its one-dimensional variables."""
        xarray = optional("xarray", "a netCDF file", self.extra)
        try:
            with xarray.open_dataset(path, engine=_ENGINE, decode_times=False, decode_timedelta=False) as dataset:
                variables = sorted(dataset.variables.items(), key=lambda each: each[0] != TIME)
                found = {name: each.load() for name, each in variables if each.ndim == 1}
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is no netCDF file: {error}") from None
        if not found:
            raise InputError(f"{path} is no table: it has no one-dimensional variable")
        names = [str(each.attrs.get("name", name)) for name, each in found.items()]
        units = {
            name: str(each.attrs["units"])
            for name, each in zip(names, found.values(), strict=True)
            if "units" in each.attrs
        }
        return table_of(path, names, [each.values for each in found.values()], units)
