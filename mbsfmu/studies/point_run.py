"""Runs of points by a worker or in ensembles: their rows, also after failures, and the journal of rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import tempfile
import time as clock
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from mbsfmu.analysis.linearization import FORMULATION
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.files import WriteError
from mbsfmu.base.repeated_warnings import KeptWarnings
from mbsfmu.comparison.run import ReferenceRun, lost_output
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import has_compiler, is_compiled
from mbsfmu.cosim import CosimulationError, CosimulationResult, cosimulate
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.io.formats import read_table
from mbsfmu.io.part_files import UserParts
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling.variables import Causality
from mbsfmu.native.ensemble_library import EnsembleLibrary, ensemble_library, kept_ensemble_library
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.studies.points import StudyPoint
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.system_model.ensemble import Ensemble
from mbsfmu.system_model.model_simulation import ensemble_simulation, run_options

Row = dict[str, Any]
KEY = "key"
_TEXTS = ("status", "message", "warnings")
"""Columns in which an empty value means an empty text."""


class Journal:
    """A file with one line per point, next to the results file; removed when the results are complete.

    A line truncated by the end of its process is ignored, and the next one starts on a new line.

    Parameters
    ----------
    results
        The file that the results shall have.
    """

    def __init__(self, results: Path) -> None:
        self._results = results
        self.path = results.with_name(results.name + ".journal")
        self._stream: IO[str] | None = None

    def known(self) -> dict[str, Row]:
        """Return the rows of earlier runs by the key of their point: from the results, then from the journal."""
        rows: dict[str, Row] = {}
        if self._results.is_file():
            rows.update(self._of_results())
        if self.path.is_file():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    continue
                rows[row[KEY]] = row
        return rows

    def _of_results(self) -> dict[str, Row]:
        try:
            table = read_table(self._results)
        except InputError:  # whether it may be replaced is told by `refuse_to_lose`
            return {}
        if KEY not in table.columns:
            return {}
        rows = [{name: _encoded(name, value) for name, value in row.items()} for row in table.rows()]
        return {row[KEY]: row for row in rows}

    def refuse_to_lose(self, rows: Mapping[str, Row], keys: Collection[str]) -> None:
        """Refuse to overwrite rows of another study.

        Parameters
        ----------
        rows
            What `known` gave.
        keys
            Keys of the points of the study.

        Raises
        ------
        InputError
            When the file holds rows of other points, or is no table of a study.
        """
        others = len(rows.keys() - set(keys))
        if others or (self._results.exists() and not rows):
            what = f"{others} points that this study has not" if others else "something else than a study"
            raise InputError(
                f"{self._results} has {what}, which would be lost; choose another file, or say --force to replace it"
            )

    def __enter__(self) -> Self:
        self._stream = self.path.open("a", encoding="utf-8")
        if self._stream.tell():
            self._stream.write("\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):  # of a row that the disk did not take, as was told
                self._stream.close()

    def add(self, row: Row) -> None:
        """Append a row; it is on disk when this returns.

        Raises
        ------
        WriteError
            When the disk does not take it; the rows before are kept.
        """
        assert self._stream is not None
        try:
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise WriteError(self.path, error) from error

    def remove(self) -> None:
        """Remove the journal after its rows are in the results."""
        self.path.unlink(missing_ok=True)


def _encoded(name: str, value: Any) -> Any:
    """Return a value as it is stored; some formats store not-a-number or an empty text for a missing value."""
    if name in _TEXTS:
        return "" if value is None else str(value)
    return None if value == "" or value != value else value  # noqa: PLR0124 - not-a-number alone


def row_of(run: Callable[[], Row]) -> Row:
    """Return the row of a run with its warnings, one a line; a failure is part of the row."""
    with KeptWarnings() as told:
        try:
            row = run()
        except (InputError, SimulationError) as error:
            row = {"status": "failed", "message": str(error)}
    return {**row, "warnings": "\n".join(told.sentences)}


def coupled_row(
    source: Path | list[str], outputs: Mapping[str, str], **options: Any
) -> tuple[Row, CosimulationResult | None]:
    """Return the row of a coupled run, and its result if it came to its end.

    Parameters
    ----------
    source, options
        As for `cosimulate`.
    outputs
        As for `final_values`.
    """
    message, begin = "", clock.process_time()
    try:
        result = cosimulate(source, **options)
    except CosimulationError as error:
        result, message = error.result, str(error)
    row: Row = {"status": "failed" if message else "ok", "message": message}
    row |= {**numbers_of(result.summary()), "cpu_seconds": clock.process_time() - begin}
    largest = result.energy_residual_max
    row["energy_residual_max"] = largest if largest is not None and math.isfinite(largest) else None
    return (row, None) if message else ({**row, **final_values(result, outputs)}, result)


def final_values(result: Trajectory, outputs: Mapping[str, str]) -> Row:
    """Return the final values of the outputs that a run has: names in the run by names in the rows."""
    return {f"final.{output}": float(result[name][-1]) for output, name in outputs.items() if name in result}


def numbers_of(summary: Mapping[str, Any]) -> Row:
    """Return the numbers of a summary, without those that are settings of the point."""
    own = ("model", "formulation", "solver", "step", "algorithm", "extrapolation")
    return {
        name: value
        for name, value in summary.items()
        if name not in own and isinstance(value, (int, float)) and not isinstance(value, bool)
    }


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="mbsfmu-")
    Finalize(None, folder.cleanup, exitpriority=1)  # where a worker ends, Python's own clean-up is left out
    return folder


def file_of(content: bytes, suffix: str) -> Path:
    """Return a file of the content, written once per process and removed at its end."""
    path = Path(_folder().name) / f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
    if not path.exists():
        path.write_bytes(content)
    return path


LEAST_STEPS = 2e6
"""Steps of all points with the same settings from which on an ensemble is compiled for them. The compiler takes as long
as single runs take for about so many more, of small and of large models; what is compiled is kept, and used by fewer.
Steps by a tolerance are fewer and more expensive: they count as if they were as long as the model's own.
"""
_TOGETHER = 16
"""Points that are run in one call: twice the machines in the widest vectors …"""
_ROOM = 2**28
"""… if what is recorded of them is at most so many bytes."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class EnsembleCode:
    """Compiled code for ensembles of a model with the settings of points.

    Attributes
    ----------
    simulation
        A simulation that makes no steps itself.
    key
        What its equations follow from; None where nobody knows.
    library
        The code.
    """

    simulation: Simulation
    key: object
    library: EnsembleLibrary

    @classmethod
    def of(cls, model: CoupledModel, settings: Mapping[str, Any]) -> Self:
        """Return the code for a model and settings, compiled where it is not kept.

        Raises
        ------
        InputError
            When the model has no ensembles.
        CompilerError
            When the compiler does not do its work.
        """
        simulation, key = ensemble_simulation(model, run_options(model, None, cast(RunKeywords, settings)))
        return cls(simulation, key, ensemble_library(simulation, key, None, errors=_has_errors(simulation)))


