"""Subject of a study: models, FMUs and packages."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.cosim.coupling.graph import Connection, SystemGraph
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.variable_descriptions import (
    STRUCTURAL,
    all_elements,
    described_aliases,
    described_measurement_units,
    kind_of,
    refused_start,
    sized_by,
)
from mbsfmu.cosim.runs.load_fmus import load_graph, package_of
from mbsfmu.exporting.fmu_export import BACKENDS, export
from mbsfmu.io.part_files import UserParts
from mbsfmu.io.signals import AnySignal
from mbsfmu.model.body import without_shapes
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import UnitOfMeasurement, numbers_in
from mbsfmu.modelling.variables import Causality
from mbsfmu.studies.point_run import Row, Study, coupled_row, file_of, grouped, row_of
from mbsfmu.studies.points import StudyPoint
from mbsfmu.studies.study_options import StudyOptions
from mbsfmu.system_model.coupled_model import CoupledModel

RunTask = Callable[[Sequence[StudyPoint]], Sequence[Row]]


@dataclass(frozen=True)
class PreparedStudy:
    """A subject with the options of a study.

    Attributes
    ----------
    run
        Returns the rows of points; it can be sent to other processes, and needs no files of this one.
    tasks
        Points that are run in one call.
    units
        Units of the outputs, by the names in the rows.
    by_system
        Names of outputs in the rows by `system.variable`.
    """

    run: RunTask
    tasks: Iterable[tuple[StudyPoint, ...]]
    units: Mapping[str, str]
    by_system: Mapping[str, str] = field(default_factory=dict)


class Subject(ABC):
    """A model, or FMUs.

    Attributes
    ----------
    name
        Its name.
    data
        It as JSON, with `name`; result files have it.
    units
        Units of the variables that a study can vary, by full name.
    """

    name: str
    data: str
    units: Mapping[str, UnitOfMeasurement]

    @abstractmethod
    def options(self, given: StudyOptions) -> StudyOptions:
        """Return options completed with the defaults of the subject.

        Raises
        ------
        InputError
            When one has no effect on it.
        """

    def refusals(self) -> Mapping[str, str]:
        """Return why a study cannot vary other variables, by full name."""
        return {}

    def known_name(self, name: str) -> str:
        """Return the full name of a variable that may be called otherwise."""
        return name

    @abstractmethod
    def content(self, chosen: StudyOptions, executor: Executor | None) -> dict[str, Any]:
        """Return the data that determine the results of all points; the executor is what runs them.

        Raises
        ------
        InputError
            When other processes cannot have the subject.
        """

    @abstractmethod
    def prepared(self, chosen: StudyOptions, first: Mapping[str, Any], points: Sequence[StudyPoint]) -> PreparedStudy:
        """Return the study of points; `first` are the settings of the first point, also where none is left to run."""

    def converted(self, name: str, values: Sequence[float | str]) -> list[float]:
        """Return values of a variable in its unit, from that of their column or those that texts have.

        Raises
        ------
        InputError
            When a unit cannot be converted; the sentence names the variable.
        """
        try:
            return numbers_in(values, self.units[name])
        except InputError as error:
            raise InputError(f"{name}: {error}") from None

    def resolved(self, given: Collection[str]) -> dict[str, str]:
        """Return the full name `system.variable` of each given name.

        Raises
        ------
        InputError
            When it means no variable, more than one, or one that cannot be varied.
        """
        result: dict[str, str] = {}
        for each in given:
            found = meant(self.known_name(each), self.units)
            if not found:
                refused = self.refusals()
                for other in meant(self.known_name(each), refused):
                    raise InputError(f"{other} cannot be varied: {refused[other]}")
                raise InputError(f"{self.name} has no parameter '{each}'; {closest_match(each, sorted(self.units))}")
            if len(found) > 1:
                raise InputError(f"the parameter '{each}' is ambiguous: it may be {' or '.join(found)}")
            if found[0] in result.values():
                raise InputError(f"the parameter {found[0]} is varied twice")
            result[each] = found[0]
        return result


def meant(given: str, names: Collection[str]) -> list[str]:
    """Return the full names that a name may mean: itself, that of a system's variable, or the end of one."""
    if given in names:
        return [given]
    of_systems = [name for name in names if name.partition(".")[2] == given]
    return of_systems or [name for name in names if name.endswith("." + given)]


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


_NUMBERS = ("Real", "Integer", "Enumeration", "Boolean")
_SENT_AT = (1980, 1, 1, 0, 0, 0)  # of all files of a folder: the same content is the same study


