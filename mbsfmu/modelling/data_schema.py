"""JSON Schema of data, generated from declarations, docstrings and parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from mbsfmu.modelling.descriptions import summary
from mbsfmu.modelling.html import unit_and_meaning

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*\S"
"""What a text with a number and a unit begins with."""
REFERENCE = "$schema"
"""Key by which a file names its schema for editors."""


class DataSchema(GenerateJsonSchema):
    """Schema generator without titles of fields, which would repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's interface
        """Return whether a field gets a title: never."""
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Return the schema of a mapping."""
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made


def schema_of_data(kind: Any, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Return the schema of a class of data: its summary, and what each field means, in which unit.

    A field with one word for a kind is required, though the class has it as its default.
    """
    schema = handler.resolve_ref_schema(handler(core))
    schema["description"] = summary(kind)
    for name, entry in schema.get("properties", {}).items():
        unit, meaning = unit_and_meaning(kind, name, kind.model_fields[name])
        if kind.unit_of(name) is not None:
            _take_texts(entry)
        entry.update({"description": meaning} if meaning else {}, **({"unit": unit} if unit else {}))
        if "const" in entry:
            del entry["default"]
            schema["required"] = [name, *(each for each in schema.get("required", ()) if each != name)]
    return schema


def _take_texts(schema: Any) -> None:
    """Allow texts with units, as `200 bar`, wherever a schema has numbers."""
    if isinstance(schema, list):
        for each in schema:
            _take_texts(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "number":
            schema.update(type=["number", "string"], pattern=TEXT)
        for key, each in schema.items():
            if key != "default":
                _take_texts(each)


def schema_of_kinds(kinds: Iterable[type[BaseModel]], handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Return the schema of one of several classes, selected by `type`."""
    # What a handler is given it takes for what it was made for; within another schema it looks at what is there.
    each = [handler(core_schema.definitions_schema(kind.__pydantic_core_schema__, [])) for kind in kinds]
    return {"oneOf": each} if each else {"not": {}}
