"""Variables of an FMU from its description."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.fmus.elements import ArrayElement, all_elements, elements_of
from mbsfmu.modelling.measured_numbers import number_in
from mbsfmu.modelling.measurement_units import UNIT_ATTRIBUTES, UnitOfMeasurement
from mbsfmu.modelling.variables import Causality, Variability, Variable, out_of_range

_KINDS = {
    **dict.fromkeys(("Float32", "Float64"), "Real"),
    **{f"{sign}Int{bits}": "Integer" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}
"""Types of FMI 3.0 that FMI 2.0 and SSP 1.0 have one word for."""


def kind_of(described: Any) -> str:
    """Return the type of a described variable: Real, Integer, Enumeration, Boolean, String, Binary or Clock."""
    return str(_KINDS.get(described.type, described.type))


def described_variable(element: ArrayElement, unit: UnitOfMeasurement) -> Variable:
    """Return the description of an element of a variable with its unit, as of `described_measurement_units`."""
    described = element.described
    causality = described.causality or "local"
    if causality not in list(Causality):
        causality = "local"
    variability = described.variability
    if variability not in list(Variability):
        variability = "continuous" if kind_of(described) == "Real" else "discrete"
    return Variable(
        element.name,
        Causality(causality),
        Variability(variability),
        unit.name or "1",
        minimum=_bound(described, "min"),
        maximum=_bound(described, "max"),
        nominal=float(described.nominal) if described.nominal else None,
        description=described.description or "",
        definition=unit,
    )


def _bound(described: Any, side: str) -> float | None:
    """Return a bound of a described variable, or of its type; None without one."""
    for each in (described, described.declaredType):
        bound = None if each is None else getattr(each, side)
        if bound is not None:
            return float(bound)
    return None


def with_article(causality: str) -> str:
    """Return the words for a variable of a causality."""
    known = {"output": "an output", "input": "an input", "local": "a local variable", "independent": "the time"}
    return known.get(causality, f"a {causality}")


def refused_start(described: Any) -> str:
    """Return why a described variable cannot be set before the start of a run; nothing where it can.

    Parameters and inputs can, and whatever has a start value that is neither constant nor calculated [FMI 2.0.4,
    section 2.2.7; FMI 3.0.2, section 2.4.7.5].
    """
    if described.variability == "constant":
        return "it is a constant"
    if described.causality == "structuralParameter":
        return f"it is a structural parameter, which is set before the run alone; it is {described.start}"
    if described.type == "Clock":
        return "it is a Clock, which ticks and has no value"
    if described.causality in ("parameter", "input"):
        return ""
    if described.causality in ("calculatedParameter", "independent") or described.initial == "calculated":
        return f"the FMU calculates it (causality {described.causality or 'local'})"
    if described.start is None:
        return f"it is {with_article(described.causality or 'local')} without a start value"
    return ""


def described_dependencies(unknowns: Iterable[Any], aliases: Mapping[str, str]) -> dict[str, tuple[str, ...] | None]:
    """Return the dependencies of each unknown of a model structure; None if not declared.

    An array is said to depend as a whole on wholes: each of its elements depends on all elements of the others.
    Aliases, as `described_aliases` has them, depend on what the variable behind depends on, and stand nowhere among
    what others depend on.
    """
    result: dict[str, tuple[str, ...] | None] = {}
    for each in unknowns:
        known = each.dependencies
        needed = (
            None
            if known is None
            else tuple(aliases.get(part.name, part.name) for other in known for part in elements_of(other))
        )
        result.update((part.name, needed) for part in elements_of(each.variable))
    return {**{alias: result[name] for alias, name in aliases.items() if name in result}, **result}


def described_aliases(description: Any) -> dict[str, str]:
    """Return the variable behind each alias of a description that FMPy read: an input or parameter where one is.

    Variables of one type with one reference are one variable [FMI 2.0.4, section 2.2.7; FMI 3.0.2, section 2.4.7.4].
    Arrays stand there whole and by their elements.
    """
    named: dict[tuple[str, int], list[Any]] = {}
    for each in description.modelVariables:
        kind = kind_of(each).replace("Enumeration", "Integer")  # which the same functions set
        named.setdefault((kind, each.valueReference), []).append(each)
    aliases = {}
    for variables in named.values():
        behind = next((each for each in variables if each.causality in ("input", "parameter")), variables[0])
        for each in variables:
            if each is not behind and each.shape == behind.shape and each.variability != "constant":
                pairs = zip((each, *elements_of(each)), (behind, *elements_of(behind)), strict=True)
                aliases.update((alias.name, original.name) for alias, original in pairs)
    return aliases


def described_states(derivatives: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of the continuous states of a model structure, by the derivatives that it lists."""
    states = (each.variable.derivative for each in derivatives if each.variable is not None)
    return tuple(part.name for state in states if state is not None for part in elements_of(state))


