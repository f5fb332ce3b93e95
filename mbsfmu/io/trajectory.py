"""Signals over time: what a run gives back and what files hold."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.base.patterns import means, nearest
from mbsfmu.io.streams import PART, TIME, csv_header, csv_lines
from mbsfmu.io.tables import arrow, column_values, optional, read_parquet, unit_of, write_parquet
from mbsfmu.io.tabular import Tabular, UnknownNameError, full_name
from mbsfmu.modelling import html_table

if TYPE_CHECKING:
    import pandas
    import xarray

    from mbsfmu.view.plots.plot import Plot

SUFFIXES = (".csv", ".parquet")


class Trajectory(Tabular, Mapping[str, NDArray[np.float64]]):
    """A time grid and named signals with units.

    A signal is found by its full name, or by any trailing part of it that is unique:
    `trajectory["cylinder.length"]` finds `mechanism.cylinder.length` where no other signal ends so.

    Parameters
    ----------
    time
        Times in s, shape (k,).
    values
        One column a signal, shape (k, number of signals).
    names, units
        One a signal.
    """

    def __init__(
        self,
        time: NDArray[np.float64],
        values: NDArray[np.float64],
        names: Sequence[str],
        units: Sequence[str],
    ) -> None:
        self.time = np.asarray(time, dtype=float)
        self.values_by_column = np.asarray(values, dtype=float).reshape(len(self.time), len(names))
        self.names = tuple(names)
        self._unit_by_name = dict(zip(self.names, units, strict=True))
        self._column_by_name = {name: column for column, name in enumerate(self.names)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._told()}>"

    def _told(self) -> str:
        """Say in a few words what this is."""
        span = f" from {self.time[0]:g} to {self.time[-1]:g} s" if len(self.time) else ""
        return f"{len(self.names)} signals at {len(self.time)} times{span}"

    def _repr_html_(self) -> str:
        columns = ("signal", "unit", "at the start", "least", "greatest", "at the end")
        rows = ((name, self._unit_by_name[name], *_bounded(self[name])) for name in self.names)
        return html_table(columns, rows, f"{type(self).__name__}: {self._told()}")

    def _ipython_key_completions_(self) -> list[str]:
        """Offer the full names, and what is left of them without the system's where that is enough."""
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
        """Return the full name of the one signal that `name` means.

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

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with the times in s as index; `attrs["units"]` has the units by column.

        `attrs` has what is told of the run besides, as the model's name.

        Raises
        ------
        InputError
            When pandas is not installed, or a signal is called `time`.
        """
        return super().to_pandas().set_index(TIME)

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset of the signals over `time`, units in the attribute `units` of each variable.

        The attributes of the whole are what is told of the run, as the model's name.

        Raises
        ------
        InputError
            When xarray is not installed, or a signal is called `time`.
        """
        units = self._units()
        variables = {name: (TIME, values, {"units": units[name]}) for name, values in self._columns().items()}
        times = {TIME: variables.pop(TIME)}
        return optional("xarray", "to_xarray").Dataset(variables, times, self._facts())

    # -- plots ----------------------------------------------------------------------------------------------

    def chosen(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Return the full names of the signals that patterns such as `cylinder.*` mean, in the order of the patterns.

        A pattern holds for the full name or any trailing part of it, and may mean several; no pattern means all.

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
        """Return a signal's full name, and what else patterns may mean it by."""
        return _endings(name)

    def plot(self, *patterns: str, title: str = "") -> Plot:
        """Return a plot of signals over time: zoomed and moved together, with values and units at the pointer.

        A notebook shows it, and `.save("plot.html")` makes a page of it that needs nothing else.

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
        from mbsfmu.view.plots.curve import Curve  # noqa: PLC0415 - what draws is loaded where something is drawn
        from mbsfmu.view.plots.plot import Plot, by_unit  # noqa: PLC0415

        curves = [(Curve.of(name, self.time, self[name]), self.unit(name)) for name in self.chosen(patterns)]
        return Plot(title or ", ".join(patterns) or self._told(), by_unit(curves))

    # -- files ----------------------------------------------------------------------------------------------

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write time and signals to a CSV or Parquet file, as the suffix says; it appears complete or not at all.

        Raises
        ------
        InputError
            When it is neither suffix.
        """
        if check_suffix(path) == ".csv":
            self.to_csv(path)
        else:
            self.to_parquet(path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write time and signals to a CSV file, numbers written so that they read back exactly, units in the header.

        The file appears complete or not at all.
        """
        units = [self._unit_by_name[name] for name in self.names]
        with complete_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as stream:
            stream.write(csv_header(self.names, units))
            stream.write(csv_lines(self.time, self.values_by_column))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write time and signals to a Parquet file with the column `time`, units in the metadata of the columns.

        The file appears complete or not at all.

        Raises
        ------
        InputError
            When a signal is called `time`.
        """
        write_parquet(self.to_arrow(), path)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a CSV or Parquet file, as the suffix says, or one that still grows, with `.part` behind its name.

        Raises
        ------
        InputError
            When it is neither suffix, or the file does not hold times and numbers.
        """
        return cls.from_csv(path) if check_suffix(path) == ".csv" else cls.from_parquet(path)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a CSV file: a header of `name [unit]` or `name`, the times in s in the first column or in `time`.

        Raises
        ------
        InputError
            When there is no such file, or it does not hold times and numbers; the sentence names the line.
        """
        file = Path(path)
        if not file.is_file():
            raise InputError(f"there is no file {file}")
        try:
            with file.open(newline="", encoding="utf-8-sig") as stream:
                # The last line of a file that grows may be cut, in the middle of a number too.
                text = (line for line in stream if file.suffix != PART or line.endswith("\n"))
                lines = [line for line in csv.reader(text) if line]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{file} is no CSV file: {error}") from None
        if len(lines) < 2:
            raise InputError(f"{file} is no table: it needs a header and at least one line of numbers")
        names, units = zip(*(parted(cell) for cell in lines[0]), strict=True)
        rows = []
        for number, line in enumerate(lines[1:], start=2):
            if len(line) != len(names):
                raise InputError(f"{file}, line {number}: there are {len(line)} values for {len(names)} columns")
            try:
                rows.append([float(cell) for cell in line])
            except ValueError as error:
                raise InputError(f"{file}, line {number}: {error}") from None
        return cls._from_columns(str(file), np.array(rows), names, units)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Self:
        """Read a Parquet file: columns of numbers, the times in s in the first one or in `time`.

        Raises
        ------
        InputError
            When there is no such file, or it does not hold times and numbers.
        """
        table = read_parquet(path)
        names = table.column_names
        values = np.column_stack([column_values(table, name) for name in names])
        return cls._from_columns(str(path), values, names, [unit_of(table, name) for name in names])

    @classmethod
    def _from_columns(cls, file: str, values: NDArray[np.float64], names: Sequence[str], units: Sequence[str]) -> Self:
        if len(set(names)) < len(names):
            raise InputError(f"{file} has two columns of one name: {', '.join(names)}")
        place = list(names).index(TIME) if TIME in names else 0
        if units[place] not in ("s", "1"):
            raise InputError(f"{file}: the times are in {units[place]}; they must be in s")
        time = values[:, place]
        if not np.isfinite(time).all() or (np.diff(time) <= 0).any():
            raise InputError(f"{file}: the times in the column '{names[place]}' must be finite and ascend")
        rest = [column for column in range(len(names)) if column != place]
        return cls(time, values[:, rest], [names[column] for column in rest], [units[column] for column in rest])


def _bounded(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    """Return the first, the least, the greatest and the last of some values; None where there are none."""
    return tuple(map(float, (values[0], values.min(), values.max(), values[-1]))) if len(values) else (None,) * 4


def _endings(name: str) -> tuple[str, ...]:
    """Return a name, and what is left of it without its first parts."""
    parts = name.split(".")
    return tuple(".".join(parts[begin:]) for begin in range(len(parts)))


def check_suffix(path: str | os.PathLike[str], what: str = "a file of signals") -> str:
    """Return the suffix of a file of signals, or of what else stands in tables.

    Raises
    ------
    InputError
        When it is none of `SUFFIXES`, or Parquet and pyarrow is not installed.
    """
    suffix = Path(str(path).removesuffix(PART)).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path} is refused as {what}: its name must end in {' or '.join(SUFFIXES)}")
    if suffix == ".parquet":
        arrow(str(path))
    return suffix


def parted(cell: str) -> tuple[str, str]:
    """Return name and unit of a column's header, which reads `name [unit]` or `name`."""
    match = re.fullmatch(r"\s*(.*?)\s*\[([^\[\]]*)\]\s*", cell)
    return (match[1], match[2]) if match else (cell.strip(), "1")
