"""Run of points by a worker: returns their rows, also after failures."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.comparison.reference import ReferenceRun
from mbsfmu.comparison.run import lost_output
from mbsfmu.cosim import CosimulationResult
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.io.part_files import UserParts
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.studies.ensembles import EnsembleCode, ensemble_of
from mbsfmu.studies.journal import Row
from mbsfmu.studies.points import StudyPoint
from mbsfmu.studies.rows import coupled_row, file_of, final_values, numbers_of, row_of


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
