"""Parameters: data fields that are also numbers of the equations, with units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from mbsfmu.modelling.data import Data, DataError
from mbsfmu.modelling.quantity import Quantity

_SMALLEST, _SMALLEST_SHARE = 1e-12, 1e-6
"""Lower bound of positive quantities at run time: absolute, or relative to smaller values in the data."""


@dataclass(frozen=True)
class Parameter:
    """Declaration of a field as parameter, as `Annotated[Positive, Parameter("m", "bore")]`.

    Its bounds are those of the field.

    Attributes
    ----------
    unit
        SI unit; "1" of a ratio.
    description
        One line on it.
    tunable
        Whether it may change while a system works, as settings and wear do. Geometry and volumes would change what is
        stored, and what is given for the start counts there alone.
    maximum
        Most that may be set, where that is less than the data take.
    usual
        Least and most that is ever met, in the same unit, where that tells a number in another unit; runs with others
        warn of them. Zero is always usual.
    """

    unit: str
    description: str
    tunable: bool = False
    maximum: float | None = None
    usual: tuple[float, float] | None = None


def parameter_fields(kind: type[Data]) -> dict[str, Parameter]:
    """Return the parameter fields of a data class."""
    return {
        name: each
        for name, field in kind.model_fields.items()
        for each in field.metadata
        if isinstance(each, Parameter)
    }


def check_numbers(kind: type[Data]) -> None:
    """Refuse a class with parameters that are neither scalars nor tables.

    Raises
    ------
    DataError
        When one is another type.
    """
    for name in parameter_fields(kind):
        annotation = kind.model_fields[name].annotation
        if annotation not in (float, float | None) and not is_table(annotation):
            raise DataError(
                f"class {kind.__name__}: the parameter '{name}' must be a number, as Positive or float, one that "
                "may be left out, as OptionalPositive, or a table, as tuple[tuple[float, float], ...]"
            )


def parameters_of(data: Data, name: str) -> Iterator[Quantity]:
    """Yield the parameters of a part, with start values from its data.

    Three numbers in a field are three parameters, whose names end with `.x`, `.y` and `.z`. So are the values of a
    table, at its fixed places, with `_1`, `_2` and so on. None is no parameter.

    Parameters
    ----------
    data
        The part.
    name
        What stands before the names of its fields.
    """
    for field, parameter in parameter_fields(type(data)).items():
        info, value = type(data).model_fields[field], getattr(data, field)
        for suffix, told, each, constraints in _numbers(value, info.annotation, info.metadata):
            least, most = _bounds(constraints, each)
            yield Quantity(
                f"{name}.{field}{suffix}",
                parameter.unit,
                each,
                least,
                most if parameter.maximum is None else parameter.maximum,
                description=parameter.description + told,
                tunable=parameter.tunable,
            )


def _numbers(value: Any, annotation: Any, constraints: list[Any]) -> Iterator[tuple[str, str, float, list[Any]]]:
    """Yield the numbers of a field, each with its suffix, what is told of it, and type constraints."""
    if value is None:
        return
    if not isinstance(value, tuple):
        yield "", "", value, constraints
    elif is_table(annotation):
        own = _constraints(get_args(get_args(annotation)[0])[1])
        for number, (place, each) in enumerate(value, start=1):
            yield f"_{number}", f" at {place:g}", each, own
    else:
        for axis, each, own in zip("xyz", value, get_args(annotation), strict=True):
            yield f".{axis}", f", {axis}", each, _constraints(own)


def is_table(annotation: Any) -> bool:
    """Return whether a field has pairs of a place and the value there."""
    kept = get_args(annotation)
    return len(kept) == 2 and kept[1] is ... and get_origin(kept[0]) is tuple and len(get_args(kept[0])) == 2


def _constraints(annotation: Any) -> list[Any]:
    infos = [info for info in getattr(annotation, "__metadata__", ()) if isinstance(info, FieldInfo)]
    return [constraint for info in infos for constraint in info.metadata]


def _bounds(constraints: list[Any], value: float) -> tuple[float | None, float | None]:
    """Return the bounds from the constraints of a field; open bounds are moved inwards slightly.

    A leakage in m³/(s Pa) may be 1e-13; given values are within the bounds.
    """
    least: list[float] = []
    most: list[float] = []
    for each in constraints:
        least += [float(each.ge)] if hasattr(each, "ge") else []
        most += [float(each.le)] if hasattr(each, "le") else []
        if hasattr(each, "gt"):
            room = min(_SMALLEST, _SMALLEST_SHARE * (value - each.gt))
            least.append(max(each.gt + room, nextafter(each.gt, inf)))
        if hasattr(each, "lt"):
            room = min(_SMALLEST, _SMALLEST_SHARE * (each.lt - value))
            most.append(min(each.lt - room, nextafter(each.lt, -inf)))
    return max(least, default=None), min(most, default=None)
