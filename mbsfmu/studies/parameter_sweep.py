"""Parameter sweep: runs of a model over combinations of parameters, settings and samples."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import Unpack

from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import Shares
from mbsfmu.io.formats import format_of
from mbsfmu.io.signals import AnySignal
from mbsfmu.studies.journal import KEY, Journal, Row
from mbsfmu.studies.points import StudyPoint, make_points
from mbsfmu.studies.run_points import run_points
from mbsfmu.studies.study_options import StudyKeywords, StudyOptions
from mbsfmu.studies.study_result import StudyResult
from mbsfmu.studies.study_table import study_table
from mbsfmu.studies.subject import PreparedStudy
from mbsfmu.studies.subjects import Given, subject_of

logger = logging.getLogger(__name__)


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
