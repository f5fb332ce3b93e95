"""Studies of models."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from importlib.metadata import version
from typing import Any

from mbsfmu.base.executors import InlineExecutor
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.exporting.fmu_export import BACKENDS, export
from mbsfmu.io.part_files import UserParts
from mbsfmu.model.shape import without_shapes
from mbsfmu.modelling.variables import Causality
from mbsfmu.studies.ensembles import grouped
from mbsfmu.studies.point_run import Study
from mbsfmu.studies.points import StudyPoint
from mbsfmu.studies.study_options import StudyOptions
from mbsfmu.studies.subject import PreparedStudy, Subject


class ModelSubject(Subject):
    """A model, run monolithically or exported and coupled.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: CoupledModel) -> None:
        self._model, self._parts = model, UserParts.of(model)
        self.name, self.data = model.name, json.dumps(model.to_dict())
        self.units = {name: each.measured_unit for name, each in model.system().settable().items()}

    def options(self, given: StudyOptions) -> StudyOptions:
        """Return options with the model's formulation; errors as for `StudyOptions.of_model`."""
        return given.of_model(self._model)

    def content(self, chosen: StudyOptions, executor: Executor | None) -> dict[str, Any]:
        """Return the data that determine the results of all points.

        Raises
        ------
        InputError
            When other processes cannot have the user-defined parts.
        """
        if not isinstance(executor, InlineExecutor):
            self._parts.alone()
        return {
            "version": version("mbsfmu"),
            "model": without_shapes(self._model.to_dict()),
            "stop": self._end(chosen),
            "errors": chosen.errors,
            "backend": chosen.backend or BACKENDS[0],
            "inner": chosen.inner(self._model.step) if chosen.coupled else None,
            "parts": self._parts.texts,
        }

    def prepared(self, chosen: StudyOptions, first: Mapping[str, Any], points: Sequence[StudyPoint]) -> PreparedStudy:
        """Return the study of points; systems are exported if they are coupled runs."""
        outputs = self._outputs(chosen, first)
        inner = chosen.inner(self._model.step)
        packages = self._packages(chosen, inner) if chosen.coupled and points else {}
        references = {name: reference for name, (reference, _) in outputs.items()}
        run = Study(self.data, self._parts, references, packages, inner, self._end(chosen), chosen.errors)
        tasks = [(point,) for point in points] if chosen.coupled else grouped(self._model, points, run.stop)
        units = {name: unit for name, (_, unit) in outputs.items()}
        return PreparedStudy(run, tasks, units, {reference: name for name, reference in references.items()})

    def _end(self, chosen: StudyOptions) -> float:
        return self._model.stop_time if chosen.stop is None else chosen.stop

    def _outputs(self, chosen: StudyOptions, settings: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return the outputs of the model as `system.variable` with their units, by their names in the first runs.

        Code compiled for these runs is then cached for the workers.
        """
        coupled = {"formulation": chosen.lists["formulation"][0], **chosen.inner(self._model.step)}
        simulation = self._model.simulation(**(coupled if chosen.coupled else settings))
        references = simulation.exposed.qualified
        return {
            each.name: (references.get(each.name, each.name), each.unit)
            for each in simulation.variables
            if each.causality is Causality.OUTPUT
        }

    def _packages(self, chosen: StudyOptions, inner: Mapping[str, Any]) -> dict[str, bytes]:
        """Export the systems once for each formulation."""
        packages = {}
        options: dict[str, Any] = {"layout": "separate", "backend": chosen.backend or BACKENDS[0], **inner}
        for formulation in chosen.lists["formulation"]:
            with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
                packages[formulation] = export(self._model, folder, formulation=formulation, **options)[-1].read_bytes()
        return packages
