"""Recording of a coupled run, and its result."""

from __future__ import annotations

import logging
import os
import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.interruption import deferring_interruptions
from mbsfmu.base.name_patterns import means, nearest
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.coupling.graph import CoupledJoint, Exposed
from mbsfmu.cosim.coupling.power_bonds import PowerBond
from mbsfmu.cosim.fmus.fmu_instance import Floats, Instance
from mbsfmu.cosim.fmus.variable_descriptions import with_article
from mbsfmu.cosim.runs.load_fmus import Drawable
from mbsfmu.io.checkpoints import RunError, RunInterrupted
from mbsfmu.io.streams import SignalStream
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap
from mbsfmu.modelling.parameters import percent

if TYPE_CHECKING:
    from mbsfmu.model.machine import Machine
    from mbsfmu.model.model_data import ModelData
    from mbsfmu.view.scene import Animation


logger = logging.getLogger(__name__)

LARGE_RESIDUAL = 2e-3
"""Residual energy relative to the exchanged energy of a power bond at which a warning is given; forces of the hydraulic
mechanisms are off by 5 % of their range there, and by all of it at 5e-2.
"""
_NO_ENERGY = 1e-6  # J, of machines at rest


class CosimulationResult(Trajectory):
    """Outputs of all FMUs over time with run statistics; rows in a file are read on demand.

    Attributes
    ----------
    statistics
        What the run was and cost; each of its attributes is one of the result too.
    drawable
        What a picture is made from where the FMUs say what they are; None where the run is not one of FMUs.
    flat_names
        Names of signals by those with the flat names that FMUs have for the variables.
    """

    statistics: RunStatistics
    drawable: Drawable | None = None
    flat_names: Mapping[str, str] = MappingProxyType({})

    _file: SignalStream
    _last: tuple[float, Floats]

    def full_name(self, name: str) -> str:
        """Return the full name of the one signal that a name means, which may be that with a flat name."""
        return super().full_name(self.flat_names.get(name, name))

    def is_in(self, stream: SignalStream, time: float, row: Floats) -> None:
        """Take it that the rows are in a file, but for those that the result has; the last one is known."""
        self._file, self._last = stream, (time, row)
        self._waiting = self.time, self.values_by_column
        del self.time, self.values_by_column

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name in ("time", "values_by_column") and "_file" in known:
            read = Trajectory.from_file(self._file.found)
            self.time = np.concatenate([read.time, self._waiting[0]])
            self.values_by_column = np.concatenate([read.values_by_column, self._waiting[1]])
            return known[name]
        if name != "statistics" and "statistics" in known and name in RunStatistics.__dataclass_fields__:
            return getattr(self.statistics, name)
        raise AttributeError(f"a result has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *RunStatistics.__dataclass_fields__]

    def _metadata(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self.statistics).items() if isinstance(value, str | int | float)}

    def _summary_line(self) -> str:
        run = self.statistics
        return f"{run.algorithm}, {run.extrapolation}, steps {run.control}, {super()._summary_line()}"

    def animate(
        self, model: ModelData | None = None, beside: Trajectory | Mapping[str, Trajectory] | None = None, **chosen: Any
    ) -> Animation:
        """Return the machine in motion, for notebooks and pages.

        Parameters
        ----------
        model
            What the FMUs were exported from; where it is not given, what they carry along.
        beside
            Another run of the same model, or several by their labels, as ghosts.
        chosen
            What `mbsfmu.animate` takes beside: `label`, `values`, `frame_rate`.

        Raises
        ------
        InputError
            When there is no mechanism, no FMU says what it is, or a run lacks the coordinates of a joint; the sentence
            names them.
        """
        from mbsfmu.view.scene import animate  # noqa: PLC0415 - few runs are looked at

        machine = self._machine() if model is None else model
        return animate(
            self, machine, beside, **{"label": f"{self.statistics.algorithm}, {self.statistics.step:g} s", **chosen}
        )

    def _machine(self) -> Machine:
        if self.drawable is None:
            raise InputError("the run does not know its units; give the model that they are of")
        return self.drawable.machine()

    @property
    def recorded(self) -> tuple[Path, float] | None:
        """The file that has the rows, and the time in s of the last one there; None where they are in memory."""
        if "_file" not in self.__dict__:
            return None
        return self._file.found, self._file.end

    @property
    def end(self) -> float:
        """Time of the last row in s."""
        return self._last[0] if "_last" in self.__dict__ else float(self.time[-1])

    def final(self) -> dict[str, float]:
        """Return the last value of every signal."""
        if "_last" not in self.__dict__:
            return super().final()
        return dict(zip(self.names, self._last[1].tolist(), strict=True))

    @property
    def energy_residual_max(self) -> float | None:
        """Largest magnitude of the residual energy over time and bonds in J; None without bonds."""
        return max(self.statistics.energy_residual_largest.values(), default=None)

    @property
    def energy_residual_share(self) -> float | None:
        """Largest magnitude of the residual energy as a share of the energy exchanged; None without bonds."""
        largest = self.statistics.energy_residual_largest
        shares = [
            largest[bond] / max(exchanged, _NO_ENERGY) for bond, exchanged in self.statistics.energy_exchanged.items()
        ]
        return max(shares, default=None)

    def summary(self) -> dict[str, Any]:
        """Return the data that `cosim --json` writes."""
        return {**asdict(self.statistics), "stop": self.end, "final": self.final()}