def ensemble_of(code: EnsembleCode, points: Sequence[StudyPoint], names: Mapping[str, str]) -> Ensemble:
    """Return the ensemble of points.

    Parameters
    ----------
    code
        For the model and their settings.
    points
        The points, which vary the same variables.
    names
        Names of variables in the simulation by `system.variable`.
    """
    values = {names[name]: [point.values[name] for point in points] for name in points[0].values}
    inputs = {name for name in values if code.simulation.variable(name).causality is Causality.INPUT}
    parameters = {name: each for name, each in values.items() if name not in inputs}
    driven = {name: values[name] for name in inputs}
    errors = _has_errors(code.simulation)
    return Ensemble(code.simulation, code.key, parameters, driven, {}, None, errors=errors, library=code.library)


def grouped(model: CoupledModel, points: Sequence[StudyPoint], stop: float) -> list[tuple[StudyPoint, ...]]:
    """Return the points as tasks: those that an ensemble can run several at a time, the others one by one.

    Code for ensembles is compiled here, so that the workers find it.

    Parameters
    ----------
    model, points
        The model, and points of monolithic runs.
    stop
        Their end in s.
    """
    by_settings: dict[str, list[StudyPoint]] = {}
    for point in points:
        by_settings.setdefault(repr(sorted(point.settings.items())), []).append(point)
    tasks: list[tuple[StudyPoint, ...]] = []
    for alike in by_settings.values():
        many = _together(model, alike, stop)
        tasks += [tuple(alike[first : first + many]) for first in range(0, len(alike), many)]
    return tasks


