"""Content of FMU files and SSP packages as plain data, without running anything."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lxml import etree

from mbsfmu.base.errors import InputError
from mbsfmu.base.scratch import scratch
from mbsfmu.cosim.coupling.graph import Connection, Exposed
from mbsfmu.cosim.fmus.reading import read_fmu
from mbsfmu.cosim.fmus.structural_parameters import STRUCTURAL, described_with, structural_values
from mbsfmu.cosim.fmus.variable_descriptions import described_states
from mbsfmu.cosim.runs.load_fmus import package_of
from mbsfmu.cosim.ssp import STRUCTURE, read_ssp
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import IDENTITY

_LIBRARIES = (".so", ".dll", ".dylib")
_INTERFACES = {
    "coSimulation": "co-simulation",
    "modelExchange": "model exchange",
    "scheduledExecution": "scheduled execution",
}
_CAPABILITIES = {
    "canGetAndSetFMUstate": "saves its state",
    "canGetAndSetFMUState": "saves its state",
    "canSerializeFMUstate": "serializes its state",
    "canSerializeFMUState": "serializes its state",
    "providesDirectionalDerivative": "directional derivatives",
    "providesDirectionalDerivatives": "directional derivatives",
    "providesAdjointDerivatives": "adjoint derivatives",
    "canHandleVariableCommunicationStepSize": "variable communication steps",
    "canInterpolateInputs": "interpolates inputs",
    "providesIntermediateUpdate": "intermediate update",
    "mightReturnEarlyFromDoStep": "may return early",
    "hasEventMode": "event mode",
    "canBeInstantiatedOnlyOncePerProcess": "only one instance a process",
    "needsExecutionTool": "needs its tool",
}
"""The flags of a model description that decide how an FMU can be run, as FMI 2.0 and 3.0 spell them."""


def is_source(path: str) -> bool:
    """Return whether a path names an FMU, an SSP package, or the folder of an unpacked package."""
    return Path(path).suffix.lower() in (".fmu", ".ssp", ".ssd") or (Path(path) / STRUCTURE).is_file()


def source_overview(path: str | os.PathLike[str], parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of an FMU or SSP package; nothing is loaded or run, so any platform is possible.

    Parameters
    ----------
    path
        An FMU of FMI 1.0, 2.0 or 3.0, an SSP package, or the folder of an unpacked one.
    parameters
        Values of structural parameters, by `name` of an FMU and `component.name` of a package; arrays have the sizes
        that follow from them.

    Returns
    -------
    dict
        Of an FMU: `model`, `description`, `fmi` (the version), `interfaces`, `platforms`, `sources` (whether it has
        source code), `capabilities`, `tool`, `date`, `size` in bytes, `start`, `stop`, `step` and `tolerance` of its
        default experiment (s; None where it has none), and `variables` with `name`, `kind` (causality, or state),
        `type`, `variability`, `unit`, `default`, `minimum`, `maximum` and `description`. Of a package: `package`,
        `start`, `stop`, `components` (such overviews by name), `connections`, `inputs`, `outputs`, and the
        `parameters` that it sets.

    Raises
    ------
    InputError
        When the file is not there, or cannot be read, or a parameter is not there, is not structural or is refused.
    """
    path = Path(path)
    parameters = parameters or {}
    if path.suffix.lower() == ".fmu":
        alone = f"{path.stem}."
        return _fmu(path, str(path), path.stem, {name.removeprefix(alone): each for name, each in parameters.items()})
    with scratch() as folder:
        graph = read_ssp(package_of(path) or path, folder)
        values = _by_component(parameters, graph.units)
        called = {file: graph.called.get(file, str(file)) for file in graph.units.values()}
        read = {file: _fmu(file, called[file]) for file in called}
        changed = {name: _fmu(graph.units[name], called[graph.units[name]], name, values[name]) for name in values}
        return {
            "package": path.name,
            "start": graph.start,
            "stop": graph.stop,
            "components": {name: changed.get(name, read[file]) for name, file in graph.units.items()},
            "connections": [_connection(each) for each in graph.connections],
            "inputs": [_connector(each) for each in graph.inputs],
            "outputs": [_connector(each) for each in graph.outputs],
            "parameters": {".".join(name): value for name, value in graph.parameters.items()},
        }