class CosimulationError(RunError):
    """Failed coupled run; `result` has the recorded part."""

    result: CosimulationResult


class CosimulationInterrupted(RunInterrupted):
    """Interrupted coupled run; `result` has the recorded part."""

    result: CosimulationResult


def residual_notes(result: CosimulationResult) -> Iterator[str]:
    """Return messages on bonds with large residual energy."""
    run = result.statistics
    coupling = run.algorithm if run.extrapolation == Extrapolation.ZERO else f"{run.algorithm}, {run.extrapolation},"
    steps = f"{run.step:.3g}" if run.control == "fixed" else f"{run.smallest_step:.3g} to {run.largest_step:.3g}"
    for bond, exchanged in run.energy_exchanged.items():
        residual = run.energy_residual_largest[bond]
        if residual > LARGE_RESIDUAL * exchanged + _NO_ENERGY:
            share = f"{percent(residual / exchanged)} of" if exchanged else "beside"
            yield (
                f"the coupling ({coupling} by steps of {steps} s) brought in or took out up to {residual:.3g} J at "
                f"{bond}, {share} the "
                f"{exchanged:.3g} J exchanged there, and what is exchanged may be off by far more than that: "
                f"{run.better_coupling}"
            )


_FIRST_ROWS = 1024
_PATIENCE = 0.5  # s that rows stay here
_ON_TIME = 1e-9  # of an interval


@dataclass(frozen=True)
class Column:
    """A recorded column.

    Attributes
    ----------
    name, unit
        Name and unit.
    place
        Where it stands in a row of all values.
    way
        What becomes of these.
    flat
        Name with the flat name that the FMU has for the variable; the same name where it has none.
    """

    name: str
    unit: str
    place: int
    way: LinearMap = IDENTITY
    flat: str = ""

    @property
    def called(self) -> tuple[str, ...]:
        """Names that patterns may match."""
        return (self.name, self.flat) if self.flat else (self.name,)


