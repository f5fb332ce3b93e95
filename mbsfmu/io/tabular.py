"""Base class of results with columns: conversion to pandas, Arrow and notebooks, with units."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.formats import Table, write_table
from mbsfmu.io.tables import make_table, optional
from mbsfmu.modelling import closest_match

if TYPE_CHECKING:
    import pandas
    import pyarrow

Value = TypeVar("Value")
Columns = Mapping[str, Sequence[Any] | NDArray[Any]]


class Tabular(ABC):
    """Object with columns of equal length, units and metadata."""

    @abstractmethod
    def _columns(self) -> Columns:
        """Return the columns by name."""

    @abstractmethod
    def _units(self) -> Mapping[str, str]:
        """Return the units of columns that have one."""

    def _descriptions(self) -> Mapping[str, str]:
        """Return the descriptions of columns that have one."""
        return {}

    def _metadata(self) -> dict[str, Any]:
        """Return the metadata: numbers and words by name."""
        return {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as plain data, one dictionary each."""
        columns = self._columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _table(self) -> Table:
        """Return the table for files."""
        metadata = {name: str(value) for name, value in self._metadata().items()}
        return Table(self._columns(), self._units(), metadata, self._descriptions())

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the columns to a file in the format of its suffix, atomically.

        Raises
        ------
        InputError
            When no format has the suffix, a library that it needs is not installed, or two columns have one name.
        """
        write_table(self._table(), path)

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table; column metadata have the `unit`, table metadata those of the result.

        Raises
        ------
        InputError
            When two columns would have one name.
        """
        table = self._table()
        return make_table(table.columns, table.units, table.metadata)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return an Arrow C stream: `polars.DataFrame(result)`, `pyarrow.table(result)`.

        Parameters
        ----------
        requested_schema
            As the Arrow PyCapsule interface says.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame; `attrs["units"]` has the units by column, `attrs` the metadata.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        frame = optional("pandas", "to_pandas").DataFrame(dict(self._columns()))
        frame.attrs = {**self._metadata(), "units": dict(self._units())}
        return frame


class UnknownNameError(InputError, KeyError):
    """A name that matches no column, or several; a `KeyError`, as for mappings."""

    def __str__(self) -> str:
        return str(self.args[0])


def full_name(
    name: str, names: Collection[str], kind: str, where: str = "", by_system: Mapping[str, str] | None = None
) -> str:
    """Return the full name of a column from the name, `system.variable` or a unique ending.

    Parameters
    ----------
    name
        A full name, or the trailing part of one behind a dot.
    names
        Those that there are.
    kind
        What they are called in messages.
    where
        Where they are, for messages.
    by_system
        Those that can be called `system.variable`, by that.

    Raises
    ------
    UnknownNameError
        When none or more than one is meant.
    """
    own = name if by_system is None or name in names else by_system.get(name, name)
    if own in names:
        return own
    found = [full for full in names if full.endswith(f".{own}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownNameError(f"{kind} '{name}' is ambiguous: it may be {' or '.join(found)}")
    raise UnknownNameError(f"there is no {kind} '{name}'{where}; {closest_match(name, names)}")


class NamedValues(dict[str, Value]):
    """Values by name, found by `system.variable` and by unique endings of the name too.

    Parameters
    ----------
    values
        The values.
    kind
        What the names are called in messages.
    by_system
        Names by `system.variable`.
    """

    def __init__(self, values: Mapping[str, Value], kind: str, by_system: Mapping[str, str]) -> None:
        super().__init__(values)
        self._kind, self._by_system = kind, by_system

    def __missing__(self, name: str) -> Value:
        return self[full_name(name, self, self._kind, by_system=self._by_system)]
