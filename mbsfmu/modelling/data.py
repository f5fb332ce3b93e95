"""Validated, frozen data with one-sentence errors, its schema, and its tables for notebooks."""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, reduce
from html import escape
from inspect import Parameter, Signature, cleandoc
from operator import or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    LiteralString,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    WrapSerializer,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from mbsfmu.modelling.errors import InputError
from mbsfmu.modelling.measurement_units import WrittenNumber, begins_with_number, number_in, readings

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def summary(kind: type) -> str:
    """Return the first paragraph of a class's own docstring in one line; empty without one."""
    text = cleandoc(vars(kind).get("__doc__") or "")
    return " ".join(text.partition("\n\n")[0].split())


@cache
def field_texts(kind: type) -> dict[str, str]:
    """Return the texts of the `Attributes` sections of a class and its bases, by field name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found |= _attributes(cleandoc(vars(each).get("__doc__") or ""))
    return found


def _attributes(text: str) -> dict[str, str]:
    """Return the entries of the section `Attributes` of a docstring."""
    parts = _HEADING.split(text)
    section = dict(zip(parts[1::2], parts[2::2], strict=True)).get("Attributes", "")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        elif line.strip():
            found |= {name: f"{found.get(name, '')} {line.strip()}".strip() for name in names}
    return found


MOST_ROWS = 40
"""Largest number of displayed rows; the number of others is stated."""
_LEFT = ' style="text-align: left"'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """Return an HTML table; numbers have six digits, None is a dash, text is escaped.

    Parameters
    ----------
    columns
        Headings.
    rows
        Cells of each row; those after `MOST_ROWS` are counted only.
    title
        Stands above it.
    """
    every = list(rows)
    head = "".join(f"<th{_LEFT}>{escape(each)}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in every[:MOST_ROWS])
    if len(every) > MOST_ROWS:
        body += f'<tr><td{_LEFT} colspan="{len(columns)}">… and {len(every) - MOST_ROWS} more</td></tr>'
    meaning = f"<div><strong>{escape(title)}</strong></div>" if title else ""
    return f"<div>{meaning}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"<td>{value:.6g}</td>"
    return f"<td{_LEFT}>{'–' if value is None else escape(str(value))}</td>"


def data_page(data: BaseModel) -> str:
    """Return validated data as HTML: fields with units, and collapsible parts."""
    name = getattr(data, "name", "")
    title = f"{type(data).__name__} {name}".strip()
    fields = {name: getattr(data, name) for name in type(data).model_fields if name not in ("name", "type")}
    parts = {name: value for name, value in fields.items() if _holds_parts(value)}
    plain = [_row(data, name, value) for name, value in fields.items() if name not in parts]
    shown = table(("field", "value", "unit", "meaning"), plain) if plain else ""
    return (
        f"<div><div><strong>{escape(title)}</strong> {escape(summary(type(data)))}</div>{shown}"
        f"{''.join(_opened(name, value) for name, value in parts.items())}</div>"
    )


def _holds_parts(value: Any) -> bool:
    """Return whether a field is a non-empty collection of data."""
    each = list(value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ())
    return bool(each) and all(isinstance(part, BaseModel) for part in each)


def _row(data: BaseModel, name: str, value: Any) -> tuple[object, ...]:
    unit, meaning = unit_and_meaning(type(data), name, type(data).model_fields[name])
    return name, value if isinstance(value, float) or value is None else _short(value), unit, meaning


def unit_and_meaning(kind: type[BaseModel], name: str, field: FieldInfo) -> tuple[str, str]:
    """Return the unit of a field, empty where none is declared, and its description."""
    unit, text = "", field_texts(kind).get(name, "")
    for each in field.metadata:
        unit, text = getattr(each, "unit", unit), getattr(each, "description", text)
    return unit, text


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {each}" for key, each in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_short, value)) if value and not isinstance(value[0], float) else str(value)
    return str(value)


def _opened(name: str, value: Any) -> str:
    """Return collapsible parts: each system by itself, others as a table."""
    named = dict(value) if isinstance(value, Mapping) else None
    if named and any(
        _holds_parts(getattr(each, field)) for each in named.values() for field in type(each).model_fields
    ):
        inner = "".join(_details(key, data_page(each)) for key, each in named.items())
    else:
        inner = table(("name", "kind", "data"), _parts(value))
    return _details(f"{name} ({len(value)})", inner)


def _parts(value: Any) -> Iterator[tuple[str, str, str]]:
    for name, part in value.items() if isinstance(value, Mapping) else ((None, part) for part in value):
        given = ", ".join(f"{key}={each!r}" for key, each in part.__repr_args__() if key != "name")
        yield name or str(getattr(part, "name", "")), type(part).__name__, given


def _details(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


Key = TypeVar("Key")
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value]):
    """Ordered immutable mapping; equal to any mapping with the same entries."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Key, Value] | Iterable[tuple[Key, Value]] = ()) -> None:
        self._entries = dict(entries)

    def __getitem__(self, key: Key) -> Value:
        return self._entries[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> ItemsView[Key, Value]:
        """Return the entries."""
        return self._entries.items()

    def values(self) -> ValuesView[Value]:
        """Return the values."""
        return self._entries.values()

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


def _as_dict(entries: Mapping[Any, Any], serialize: Any) -> Any:
    return serialize(dict(entries))


FrozenMap = Annotated[Mapping[Key, Value], AfterValidator(FrozenMapping), WrapSerializer(_as_dict)]
"""Field type: any mapping is accepted and stored as a `FrozenMapping`."""

Array = NDArray[Any]
"""An array of numbers, or of symbols where equations are traced."""


@dataclass(frozen=True)
class Measured:
    """Unit of a field that is no parameter of the equations, as `Annotated[float, Measured("rad")]`.

    Attributes
    ----------
    unit
        SI unit.
    """

    unit: str


Positive = Annotated[float, Field(gt=0)]
"""A field that is a number greater than zero."""
NonNegative = Annotated[float, Field(ge=0)]
"""A field that is a number of zero or more."""
OptionalPositive = Annotated[float | None, Field(gt=0)]
"""A field that is a number greater than zero, or None."""


class FieldSignature:
    """Signature of a data class, created on demand: keyword fields, required ones first."""

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        """Return the signature of a class."""
        fields = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.is_required() else field.get_default(call_default_factory=True),
                annotation=plain(field.annotation),
            )
            for name, field in owner.model_fields.items()
            if name != "type"
        ]
        return Signature(sorted(fields, key=lambda each: each.default is not Parameter.empty))


