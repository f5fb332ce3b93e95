"""Structural parameters of FMI 3.0: they are set in configuration mode, and sizes of arrays refer to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.fmus.elements import MOST_ELEMENTS, ArrayElement
from mbsfmu.cosim.fmus.variable_descriptions import (
    accepted_value,
    described_measurement_units,
    described_variable,
    is_start,
    kind_of,
)

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
        typed = accepted_value(
            f"{called}.{name}", described, described_variable(ArrayElement(name, described), units[name]), value
        )
        _check_range(f"{called}.{name}", described, typed, arrays.get(reference, []))
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


def _check_range(called: str, described: Any, value: Any, arrays: list[Any]) -> None:
    """Check an integer against its type; one that arrays refer to must leave them an element."""
    if kind_of(described) not in ("Integer", "Enumeration"):
        return
    if arrays and value < 1:
        raise InputError(f"{called} = {value} is refused: it is a size of {arrays[0].name} and must be at least 1")
    allowed = np.iinfo("int64" if described.type == "Enumeration" else described.type.lower())
    if not int(allowed.min) <= value <= int(allowed.max):
        raise InputError(
            f"{called} = {value} is refused: it must be between {allowed.min} and {allowed.max}, as {described.type} is"
        )


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
