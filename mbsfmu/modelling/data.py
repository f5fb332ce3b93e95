"""Validated, frozen data with one-sentence errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Annotated, Any, ClassVar, LiteralString, NamedTuple, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from mbsfmu.modelling.data_schema import schema_of_data
from mbsfmu.modelling.errors import InputError
from mbsfmu.modelling.html import data_page
from mbsfmu.modelling.joint_words import readings
from mbsfmu.modelling.measured_numbers import WrittenNumber, begins_with_number, number_in
from mbsfmu.modelling.signature import FieldSignature

LARGEST = 1e50
"""Largest magnitude of numbers: products of half a dozen of them remain finite."""

_MOST_SUGGESTED, _MOST_LISTED = 3, 20
_NEAR = 0.7


_WRITTEN = "written_units_of_fields"
"""Key of what is remembered of texts, beside the fields: data that are written otherwise are the same."""


class WrittenUnits(NamedTuple):
    """A text with a unit for a field whose unit depends on a joint.

    Attributes
    ----------
    text
        As it was written.
    units
        Units that the field may have with it.
    """

    text: str
    units: tuple[str, ...]


class DataError(ValueError):
    """Invalid data: one sentence with the field, the value and what is allowed."""


class Data(BaseModel):
    """Base of all model data: frozen, unknown fields refused, finite numbers up to `LARGEST` only.

    Deeply frozen: collections are tuples and `FrozenMap`.

    Raises
    ------
    DataError
        When a field is missing, unknown or out of its range; the message is one sentence.
    """

    # Schemas are built when something is first made of a class: most commands need few of all that there are.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        validate_default=True,
        defer_build=True,
    )

    largest: ClassVar[float] = LARGEST
    """Largest magnitude of the numbers in the fields."""

    __signature__: ClassVar[Any] = FieldSignature()

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        """Keep the class's own signature instead of pydantic's."""
        if "__signature__" in vars(cls) and not isinstance(vars(cls)["__signature__"], FieldSignature):
            del cls.__signature__

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise DataError(_sentence(type(self), fields, _first(error.errors()))) from None

    @classmethod
    def unit_of(cls, field: str) -> str | None:
        """Return the unit of a field, in which texts may be given with units of their own; None where none is known.

        That of a parameter of a joint depends on the joint, and is a pattern such as `{joint.coordinate}`. That of a
        table is the unit of its values, but not of their places.
        """
        annotation = cls.model_fields[field].annotation
        if get_origin(annotation) is tuple and any(get_origin(each) is tuple for each in get_args(annotation)):
            return None
        units = (getattr(each, "unit", None) for each in cls.model_fields[field].metadata)
        return next((unit for unit in units if isinstance(unit, str)), None)

    @model_validator(mode="wrap")
    @classmethod
    def _converted(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Convert texts with units for numbers, as `-25 deg` for an angle in rad."""
        if not isinstance(data, Mapping):
            return handler(data)
        converted, written = {}, {}
        for name, value in data.items():
            if any(isinstance(each, str) for each in _elements(value)) and name in cls.model_fields:
                unit = cls.unit_of(name)
                if unit is not None:
                    try:
                        converted[name], units = _in_units(value, readings(unit))
                    except InputError as error:
                        raise ValueError(f"{name}: {error}") from None
                    if "{" in unit:
                        written[name] = WrittenUnits(str(value), units)
        made = handler({**data, **converted} if converted else data)
        if written:
            vars(made)[_WRITTEN] = written
        return made

    @property
    def written_units(self) -> Mapping[str, WrittenUnits]:
        """Texts with units that were given for fields whose unit depends on a joint, by these fields."""
        written: Mapping[str, WrittenUnits] = vars(self).get(_WRITTEN, {})
        return written

    @model_validator(mode="before")
    @classmethod
    def _no_truths(cls, data: Any) -> Any:
        """Refuse true and false as numbers, which pydantic would convert to 1 and 0."""
        for name, field in cls.model_fields.items():
            takes = any(each in (bool, object) for each in _types(field.annotation))
            value = data.get(name) if isinstance(data, Mapping) and not takes else None
            for each in _elements(value):
                if isinstance(each, bool):
                    raise ValueError(f"{name} has the value {str(each).lower()}; it must be no truth value")
        return data

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        for name in type(self).model_fields:
            for place, number in _numbers(getattr(self, name)):
                if abs(number) > self.largest:
                    raise ValueError(f"{name}{place} is {number:g}; its magnitude must be at most {self.largest:g}")
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Return the data with some fields replaced and validated again.

        Cached results are not copied, and frozen values are shared. Defaults stay defaults.

        Raises
        ------
        DataError
            When a replaced field is unknown or out of its range, or does not fit the others.
        """
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        copied = type(self)(**{**fields, **(update or {})})
        kept = {name: written for name, written in self.written_units.items() if name not in (update or {})}
        if kept:
            vars(copied)[_WRITTEN] = {**kept, **copied.written_units}
        return copied

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Return the fields that differ from the defaults; for collections the names of their elements."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if field.is_required() or value != field.get_default(call_default_factory=True):
                yield name, _ShortRepr(value)
        yield from (self.model_extra or {}).items()

    def _repr_html_(self) -> str:
        return data_page(self)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return schema_of_data(cls, core, handler)

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


def _types(annotation: Any) -> Iterator[Any]:
    """Yield a type and its element types."""
    yield annotation
    for each in get_args(annotation):
        yield from _types(each)


def _elements(value: Any) -> Iterator[Any]:
    """Yield a value, or the elements of a list or mapping."""
    lists = value.values() if isinstance(value, Mapping) else (value,)
    for each in lists:
        yield from each if isinstance(each, list | tuple) else (each,)


def _in_units(value: Any, units: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Return a value with the numbers of its texts in the units that take them, and these units.

    Raises
    ------
    InputError
        When none does.
    """
    refusals, found = [], {}
    for unit in units:
        try:
            found[unit] = _in_unit(value, unit)
        except InputError as error:
            refusals.append(error)
    if not found and len(units) == 1:
        raise refusals[0]
    if not found:
        raise InputError(f"'{value}' is refused: it must be in {' or '.join(units)}, as the joint is")
    return next(iter(found.values())), tuple(found)


