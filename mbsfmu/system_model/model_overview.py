"""Overview of a model as plain data: parts, topology, degrees of freedom, variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.runs.load_fmus import source_overview
from mbsfmu.equations.linear import pivot_columns
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.model.machine import model_remarks
from mbsfmu.model.system_kinds import kind_of
from mbsfmu.modelling import Data
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import System


def overview(
    model: CoupledModel | str | os.PathLike[str], parameters: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the overview that `mbsfmu show --json` writes.

    Of an FMU or SSP file: see `source_overview`. Of a model: `model`, `description`, `stop_time` and `step` in s;
    `systems`, the names of what each is made of; `parts` with their data; `topology`, how its parts are joined;
    `freedom` of mechanisms; `remarks` on numbers that are hardly meant; `connections`; `signals`; `variables` with
    kind, unit, default, bounds, and what drives them.

    Raises
    ------
    InputError
        When a file is not there, or cannot be read, or `parameters`, values of structural parameters of FMUs, are
        refused.
    """
    if not isinstance(model, CoupledModel):
        return source_overview(model, parameters)
    if parameters:
        raise InputError(f"the model {model.name} has no structural parameters; FMUs and packages have")
    systems = model.system().parts
    return {
        "model": model.name,
        "description": model.description,
        "stop_time": model.stop_time,
        "step": model.step,
        "systems": {name: _names(name, system) for name, system in model.systems.items()},
        "parts": [each for name, system in model.systems.items() for each in _parts(name, system)],
        "topology": {
            name: topology for name, data in model.systems.items() if (topology := kind_of(data).topology(data))
        },
        "freedom": {
            name: _freedom(system, model, name)
            for name, system in zip(model.systems, systems, strict=True)
            if isinstance(system, MechanismSystem)
        },
        "remarks": list(model_remarks(model)),
        "connections": [list(each) for each in model.connections],
        "signals": {name: signal.to_dict() for name, signal in model.signals.items()},
        "variables": list(_variables(model, systems)),
    }


def _names(name: str, system: Data) -> dict[str, list[str]]:
    """Return the names of a system's parts by field; a block is its own part."""
    named: dict[str, list[str]] = {}
    for each in _parts(name, system):
        named.setdefault(each["among"], []).append(each["name"])
    return named


def _fields(system: Data) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the fields of a system that contain parts, with the parts."""
    for name in type(system).model_fields:
        value = getattr(system, name)
        if (
            isinstance(value, tuple)
            and value
            and all(isinstance(each, Data) and hasattr(each, "name") for each in value)
        ):
            yield name, value


def _parts(system: str, data: Data) -> Iterator[dict[str, Any]]:
    """Return the parts of a system with their data; a block is its own part."""
    parts = [(field, part) for field, found in _fields(data) for part in found] or [("blocks", data)]
    for field, part in parts:
        given = part.to_dict()
        name, kind = given.pop("name", system), given.pop("type", type(part).__name__)
        yield {"system": system, "among": field, "name": name, "type": kind, "data": given}


# -- degrees of freedom -----------------------------------------------------------------------------------


def _freedom(system: MechanismSystem, model: CoupledModel, name: str) -> dict[str, Any]:
    """Return the degrees of freedom of a mechanism at its start.

    Which equations count as redundant is a choice.
    """
    coordinates, equations = len(system.coordinates), len(system.constraints)
    counts: dict[str, Any] = {"coordinates": coordinates, "loop_equations": equations}
    if not equations:
        return {**counts, "degrees_of_freedom": coordinates, "redundant_equations": []}
    signals = {each.name: model.signals.get(f"{name}.{each.name}") for each in system.inputs}
    inputs = [
        each.start or 0.0 if (signal := signals[each.name]) is None else signal.after(0.0) for each in system.inputs
    ]
    try:
        initialization = Initialization(system, inputs=np.array(inputs))
        rank = initialization.loops.rank
    except InputError as error:
        return {**counts, "problem": str(error)}
    start = initialization.run(np.array([each.start or 0.0 for each in initialization.system.parameters]))
    initialization.functions.coordinates[:] = start.coordinates
    _, order = pivot_columns(initialization.functions.all_closure()[1].T)
    chosen = set(order[:rank].tolist())
    redundant = [name for row, name in enumerate(system.constraints) if row not in chosen]
    return {**counts, "degrees_of_freedom": coordinates - rank, "redundant_equations": redundant}


# -- variables ----------------------------------------------------------------------------------------------


def _variables(model: CoupledModel, systems: tuple[System, ...]) -> Iterator[dict[str, Any]]:
    """Return the variables of each system as `system.variable`."""
    sources = {target: source for source, target in model.connections}
    sources |= dict.fromkeys(model.signals, "a signal")
    for name, part in zip(model.systems, systems, strict=True):
        readable = [*part.coordinates, *part.velocities, *part.outputs]
        for kind, variables in (
            ("input", part.inputs),
            ("output", [each for each in readable if each.causality is Causality.OUTPUT]),
            ("parameter", part.parameters),
            ("local", [each for each in readable if each.causality is not Causality.OUTPUT]),
            ("state", [*part.states, *part.discrete]),
            ("reaction", part.reactions),
        ):
            for variable in variables:
                yield _described(kind, f"{name}.{variable.name}", variable, sources)


def _described(kind: str, name: str, variable: Variable, sources: dict[str, str]) -> dict[str, Any]:
    nobody = "nothing" if kind == "input" else None
    tunable = {"tunable": variable.variability is Variability.TUNABLE} if kind == "parameter" else {}
    return {
        "name": name,
        "kind": kind,
        "unit": variable.unit,
        "default": variable.start,
        "minimum": variable.minimum,
        "maximum": variable.maximum,
        **tunable,
        "driven_by": sources.get(name, nobody),
        "description": variable.description,
    }
