"""Tables of parts, from their classes: fields with units, defaults and bounds; what a part takes and tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType, NoneType
from typing import Any, get_args

from part_kinds import Kind
from pydantic.fields import FieldInfo

from hydraulics import closed_centre
from hydraulics.component import PortKind
from mbsfmu.model.body import Body, Point
from mbsfmu.model.joint import Joint
from mbsfmu.model.reference_types import ReferenceKind
from mbsfmu.modelling.data import Data, field_texts, unit_and_meaning
from mbsfmu.modelling.parameters import parameter_fields

_SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
_TURNING = {"load": "N.m", "effort": "torque", "coordinate": "rad", "position": "angle", "rate": "angular_velocity"}
_SLIDING = {"load": "N", "effort": "force", "coordinate": "m", "position": "displacement", "rate": "velocity"}
_STANDING = {"input_unit": "mol", "unit": "mol", "measured_unit": "mol", "row_unit": "mol", "column_unit": "mol"}
_STANDING |= {"output_unit": "cd", "command_unit": "cd"}
"""Units that nothing else has, in the place of those of inputs and outputs that fields choose."""
_STOOD = {"mol": "[in]", "cd": "[out]"}
_HEADS = ("unit", "default", "allowed", "")
_PORTS = {PortKind.THROUGH: "port", PortKind.SENSED: "port, sensed", PortKind.DRAINED: "port of the case"}
_TOLD = re.compile(
    r"(?:\b[Ii]n|,|\band) (kg m²|kg/m³|m³/s|rad/s|N m|m/s²|m/s|Hz/s|Hz|Pa|kg|rad|m|s|N|V)(?=[\s,;.:]|$)(?!/)"
)
"""Units in sentences."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tables_of(kind: Kind, *, titled: bool) -> Iterator[str]:
    """Yield the tables of a kind: its fields, and what it takes and tells."""
    title = f"`{kind.made.__name__}`, `{kind.word}`" if titled else f"`{kind.made.__name__}`"
    fields = list(fields_of(kind))
    if fields:
        yield _table((f"field of {title}", *_HEADS), fields)
    quantities = list(quantities_of(kind))
    if quantities:
        yield _table(("takes and tells", "is", "unit", ""), quantities)


def _table(heads: tuple[str, ...], cells: list[tuple[str, ...]]) -> str:
    cells = [heads, ("---",) * len(heads), *cells]
    rows = "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells)
    return f":::{{container}} part-data\n{rows}\n:::\n"


def table_of_root(root: type[Data]) -> str:
    """Return the table of what all of a family have."""
    return _table((f"field of every `{root.__name__}`", *_HEADS), list(_rows(root)))


def fields_of(kind: Kind) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the fields of a kind, but those that all of its family have where these stand in a table of their own."""
    root = next((root for root in (Body, Joint) if issubclass(kind.made, root)), None)
    return _rows(kind.made, {} if root is None else root.model_fields, _units_of(kind))


def _rows(
    made: type[Data], without: Iterable[str] = (), units: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield fields of a class: name, with a ~ where it may change, unit, default, what is allowed, meaning."""
    parameters = parameter_fields(made)
    for name, field in made.model_fields.items():
        if name in ("type", "name", *without) or field.exclude:
            continue
        unit, meaning = unit_and_meaning(made, name, field)
        told = _meaning(made, name) or meaning
        tunable = " ~" if name in parameters and parameters[name].tunable else ""
        default = "required" if field.is_required() else _code(field.get_default(call_default_factory=True))
        unit = _port(field) or units.get(name) or _spelled(unit) or _told_unit(made, name)
        yield f"`{name}`{tunable}", pretty(unit), default, _allowed(field, parameters.get(name)), told


def _told_unit(made: type[Data], name: str) -> str:
    """Return the unit that the docstring says: each its own where several fields share a sentence."""
    texts = field_texts(made)
    sharing = [each for each in texts if texts[each] == texts.get(name)]
    units = _TOLD.findall(texts.get(name, ""))
    if len(units) == 1:
        return units[0]
    return units[sharing.index(name)] if units and len(units) == len(sharing) else ""


