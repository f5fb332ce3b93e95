"""Trajectories: signals over time, from runs or files, with units for pandas, Arrow and notebooks."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import means, nearest
from mbsfmu.io.formats import Table, format_of, read_table, write_table
from mbsfmu.io.formats.table_format import TIME, numbers, place_of
from mbsfmu.io.tables import make_table, optional
from mbsfmu.modelling import closest_match, html_table
from mbsfmu.modelling.measurement_units import NO_UNIT, column_conversion
from mbsfmu.modelling.variables import endings

if TYPE_CHECKING:
    import pandas
    import pyarrow
    import xarray

    from mbsfmu.view.plots.plot import Plot


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


class Trajectory(Tabular, Mapping[str, NDArray[np.float64]]):
    """A time grid and named signals with units.

    A signal is found by its full name, or by any unique trailing part: `trajectory["cylinder.length"]` finds
    `mechanism.cylinder.length` if no other signal ends in the same way.

    Parameters
    ----------
    time
        Times in s, shape (k,).
    values
        One column a signal, shape (k, number of signals).
    names, units
        One a signal.
    descriptions
        Descriptions of signals, by name.

    Attributes
    ----------
    descriptions
        As given, of signals that have one.
    lines
        Lines of the rows in the text file that they were read from; nothing elsewhere.
    """

    def __init__(
        self,
        time: NDArray[np.float64],
        values: NDArray[np.float64],
        names: Sequence[str],
        units: Sequence[str],
        descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self.time = np.asarray(time, dtype=float)
        self.values_by_column = np.asarray(values, dtype=float).reshape(len(self.time), len(names))
        self.names = tuple(names)
        self.lines: Sequence[int] = ()
        self.descriptions = {name: text for name, text in (descriptions or {}).items() if text}
        self._unit_by_name = dict(zip(self.names, units, strict=True))
        self._column_by_name = {name: column for column, name in enumerate(self.names)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary_line()}>"

    def _summary_line(self) -> str:
        """Return a short summary."""
        span = f" from {self.time[0]:g} to {self.time[-1]:g} s" if len(self.time) else ""
        return f"{len(self.names)} signals at {len(self.time)} times{span}"

    def _repr_html_(self) -> str:
        columns = ("signal", "unit", "at the start", "least", "greatest", "at the end")
        rows = ((name, self._unit_by_name[name], *_bounded(self[name])) for name in self.names)
        return html_table(columns, rows, f"{type(self).__name__}: {self._summary_line()}")

    def _ipython_key_completions_(self) -> list[str]:
        """Return the full names, and unique endings without the system's name, for completion."""
        short = [name.partition(".")[2] for name in self.names]
        return [*self.names, *(each for each in short if "." in each and each in self and each not in self.names)]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.values_by_column[:, self._column_by_name[self.full_name(name)]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self.full_name(name))
        except UnknownNameError:
            return False

    def full_name(self, name: str) -> str:
        """Return the full name of the signal that `name` refers to.

        Raises
        ------
        UnknownNameError
            When no signal or more than one is meant.
        """
        return full_name(name, self._column_by_name, "signal")

    def unit(self, name: str) -> str:
        """Return the unit of a signal."""
        return self._unit_by_name[self.full_name(name)]

    def add(self, name: str, values: NDArray[np.float64], unit: str) -> None:
        """Add a signal, shape (k,).

        Raises
        ------
        InputError
            When there is one of that name.
        """
        if name in self._column_by_name:
            raise InputError(f"there is a signal '{name}' already")
        self.values_by_column = np.column_stack([self.values_by_column, values])
        self._column_by_name[name] = len(self.names)
        self.names = (*self.names, name)
        self._unit_by_name[name] = unit

    def final(self) -> dict[str, float]:
        """Return the last value of every signal."""
        return {name: float(self.values_by_column[-1, column]) for column, name in enumerate(self.names)}

    # -- tables ---------------------------------------------------------------------------------------------

    def _columns(self) -> Mapping[str, NDArray[np.float64]]:
        if TIME in self.names:
            raise InputError(f"a signal is called '{TIME}', as the column of the times is; rename it")
        return {TIME: self.time, **{name: np.ascontiguousarray(self[name]) for name in self.names}}

    def _units(self) -> Mapping[str, str]:
        return {TIME: "s", **self._unit_by_name}

    def _descriptions(self) -> Mapping[str, str]:
        return self.descriptions

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with the times in s as index; `attrs["units"]` has the units by column.

        `attrs` also has the metadata, such as the model's name.

        Raises
        ------
        InputError
            When pandas is not installed, or a signal is called `time`.
        """
        return super().to_pandas().set_index(TIME)

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset of the signals over `time`, with the attributes `units` and `description` of each variable.

        The dataset's attributes are the metadata, such as the model's name.

        Raises
        ------
        InputError
            When xarray is not installed, or a signal is called `time`.
        """
        variables = {name: (TIME, values, self._attributes(name)) for name, values in self._columns().items()}
        times = {TIME: variables.pop(TIME)}
        return optional("xarray", "to_xarray").Dataset(variables, times, self._metadata())

    def _attributes(self, name: str) -> dict[str, str]:
        told = {"description": self.descriptions[name]} if name in self.descriptions else {}
        return {"units": self._units()[name], **told}

    # -- plots ----------------------------------------------------------------------------------------------

    def chosen(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Return the full names that match patterns such as `cylinder.*`, in the order of the patterns.

        A pattern matches the full name or any trailing part of it; no pattern selects all.

        Raises
        ------
        UnknownNameError
            When one means no signal.
        """
        found: dict[str, None] = {}
        for pattern in patterns:
            names = [name for name in self.names if means(pattern, self._called(name))]
            if not names:
                told = nearest(pattern, self.names, self._called)
                raise UnknownNameError(f"there is no signal '{pattern}' to be drawn; {told}")
            found |= dict.fromkeys(names)
        return tuple(found) or self.names

    def _called(self, name: str) -> tuple[str, ...]:
        """Return a signal's full name, and the names that patterns may match."""
        return endings(name)

    def plot(self, *patterns: str, title: str = "") -> Plot:
        """Return an interactive plot of signals over time with a common time axis.

        A notebook displays it, and `.save("plot.html")` writes a self-contained page.

        Parameters
        ----------
        patterns
            Which signals, as `chosen` takes them: `cylinder.*`, `boom.angle`; all by default. Those of one unit are in
            one panel.
        title
            What it is called; what was asked for by default.

        Raises
        ------
        UnknownNameError
            When a pattern means no signal.
        """
        from mbsfmu.view.plots.plot import (  # noqa: PLC0415
            Curve,
            Plot,
            by_unit,
        )

        curves = [(Curve.of(name, self.time, self[name]), self.unit(name)) for name in self.chosen(patterns)]
        return Plot(title or ", ".join(patterns) or self._summary_line(), by_unit(curves))

    # -- files ----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file in the format of its suffix, or a growing file with `.part` after its name.

        The times in s are the column `time`, or the first column. A missing value is not-a-number.

        Raises
        ------
        InputError
            When no format has the suffix, there is no such file, or it does not hold times and numbers.
        """
        table = read_table(path)
        names = list(table.columns)
        columns = [column_numbers(str(path), name, table) for name in names]
        units = [table.units.get(name, "1") for name in names]
        if TIME not in names and not format_of(path).ordered:
            raise InputError(f"{path} has no column '{TIME}'; its format keeps no order, so the times need that name")
        place = names.index(TIME) if TIME in names else 0
        time = columns.pop(place)
        time = time * seconds_in(units[place], str(path))
        wrong = ~np.isfinite(time) | (np.diff(time, prepend=-np.inf) < 0.0)
        if wrong.any():
            where = place_of(table.lines, int(np.argmax(wrong)))
            raise InputError(
                f"{path}, {where}: the times in the column '{names[place]}' must be finite and ascend; two rows of one "
                "time are a jump"
            )
        del names[place], units[place]
        read = cls(time, np.column_stack([np.zeros((len(time), 0)), *columns]), names, units)
        read.lines = table.lines
        return read


def seconds_in(unit: str, file: str) -> float:
    """Return the seconds in the unit of a column of times; they are in s where it has none.

    Raises
    ------
    InputError
        When it is no unit of time.
    """
    try:
        return 1.0 if unit in NO_UNIT else column_conversion(unit, "s").factor
    except InputError as error:
        raise InputError(f"{file}: the times are in {unit}: {error}") from None


def column_numbers(file: str, name: str, table: Table) -> NDArray[np.float64]:
    """Return the numbers of a column of a file, not-a-number for missing ones.

    Raises
    ------
    InputError
        When a value is no number; the sentence names it.
    """
    values = table.columns[name]
    found = numbers(values)
    if found is None:
        row, value = next((k, each) for k, each in enumerate(values) if numbers([each]) is None)
        raise InputError(f"{file}, {place_of(table.lines, row)}: the column '{name}' is {value!r}; it must be a number")
    return np.asarray(found, dtype=float)


def _bounded(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    """Return the first, least, greatest and last of some values; None without values."""
    return tuple(map(float, (values[0], values.min(), values.max(), values[-1]))) if len(values) else (None,) * 4
