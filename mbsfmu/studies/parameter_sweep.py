"""Parameter sweep: runs over combinations and samples, or points asked for one by one; a row per point, with units."""

from __future__ import annotations

import json
import logging
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.executors import InlineExecutor, Shares, process_pool
from mbsfmu.io.formats import Table, format_of
from mbsfmu.io.formats.table_format import numbers
from mbsfmu.io.signals import AnySignal
from mbsfmu.io.tables import optional
from mbsfmu.io.trajectory import Columns, Tabular, full_name
from mbsfmu.modelling import html_table
from mbsfmu.studies.point_run import KEY, Journal, Row
from mbsfmu.studies.points import SobolIndices, StudyPoint, make_points, sobol_indices
from mbsfmu.studies.study_options import StudyKeywords, StudyOptions
from mbsfmu.studies.subject import Given, PreparedStudy, subject_of

if TYPE_CHECKING:
    import xarray

Task = tuple[StudyPoint, ...]
"""Points that are run in one call."""
RunTask = Callable[[Task], Sequence[Row]]
Take = Callable[[StudyPoint, Row], None]

_KILLED = "the process that ran it was killed"
_UNDER_WAY = 4  # tasks handed to each worker ahead, so that none waits for the journal

logger = logging.getLogger(__name__)


def run_points(
    run: RunTask, tasks: Iterable[Task], take: Take, *, workers: int, executor: Executor | None = None
) -> None:
    """Run all points and pass on each row when it is complete.

    Parameters
    ----------
    run
        Returns the rows of a task; it has to be sent to other processes.
    tasks
        The points.
    take
        Called with each point and its row, in this thread.
    workers
        Number of processes, where no executor is given.
    executor
        Any executor; it is left open.

    Raises
    ------
    SimulationError
        When a given executor breaks.
    """
    waiting = deque(tasks)
    if executor is not None:
        if _drain(executor, run, waiting, take, None):
            raise SimulationError("the executor broke; the rows that were done are kept")
        return
    while waiting:
        with process_pool(workers) as pool:
            suspects = _drain(pool, run, waiting, take, _UNDER_WAY * workers)
        if suspects:
            logger.warning("a worker process was killed; the points it may have run are tried again one by one")
        for point in (point for task in suspects for point in task):
            with process_pool(1) as pool:
                if _drain(pool, run, deque([(point,)]), take, 1):
                    take(point, {"status": "failed", "message": _KILLED, "warnings": ""})


def _drain(executor: Executor, run: RunTask, waiting: deque[Task], take: Take, most: int | None) -> list[Task]:
    """Run pending tasks, a limited number at a time; return those in progress when the executor broke."""
    under_way: dict[Future[Sequence[Row]], Task] = {}
    lost: list[Task] = []
    try:
        while (waiting or under_way) and not (lost and not under_way):
            while waiting and not lost and (most is None or len(under_way) < most):
                task = waiting.popleft()
                try:
                    future = executor.submit(run, task)
                except BrokenExecutor:
                    lost.append(task)
                    break
                under_way[future] = task
                if future.done():  # an executor that runs each call at once: its row is taken before the next one
                    break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                task = under_way.pop(future)
                try:
                    rows = _rows(future, task)
                except BrokenExecutor:
                    lost.append(task)
                    continue
                if rows is None:
                    waiting.extend((point,) for point in task)
                else:
                    for point, row in zip(task, rows, strict=True):
                        take(point, row)
    except BaseException:
        for future in under_way:
            future.cancel()
        raise
    return lost


def _rows(future: Future[Sequence[Row]], task: Task) -> Sequence[Row] | None:
    """Return the rows of a task that has ended; None where an error may be of any of its points.

    Raises
    ------
    BrokenExecutor
        When its process was killed.
    """
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        if len(task) > 1:
            return None
        return [{"status": "failed", "message": f"{type(error).__name__}: {error}", "warnings": ""}]


