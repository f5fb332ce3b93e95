"""HDF5 files, `.h5` and `.hdf5`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats.table import TIME, Table, table_of
from mbsfmu.io.formats.table_format import TableFormat
from mbsfmu.io.tables import optional

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
