"""Variables of an FMU from its description: names, arrays element by element, structural parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.modelling.measurement_units import UNIT_ATTRIBUTES, UnitOfMeasurement, number_in
from mbsfmu.modelling.variables import Causality, Variability, Variable, out_of_range, structured_name

MOST_ELEMENTS = 1_000_000
"""Largest number of elements of one array; a larger one is treated as a damaged description."""


@dataclass(frozen=True)
class ArrayElement:
    """An element of a described variable; a scalar has one.

    Attributes
    ----------
    name
        Name with the indices, which count from 1 as the naming convention `structured` has them.
    described
        The variable as FMPy has read it.
    place
        Where it stands among the elements, the last index counting fastest [FMI 3.0.2, section 2.2.6.2].
    size
        Number of elements of the variable.
    """

    name: str
    described: Any
    place: int = 0
    size: int = 1


def elements_of(described: Any) -> list[ArrayElement]:
    """Return the elements of a described variable.

    Raises
    ------
    InputError
        When there are too many to be meant.
    """
    if not described.dimensions:
        return [ArrayElement(described.name, described)]
    size = math.prod(described.shape)
    if size > MOST_ELEMENTS:
        raise InputError(f"{described.name} has {size} elements; at most {MOST_ELEMENTS} are taken")
    indices = product(*(range(1, count + 1) for count in described.shape))
    return [
        ArrayElement(f"{described.name}[{','.join(map(str, each))}]", described, place, size)
        for place, each in enumerate(indices)
    ]


def all_elements(description: Any) -> Iterator[ArrayElement]:
    """Yield the elements of all variables of a description that FMPy read."""
    for described in description.modelVariables:
        yield from elements_of(described)


def described_arrays(description: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the elements of each array of a description that FMPy read."""
    return {
        each.name: tuple(element.name for element in elements_of(each))
        for each in description.modelVariables
        if each.dimensions
    }


def structured_names(description: Any) -> dict[str, str]:
    """Return the structured name of each variable of a description that FMPy read, by the name that it has there.

    They stand at the beginning of descriptions. Nothing where the FMU has structured names, or where two variables
    would have one name.
    """
    if description.variableNamingConvention != "flat":
        return {}
    names = {each.name: structured_name(each.name, each.description or "") for each in description.modelVariables}
    return names if len(set(names.values())) == len(names) else {}


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
        return float(number_in(value, unit))
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


def check_integer(called: str, described: Any, value: Any, arrays: Sequence[Any] = ()) -> None:
    """Check an integer against its type; one that sizes arrays must leave them an element. Others are left alone.

    An enumeration has 32 bits, as FMI 2.0 has them, unless one of its items needs the 64 of FMI 3.0.

    Parameters
    ----------
    called
        What messages call the variable.
    described, value
        The variable as FMPy reads it, and a value as `typed_value` returns it.
    arrays
        The arrays whose sizes refer to it.

    Raises
    ------
    InputError
        When the type has no such number, or it is no size.
    """
    kind = kind_of(described)
    if kind not in ("Integer", "Enumeration"):
        return
    if arrays and value < 1:
        raise InputError(f"{called} = {value} is refused: it is a size of {arrays[0].name} and must be at least 1")
    type_of_number = described.type.lower()
    if described.type in ("Integer", "Enumeration"):
        items = described.declaredType.items if described.declaredType else None
        wide = any(abs(int(item.value)) > np.iinfo("int32").max for item in items or ())
        type_of_number = "int64" if wide else "int32"
    limits = np.iinfo(type_of_number)
    if not limits.min <= value <= limits.max:
        raise InputError(
            f"{called}: {value} is refused: its type, {described.type}, has numbers from {limits.min} to {limits.max}"
        )


def accepted_value(
    called: str, described: Any, variable: Variable, value: Any, arrays: Sequence[Any] = ()
) -> float | int | bool | str | bytes:
    """Return a value as the type of a variable asks for it, as `typed_value`, within its bounds and those of its type.

    Parameters
    ----------
    called
        What messages call the variable.
    described, variable
        The variable as FMPy reads it, and as `described_variable` has it or an element of it.
    value
        A value, possibly as text.
    arrays
        The arrays whose sizes refer to the variable.

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
    check_integer(called, described, typed, arrays)
    refused = "" if isinstance(typed, (str, bytes)) else out_of_range(called, variable, typed)
    if refused:
        raise InputError(refused)
    return typed


STRUCTURAL = "structuralParameter"


def sized_by(description: Any) -> dict[int, list[Any]]:
    """Return the arrays whose sizes refer to a variable, by the value reference of that."""
    result: dict[int, list[Any]] = {}
    for array in description.modelVariables:
        for dimension in array.dimensions:
            if dimension.start is None:
                result.setdefault(dimension.valueReference, []).append(array)
    return result


def structural_values(called: str, description: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of structural parameters that are not those of the description, by name.

    Parameters
    ----------
    called
        What messages call the FMU.
    description
        As FMPy reads it.
    values
        Start values of any variables by name; of two for one structural parameter the last one counts.

    Raises
    ------
    InputError
        When one is none of its type or beyond its bounds, or an array gets no element or too many.
    """
    structural = {each.name: each for each in description.modelVariables if each.causality == STRUCTURAL}
    given = {structural[name].valueReference: (name, value) for name, value in values.items() if name in structural}
    if not given:
        return {}
    arrays, units = sized_by(description), described_measurement_units(description)
    result = {}
    for reference, (name, value) in given.items():
        described = structural[name]
        variable = described_variable(ArrayElement(name, described), units[name])
        typed = accepted_value(f"{called}.{name}", described, variable, value, arrays.get(reference, ()))
        if not is_start(described, typed, units[name]):
            result[name] = typed
    changed = described_with(description, result)
    for array in changed.modelVariables if result else ():
        if (size := math.prod(array.shape)) > MOST_ELEMENTS:
            words = " and ".join(f"{name} = {value}" for name, value in result.items())
            raise InputError(
                f"{called} is refused with {words}: {array.name} has {size} elements; at most {MOST_ELEMENTS} are taken"
            )
    return result


def described_with(description: Any, values: Mapping[str, Any]) -> Any:
    """Return a description with other values of structural parameters, and the sizes of arrays that follow.

    Start values of arrays of other sizes than before are left out, unless one is for all elements.

    Parameters
    ----------
    description
        As FMPy reads it, which stays as it is.
    values
        By name, as of `structural_values`.
    """
    if not values:
        return description
    result = deepcopy(description)
    changed = {each.valueReference: values[each.name] for each in result.modelVariables if each.name in values}
    for each in result.modelVariables:  # aliases too, which FMPy reads as variables of the same reference
        if each.causality == STRUCTURAL and each.valueReference in changed:
            value = changed[each.valueReference]
            each.start = str(value).lower() if isinstance(value, bool) else str(value)
    for each in result.modelVariables:
        shape = tuple(int(part.variable.start if part.start is None else part.start) for part in each.dimensions)
        if shape != each.shape:
            each.shape = shape
            if len((each.start or "").split()) > 1:
                each.start = ""  # not None, which would say that it cannot be set
    return result