def described_derivatives(derivatives: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of the derivatives of the continuous states of a model structure."""
    return tuple(part.name for each in derivatives if each.variable is not None for part in elements_of(each.variable))


def described_measurement_units(description: Any) -> dict[str, UnitOfMeasurement]:
    """Return the unit of each variable of a description that FMPy read, with its definition where that has one.

    Arrays stand there by their elements; a unit without a name is that of a variable that says none.
    """
    defined = {
        each.name: UnitOfMeasurement.of_attributes(
            each.name, {key: getattr(each.baseUnit, key) for key in UNIT_ATTRIBUTES}
        )
        for each in description.unitDefinitions
        if each.baseUnit is not None
    }
    units = {}
    for element in all_elements(description):
        name = _unit_name(element.described)
        unit = defined.get(name, UnitOfMeasurement(name))
        units[element.name] = replace(unit, relative=_is_difference(element.described))
    return units


def unit_name(described: Any) -> str:
    """Return the name of a described variable's unit, of its type where it has none itself; `1` for none at all."""
    return _unit_name(described) or "1"


def _unit_name(described: Any) -> str:
    return described.unit or (described.declaredType.unit if described.declaredType else None) or ""


def _is_difference(described: Any) -> bool:
    """Return whether a variable is a difference, as it says itself, or its type where it says nothing."""
    declared = described.declaredType
    if described.relativeQuantity is None:
        return bool(declared is not None and declared.relativeQuantity)
    return bool(described.relativeQuantity)


ALLOWED = {
    "Real": "a number",
    "Integer": "an integer",
    "Boolean": "true or false",
    "Enumeration": "an item of the enumeration or its integer",
    "Binary": "bytes, or two hexadecimal digits for each, as 0102",
    "Clock": "left alone: a Clock ticks and has no value",
}
_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def is_start(described: Any, value: Any, unit: UnitOfMeasurement) -> bool:
    """Return whether a value is the start value of a described scalar."""
    try:
        return typed_value(described, value, unit) == typed_value(described, described.start, unit)
    except (InputError, ValueError, TypeError):
        return False


def is_no_number(value: Any) -> bool:
    """Return whether a value, possibly a text, is not-a-number."""
    try:
        return math.isnan(float(value))
    except (TypeError, ValueError):
        return False  # of another kind, which is refused as such


def typed_value(described: Any, value: Any, unit: UnitOfMeasurement) -> float | int | bool | str | bytes:
    """Return a value as the type of a described variable asks for it; integers may be written as `3.0`.

    A text for a Real may have a unit of its own, as `200 bar`, which is converted to that of the variable.

    Raises
    ------
    InputError
        When a text is no number in the variable's unit.
    ValueError
        When it is none of that type.
    """
    kind = kind_of(described)
    if kind == "String":
        return str(value)
    if kind == "Binary":
        return bytes(value) if isinstance(value, (bytes, bytearray)) else bytes.fromhex(value)
    if kind == "Clock":
        raise ValueError(value)
    if kind == "Real":
        if is_no_number(value):
            raise ValueError(value)
        return number_in(value, unit) if isinstance(value, str) else float(value)
    if kind == "Boolean":
        if str(value).lower() not in _TRUTHS:
            raise ValueError(value)
        return _TRUTHS[str(value).lower()]
    items = described.declaredType.items if kind == "Enumeration" and described.declaredType else None
    for item in items or ():
        if item.name == value:
            return int(item.value)
    if isinstance(value, int) or str(value).lstrip("+-").isdecimal():
        return int(value)  # not by a float, which has 53 bits
    if float(value) != int(float(value)):
        raise ValueError(value)
    return int(float(value))


def accepted_value(called: str, described: Any, variable: Variable, value: Any) -> float | int | bool | str | bytes:
    """Return a value as the type of a variable asks for it, as `typed_value`, within its bounds.

    Parameters
    ----------
    called
        What messages call the variable.
    described, variable
        The variable as FMPy reads it, and as `described_variable` has it or an element of it.
    value
        A value, possibly as text.

    Raises
    ------
    InputError
        When the value is none of its type or beyond its bounds.
    """
    try:
        typed = typed_value(described, value, variable.measured_unit)
    except InputError as error:
        raise InputError(f"{called}: {error}") from None
    except (ValueError, TypeError):
        raise InputError(f"{called} is {value!r}; it must be {ALLOWED[kind_of(described)]}") from None
    refused = "" if isinstance(typed, (str, bytes)) else out_of_range(called, variable, typed)
    if refused:
        raise InputError(refused)
    return typed
