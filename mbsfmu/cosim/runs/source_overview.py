"""Content of FMU files and SSP packages as plain data, without running anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lxml import etree

from mbsfmu.base.scratch import scratch
from mbsfmu.cosim.coupling.graph import Connection, Exposed
from mbsfmu.cosim.fmus.reading import read_fmu
from mbsfmu.cosim.fmus.variable_descriptions import described_states
from mbsfmu.cosim.runs.load_fmus import package_of
from mbsfmu.cosim.ssp import STRUCTURE, read_ssp
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


def source_overview(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of an FMU or SSP package; nothing is loaded or run, so any platform is possible.

    Parameters
    ----------
    path
        An FMU of FMI 1.0, 2.0 or 3.0, an SSP package, or the folder of an unpacked one.

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
        When the file is not there, or cannot be read.
    """
    path = Path(path)
    if path.suffix.lower() == ".fmu":
        return _fmu(path, str(path))
    with scratch() as folder:
        graph = read_ssp(package_of(path) or path, folder)
        read = {file: _fmu(file, graph.called.get(file, str(file))) for file in set(graph.units.values())}
        return {
            "package": path.name,
            "start": graph.start,
            "stop": graph.stop,
            "components": {name: read[file] for name, file in graph.units.items()},
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


def _fmu(file: Path, called: str) -> dict[str, Any]:
    described, root, entries = read_fmu(file, called)
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
        "variables": list(_variables(described)),
    }


def _capabilities(root: etree._Element) -> list[str]:
    """Return the flags that are set; FMPy leaves some of them out of FMI 3.0."""
    set_flags = {name for each in root for name, value in each.attrib.items() if value in ("true", "1")}
    return list(dict.fromkeys(text for name, text in _CAPABILITIES.items() if name in set_flags))


def _variables(described: Any) -> Iterable[dict[str, Any]]:
    states = set(described_states(described.derivatives))
    for each in described.modelVariables:
        dimensions = "".join(f"[{part.start or part.variable.name}]" for part in each.dimensions)
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


def _number(text: Any) -> float | None:
    return None if text is None else float(text)
