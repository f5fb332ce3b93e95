"""Parameter sweep: runs of a model over combinations of parameters, settings and samples."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import InlineExecutor, Shares
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.exporting.fmu_export import BACKENDS, export
from mbsfmu.io.formats import format_of
from mbsfmu.io.part_files import UserParts
from mbsfmu.model.shape import without_shapes
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.variables import Causality
from mbsfmu.studies.ensembles import grouped
from mbsfmu.studies.journal import KEY, Journal, Row
from mbsfmu.studies.point_run import Study
from mbsfmu.studies.points import StudyPoint, make_points
from mbsfmu.studies.run_points import run_points
from mbsfmu.studies.study_options import StudyKeywords, StudyOptions
from mbsfmu.studies.study_result import StudyResult
from mbsfmu.studies.study_table import study_table

logger = logging.getLogger(__name__)


def sweep(
    model: CoupledModel,
    vary: Mapping[str, Sequence[float]] | None = None,
    *,
    samples: Mapping[str, Sequence[float]] | None = None,
    options: StudyOptions | None = None,
    output: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    force: bool = False,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Unpack[StudyKeywords],
) -> StudyResult:
    """Run a model at every combination of parameters and settings.

    A failed point is a row with its message. Points already in `output`, or in the journal of an interrupted study, are
    not run again: the same call continues, and one with more values runs the new points only.

    Parameters
    ----------
    model
        The model.
    vary
        Values of parameters and of inputs that nothing drives, by `system.variable`; by the variable alone where
        only one system has it.
    samples
        Values of others that belong together, as many of each: `draw` and `read_samples` give them. Each sample is run
        at every combination of what is varied.
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
    beside = ("vary", "samples", "output", "fresh", "force", "workers", "executor", "progress")
    if output is not None:
        format_of(output, "the file of a study")
    chosen = StudyOptions.of(options, given, beside).of_model(model)
    if executor is not None and workers is not None:
        raise InputError(f"workers = {workers} has no effect with an executor, which has its own")
    named = {**(samples or {}), **(vary or {})}
    if len(named) < len(samples or {}) + len(vary or {}):
        twice = sorted(set(samples or {}) & set(vary or {}))
        raise InputError(f"the parameter {twice[0]} is varied and sampled; it must be one of the two")
    settable = model.system().settable()
    resolved = resolved_names(model.name, settable, named)
    values, drawn = (
        {resolved[short]: list(map(float, each)) for short, each in (given_values or {}).items()}
        for given_values in (vary, samples)
    )
    parts = parts_to_send(model, executor)
    points = make_points(values, chosen.lists, content_of(model, chosen, parts), drawn)
    journal, rows = _what_is_there(output, points, fresh, force)
    left = [point for point in points if point.key not in rows]
    if len(left) < len(points):
        logger.info("%d of %d points are done already", len(points) - len(left), len(points))
    outputs = outputs_of(model, chosen, points[0].settings)
    references = {name: reference for name, (reference, _) in outputs.items()}
    study = study_of(model, chosen, parts, references, exports=bool(left))
    tasks = [(point,) for point in left] if chosen.coupled else grouped(model, left, study.stop)
    _run(study, tasks, rows, journal, workers, executor, Shares(progress, len(points)))
    units = {name: settable[name].unit for name in (*drawn, *values)}
    told = {name: unit for name, (_, unit) in outputs.items()}
    metadata = {"mbsfmu": version("mbsfmu"), "model": study.model}
    result = StudyResult(*study_table(points, rows, units, told), metadata, {**values, **chosen.lists}, tuple(drawn))
    if journal is not None and output is not None:
        result.to_file(output)
        journal.remove()
    return result


def content_of(model: CoupledModel, chosen: StudyOptions, parts: UserParts) -> dict[str, Any]:
    """Return the data that determine the results of all points."""
    return {
        "version": version("mbsfmu"),
        "model": without_shapes(model.to_dict()),
        "stop": _end(model, chosen),
        "errors": chosen.errors,
        "backend": chosen.backend or BACKENDS[0],
        "inner": chosen.inner(model.step) if chosen.coupled else None,
        "parts": parts.texts,
    }


