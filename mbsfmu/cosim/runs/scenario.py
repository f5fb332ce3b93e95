"""Values set during a run: at given times, or manually."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from mbsfmu.base.errors import InputError
from mbsfmu.base.times import tolerance
from mbsfmu.cosim.coupling.graph import SystemGraph, behind_connectors
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.fmus.variable_descriptions import is_no_number, with_article
from mbsfmu.cosim.runs.load_fmus import by_instance
from mbsfmu.io.formats.table_format import read_rows
from mbsfmu.io.trajectory import seconds_in
from mbsfmu.modelling.measurement_units import NO_UNIT, plain_number
from mbsfmu.modelling.variables import Causality, Variability

Values = Mapping[tuple[str, str], Any]
Table = Mapping[float, Mapping[str, Any]]


class Scenario:
    """Values by the times in s from which they count.

    Parameters
    ----------
    table
        By time, values by `unit.variable`, or by a connector of the system.
    graph, instances
        What they are set in.
    taken
        Variables that a connection or a signal drives, as (unit, variable).
    start
        Start time in s: values of that time and of earlier ones are start values.
    step
        Communication step in s, the first one where steps are controlled.

    Attributes
    ----------
    start
        Start values.
    events
        The times after the start, ascending.
    passed
        Number of events whose values are set.

    Raises
    ------
    InputError
        When a variable is not there, or cannot be set while a run goes on.
    """

    CHANGES: ClassVar = ("passed",)

    def __init__(
        self,
        table: Table,
        graph: SystemGraph,
        instances: Mapping[str, Instance],
        taken: Iterable[tuple[str, str]],
        start: float,
        step: float,
    ) -> None:
        rows = {time: by_instance(behind_connectors(table[time], graph), instances) for time in sorted(table)}
        taken = set(taken)
        self._step = step
        self.start: dict[tuple[str, str], Any] = {}
        self._rows: list[Values] = []
        self.events: list[float] = []
        self.passed = 0
        for time, values in rows.items():
            if time <= start + tolerance(step, start):
                self.start |= values
                continue
            check_settable(values, instances, taken, time)
            self._rows.append(values)
            self.events.append(time)

    @property
    def variables(self) -> set[tuple[str, str]]:
        """All variables that are set, as (unit, variable)."""
        return {each for values in (self.start, *self._rows) for each in values}

    def due(self, time: float) -> Values:
        """Return the values that are to be set at a time in s and have not been."""
        result: dict[tuple[str, str], Any] = {}
        while self.passed < len(self.events) and self.events[self.passed] <= time + tolerance(self._step, time):
            result |= self._rows[self.passed]
            self.passed += 1
        return result


def check_settable(
    values: Values, instances: Mapping[str, Instance], taken: Iterable[tuple[str, str]], time: float
) -> None:
    """Check that variables can be set while a run goes on, at a time in s.

    Raises
    ------
    InputError
        When one is neither input nor tunable parameter, is driven, or is set to not-a-number.
    """
    taken = set(taken)
    for (name, variable), value in values.items():
        described, where = instances[name].variables[variable], f"{name}.{variable} cannot be set at t = {time:.9g} s"
        if instances[name].kinds[variable] == "Real" and is_no_number(value):
            raise InputError(f"{where} to {value}: it must be a number")
        if (name, variable) in taken:
            raise InputError(f"{where}: a connection or a signal drives it")
        if variable in instances[name].structural:
            raise InputError(f"{where}: it is a structural parameter, which is set before the run alone")
        if described.causality is Causality.PARAMETER:
            if described.variability is not Variability.TUNABLE:
                raise InputError(f"{where}: it is a {described.variability} parameter, which is set before the start")
        elif described.causality is not Causality.INPUT:
            raise InputError(f"{where}: it is {with_article(described.causality)}, not an input or tunable parameter")


def read_scenario(source: str | os.PathLike[str] | Table) -> Table:
    """Read a scenario: a CSV file of times in s in the first column, and values of `unit.variable` in the others.

    A cell that is empty leaves the variable as it is; values may be numbers, truth values, words. Numbers under a
    header with a unit, as `pump.speed [1/min]`, are in this unit.

    Raises
    ------
    InputError
        When there is no such file, or it does not read so; the sentence names the line.
    """
    if isinstance(source, Mapping):
        return {_time(time, "the scenario"): values for time, values in source.items()}
    file = Path(source)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    names, units, rows, lines = read_rows(file)
    if not rows or len(names) < 2:
        raise InputError(f"{file} is no scenario: it needs a header with a column of times and others, and lines")
    if len(set(names)) < len(names):
        raise InputError(f"{file} has two columns of one name: {', '.join(names)}")
    seconds = seconds_in(units.get(names[0], ""), str(file))
    result: dict[float, dict[str, Any]] = {}
    for number, line in zip(lines, rows, strict=True):
        where = f"{file}, line {number}"
        time = _time(line[0], where) * seconds
        if result and time < max(result):
            raise InputError(f"{where}: the time {time:g} s is before the one above; the times must ascend")
        cells = zip(names[1:], line[1:], strict=True)
        values = {name: _with_unit(cell.strip(), units.get(name, "")) for name, cell in cells if cell.strip()}
        result.setdefault(time, {}).update(values)  # of two rows of one time the value after the jump holds
    return result


def _with_unit(cell: str, unit: str) -> str:
    """Return a cell with the unit of its column; truth values, words and arrays have none."""
    try:
        plain_number(cell)
    except ValueError:
        return cell
    return cell if unit in NO_UNIT else f"{cell} {unit}"


def _time(given: Any, where: str) -> float:
    try:
        time = float(given)
    except (TypeError, ValueError):
        raise InputError(f"{where}: '{given}' is no time in s") from None
    if not math.isfinite(time):
        raise InputError(f"{where}: the time is {time:g} s; it must be finite")
    return time