def all_columns(
    exchange: CouplingData, bonds: Sequence[PowerBond], outputs: Sequence[Exposed], joints: Sequence[CoupledJoint] = ()
) -> list[Column]:
    """Return all recordable columns: outputs of FMUs, reactions of joints, residual energies, outputs of the system."""
    variables = {member.instance.name: member.instance.variables for member in exchange.members}
    units = [variables[instance][variable].unit for instance, variable in exchange.names]
    names = [f"{instance}.{variable}" for instance, variable in exchange.names]
    flat = {
        f"{member.instance.name}.{variable}": f"{member.instance.name}.{member.instance.flat_name(variable)}"
        for member in exchange.members
        for variable in (member.instance.variables if member.instance.flat_names else ())
    }
    for joint in joints:
        names += [f"reaction.{joint.name}.{load}.{axis}" for load in ("force", "moment") for axis in "xyz"]
        units += ["N"] * 3 + ["N.m"] * 3
    names += [f"energy_residual.{bond.name}" for bond in bonds]
    units += ["J"] * len(bonds)
    columns = [
        Column(name, unit, place, flat=flat.get(name, name))
        for place, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
    places = {column.name: column.place for column in columns}
    for each in outputs:
        inside = ".".join(each.end)
        if inside in places and each.name not in places:
            columns.append(Column(each.name, each.unit.name or "1", places[inside], each.map))
    return columns


def chosen_columns(
    columns: Sequence[Column], patterns: Sequence[str] | None, instances: Mapping[str, Instance]
) -> list[Column]:
    """Return the columns that match a pattern, such as `unit.*`; all without patterns.

    Parameters
    ----------
    columns
        What can be recorded.
    patterns
        The patterns.
    instances
        The FMUs, whose other variables are told from names that there are not.

    Raises
    ------
    InputError
        When a pattern means none.
    """
    if patterns is None:
        return list(columns)
    names = [column.name for column in columns]
    for pattern in patterns:
        if not any(means(pattern, column.called) for column in columns):
            near = nearest(pattern, names, lambda name: [name])
            raise InputError(f"nothing that is recorded is called '{pattern}'{_otherwise(pattern, instances)}; {near}")
    return [column for column in columns if any(means(pattern, column.called) for pattern in patterns)]


def unrecorded(
    instance: Instance, names: Iterable[str], patterns: Sequence[str] | None, outputs: Sequence[Exposed]
) -> frozenset[str]:
    """Return the variables of an FMU that no pattern matches, by their names or those of connectors of the system."""
    called = {name: [f"{instance.name}.{each}" for each in (name, instance.flat_name(name))] for name in names}
    for each in outputs:
        if each.end[1] in called:
            called[each.end[1]].append(each.name)
    return frozenset(
        name for name in called if patterns is not None and not any(means(each, called[name]) for each in patterns)
    )


def _otherwise(pattern: str, instances: Mapping[str, Instance]) -> str:
    """Return the unrecorded variables that a pattern matches; empty without a match."""
    for unit, instance in instances.items():
        for each in instance.variables.values():
            if means(pattern, [f"{unit}.{each.name}"]):
                what = f"is {with_article(each.causality)}"
                if instance.kinds[each.name] == "String":
                    what = "is a text, whose changes are among the facts of the run"
                return f": {unit}.{each.name} {what}, and numbers that are outputs are recorded"
    return ""


class Thinning:
    """Chooses rows: one of so many, and of these the first in each interval; the last one always.

    Parameters
    ----------
    start
        Time of the first row in s.
    every
        Number of communication points to a row.
    interval
        In s; None for none.
    """

    def __init__(self, start: float, every: int, interval: float | None) -> None:
        self._start, self._every, self._interval = start, every, interval
        self.seen, self.interval_of_last = 0, -1.0

    CHANGES: ClassVar = ("seen", "interval_of_last")

    def choose(self, times: Floats) -> Any:
        """Return which of the next rows are chosen, by their times in s."""
        chosen = (self.seen + np.arange(len(times))) % self._every == 0
        self.seen += len(times)
        if self._interval is not None:
            counts = np.floor((times - self._start) / self._interval + _ON_TIME)
            reached = np.maximum.accumulate(np.concatenate([[self.interval_of_last], np.where(chosen, counts, -1.0)]))
            chosen &= counts > reached[:-1]
            self.interval_of_last = float(reached[-1])
        return chosen


class Record:
    """Rows of outputs and residual energies at the communication points, on their way to memory or to a file.

    Parameters
    ----------
    columns
        What is recorded of a row.
    bonds
        The power bonds.
    width
        Number of outputs and of components of reactions.
    thinning
        Which rows are recorded.
    file
        File, in the format of its suffix; None for memory.

    Attributes
    ----------
    width
        Numbers in a row of all values: outputs, reactions of joints, then residual energies.
    rows
        Rows that wait, with room for more, which `reserve` may put elsewhere; as many count as there are `times`.
    times
        Times of the rows that wait, in s.
    residuals, exchanged
        Energy of each bond in J until now: what was residual, and what went through it.
    largest
        Largest magnitude of the residual energy of each bond, shape (bonds,).
    points
        Communication points until now.
    shortest, longest
        Length of a step in s.
    position
        Number of rows that went to a file, without the last one that is there in any case.
    """

    CHANGES: ClassVar = (
        "residuals",
        "exchanged",
        "largest",
        "points",
        "shortest",
        "longest",
        "position",
        "_thinning",
        "_last",
        "_last_is_in",
    )

    def __init__(
        self,
        columns: Sequence[Column],
        bonds: Sequence[PowerBond],
        width: int,
        thinning: Thinning,
        file: str | os.PathLike[str] | None,
    ) -> None:
        self._columns, self._bonds, self._outputs = columns, bonds, width
        self._places = np.array([column.place for column in columns], dtype=np.intp)
        self._thinning = thinning
        self.residuals, self.exchanged = [0.0] * len(bonds), [0.0] * len(bonds)
        self.largest = np.zeros(len(bonds))
        self.width = width + len(bonds)
        self.rows = np.zeros((_FIRST_ROWS, self.width))
        self.times: list[float] = []
        self.points, self.shortest, self.longest = 0, np.inf, 0.0
        self.position = 0
        self._last: tuple[Floats, Floats] | None = None
        self._last_is_in, self._finished = True, False
        self._flushed = clock.monotonic()
        self._kept: list[tuple[Floats, Floats]] = []
        names, units = zip(*((column.name, column.unit) for column in columns), strict=True) if columns else ((), ())
        self._names, self._units = names, units
        self._flat_names = {each.flat: each.name for each in columns if each.flat not in ("", each.name)}
        self.stream: SignalStream | None = None if file is None else SignalStream(file, names, units)

    @property
    def time(self) -> float:
        """Time in s of the last row that was taken."""
        return self.times[-1] if self.times or self._last is None else float(self._last[0][0])

    # -- taking rows ------------------------------------------------------------------------------------------

    def begin(self, time: float, outputs: Floats, reactions: Floats) -> None:
        """Take the outputs and reactions at the start, in s."""
        if self.stream is not None:
            self.stream.begin()
        self.add(time, outputs, [(0.0, 0.0)] * len(self._bonds), reactions)
        self.flush()

    def add(self, time: float, outputs: Floats, energies: Sequence[tuple[float, float]], reactions: Floats) -> None:
        """Take what there is at the end of a step in s.

        Parameters
        ----------
        time, outputs
            In s, and all outputs.
        energies
            For each bond, what one side got and the other gave in the step, in J.
        reactions
            Those of joints; see `Algorithm`.
        """
        self.reserve(1)
        row = self.rows[len(self.times)]
        row[: len(outputs)] = outputs
        row[len(outputs) : self._outputs] = reactions
        for index, (got, given) in enumerate(energies):
            self.residuals[index] += got - given
            self.exchanged[index] += 0.5 * (abs(got) + abs(given))
            row[self._outputs + index] = self.residuals[index]
        self.times.append(time)
        if len(self.times) >= _FIRST_ROWS or clock.monotonic() - self._flushed > _PATIENCE:
            self.flush()

    def reserve(self, count: int) -> None:
        """Make room for so many rows more."""
        while len(self.times) + count > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])

    def flush(self) -> None:
        """Hand on the rows that wait.

        Raises
        ------
        WriteError
            When the file does not take them.
        """
        self._flushed = clock.monotonic()
        if self.times:
            with deferring_interruptions():  # rows are here or handed on: neither both nor none of it
                self._flush()

    def _flush(self) -> None:
        times = np.array(self.times)
        rows = self.rows[: len(times)]
        self.times.clear()
        lengths = np.diff(times, prepend=times[:1] if self._last is None else self._last[0])
        lengths = lengths[1:] if self._last is None else lengths
        self.shortest = min(self.shortest, float(np.min(lengths, initial=np.inf)))
        self.longest = max(self.longest, float(np.max(lengths, initial=0.0)))
        self.points += len(times)
        np.maximum(self.largest, np.max(np.abs(rows[:, self._outputs :]), axis=0, initial=0.0), out=self.largest)
        chosen = self._thinning.choose(times)
        self._last, self._last_is_in = (times[-1:], self._recorded(rows[-1:])), bool(chosen[-1])
        if chosen.any():
            self.position += int(chosen.sum())
            self._hand_on(times[chosen], self._recorded(rows[chosen]))

    def _recorded(self, rows: Floats) -> Floats:
        """Return the columns that are recorded of rows of all values."""
        values = rows[:, self._places]
        for index, column in enumerate(self._columns):
            if column.way != IDENTITY:
                values[:, index] = column.way.factor * values[:, index] + column.way.offset
        return values

    def _hand_on(self, times: Floats, values: Floats) -> None:
        if self.stream is None:
            self._kept.append((times, values))
        else:
            self.stream.add(times, values)

    def write(self) -> None:
        """Write the rows that wait to the file.

        Raises
        ------
        WriteError
            When the file does not take them.
        """
        self.flush()
        if self.stream is not None:
            self.stream.write()

    def go_on(self) -> None:
        """Go on where another record was that has been put back: with its rows, or the last one where none are kept.

        Raises
        ------
        InputError
            When the file does not have them.
        WriteError
            When the file to go on with cannot be written.
        """
        if self.stream is not None:
            self.stream.take_over(self.position, self._last if self._last_is_in else None)
            self.stream.write()  # before it takes the place of the file that has the rows
            self.stream.begin()
        elif self._last is not None and self._last_is_in:
            self._kept.append((self._last[0], self._last[1]))

    # -- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Take the last row in any case, and let the file be whole.

        Raises
        ------
        WriteError
            When it cannot be: what was written stays.
        """
        self.flush()
        if self._last is not None and not self._last_is_in:
            self._hand_on(*self._last)
        self._finished = True
        if self.stream is not None:
            self.stream.finish()

    def close(self) -> None:
        """Leave the file as it is."""
        if self.stream is not None:
            self.stream.close()

    def result(self, statistics: RunStatistics, drawable: Drawable | None = None) -> CosimulationResult:
        """Return the recorded result; rows in a file are read on demand."""
        waiting = [] if self._last is None or self._last_is_in or self._finished else [self._last]
        kept = [*(self._kept if self.stream is None else self.stream.waiting), *waiting]
        empty = (np.zeros(0), np.zeros((0, len(self._columns))))
        times, values = (np.concatenate(each) for each in zip(empty, *kept, strict=True))
        result = CosimulationResult(times, values, self._names, self._units)
        statistics.steps = max(self.points - 1, 0)
        if statistics.steps:
            statistics.smallest_step, statistics.largest_step = float(self.shortest), float(self.longest)
        names = [bond.name for bond in self._bonds]
        statistics.energy_residual = dict(zip(names, self.residuals, strict=True))
        statistics.energy_residual_largest = dict(zip(names, self.largest.tolist(), strict=True))
        statistics.energy_exchanged = dict(zip(names, self.exchanged, strict=True))
        result.statistics, result.drawable, result.flat_names = statistics, drawable, self._flat_names
        if self.stream is not None and self._last is not None:
            result.is_in(self.stream, float(self._last[0][0]), self._last[1][0])
        return result