def _connection(connection: Connection) -> dict[str, Any]:
    plain = connection.transformation == IDENTITY
    return {
        "source": ".".join(connection.source),
        "target": ".".join(connection.target),
        "factor": None if plain else connection.factor,
        "offset": None if plain else connection.offset,
    }


def _connector(exposed: Exposed) -> dict[str, Any]:
    return {"name": exposed.name, "variable": ".".join(exposed.end)}


def _by_component(parameters: Mapping[str, Any], components: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return values by component and variable."""
    result: dict[str, dict[str, Any]] = {}
    for reference, value in parameters.items():
        name, _, variable = reference.partition(".")
        if name not in components:
            raise InputError(f"there is no component '{name}' for '{reference}'; {closest_match(name, components)}")
        result.setdefault(name, {})[variable] = value
    return result


def _fmu(file: Path, called: str, name: str = "", values: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the content of an FMU, with values of structural parameters; `name` is what messages on these call it."""
    described, root, entries = read_fmu(file, called)
    structural = [each.name for each in described.modelVariables if each.causality == STRUCTURAL]
    for each in values:
        if each not in structural:
            raise InputError(
                f"{called} has no structural parameter '{each}', and others change nothing that is shown; "
                f"{closest_match(each, structural)}"
            )
    described = described_with(described, structural_values(name, described, values))
    experiment = described.defaultExperiment
    return {
        "model": described.modelName,
        "description": described.description,
        "fmi": described.fmiVersion,
        "interfaces": [name for attribute, name in _INTERFACES.items() if getattr(described, attribute) is not None],
        "platforms": sorted(
            {
                each.parts[1]
                for each in entries
                if len(each.parts) == 3 and each.parts[0] == "binaries" and each.suffix in _LIBRARIES
            }
        ),
        "sources": any(each.parts[0] == "sources" and each.suffix == ".c" for each in entries),
        "capabilities": _capabilities(root),
        "tool": described.generationTool,
        "date": described.generationDateAndTime,
        "size": file.stat().st_size,
        **{
            name: None if experiment is None else _number(getattr(experiment, attribute))
            for name, attribute in (
                ("start", "startTime"),
                ("stop", "stopTime"),
                ("step", "stepSize"),
                ("tolerance", "tolerance"),
            )
        },
        "variables": list(_variables(described, values)),
    }


def _capabilities(root: etree._Element) -> list[str]:
    """Return the flags that are set; FMPy leaves some of them out of FMI 3.0."""
    set_flags = {name for each in root for name, value in each.attrib.items() if value in ("true", "1")}
    return list(dict.fromkeys(text for name, text in _CAPABILITIES.items() if name in set_flags))


def _variables(described: Any, values: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    states = set(described_states(described.derivatives))
    known = {each.valueReference for each in described.modelVariables if each.name in values}
    for each in described.modelVariables:
        dimensions = "".join(f"[{_size(part, known)}]" for part in each.dimensions)
        causality = each.causality or "local"
        declared = None if each.declaredType is None else each.declaredType.unit
        yield {
            "name": each.name,
            "kind": "state" if causality == "local" and each.name in states else causality,
            "type": f"{each.type}{dimensions}",
            "variability": each.variability,
            "unit": each.unit or declared,
            "default": each.start,
            "minimum": each.min,
            "maximum": each.max,
            "description": each.description,
        }


def _size(dimension: Any, known: Collection[int]) -> Any:
    """Return the size of a dimension; the name of a structural parameter that is not among known references."""
    if dimension.start is not None:
        return dimension.start
    return dimension.variable.start if dimension.valueReference in known else dimension.variable.name


def _number(text: Any) -> float | None:
    return None if text is None else float(text)
