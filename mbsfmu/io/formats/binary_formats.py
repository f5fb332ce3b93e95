"""Binary table files: HDF5, netCDF, MATLAB and Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io import tables
from mbsfmu.io.formats.table_format import TIME, Table, TableFormat, table_of
from mbsfmu.io.tables import optional

if TYPE_CHECKING:
    import pyarrow


_SLASH = "\N{DIVISION SLASH}"
"""Replacement of `/` in dataset names, where it would create a group."""


class Hdf5Format(TableFormat):
    """HDF5: one top-level dataset per column, with the attributes `units` and `description`.

    Metadata are attributes of the file. The times are the dimension scale of the other datasets. A `/` in a name is
    written as `∕` (U+2215), and the attribute `name` has the original name.
    """

    suffixes: ClassVar = (".h5", ".hdf5")
    libraries: ClassVar = ("h5py",)
    ordered: ClassVar = False

    def write(self, table: Table, path: Path) -> None:
        """Write a complete table."""
        h5py = optional("h5py", "an HDF5 file", self.extra)
        # In the order of creation, in which HDF5 keeps attributes larger than 64 kB too: a model is one.
        # Made in memory: the library crashes where a disk is full.
        with h5py.File(path, "w", driver="core", backing_store=False, track_order=True) as file:
            for name, text in table.metadata.items():
                file.attrs[name] = text
            for name, values in table.arrays().items():
                text = h5py.string_dtype() if values.dtype.kind == "U" else None
                data = values if text is None else values.astype(object)
                dataset = file.create_dataset(name.replace("/", _SLASH), data=data, dtype=text)
                if "/" in name:
                    dataset.attrs["name"] = name
                for attribute, words in (("units", table.units), ("description", table.descriptions)):
                    if name in words:
                        dataset.attrs[attribute] = words[name]
                if name == TIME:
                    dataset.make_scale(TIME)
            for name, dataset in file.items():
                if TIME in file and name != TIME:
                    dataset.dims[0].attach_scale(file[TIME])
            file.flush()
            image = file.id.get_file_image()
        path.write_bytes(image)

    def read(self, path: Path) -> Table:
        """Read a complete file: its one-dimensional top-level datasets."""
        h5py = optional("h5py", "an HDF5 file", self.extra)
        try:
            with h5py.File(path) as file:
                found = [each for each in file.values() if isinstance(each, h5py.Dataset) and each.ndim == 1]
                names = [str(each.attrs.get("name", each.name.removeprefix("/"))) for each in found]
                units = {
                    name: _text(each.attrs["units"])
                    for name, each in zip(names, found, strict=True)
                    if "units" in each.attrs
                }
                columns = [each.asstr()[:] if h5py.check_string_dtype(each.dtype) else each[:] for each in found]
        except OSError as error:
            raise InputError(f"{path} is no HDF5 file: {error}") from None
        if not found:
            raise InputError(f"{path} is no table: it has no one-dimensional dataset at its top")
        return table_of(path, names, [np.asarray(each) for each in columns], units)


def _text(value: Any) -> str:
    """Return the text of an attribute, which other programs write as bytes or as an array of one."""
    first = np.ravel(value)[0]
    return first.decode() if isinstance(first, bytes) else str(first)


_ENGINE = "h5netcdf"  # netCDF-4: whole numbers of 64 bits, texts, more than 4 GB a column


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