def _together(model: CoupledModel, points: Sequence[StudyPoint], stop: float) -> int:
    """Return how many points of the same settings are run at a time."""
    options = run_options(model, None, cast(RunKeywords, points[0].settings)).completed()
    if len(points) < 2 or not points[0].values or not (_has_ensembles(options) and is_compiled() and has_compiler()):
        return 1
    simulation, key = ensemble_simulation(model, options)
    errors = _has_errors(simulation)
    try:
        library = kept_ensemble_library(simulation, key, None, errors=errors)
        if library is None and len(points) * stop / simulation.step_size >= LEAST_STEPS:
            library = ensemble_library(simulation, key, None, errors=errors)
        if library is None:
            return 1
        ensemble_of(EnsembleCode(simulation, key, library), points[:1], simulation.exposed.by_system)
    except (InputError, CompilerError) as error:
        _LOGGER.info("the points are run one by one: %s", error)
        return 1
    bytes_each = 8 * len(simulation.continuous) * (stop / simulation.output_step(stop) + 1.0)
    return max(1, min(_TOGETHER, int(_ROOM / bytes_each)))


def _has_ensembles(options: RunOptions) -> bool:
    own = options.formulation == FORMULATION and options.solver in (Trapezoidal.name, *Rosenbrock.names)
    return own and not (options.check_error or options.iterations or (options.jacobian or "exact") != "exact")


def _has_errors(simulation: Simulation) -> bool:
    """Return whether single runs estimate their errors; steps by a tolerance control them instead."""
    return simulation.solver.error_record is not None