def sweep(
    model: Given,
    vary: Mapping[str, Sequence[float]] | None = None,
    *,
    samples: Mapping[str, Sequence[float]] | None = None,
    connections: Sequence[str | tuple[str, str]] = (),
    inputs: Mapping[str, AnySignal] | None = None,
    options: StudyOptions | None = None,
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    force: bool = False,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Unpack[StudyKeywords],
) -> StudyResult:
    """Run a model, or FMUs, at every combination of parameters and settings.

    A failed point is a row with its message. Points already in `output`, or in the journal of an interrupted study, are
    not run again: the same call continues, and one with more values runs the new points only.

    Parameters
    ----------
    model
        A model; or the path of an FMU, of an SSP package or of a folder with one; or several FMUs, as for `cosimulate`.
    vary
        Values of parameters and of inputs that nothing drives, by `system.variable`; by the variable alone where
        only one system has it. Of FMUs by `fmu.variable`, start values too, and connectors of the package.
    samples
        Values of others that belong together, as many of each: `draw` and `read_samples` give them. Each sample is run
        at every combination of what is varied.
    connections
        Of several FMUs, as for `cosimulate`: `a.y=b.u`.
    inputs
        Signals of inputs of FMUs that no connection drives, by `fmu.variable`; the same in all points.
    options, given
        Options, and those of them that are given by name, as `settings`; `StudyOptions` says what they are.
    output
        File for the rows, in the format of its suffix; it appears complete, beside it a journal until then. None for
        neither.
    fresh
        Whether to run all points again, whatever is there.
    force
        Whether `output` is replaced where it is no table of this study, but of another one whose rows would be lost.
    workers
        Number of processes on this machine; that of its cores by default.
    executor
        What runs the points instead: any executor of `concurrent.futures`, such as Dask's.
    progress
        Called with the share that is done.

    Returns
    -------
    StudyResult
        One row a point in the order of the values, settings varying fastest, samples slowest; columns know their units.

    Raises
    ------
    InputError
        When a name, word or number is wrong, an option has no effect, or `output` holds another study.
    """
    beside = ("vary", "samples", "connections", "inputs", "output", "fresh", "force", "workers", "executor", "progress")
    if output is not None:
        format_of(output, "the file of a study")
    subject = subject_of(model, connections, inputs)
    chosen = subject.options(StudyOptions.of(options, given, beside))
    if executor is not None and workers is not None:
        raise InputError(f"workers = {workers} has no effect with an executor, which has its own")
    named = {**(samples or {}), **(vary or {})}
    if len(named) < len(samples or {}) + len(vary or {}):
        twice = sorted(set(samples or {}) & set(vary or {}))
        raise InputError(f"the parameter {twice[0]} is varied and sampled; it must be one of the two")
    resolved = subject.resolved(named)
    values, drawn = (
        {resolved[short]: subject.converted(resolved[short], each) for short, each in (given_values or {}).items()}
        for given_values in (vary, samples)
    )
    points = make_points(values, chosen.lists, subject.content(chosen, executor), drawn)
    journal, rows = _what_is_there(output, points, fresh, force)
    left = [point for point in points if point.key not in rows]
    if len(left) < len(points):
        logger.info("%d of %d points are done already", len(points) - len(left), len(points))
    study = subject.prepared(chosen, points[0].settings, left)
    _run(study, left, rows, journal, workers, executor, Shares(progress, len(points)))
    units = {name: subject.units[name].name or "1" for name in (*drawn, *values)}
    metadata = {"mbsfmu": version("mbsfmu"), "model": subject.data}
    table = study_table(points, rows, units, study.units)
    _warn_of_equal_points(points, rows)
    result = StudyResult(*table, metadata, {**values, **chosen.lists}, tuple(drawn), study.by_system)
    if journal is not None and output is not None:
        result.to_file(output)
        journal.remove()
    return result


def _warn_of_equal_points(points: Sequence[StudyPoint], rows: Mapping[str, Row]) -> None:
    """Warn where points of different values end alike to the last bit, at each of the settings."""
    ends: dict[str, list[tuple[StudyPoint, dict[str, object]]]] = {}
    for point in points:
        row = rows[point.key]
        if row["status"] == "ok":
            final = {name: value for name, value in row.items() if name.startswith("final.")}
            ends.setdefault(repr(point.settings), []).append((point, final))
    compared = [each for each in ends.values() if any(point.values != each[0][0].values for point, _ in each)]
    if compared and all(final == each[0][1] for each in compared for _, final in each):
        varied = ", ".join(name for name in points[0].values if len({point.values[name] for point in points}) > 1)
        logger.warning("all outputs end with the same values at every point: they do not depend on %s", varied)


