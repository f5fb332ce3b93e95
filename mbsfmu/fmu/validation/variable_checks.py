"""Checks of variables: starts, ranges, dimensions, references."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lxml import etree

from mbsfmu.fmu.validation.subject import Subject, WrittenVariable

_SETTABLE = ("input", "parameter", "structuralParameter")


def check_variables(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on single variables, and on shared value references."""
    declared = {unit.get("name") for unit in subject.root.iterfind("UnitDefinitions/Unit")}
    types = _types(subject)
    by_reference = {each.get("valueReference"): each for each in subject.variables}
    for variable in subject.variables:
        unit = variable.get("unit")
        if unit is not None and unit not in declared:
            yield "unit", f"{variable.name} has the unit {unit}, which UnitDefinitions does not declare"
        if variable.is_number:
            yield from _check_range(variable, types.get(variable.get("declaredType") or ""))
        if subject.version == "3.0":
            yield from _check_dimensions(variable, by_reference)
            yield from _check_clocks(variable, by_reference)
    if subject.version == "2.0":
        yield from _check_references(subject)


def _types(subject: Subject) -> Mapping[str, etree._Element]:
    """Return the declared types by their names; in FMI 2.0 the element has its attributes within."""
    if subject.version == "3.0":
        return {each.get("name", ""): each for each in subject.root.iterfind("TypeDefinitions/*")}
    declared = subject.root.iterfind("TypeDefinitions/SimpleType")
    return {each.get("name", ""): each[0] for each in declared if len(each)}


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # which the schema refuses


def _check_range(variable: WrittenVariable, declared: etree._Element | None) -> Iterator[tuple[str, str]]:
    given = {
        name: variable.get(name) or (None if declared is None else declared.get(name))
        for name in ("min", "max", "nominal")
    }
    low, high, nominal = (_number(given[name]) for name in ("min", "max", "nominal"))
    if low is not None and high is not None and low > high:
        yield "range", f"{variable.name} has the min {given['min']} above its max of {given['max']}"
    if nominal is not None and not nominal > 0.0:
        yield "nominal", f"{variable.name} has the nominal value {given['nominal']}; it must be above 0"
    starts = (variable.get("start") or "").split()
    for text in starts:
        start = _number(text)
        if start is None or math.isnan(start):
            continue
        if low is not None and start < low:
            yield "start-range", f"{variable.name} starts at {text}, below its min of {given['min']}"
        if high is not None and start > high:
            yield "start-range", f"{variable.name} starts at {text}, above its max of {given['max']}"
    if variable.type == "Enumeration" and declared is not None:
        items = {item.get("value") for item in declared.iterfind("Item")}
        for text in starts:
            if text not in items:
                yield "start-item", f"{variable.name} starts at {text}, which is no item of its type"


def _check_dimensions(
    variable: WrittenVariable, by_reference: Mapping[str | None, WrittenVariable]
) -> Iterator[tuple[str, str]]:
    sizes: list[int] = []
    for dimension in variable.node.iterfind("Dimension"):
        reference = dimension.get("valueReference")
        if (reference is None) == (dimension.get("start") is None):
            yield "dimension", f"{variable.name} has a dimension that needs either a start or a valueReference"
            return
        size = by_reference.get(reference) if reference is not None else None
        if reference is not None and (
            size is None
            or size.type != "UInt64"
            or not (size.get("causality") == "structuralParameter" or size.get("variability") == "constant")
        ):
            yield (
                "dimension",
                f"{variable.name} has a dimension by {reference}, which is no structural UInt64 parameter",
            )
            return
        text = dimension.get("start") if size is None else size.get("start")
        if text is None or not text.isdecimal() or int(text) == 0:
            yield "dimension", f"{variable.name} has a dimension of {text}; it must be an integer above 0"
            return
        sizes.append(int(text))
    starts = _starts(variable)
    if starts is not None and starts not in {1, math.prod(sizes)}:
        yield "start-count", f"{variable.name} has {math.prod(sizes)} elements, but {starts} start values"


def _starts(variable: WrittenVariable) -> int | None:
    """Return the number of start values; None where there are none."""
    if variable.type in ("String", "Binary"):
        return len(variable.node.findall("Start")) or None
    start = variable.get("start")
    return None if start is None else len(start.split())


def _check_clocks(
    variable: WrittenVariable, by_reference: Mapping[str | None, WrittenVariable]
) -> Iterator[tuple[str, str]]:
    for reference in (variable.get("clocks") or "").split():
        clock = by_reference.get(reference)
        if clock is None or clock.type != "Clock":
            yield "clock", f"{variable.name} has the clock {reference}, which is none"


def _check_references(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on settable aliases; in FMI 3.0 on equal value references."""
    setters: dict[tuple[str, str | None], str] = {}
    for variable in subject.variables:
        if variable.get("causality") not in _SETTABLE:
            continue
        kind = "Integer" if variable.type == "Enumeration" else variable.type
        key = kind, variable.get("valueReference")
        if key in setters:
            sentence = f"{variable.name} and {setters[key]} can both be set and share the value reference {key[1]}"
            yield "settable-alias", sentence
        setters[key] = variable.name
