"""Measured signals of experiments: assignment of columns to inputs and outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.io.signals import AnySignal, straight_signal
from mbsfmu.io.trajectory import Trajectory, UnknownNameError, full_name
from mbsfmu.modelling.measurement_units import IDENTITY, NO_UNIT, LinearMap, column_conversion
from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

Measured: TypeAlias = "str | os.PathLike[str] | Trajectory | Mapping[str, Floats]"
"""A file of signals, a trajectory, or arrays by name including `time`."""
TIME = "time"


@dataclass(frozen=True)
class Experiment:
    """One experiment, in SI units.

    Attributes
    ----------
    name
        Of its file, or its number.
    signals
        Inputs that were measured, by `system.variable`.
    outputs
        Places of the measured outputs among what is computed.
    times, values
        Of each output, without missing values.
    """

    name: str
    signals: Mapping[str, AnySignal]
    outputs: tuple[int, ...]
    times: tuple[Floats, ...]
    values: tuple[Floats, ...]

    @property
    def stop(self) -> float:
        """The last time in s; 0 where nothing was measured."""
        return max((float(each[-1]) for each in self.times if len(each)), default=0.0)

    def until(self, time: float) -> Experiment:
        """Return the experiment with what was measured until a time in s."""
        kept = [each <= time for each in self.times]
        shorter = [
            tuple(each[inside] for each, inside in zip(arrays, kept, strict=True))
            for arrays in (self.times, self.values)
        ]
        return replace(self, times=shorter[0], values=shorter[1])


def listed(measured: Measured | Sequence[Measured]) -> list[Measured]:
    """Return experiments, of which one or several are given.

    Raises
    ------
    InputError
        When none is given.
    """
    one = isinstance(measured, str | os.PathLike | Trajectory | Mapping)
    found: list[Any] = [measured] if one else list(measured)
    if not found:
        raise InputError("no experiment is given; give one at least")
    return found


def read_experiment(
    measured: Measured,
    name: str,
    inputs: Sequence[Variable],
    computed: Sequence[Variable],
    reference: Callable[[str], str],
    short: Mapping[str, str],
) -> Experiment:
    """Return an experiment from measured signals.

    Parameters
    ----------
    measured
        The signals; those called as an input of the model are given to it, interpolated linearly.
    name
        What it is called where it is no file.
    inputs, computed
        Variables of the model.
    reference
        Gives `system.variable` for the name of an input.
    short
        Names by `system.variable`.

    Raises
    ------
    InputError
        When times are not finite or fall, a column is no variable of the model, its unit is another quantity, or
        nothing is measured.
    """
    if isinstance(measured, Mapping) and not isinstance(measured, Trajectory):
        table = {each: np.asarray(values, dtype=float) for each, values in measured.items()}
        if TIME not in table:
            raise InputError(f"{name} has no '{TIME}'")
        time = table.pop(TIME)
        units = dict.fromkeys(table, "1")
    else:
        read = measured if isinstance(measured, Trajectory) else Trajectory.from_file(measured)
        name = name if isinstance(measured, Trajectory) else Path(measured).name
        time, table = read.time, {each: read[each] for each in read.names}
        units = {each: read.unit(each) for each in read.names}
    _check_times(time, name)
    driving, known = [each.name for each in inputs], [each.name for each in computed]
    signals: dict[str, AnySignal] = {}
    found: dict[int, tuple[Floats, Floats]] = {}
    columns: dict[str, str] = {}
    jumps = _before_jumps(time, table, driving, short)
    for column, values in table.items():
        if values.shape != time.shape:
            raise InputError(f"{name}: '{column}' has {values.shape} values at {time.shape} times")
        meant = full_name(column, [*driving, *known], "variable", f" for a column of {name}", short)
        variable = (*inputs, *computed)[[*driving, *known].index(meant)]
        if meant in columns:
            raise InputError(f"{name}: the columns '{columns[meant]}' and '{column}' are both {meant}; leave one out")
        columns[meant] = column
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(f"{name}: '{column}' is {values[row]} at {time[row]:.9g} s; it must be finite, or missing")
        there = np.isfinite(values)
        way = IDENTITY if units[column] in NO_UNIT else _conversion(units[column], variable, f"{name}: '{column}'")
        there = there & (True if meant in driving else ~jumps)
        numbers = way.factor * values[there] + way.offset
        if not there.any():
            raise InputError(f"{name}: '{column}' has no value")
        if meant in driving:
            signals[reference(meant)] = straight_signal(time[there], numbers)
        else:
            found[known.index(meant)] = time[there], numbers
    if not found:
        raise InputError(f"{name} has no column of an output of the model, beside its first one, the time")
    if min(times[0] for times, _ in found.values()) < 0.0:
        raise InputError(f"{name}: times begin before 0 s, where the run begins")
    return Experiment(name, signals, tuple(found), *(tuple(each[part] for each in found.values()) for part in (0, 1)))


def _before_jumps(time: Floats, table: Mapping[str, Floats], driving: Sequence[str], short: Mapping[str, str]) -> Any:
    """Return which rows are those before a jump of an input: outputs of that time are compared after it.

    Rows of one time without a jump are measured several times.
    """
    result = np.zeros(len(time), dtype=bool)
    for column, values in table.items():
        try:
            full_name(column, driving, "input", by_system=short)
        except UnknownNameError:
            continue
        if values.shape == time.shape:
            result[:-1] |= (np.diff(time) == 0.0) & (np.diff(values) != 0.0)
    return result


def _check_times(times: Floats, name: str) -> None:
    """Refuse times that are not finite, or fall: values are compared with the run in their order."""
    if times.ndim != 1 or not len(times):
        raise InputError(f"{name}: 'time' has the shape {times.shape}; it must be one time for each row")
    if not np.isfinite(times).all():
        row = int(np.argmin(np.isfinite(times)))
        raise InputError(f"{name}: the time of row {row + 1} is {times[row]}; it must be finite")
    if (falls := np.diff(times) < 0.0).any():
        row = int(np.argmax(falls))
        raise InputError(
            f"{name}: the time falls from {times[row]:.9g} s in row {row + 1} to {times[row + 1]:.9g} s; sort the rows"
        )


def _conversion(unit: str, variable: Variable, where: str) -> LinearMap:
    """Return the conversion of a column to the unit of its variable."""
    try:
        return column_conversion(unit, variable.measured_unit)
    except InputError as error:
        raise InputError(f"{where} is in {unit}, and {variable.name} in {variable.unit}: {error}") from None