def _meaning(made: type[Data], name: str) -> str:
    """Return what the docstring says of a field; where it says it of several at once, what the parameter says."""
    texts, parameter = field_texts(made), parameter_fields(made).get(name)
    shared = sum(each == texts.get(name) for each in texts.values()) > 1
    return parameter.description if shared and parameter is not None else texts.get(name, "")


def pretty(unit: str) -> str:
    """Return a unit as pages write it: m³/(s Pa) for m3/(s.Pa)."""
    raised = re.sub(r"(?<=[A-Za-z])-?\d", lambda found: found[0].translate(_RAISED), unit)
    return raised.replace(".", " ")


def _port(field: FieldInfo) -> str:
    """Return what a field names that names something."""
    for each in field.metadata:
        if isinstance(each, PortKind):
            return _PORTS.get(each, "port")
        if isinstance(each, ReferenceKind):
            return "joint" if each is ReferenceKind.JOINT else "point"
    return ""


def _units_of(kind: Kind) -> dict[str, str]:
    """Return the units of parameters that follow from fields, as multiples of the units of inputs and outputs."""
    if kind.family != "block":
        return {}
    return {name: _chosen(unit) for name, unit in _example(kind.made, **_standing(kind.made)).parameter_units().items()}


def _standing(made: type[Data]) -> dict[str, str]:
    """Return units for the fields that choose those of inputs and outputs."""
    return {field: unit for field, unit in _STANDING.items() if field in made.model_fields}


def _chosen(unit: str) -> str:
    """Return a unit with words for what fields choose."""
    return re.sub(r"\b(mol|cd)\b", lambda stood: _STOOD[stood[0]], unit)


def _spelled(unit: str) -> str:
    """Return a unit or name with what it is along joints that turn and that slide."""
    both = [re.sub(r"\{\w+\.(\w+)\}", lambda found: known[found[1]], unit) for known in (_TURNING, _SLIDING)]  # noqa: B023
    return " or ".join(dict.fromkeys(both))


def _described(text: str) -> str:
    """Return a description with what things are called along joints that turn and that slide."""
    return re.sub(r"\{\w+\.(\w+)\}", lambda found: f"{_TURNING[found[1]]} or {_SLIDING[found[1]]}", text)


def _allowed(field: FieldInfo, parameter: Any) -> str:
    metadata = [*field.metadata, *(each for own in get_args(field.annotation) for each in _constraints(own))]
    bounds = [
        f"{sign} {getattr(each, name):g}" for each in metadata for name, sign in _SIGNS.items() if hasattr(each, name)
    ]
    if parameter is not None and parameter.maximum is not None:
        bounds.append(f"≤ {parameter.maximum:g}")
    words = [f"`{word}`" for word in _words(field.annotation)]
    return ", ".join(dict.fromkeys([*bounds, *words]))


def _constraints(annotation: Any) -> Iterator[Any]:
    """Yield the bounds that the members of a field of several numbers have."""
    for each in getattr(annotation, "__metadata__", ()):
        yield from each.metadata if isinstance(each, FieldInfo) else (each,)


def _words(annotation: Any) -> Iterator[str]:
    """Yield the words that a field may be, or have."""
    for each in get_args(annotation):
        if isinstance(each, str):
            yield each
        else:
            yield from _words(each)


def _code(value: Any) -> str:
    if isinstance(value, Point):
        return "the origin"
    if value is None or value in ((), {}):
        return "none"
    return f"`{value:g}`" if isinstance(value, float) else f"`{getattr(value, 'value', value)}`"


# -- what a part takes and tells ----------------------------------------------------------------------------