@dataclass(frozen=True)
class FmuStudy:
    """Shared data of all points, sent to the workers without files of this machine.

    Attributes
    ----------
    package
        The SSP package; empty where there are FMU files.
    fmus
        The FMU files by name.
    connections
        Of the FMU files, or beside those of the package.
    outputs
        Outputs whose final values are told.
    inputs
        Signals of inputs by `fmu.variable`.
    stop
        Stop time in s; what package or FMUs suggest by default.
    """

    package: bytes
    fmus: Mapping[str, bytes]
    connections: tuple[Connection, ...]
    outputs: tuple[str, ...]
    inputs: Mapping[str, AnySignal]
    stop: float | None

    def __call__(self, points: Sequence[StudyPoint]) -> list[Row]:
        """Return the rows of points; a failure is part of the row: `status` is `ok` or `failed`."""
        return [row_of(lambda: self._row(point)) for point in points]  # noqa: B023 - called at once

    def _row(self, point: StudyPoint) -> Row:
        source: Path | list[str] = [f"{name}={file_of(content, '.fmu')}" for name, content in self.fmus.items()]
        if self.package:
            source = file_of(self.package, ".ssp")
        row, _ = coupled_row(
            source,
            dict(zip(self.outputs, self.outputs, strict=True)),
            connections=self.connections,
            parameters=point.values,
            inputs=self.inputs,
            stop=self.stop,
            **point.settings,
        )
        return row


class FmuSubject(Subject):
    """FMUs that are there: one, several, or those of a package; nothing of them is loaded here.

    Parameters
    ----------
    source
        A package, a folder with one, or FMU files as `[name=]file`.
    connections
        `a.y=b.u`, or pairs.
    inputs
        Signals of inputs that no connection drives, by `fmu.variable` or connectors of the package.

    Raises
    ------
    InputError
        When a file is not there, cannot be read or does not run on this platform, or a signal drives no free input.
    """

    def __init__(
        self,
        source: Sequence[str],
        connections: Sequence[str | tuple[str, str]] = (),
        inputs: Mapping[str, AnySignal] | None = None,
    ) -> None:
        self._connections = tuple(map(Connection.of, connections))
        package = package_of(source[0]) if len(source) == 1 else None
        self._package = b"" if package is None else _packed(package)
        self._fmus: dict[str, bytes] = {}
        self.units: Mapping[str, UnitOfMeasurement] = {}
        self._aliases: dict[str, str] = {}
        self._refusals: dict[str, str] = {}
        self._outputs: dict[str, str] = {}
        units: dict[str, UnitOfMeasurement] = {}
        with ExitStack() as stack:
            graph = load_graph(source[0] if package is not None else list(source), stack)
            graph = replace(graph, connections=(*graph.connections, *self._connections))
            for name in graph.units:
                units |= self._described(name, graph)
            if package is None:
                self._fmus = {name: file.read_bytes() for name, file in graph.units.items()}
        for each in graph.inputs:
            if refused := self._refusals.get(self.known_name(".".join(each.end))):
                self._refusals[each.name] = refused
            else:
                units[each.name] = each.unit
        self.units = units
        self._outputs |= {each.name: each.unit.name or "1" for each in graph.outputs}
        self.name = ", ".join(graph.units) if package is None else package.stem
        self.data = json.dumps({"name": self.name, "files": self._identities()})
        driven = self.resolved(inputs or {})
        self._inputs = {driven[name]: signal for name, signal in (inputs or {}).items()}
        for name in self._inputs:
            self._refusals[name] = "it follows a signal"
        self.units = {name: unit for name, unit in units.items() if name not in self._inputs}

    def _described(self, name: str, graph: SystemGraph) -> dict[str, UnitOfMeasurement]:
        """Return the units of the variables of an FMU that can be varied; take in its others."""
        file = graph.units[name]
        units: dict[str, UnitOfMeasurement] = {}
        with closing(Archive(file, graph.exchanged.get(name), graph.called.get(file))) as read:
            starts = {variable: value for (unit, variable), value in graph.parameters.items() if unit == name}
            archive = read.configured_with(name, starts)
            for flat, structured in archive.flat_names.items():
                self._aliases[f"{name}.{flat}"] = f"{name}.{structured}"
            shaping = _shaping(archive.description)
            refusals = {
                each.name: shaping.get(each.name, refused_start(each.described))
                for each in all_elements(archive.description)
            }
            behind = described_aliases(archive.description)
            aliases = {alias: behind[alias] for alias, refused in refusals.items() if alias in behind and not refused}
            self._aliases |= {f"{name}.{alias}": f"{name}.{variable}" for alias, variable in aliases.items()}
            driven = {
                self.known_name(".".join(each.target)).removeprefix(f"{name}."): each
                for each in graph.connections
                if each.target[0] == name
            }
            measured = described_measurement_units(archive.description)
            for element in all_elements(archive.description):
                called, kind = f"{name}.{element.name}", kind_of(element.described)
                if element.name in aliases:
                    pass
                elif kind not in _NUMBERS:
                    self._refusals[called] = f"it is of type {kind}, and no number"
                elif refused := refusals[element.name]:
                    self._refusals[called] = refused
                elif connection := driven.get(element.name) or driven.get(element.described.name):
                    self._refusals[called] = f"the connection {connection} drives it"
                else:
                    units[called] = measured[element.name]
                if kind in _NUMBERS and element.described.causality == "output":
                    self._outputs[called] = measured[element.name].name or "1"
        return units

    def _identities(self) -> dict[str, str]:
        content = {"package": self._package} if self._package else self._fmus
        return {name: hashlib.sha256(each).hexdigest() for name, each in content.items()}

    def options(self, given: StudyOptions) -> StudyOptions:
        """Return the options; errors as for `StudyOptions.of_fmus`."""
        return given.of_fmus()

    def refusals(self) -> Mapping[str, str]:
        """Return why the other variables of the FMUs cannot be varied, by full name."""
        return self._refusals

    def known_name(self, name: str) -> str:
        """Return the name of the variable behind a flat name or an alias."""
        found = [] if meant(name, self.units) else meant(name, self._aliases)
        return self._aliases[found[0]] if len(found) == 1 else name

    def content(self, chosen: StudyOptions, executor: Executor | None) -> dict[str, Any]:
        """Return the data that determine the results of all points."""
        del executor  # files can be sent to any
        connections = sorted(map(repr, self._connections))
        files = self._identities()
        inputs = {name: signal.to_dict() for name, signal in self._inputs.items()}
        determined = {"version": version("mbsfmu"), "files": files, "connections": connections, "stop": chosen.stop}
        return {**determined, "inputs": inputs}

    def prepared(self, chosen: StudyOptions, first: Mapping[str, Any], points: Sequence[StudyPoint]) -> PreparedStudy:
        """Return the study of points, one a task."""
        del first
        run = FmuStudy(self._package, self._fmus, self._connections, tuple(self._outputs), self._inputs, chosen.stop)
        return PreparedStudy(run, [(point,) for point in points], self._outputs)