def _end(model: CoupledModel, chosen: StudyOptions) -> float:
    return model.stop_time if chosen.stop is None else chosen.stop


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


def outputs_of(model: CoupledModel, chosen: StudyOptions, settings: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the outputs of the model as `system.variable` with their units, by their names in the first runs.

    Code compiled for these runs is then cached for the workers.
    """
    coupled = {"formulation": chosen.lists["formulation"][0], **chosen.inner(model.step)}
    simulation = model.simulation(**(coupled if chosen.coupled else settings))
    references = simulation.exposed.qualified
    return {
        each.name: (references.get(each.name, each.name), each.unit)
        for each in simulation.variables
        if each.causality is Causality.OUTPUT
    }


def study_of(
    model: CoupledModel,
    chosen: StudyOptions,
    parts: UserParts,
    outputs: Mapping[str, str],
    *,
    exports: bool,
) -> Study:
    """Return the shared data of all points; systems are exported if points are coupled runs."""
    inner = chosen.inner(model.step)
    packages = _packages(model, chosen, inner) if chosen.coupled and exports else {}
    end = _end(model, chosen)
    return Study(json.dumps(model.to_dict()), parts, outputs, packages, inner, end, chosen.errors)


def parts_to_send(model: CoupledModel, executor: Executor | None) -> UserParts:
    """Return the user-defined parts of the model.

    Raises
    ------
    InputError
        When other processes cannot have them.
    """
    parts = UserParts.of(model)
    if not isinstance(executor, InlineExecutor):
        parts.alone()
    return parts


def _run(
    study: Study,
    tasks: list[tuple[StudyPoint, ...]],
    rows: dict[str, Row],
    journal: Journal | None,
    workers: int | None,
    executor: Executor | None,
    shares: Shares,
) -> None:
    """Run points, collect their rows, and write them to the journal."""
    if not tasks:
        return

    def take(point: StudyPoint, row: Row) -> None:
        rows[point.key] = {KEY: point.key, **row}
        if journal is not None:
            journal.add(rows[point.key])
        shares.count()

    count = min(workers or os.cpu_count() or 1, len(tasks))
    try:
        if journal is None:
            run_points(study, tasks, take, workers=count, executor=executor)
        else:
            with journal:
                run_points(study, tasks, take, workers=count, executor=executor)
    except KeyboardInterrupt:
        points = [point for task in tasks for point in task]
        done = sum(point.key in rows for point in points)
        logger.warning("ended after %d of %d points; the same study goes on from there", done, len(points))
        raise


def resolved_names(model: str, settable: Collection[str], vary: Collection[str]) -> dict[str, str]:
    """Return the full name `system.variable` of each given name.

    Raises
    ------
    InputError
        When it means no variable, or more than one.
    """
    result: dict[str, str] = {}
    for given in vary:
        of_systems = [name for name in settable if name.partition(".")[2] == given]
        found = (
            [given] if given in settable else of_systems or [name for name in settable if name.endswith("." + given)]
        )
        if not found:
            raise InputError(f"{model} has no parameter '{given}'; {closest_match(given, sorted(settable))}")
        if len(found) > 1:
            raise InputError(f"the parameter '{given}' is ambiguous: it may be {' or '.join(found)}")
        if found[0] in result.values():
            raise InputError(f"the parameter {found[0]} is varied twice")
        result[given] = found[0]
    return result


def _packages(model: CoupledModel, chosen: StudyOptions, inner: Mapping[str, Any]) -> dict[str, bytes]:
    """Export the systems once for each formulation."""
    packages = {}
    options: dict[str, Any] = {"layout": "separate", "backend": chosen.backend or BACKENDS[0], **inner}
    for formulation in chosen.lists["formulation"]:
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
            packages[formulation] = export(model, folder, formulation=formulation, **options)[-1].read_bytes()
    return packages