@dataclass(frozen=True)
class Study:
    """Shared data of all points, sent to the workers without files of this machine.

    Attributes
    ----------
    model, parts
        The model as JSON, and the parts of users that it is made of.
    outputs
        Outputs whose final values and errors are told, each as `system.variable`; by the names they are told under.
    packages
        The SSP file of the coupled units for each formulation; empty for monolithic runs.
    inner
        Options of the units, and of the monolithic run that they are held against, as `step`, the internal one in s.
    stop
        End in s.
    errors
        Whether each coupled run is held against the monolithic one with the same parameters.
    """

    model: str
    parts: UserParts
    outputs: Mapping[str, str]
    packages: Mapping[str, bytes]
    inner: Mapping[str, float]
    stop: float
    errors: bool

    def __call__(self, points: Sequence[StudyPoint]) -> list[Row]:
        """Return the rows of points; several are run in an ensemble, where it can run them.

        A failure is part of the row: `status` is `ok`, `diverged` or `failed`, with the reason in `message`; and so are
        the warnings, one a line.
        """
        rows = self._in_ensemble(points) if len(points) > 1 else {}
        return [rows.get(point.key) or self._alone(point) for point in points]

    def _alone(self, point: StudyPoint) -> Row:
        return row_of(lambda: self._coupled(point) if self.packages else self._monolithic(point))

    def _monolithic(self, point: StudyPoint) -> Row:
        _simulation(
            self.model, self.parts, json.dumps(point.settings)
        )  # made before the clock starts: that is for all points
        begin = clock.process_time()
        result = self._simulate(point, point.settings)
        return self._row(point, result, clock.process_time() - begin)

    def _row(self, point: StudyPoint, result: Result, spent: float) -> Row:
        """Return the row of a monolithic run that took so much processor time in s."""
        row: Row = {"status": "ok", "message": "", **numbers_of(result.summary()), "cpu_seconds": spent}
        row["error_variable"] = result.error.variable
        if "solver" not in point.settings:
            row["solver"] = result.solver
        names = self._names(point.settings)
        found = {output: names.get(reference, reference) for output, reference in self.outputs.items()}
        return row | final_values(result, found)

    def _in_ensemble(self, points: Sequence[StudyPoint]) -> dict[str, Row]:
        """Return the rows of points with the same settings, by their keys; those that fail are left out.

        The message of a failure is that of a single run.
        """
        settings = points[0].settings
        options = json.dumps(settings)
        simulation, names = _simulation(self.model, self.parts, options), self._names(settings)
        simulation.reset()
        allowed = [point for point in points if _is_allowed(simulation, point, names)]
        if len(allowed) < 2:
            return {}
        begin = clock.process_time()
        ensemble = ensemble_of(_machines(self.model, self.parts, options), allowed, names)
        runs = list(zip(allowed, ensemble.single_runs(self.stop), strict=True))
        spent = (clock.process_time() - begin) / len(runs)
        return {
            point.key: {**self._row(point, run.result, spent), "warnings": "\n".join(run.warnings)}
            for point, run in runs
            if run is not None
        }

    def _names(self, options: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the names of a monolithic run by `system.variable`; coordinates depend on the formulation."""
        return _simulation(self.model, self.parts, json.dumps(options)).exposed.by_system

    def _simulate(self, point: StudyPoint, options: Mapping[str, Any]) -> Result:
        simulation, names = _simulation(self.model, self.parts, json.dumps(options)), self._names(options)
        simulation.reset()
        for name, value in point.values.items():
            simulation.set(names[name], value)
        return simulation.run(self.stop)

    def _coupled(self, point: StudyPoint) -> Row:
        settings = dict(point.settings)
        package = file_of(self.packages[settings.pop("formulation")], ".ssp")
        row, result = coupled_row(package, self.outputs, parameters=point.values, stop=self.stop, **settings)
        return {**row, **self._held_against_reference(point, result)} if self.errors and result is not None else row

    def _held_against_reference(self, point: StudyPoint, result: CosimulationResult) -> Row:
        options = {"formulation": point.settings["formulation"], **self.inner}
        alone, names = self._simulate(point, options), self._names(options)
        own = {names[reference]: reference for reference in self.outputs.values() if reference in names}
        reference = ReferenceRun.of(alone, dict.fromkeys(own, 1.0), own)
        told = {reference: output for output, reference in self.outputs.items()}
        errors = {told[own[name]]: error for name, error in reference.errors(result).items()}
        row: Row = {f"error.{output}": error for output, error in errors.items()} | {"error": max(errors.values())}
        lost = lost_output(errors, {told[own[name]] for name in reference.still})
        return {**row, "status": "diverged", "message": lost} if lost else row


def _is_allowed(simulation: Simulation, point: StudyPoint, names: Mapping[str, str]) -> bool:
    """Return whether a simulation takes each of the values of a point."""
    try:
        for name, value in point.values.items():
            simulation.check(names[name], value)
    except InputError:
        return False
    return True


@lru_cache(maxsize=4)
def _simulation(model: str, parts: UserParts, options: str) -> Simulation:
    with parts.given():
        return CoupledModel.from_dict(json.loads(model)).simulation(**json.loads(options))


@lru_cache(maxsize=4)
def _machines(model: str, parts: UserParts, options: str) -> EnsembleCode:
    with parts.given():
        return EnsembleCode.of(CoupledModel.from_dict(json.loads(model)), json.loads(options))
