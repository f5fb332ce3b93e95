"""Parameter sweep: runs over combinations and samples, or points asked for one by one."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.executors import InlineExecutor, Shares, process_pool
from mbsfmu.io.formats import format_of
from mbsfmu.io.signals import AnySignal
from mbsfmu.studies.point_run import KEY, Journal, Row
from mbsfmu.studies.points import StudyPoint, make_points
from mbsfmu.studies.study_options import StudyKeywords, StudyOptions
from mbsfmu.studies.study_result import StudyResult, study_table
from mbsfmu.studies.subject import Given, PreparedStudy, subject_of

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