def plain(annotation: Any) -> Any:
    """Return a type without its validation annotations.

    Parameters
    ----------
    annotation
        The type, as `Annotated[float, Gt(0)]` or a tuple of such.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain(arguments[0])
    if not arguments or origin is Literal:
        return annotation
    inner = tuple(plain(each) for each in arguments)
    return reduce(or_, inner) if origin in (Union, UnionType) else origin[inner]


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
                        raise DataError(f"{_thing(cls, data)}: {name}: {error}") from None
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
                    told = f"{name} has the value {str(each).lower()}; it must be no truth value"
                    raise DataError(f"{_thing(cls, data)}: {told}")
        return data

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        for name in type(self).model_fields:
            for place, number in _numbers(getattr(self, name)):
                if abs(number) > self.largest:
                    told = f"{name}{place} is {number:g}; its magnitude must be at most {self.largest:g}"
                    raise DataError(f"{_thing(type(self), dict(self))}: {told}")
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


def _thing(owner: type[Data], fields: Mapping[str, Any]) -> str:
    """Return what sentences call data: class and name."""
    name = f" {fields['name']!r}" if isinstance(fields.get("name"), str) else ""
    return f"{owner.__name__}{name}"


def _sentence(owner: type[Data], fields: dict[str, Any], error: ErrorDetails) -> str:
    """Return one sentence from pydantic's first error, on the innermost object."""
    context = error.get("ctx", {})
    if isinstance(inner := context.get("error"), DataError):
        return str(inner)
    thing = _thing(owner, fields)
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