def _shaping(description: Any) -> dict[str, str]:
    """Return why structural parameters cannot be varied, by name: all points have results of the same names.

    Those that no output has its size by can be, and have nothing here.
    """
    arrays = sized_by(description)
    shaping = {}
    for each in description.modelVariables:
        if each.causality == STRUCTURAL:
            outputs = [array.name for array in arrays.get(each.valueReference, ()) if array.causality == "output"]
            shaping[each.name] = (
                f"it is a structural parameter, and the output {outputs[0]} would have other elements at each point"
                if outputs
                else ""
            )
    return shaping


def _packed(package: Path) -> bytes:
    """Return the bytes of a package, also of an unpacked one."""
    if package.is_file():
        return package.read_bytes()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _files(package):
            archive.writestr(zipfile.ZipInfo(file.relative_to(package).as_posix(), _SENT_AT), file.read_bytes())
    return stream.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    return (each for each in sorted(folder.rglob("*")) if each.is_file())


Given: TypeAlias = CoupledModel | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A model; the path of an FMU, of a package or of a folder with one; FMUs as `[name=]file`."""


def subject_of(
    given: Given, connections: Sequence[str | tuple[str, str]] = (), inputs: Mapping[str, AnySignal] | None = None
) -> Subject:
    """Return the subject; connections and signals of inputs are for FMUs.

    Raises
    ------
    InputError
        When a file cannot be run, or a model is given connections or signals.
    """
    if not isinstance(given, CoupledModel):
        paths = [given] if isinstance(given, (str, os.PathLike)) else list(given)
        return FmuSubject([os.fspath(each) for each in paths], connections, inputs)
    if connections:
        raise InputError(f"the connections of {given.name} are its own; connections are given for FMUs")
    if inputs:
        raise InputError(f"the signals of {given.name} are its own; inputs are given for FMUs")
    return ModelSubject(given)