def _what_is_there(
    output: str | os.PathLike[str] | None, points: Sequence[StudyPoint], fresh: bool, force: bool
) -> tuple[Journal | None, dict[str, Row]]:
    """Return the journal of a results file, and the valid existing rows.

    Raises
    ------
    InputError
        When the file cannot be one of a study, or has rows of others.
    """
    if output is None:
        return None, {}
    journal = Journal(Path(output))
    if not journal.path.absolute().parent.is_dir():
        raise InputError(f"the folder of {output} is not there")
    rows = journal.known()
    if not force:
        journal.refuse_to_lose(rows, {point.key for point in points})
    return journal, {} if fresh else rows


def _run(
    study: PreparedStudy,
    points: Sequence[StudyPoint],
    rows: dict[str, Row],
    journal: Journal | None,
    workers: int | None,
    executor: Executor | None,
    shares: Shares,
) -> None:
    """Run points, collect their rows, and write them to the journal."""
    if not points:
        return
    tasks = list(study.tasks)

    def take(point: StudyPoint, row: Row) -> None:
        rows[point.key] = {KEY: point.key, **row}
        if journal is not None:
            journal.add(rows[point.key])
        shares.count()

    count = min(workers or os.cpu_count() or 1, len(tasks))
    try:
        if journal is None:
            run_points(study.run, tasks, take, workers=count, executor=executor)
        else:
            with journal:
                run_points(study.run, tasks, take, workers=count, executor=executor)
    except KeyboardInterrupt:
        done = sum(point.key in rows for point in points)
        logger.warning("ended after %d of %d points; the same study goes on from there", done, len(points))
        raise


class OpenStudy:
    """A study whose points are asked for one by one; a point that was asked for before is not run again.

    Parameters
    ----------
    model
        A model or FMUs, as for `sweep`.
    parameters
        Names of parameters and of inputs that nothing drives, as for `sweep`.
    connections, inputs, options, given
        As for `sweep`, with one value of each setting.

    Raises
    ------
    InputError
        When a name means nothing, or a setting has several values.
    """

    def __init__(
        self,
        model: Given,
        *parameters: str,
        connections: Sequence[str | tuple[str, str]] = (),
        inputs: Mapping[str, AnySignal] | None = None,
        options: StudyOptions | None = None,
        **given: Unpack[StudyKeywords],
    ) -> None:
        subject = subject_of(model, connections, inputs)
        chosen = subject.options(StudyOptions.of(options, given, ("parameters", "connections", "inputs")))
        for name, values in chosen.lists.items():
            if len(values) != 1:
                raise InputError(f"the setting {name} has {len(values)} values; an open study has one of each")
        self._names = subject.resolved(parameters)
        if not self._names:
            raise InputError("an open study needs the name of a parameter")
        self._content, self._lists = subject.content(chosen, InlineExecutor()), chosen.lists
        settings = {name: values[0] for name, values in chosen.lists.items()}
        self._study = subject.prepared(chosen, settings, [StudyPoint({}, settings, "")])
        self._units = {name: subject.units[name].name or "1" for name in self._names.values()}
        self._subject = subject
        self._points: list[StudyPoint] = []
        self._rows: dict[str, Row] = {}

    def __repr__(self) -> str:
        return f"<OpenStudy: {len(self._points)} points over {', '.join(self._names.values())}>"

    def ask(self, *values: float | str) -> dict[str, Any]:
        """Run a point, and return its row: `status`, `message`, `warnings`, `final.<output>` and the like.

        Parameters
        ----------
        values
            Of the parameters, in their order; a text may have a unit of its own, as `200 bar`.

        Raises
        ------
        InputError
            When there are more or fewer values than parameters, or one is not finite.
        """
        if len(values) != len(self._names):
            raise InputError(f"the point has {len(values)} values; the study has {', '.join(self._names.values())}")
        asked = {
            name: self._subject.converted(name, [value])
            for name, value in zip(self._names.values(), values, strict=True)
        }
        (point,) = make_points({}, self._lists, self._content, asked)
        if point.key not in self._rows:
            (row,) = self._study.run((point,))
            self._rows[point.key] = {KEY: point.key, **row}
            self._points.append(point)
        return {name: value for name, value in self._rows[point.key].items() if name != KEY}

    def result(self) -> StudyResult:
        """Return the points that were run, as a sweep over samples does.

        Raises
        ------
        InputError
            When there is none.
        """
        if not self._points:
            raise InputError("no point of the study was asked for")
        metadata = {"mbsfmu": version("mbsfmu"), "model": self._subject.data}
        columns, units = study_table(self._points, self._rows, self._units, self._study.units)
        sampled = tuple(self._names.values())
        return StudyResult(columns, units, metadata, self._lists, sampled, self._study.by_system)


