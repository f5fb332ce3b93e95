"""JSON Schema of model files for editors and other programs; loading checks more."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from hydraulics import Circuit
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.model_data import ModelData
from mbsfmu.modelling import DIALECT, REFERENCE, Data, DataSchema

_FILES: dict[str, type[Data]] = {"Model": ModelData, "Mechanism": Mechanism, "Circuit": Circuit}
"""Top-level classes of a file."""
_DEFINITIONS = "#/$defs/"


def model_schema() -> dict[str, Any]:
    """Return the JSON Schema of model files, as `mbsfmu schema` writes it.

    It contains all kinds of parts of the present context; within `with load_parts([...]).given():` user-defined ones
    too. Each kind is a definition, such as `component.throttle`; a parameter has its `unit`. Relations between parts,
    such as a joint that names an existing body, are checked by loading only.
    """
    found, schema = models_json_schema([(kind, "validation") for kind in _FILES.values()], schema_generator=DataSchema)
    definitions: dict[str, Any] = schema["$defs"]
    names: dict[str, str] = {_place(found[kind, "validation"]): name for name, kind in _FILES.items()}
    for place in names:
        definitions[place]["properties"][REFERENCE] = {"type": "string"}
    for family in [name for name, each in definitions.items() if "oneOf" in each]:
        for place in map(_place, definitions[family]["oneOf"]):
            names[place] = f"{family.lower()}.{definitions[place]['properties']['type']['const']}"
    renamed = {names.get(name, name): each for name, each in sorted(definitions.items())}
    return {
        "$schema": DIALECT,
        "title": "mbsfmu model",
        "anyOf": [{"$ref": f"{_DEFINITIONS}{name}"} for name in _FILES],
        "$defs": {name: _referring(renamed[name], names) for name in sorted(renamed)},
    }


def _place(reference: dict[str, Any]) -> str:
    """Return the name of the definition of a reference."""
    return reference["$ref"].removeprefix(_DEFINITIONS)


def _referring(schema: Any, names: dict[str, str]) -> Any:
    """Return a schema with renamed definitions in its references."""
    if isinstance(schema, list):
        return [_referring(each, names) for each in schema]
    if isinstance(schema, str) and schema.startswith(_DEFINITIONS):
        place = schema.removeprefix(_DEFINITIONS)
        return f"{_DEFINITIONS}{names.get(place, place)}"
    return {key: _referring(each, names) for key, each in schema.items()} if isinstance(schema, dict) else schema
