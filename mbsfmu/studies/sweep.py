"""Runs a model at every combination of parameters and settings."""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbsfmu.comparison.choices import parted
from mbsfmu.cosim.options import CouplingOptions
from mbsfmu.coupled import CoupledModel
from mbsfmu.data import meant
from mbsfmu.errors import InputError
from mbsfmu.executors import InlineExecutor, Shares
from mbsfmu.exporting import BACKENDS, Backend, export
from mbsfmu.part_files import Parts
from mbsfmu.simulation.options import RunOptions
from mbsfmu.simulation.solvers import find_solver
from mbsfmu.studies.journal import KEY, Journal
from mbsfmu.studies.point_run import Study
from mbsfmu.studies.points import Point, make_points
from mbsfmu.studies.running import run_points
from mbsfmu.tables import make_table, write_parquet
from mbsfmu.variables import Causality

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]
_NO_SETTINGS = {"extrapolation", "stop", "tolerances"}
_UNITS = {"wall_seconds": "s", "cpu_seconds": "s", "stop": "s", "step": "s", "energy_residual_max": "J"}
_UNITS |= {"energy_drift_max": "J", "actuator_work_max": "J", "actuator_work_min": "J"}

logger = logging.getLogger(__name__)


def sweep(
    model: CoupledModel,
    vary: Mapping[str, Sequence[float]] | None = None,
    *,
    settings: Mapping[str, Sequence[Any]] | None = None,
    output: str | os.PathLike[str] | None = None,
    stop: float | None = None,
    errors: bool = False,
    fresh: bool = False,
    force: bool = False,
    backend: Backend | None = None,
    internal_step: float | None = None,
    newton_tolerance: float | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[float], None] | None = None,
) -> pyarrow.Table:
    """Run a model at every combination of parameters and settings.

    Runs are monolithic where `settings` names no algorithm. Where it does, each system is exported once as a unit,
    for all points, and the units are run coupled.

    A point that fails is a row that says so. Points that `output`, or the journal of a study that was ended, has
    already are not run again: the same call goes on where it stopped, one with more values runs the new ones only.

    Parameters
    ----------
    model
        The model.
    vary
        Values of parameters and of inputs that nothing drives, by `system.variable`; by the variable alone where
        only one system has it.
    settings
        Values of settings by name. Monolithic: those of `CoupledModel.simulation`, as `formulation`, `solver`,
        `step`. Coupled: `algorithm`, any of `mbsfmu.comparison.CHOICES`; `formulation`; and those of `cosimulate`,
        as `step`.
    output
        Parquet file for the rows; it appears complete, beside it a journal until then. None for neither.
    stop
        End time in s; the model's by default.
    errors
        Whether each coupled run is held against the monolithic one with the same parameters.
    fresh
        Whether to run all points again, whatever is there.
    force
        Whether `output` is replaced where it is no table of this study, but of another one whose rows would be lost.
    backend
        Of the units, as for `export`.
    internal_step
        Largest internal step in s of the units, and of the monolithic runs that they are held against; the smallest
        communication step by default.
    newton_tolerance
        Of the runs, the units and what these are held against, as for `export`; to vary it, name it in `settings` of
        monolithic runs.
    workers
        Number of processes on this machine; that of its cores by default.
    executor
        What runs the points instead: any executor of `concurrent.futures`, such as Dask's.
    progress
        Called with the share that is done.

    Returns
    -------
    pyarrow.Table
        One row a point in the order of the values, settings varying fastest; columns know their units.

    Raises
    ------
    InputError
        When a name, word or number is wrong, an option has no effect, or `output` holds another study.
    """
    chosen = _checked_settings(settings or {}, len(model.systems))
    references = _resolved(model, vary or {})
    end = model.stop_time if stop is None else stop
    if not (end > 0 and math.isfinite(end)):
        raise InputError(f"the stop time is {end:g} s; it must be positive and finite")
    coupled = "algorithm" in chosen
    if errors and not coupled:
        raise InputError("errors are those of coupled runs; name at least one algorithm")
    if not coupled:
        _refuse_without_effect(
            "on monolithic runs; name at least one algorithm", backend=backend, internal_step=internal_step
        )
    if executor is not None:
        _refuse_without_effect("with an executor, which has its own", workers=workers)
    backend = BACKENDS[0] if backend is None else backend
    internal = min(map(float, chosen.get("step", [model.step]))) if internal_step is None else internal_step
    if not (internal > 0 and math.isfinite(internal)):
        raise InputError(f"the internal step is {internal:g} s; it must be positive and finite")
    inner: dict[str, Any] = {"step": internal} | (
        {} if newton_tolerance is None else {"newton_tolerance": newton_tolerance}
    )
    if newton_tolerance is not None and not coupled:
        if "newton_tolerance" in chosen:
            raise InputError("the Newton tolerance is given twice, for all runs and as a setting")
        chosen["newton_tolerance"] = [newton_tolerance]
    values = {name: list(map(float, vary[given])) for given, name in references.items()} if vary else {}
    parts = _parts_to_send(model, executor)
    content = {
        "version": version("mbsfmu"), "model": model.to_dict(), "stop": end, "errors": errors, "backend": backend,
        "inner": inner if coupled else None, "parts": parts.texts,
    }  # fmt: skip
    points = make_points(values, chosen, content)
    if output is not None and Path(output).suffix.lower() != ".parquet":
        raise InputError(f"{output} is refused as the file of a study: its name must end in .parquet")
    journal = Journal(Path(output)) if output is not None else None
    if journal is not None and not journal.path.absolute().parent.is_dir():
        raise InputError(f"the folder of {output} is not there")
    rows = {} if journal is None else journal.known()
    if journal is not None and not force:
        journal.refuse_to_lose(rows, {point.key for point in points})
    rows = {} if fresh else rows
    left = [point for point in points if point.key not in rows]
    if len(left) < len(points):
        logger.info("%d of %d points are done already", len(points) - len(left), len(points))
    settable = model.system().settable()
    # What is compiled for it is there for the workers.
    simulation = model.simulation(
        **({"formulation": chosen["formulation"][0], **inner} if coupled else points[0].settings)
    )
    outputs = {each.name: each.unit for each in simulation.variables if each.causality is Causality.OUTPUT}
    study = Study(
        json.dumps(model.to_dict()),
        parts,
        {name: settable[name].name for name in values},
        tuple(outputs),
        _packages(model, chosen["formulation"], backend, inner) if coupled and left else {},
        inner,
        end,
        errors,
    )
    _run(study, left, rows, journal, workers, executor, Shares(progress, len(points)))
    units = {**_UNITS, **{name: settable[name].unit for name in values}}
    units |= {f"final.{name}": unit for name, unit in outputs.items()}
    table = _table(points, rows, units, {"mbsfmu": version("mbsfmu"), "model": study.model})
    if journal is not None and output is not None:
        write_parquet(table, output)
        journal.remove()
    return table