# -- result of a study: one row per point, with units ------------------------------------------------------------------

_UNITS = {"wall_seconds": "s", "cpu_seconds": "s", "stop": "s", "step": "s", "energy_residual_max": "J"}
_UNITS |= {"energy_drift_max": "J", "actuator_work_max": "J", "actuator_work_min": "J"}


def study_table(
    points: Sequence[StudyPoint],
    rows: Mapping[str, Row],
    units: Mapping[str, str],
    outputs: Mapping[str, str],
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the columns of all rows and their units: parameters, settings, status, results.

    Parameters
    ----------
    points
        In the order of the rows.
    rows
        What was told of each point, by its key.
    units, outputs
        Units of the varied parameters, and of the outputs.
    """
    every = {**_UNITS, **units, **{f"final.{name}": unit for name, unit in outputs.items()}}
    whole = [{**point.values, **point.settings, **rows[point.key]} for point in points]
    first = [*points[0].values, *points[0].settings, "status", "message", "warnings"]
    told = {name: None for row in whole for name in row if name != KEY and name not in first}
    return {name: [row.get(name) for row in whole] for name in (*first, *told, KEY)}, every


class StudyResult(Tabular, Mapping[str, NDArray[Any]]):
    """Rows of a study, with columns for parameters, settings, status and results.

    A column is found by its full name, or by any trailing part of it that is unique; `final.` and `error.` of an output
    also by `final.system.variable`.

    Parameters
    ----------
    columns
        Values of each column, one a point in the order of the values, settings varying fastest; None where a run told
        nothing. The column `key` tells the points by their content.
    units
        Units of some columns.
    metadata
        On the whole: the version, and as `model` the model as JSON.
    axes
        Names of the parameters and settings whose combinations were run, with their values in order.
    sampled
        Names of the parameters whose values belong together.
    by_system
        Names of outputs by `system.variable`.

    Attributes
    ----------
    axes, sampled
        As given.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        units: Mapping[str, str],
        metadata: Mapping[str, str],
        axes: Mapping[str, Sequence[Any]],
        sampled: tuple[str, ...] = (),
        by_system: Mapping[str, str] | None = None,
    ) -> None:
        self._described_columns = {name: list(values) for name, values in columns.items()}
        self._unit_by_name = {name: units[name] for name in columns if name in units}
        self._described_metadata = dict(metadata)
        self.axes = dict(axes)
        self.sampled = sampled
        self._by_system = {
            f"{result}.{reference}": f"{result}.{name}"
            for result in ("final", "error")
            for reference, name in (by_system or {}).items()
        }

    def __repr__(self) -> str:
        return f"<StudyResult: {self._summary_line()}>"

    def _summary_line(self) -> str:
        return f"{self.model}, {len(self._described_columns[KEY])} points over {', '.join(self.varied) or 'nothing'}"

    @property
    def varied(self) -> list[str]:
        """Names with more than one value: sampled parameters, then the axes."""
        return [*self.sampled, *(name for name, values in self.axes.items() if len(values) > 1)]

    def _repr_html_(self) -> str:
        names = [
            name
            for name in self
            if name in self.axes or name in self.sampled or name in ("status", "error", "wall_seconds")
        ]
        names += [name for name in self if name.startswith("final.")]
        heads = [f"{name} [{self.unit(name)}]" if self.unit(name) != "1" else name for name in names]
        rows = zip(*(self._described_columns[name] for name in names), strict=True)
        return html_table(heads, rows, f"StudyResult: {self._summary_line()}")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, shape (number of points,): numbers, with not-a-number for missing ones, or texts."""
        return self._arrays[self._full_name(name)]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._described_columns if name != KEY)

    def __len__(self) -> int:
        return len(self._described_columns) - 1

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._metadata()["model"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The points as plain data, one dictionary each; None for missing results."""
        columns = self._described_columns
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def unit(self, name: str) -> str:
        """Return the unit of a column; `1` without a unit."""
        return self._unit_by_name.get(self._full_name(name), "1")

    def _full_name(self, name: str) -> str:
        return full_name(name, self._described_columns, "column", by_system=self._by_system)

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: _array(values) for name, values in self._described_columns.items()}

    def _columns(self) -> Columns:
        return {name: self._arrays[name] for name in self}

    def _units(self) -> Mapping[str, str]:
        return self._unit_by_name

    def _metadata(self) -> dict[str, Any]:
        return {**self._described_metadata, "model": json.loads(self._described_metadata["model"])["name"]}

    def _table(self) -> Table:
        """Return the table with the column `key`, which identifies the points by their content, and the whole model."""
        return Table(self._described_columns, self._unit_by_name, self._described_metadata)

    def sobol_indices(self, *outputs: str) -> list[SobolIndices]:
        """Return the Sobol indices of columns, for samples of the method `saltelli` with one setting.

        Parameters
        ----------
        outputs
            Names of columns such as `final.boom.angle`; by default the final values of all outputs that vary.

        Raises
        ------
        InputError
            When the samples are others, too few runs came to the end, or SALib is not installed.
        UnknownNameError
            When there is no such column.
        """
        samples = {name: self._arrays[name].astype(float) for name in self.sampled}
        names = [self._full_name(name) for name in outputs] or [
            name for name in self if name.startswith("final.") and np.nanstd(self._numbers(name)) > 0.0
        ]
        return [sobol_indices(samples, name, self._numbers(name)) for name in names]

    def _numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, without those of points that did not run to the end."""
        values = np.array([np.nan if each is None else each for each in self._described_columns[name]], dtype=float)
        return np.where(np.array(self._described_columns["status"]) == "ok", values, np.nan)

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset over the parameters and settings; those with one value are coordinates without a dimension.

        Samples have one dimension together, `sample`, of which their parameters are variables. Units are in the
        attribute `units` of each variable.

        Raises
        ------
        InputError
            When xarray is not installed.
        """
        units = self._units()
        axes = {name: list(values) for name, values in self.axes.items() if len(values) > 1}
        points = len(self._described_columns[KEY])
        if self.sampled:
            axes = {"sample": list(range(points // math.prod(map(len, axes.values())))), **axes}
        shape = tuple(map(len, axes.values()))

        def attributes(name: str) -> dict[str, str]:
            return {"units": units[name]} if name in units else {}

        coordinates: dict[str, Any] = {name: (name, values, attributes(name)) for name, values in axes.items()}
        coordinates |= {
            name: ((), values[0], attributes(name)) for name, values in self.axes.items() if name not in axes
        }
        variables = {
            name: (tuple(axes), self._arrays[name].reshape(shape), attributes(name))
            for name in self
            if name not in self.axes and name not in self.sampled
        }
        variables |= {
            name: ("sample", self._arrays[name].reshape(shape[0], -1)[:, 0], attributes(name)) for name in self.sampled
        }
        return optional("xarray", "to_xarray").Dataset(variables, coordinates, self._metadata())


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a column as numbers, or as the objects in it."""
    found = numbers(values)
    return np.array(values, dtype=object) if found is None else found
