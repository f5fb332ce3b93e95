"""Validated, frozen data whose errors are one sentence."""

from __future__ import annotations

import re
from typing import Annotated, Any, LiteralString, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError


class DataError(ValueError):
    """Data that cannot be taken: one sentence with the thing, the value and what is allowed."""


class Data(BaseModel):
    """Base of everything that describes a model: frozen, unknown fields refused, finite numbers only.

    Raises
    ------
    DataError
        When a field is missing, unknown or out of its range; the message is one sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise DataError(_sentence(type(self), fields, error.errors()[0])) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the data as plain dictionaries, lists, numbers and strings."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the object from what `to_dict` gave.

        Raises
        ------
        DataError
            When something in it is missing, unknown or out of range.
        """
        if not isinstance(data, dict):
            raise DataError(f"{cls.__name__}: {_shortened(repr(data))} is not an object with named fields")
        return cls(**data)


def word(pattern: str, allowed: LiteralString) -> AfterValidator:
    """Make a check of a string that says in words what is allowed."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("word", allowed)
        return text

    return AfterValidator(check)


Name = Annotated[str, word(r"[A-Za-z_][A-Za-z0-9_]*", "a name has letters, digits and _, no digit first")]
"""A name: letters, digits and underscores, not beginning with a digit."""


def _sentence(owner: type[Data], fields: dict[str, Any], error: ErrorDetails) -> str:
    """Turn pydantic's first error into one sentence about the innermost thing."""
    context = error.get("ctx", {})
    if isinstance(inner := context.get("error"), DataError):
        return str(inner)
    name = f" {fields['name']!r}" if isinstance(fields.get("name"), str) else ""
    thing = f"{owner.__name__}{name}"
    where = _path(error["loc"])
    kind, value, message = error["type"], error["input"], error["msg"]
    if kind == "missing":
        return f"{thing}: {where} is missing"
    if kind == "extra_forbidden":
        return f"{thing}: there is no field {where}; allowed are {', '.join(owner.model_fields)}"
    if kind == "value_error":
        message = message.removeprefix("Value error, ")
        return f"{thing}: {message}"
    if kind == "union_tag_invalid":
        expected = context["expected_tags"].replace("'", "")
        return f"{thing}: {where}.type is {context['tag']!r}; it must be one of {expected}"
    if kind == "union_tag_not_found":
        return f"{thing}: {where}.type is missing"
    requirement = message[0].lower() + message[1:]
    requirement = requirement.replace("input should be", "it must be").replace("input should", "it must")
    # A whole object or list would bury the requirement; a text or number is shown, shortened if it must be.
    shown = "" if isinstance(value, dict | list | tuple | BaseModel) else f" is {_shortened(repr(value))}"
    return f"{thing}: {where}{shown}; {requirement}"


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _path(location: tuple[int | str, ...]) -> str:
    """Write an error's location as `bodies[1].mass`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")