def _parts_to_send(model: CoupledModel, executor: Executor | None) -> Parts:
    """Return the parts of users that the model is made of.

    Raises
    ------
    InputError
        When other processes cannot have them.
    """
    parts = Parts.of(model)
    if not isinstance(executor, InlineExecutor):
        parts.alone()
    return parts


def _refuse_without_effect(where: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name.replace('_', ' ')} = {value} has no effect {where}")


def _run(
    study: Study,
    points: list[Point],
    rows: dict[str, Row],
    journal: Journal | None,
    workers: int | None,
    executor: Executor | None,
    shares: Shares,
) -> None:
    """Run points and put their rows to the others, and into the journal."""
    if not points:
        return

    def take(point: Point, row: Row) -> None:
        rows[point.key] = {KEY: point.key, **row}
        if journal is not None:
            journal.add(rows[point.key])
        shares.count()

    count = min(workers or os.cpu_count() or 1, len(points))
    try:
        if journal is None:
            run_points(study, points, take, workers=count, executor=executor)
        else:
            with journal:
                run_points(study, points, take, workers=count, executor=executor)
    except KeyboardInterrupt:
        done = sum(point.key in rows for point in points)
        logger.warning("ended after %d of %d points; the same study goes on from there", done, len(points))
        raise


def _checked_settings(settings: Mapping[str, Sequence[Any]], systems: int) -> dict[str, list[Any]]:
    """Return the settings with their defaults; refuse names and words that do not exist."""
    chosen = {name: list(values) for name, values in settings.items()}
    coupled = "algorithm" in chosen
    if coupled and systems < 2:
        raise InputError("the model has one system; there is nothing to couple, so no algorithm")
    every = {*CouplingOptions.known(), "formulation"} if coupled else {*RunOptions.known()}
    known = every - _NO_SETTINGS
    for name in chosen:
        if name not in known:
            raise InputError(f"there is no setting '{name}'; {meant(name, sorted(known))}")
    for algorithm in chosen.get("algorithm", ()):
        parted(algorithm)
    for word in chosen.get("formulation", ()):
        RunOptions.known()["formulation"].taken("formulation", word)
    for solver in chosen.get("solver", ()):
        find_solver(solver)
    for step in chosen.get("step", ()):
        if not (float(step) > 0 and math.isfinite(float(step))):
            raise InputError(f"the step is {float(step):g} s; it must be positive and finite")
    return {"formulation": [RunOptions.default("formulation")], **chosen}


def _resolved(model: CoupledModel, vary: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Return the full name `system.variable` of each name that was given.

    Raises
    ------
    InputError
        When it means no variable, or more than one.
    """
    settable = model.system().settable()
    result: dict[str, str] = {}
    for given in vary:
        found = [given] if given in settable else [name for name in settable if name.endswith("." + given)]
        if not found:
            raise InputError(f"{model.name} has no parameter '{given}'; {meant(given, sorted(settable))}")
        if len(found) > 1:
            raise InputError(f"the parameter '{given}' is ambiguous: it may be {' or '.join(found)}")
        if found[0] in result.values():
            raise InputError(f"the parameter {found[0]} is varied twice")
        result[given] = found[0]
    return result


def _packages(
    model: CoupledModel, formulations: Sequence[str], backend: Backend, inner: Mapping[str, Any]
) -> dict[str, bytes]:
    """Export the systems once with each formulation."""
    packages = {}
    for formulation in formulations:
        with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
            paths = export(model, folder, layout="separate", backend=backend, formulation=formulation, **inner)
            packages[formulation] = paths[-1].read_bytes()
    return packages


def _table(
    points: Sequence[Point], rows: Mapping[str, Row], units: Mapping[str, str], facts: Mapping[str, str]
) -> pyarrow.Table:
    """Return all rows as a table: parameters, settings, status, then what the runs told."""
    whole = [{**point.values, **point.settings, **rows[point.key]} for point in points]
    first = [*points[0].values, *points[0].settings, "status", "message"]
    told = {name: None for row in whole for name in row if name != KEY and name not in first}
    columns = {name: [row.get(name) for row in whole] for name in (*first, *told, KEY)}
    return make_table(columns, units, facts)