def _in_unit(value: Any, unit: str) -> Any:
    """Return a value with the numbers of its texts in a unit; texts that begin with no number stay as they are."""
    if isinstance(value, str):
        return number_in(value, unit) if begins_with_number(value) else value
    if isinstance(value, Mapping):
        return {key: _in_unit(each, unit) for key, each in value.items()}
    return [_in_unit(each, unit) for each in value] if isinstance(value, list | tuple) else value


def _numbers(value: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers in a field of plain data, each with its path."""
    if isinstance(value, float):
        yield "", value
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            for place, number in _numbers(each):
                yield f"[{index}]{place}", number
    elif isinstance(value, Mapping):
        for key, each in value.items():
            for place, number in _numbers(each):
                yield f".{key}{place}", number


@dataclass(frozen=True)
class _Choice(AfterValidator):
    """A check of a string, a pattern in JSON Schema."""

    pattern: str = ""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "pattern": f"^(?:{self.pattern})$"}


def word(pattern: str, allowed: LiteralString) -> AfterValidator:
    """Return a check of a string whose message says what is allowed."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("word", allowed)
        return text

    return _Choice(check, pattern)


Name = Annotated[str, word(r"[A-Za-z_][A-Za-z0-9_]*", "a name has letters, digits and _, no digit first")]
"""A name: letters, digits and underscores, not beginning with a digit."""


def closest_match(word: str, words: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the closest match, or all known names.

    Names with dots are compared part by part from the end: `boom.mas` is near `mechanism.boom.mass`.
    """
    known = list(words)
    scores = [_likeness(word, each) for each in known]
    best = max(scores, default=0.0)
    if best >= _NEAR:
        near = [each for each, score in zip(known, scores, strict=True) if score == best]
        return f"did you mean {' or '.join(map(repr, near[:_MOST_SUGGESTED]))}?"
    more = [f"{len(known) - _MOST_LISTED} more"] if len(known) > _MOST_LISTED else []
    return f"there are {', '.join([*known[:_MOST_LISTED], *more])}" if known else "there are none"


def _likeness(one: str, other: str) -> float:
    """Return the similarity of two names, from 0 to 1: that of their least similar parts."""
    pairs = zip(reversed(one.split(".")), reversed(other.split(".")), strict=False)
    return min(SequenceMatcher(None, *pair).ratio() for pair in pairs)


class _ShortRepr:
    """Short text of a value: names of a collection, the start of a long text."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        names = _names(self._value)
        return f"({_shortened(', '.join(names))})" if names else _shortened(repr(self._value))


def _names(value: Any) -> list[str]:
    """Return the names of a collection's elements; none for other values."""
    if isinstance(value, Mapping):
        return list(value)
    names = [getattr(each, "name", None) for each in value] if isinstance(value, tuple) else []
    return [name for name in names if name is not None]


def _first(errors: list[ErrorDetails]) -> ErrorDetails:
    """Return the error to report: an unknown field rather than the missing correct one."""
    first = errors[0]
    unknown = [each for each in errors if each["type"] == "extra_forbidden" and each["loc"][:-1] == first["loc"][:-1]]
    return unknown[0] if first["type"] == "missing" and unknown else first


def _sentence(owner: type[Data], fields: dict[str, Any], error: ErrorDetails) -> str:
    """Return one sentence from pydantic's first error, on the innermost object."""
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
        return f"{thing}: there is no field {where}; {closest_match(where, owner.model_fields)}"
    if kind == "value_error":
        message = message.removeprefix("Value error, ")
        return f"{thing}: {message}"
    if kind == "union_tag_invalid":
        expected = context["expected_tags"].replace("'", "")
        return f"{thing}: {where}.type is {context['tag']!r}; it must be one of {expected}"
    if kind == "union_tag_not_found":
        return f"{thing}: {where}.type is missing"
    if kind == "kind_missing":
        return f"{thing}: {where}.type is missing"
    if kind == "kind_unknown":
        return f"{thing}: {where}.type is {_shortened(repr(value['type']))}; {message}"
    if kind in ("float_parsing", "int_parsing"):
        return f"{thing}: {where} is {_shortened(repr(value))}; it must be {_wanted(owner, where)}"
    requirement = message[0].lower() + message[1:]
    requirement = requirement.replace("input should be", "it must be").replace("input should", "it must")
    # A whole object or list would bury the requirement; a text or number is shown, shortened if it must be.
    shown = "" if isinstance(value, dict | list | tuple | BaseModel) else f" is {_shortened(_as_written(value))}"
    return f"{thing}: {where}{shown}; {requirement}"


def _as_written(value: Any) -> str:
    return f"'{value.text}', in SI units {float(value):g}" if isinstance(value, WrittenNumber) else repr(value)


def _wanted(owner: type[Data], field: str) -> str:
    """Return what a field must be, with its unit if that is declared."""
    root = re.split(r"[.\[]", field)[0]
    unit = owner.unit_of(root) if root in owner.model_fields else None
    if unit is None:
        return "a number alone, in SI units"
    unit = " or ".join(readings(unit))
    return f"a number in {unit}, or with a unit of its own" if unit != "1" else "a number"


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _path(location: tuple[int | str, ...]) -> str:
    """Return an error's location as `bodies[1].mass`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")