def quantities_of(kind: Kind) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, role, unit and meaning of what is not data: points, coordinates, inputs, states and outputs."""
    if issubclass(kind.made, Body):
        for name, point in kind.made.built_in_points.items():
            yield f"`{name}`", "point", "", f"at {point.along:g} · length along x" if point.along else "the origin"
    elif issubclass(kind.made, Joint):
        yield from _of_joint(kind.made)
    elif kind.family != "signal":
        yield from _of_part(kind.made)


def _of_joint(made: type[Joint]) -> Iterator[tuple[str, str, str, str]]:
    joint = _example(made)
    for name, element in zip(joint.coordinate_names, joint.elements, strict=True):
        yield f"`{name}`", "coordinate", "m" if element.slides else "rad", "of the tree; named after the outer body"
    names = ", ".join(f"`{name}`" for name in joint.equations())
    if names:
        yield names, "equations", "", "where it closes a loop, and in absolute coordinates"


def _of_part(made: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yield inputs, states and outputs, with what makes them be there; components of a vector as one."""
    standing = _standing(made)
    usual = _quantities(_example(made, **standing))
    every, reasons = dict(usual), dict.fromkeys(usual, "")
    for name, changes in _variants(made):
        found = _quantities(_example(made, **{**standing, name: changes}))
        for key in (key for key in found if key not in every):
            every[key], reasons[key] = found[key], f" (with `{name}`)"
        for key in (key for key in usual if key not in found):
            reasons[key] += f" (without `{name}`)"
    vectors: dict[tuple[str, ...], list[str]] = {}
    for (role, name), quantity in every.items():
        stem, dotted, axis = name.rpartition(".")
        told = _described(quantity.description)
        vector = dotted == "." and len(axis) == 1
        if vector:
            told = re.sub(r", [xyz]\b", "", told).replace(" of the inertial frame", " along the inertial axes")
        row = (stem if vector else name, role, _chosen(pretty(_spelled(quantity.unit))), told + reasons[role, name])
        vectors.setdefault(row, []).append(f".{axis}" if vector else "")
    for (name, *rest), axes in vectors.items():
        spelled = " or ".join(f"`{each}{axes[0]}`" for each in _spelled(name).split(" or "))
        yield (", ".join([spelled, *(f"`{axis}`" for axis in axes[1:])]), *rest)  # pyright: ignore[reportReturnType]
    for name in getattr(made, "balancing", ()):
        spelled = " or ".join(f"`static_{each}`" for each in _spelled(name).split(" or "))
        yield (
            spelled,
            "calculated",
            pretty(_spelled(_load_of(made, name))),
            "what holds the mechanism still at the start",
        )


def _load_of(made: Any, name: str) -> str:
    """Return the unit of an input."""
    return next(each.unit for each in _example(made).inputs() if each.name == name)


def _quantities(part: Any) -> dict[tuple[str, str], Any]:
    roles: tuple[tuple[str, Callable[[], tuple[Any, ...]]], ...] = (
        ("input", part.inputs),
        ("state", part.states),
        ("output", part.outputs),
    )
    return {(role, each.name): each for role, given in roles for each in given()}


def _variants(made: Any) -> Iterator[tuple[str, Any]]:
    """Yield fields that may be left out, switched, or be more of their words, each with what it is then."""
    for name, field in made.model_fields.items():
        if field.is_required() or name in ("type", "name"):
            continue
        default = field.get_default(call_default_factory=True)
        if default is None:
            yield name, _sample(name, field)
        elif isinstance(default, bool):
            yield name, not default
        elif isinstance(default, tuple) and (words := tuple(_words(field.annotation))):
            yield name, words


def _example(made: Any, **given: Any) -> Any:
    """Return a part with some of its fields, and values that say nothing in the others that are required."""
    required = {name: _sample(name, field) for name, field in made.model_fields.items() if field.is_required()}
    return made.model_construct(**{**required, **given})


_SAMPLES: dict[str, Any] = {"edges": closed_centre(0.0), "numerator": (1.0,), "denominator": (1.0, 1.0)}


def _sample(name: str, field: FieldInfo) -> Any:
    if name in _SAMPLES:
        return _SAMPLES[name]
    for each in field.metadata:
        if isinstance(each, ReferenceKind):
            return "joint" if each is ReferenceKind.JOINT else "body.point"
    plain = [each for each in (get_args(field.annotation) or (field.annotation,)) if each is not NoneType]
    if plain[0] is str:
        return "name"
    return 1.0 if plain[0] in (float, int) else ()
