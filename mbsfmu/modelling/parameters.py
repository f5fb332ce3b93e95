"""Parameters: data fields that are also numbers of the equations, with units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, get_args

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
    """Refuse a class with parameters that are not scalars.

    Raises
    ------
    DataError
        When one is another type.
    """
    for name in parameter_fields(kind):
        if kind.model_fields[name].annotation not in (float, float | None):
            raise DataError(
                f"class {kind.__name__}: the parameter '{name}' must be a number, as Positive or float, or one that "
                "may be left out, as OptionalPositive"
            )


def parameters_of(data: Data, name: str) -> Iterator[Quantity]:
    """Yield the parameters of a part, with start values from its data.

    Three numbers in a field are three parameters, whose names end with `.x`, `.y` and `.z`; None is no parameter.

    Parameters
    ----------
    data
        The part.
    name
        What stands before the names of its fields.
    """
    for field, parameter in parameter_fields(type(data)).items():
        info, value = type(data).model_fields[field], getattr(data, field)
        for suffix, each, constraints in _numbers(value, info.annotation, info.metadata):
            least, most = _bounds(constraints, each)
            yield Quantity(
                f"{name}.{field}{suffix and '.' + suffix}",
                parameter.unit,
                each,
                least,
                most if parameter.maximum is None else parameter.maximum,
                description=parameter.description + (suffix and f", {suffix}"),
                tunable=parameter.tunable,
            )


def _numbers(value: Any, annotation: Any, constraints: list[Any]) -> Iterator[tuple[str, float, list[Any]]]:
    """Yield the numbers of a field, each with its suffix and type constraints."""
    if value is None:
        return
    if not isinstance(value, tuple):
        yield "", value, constraints
        return
    for suffix, each, own in zip("xyz", value, get_args(annotation), strict=True):
        infos = [info for info in getattr(own, "__metadata__", ()) if isinstance(info, FieldInfo)]
        yield suffix, each, [constraint for info in infos for constraint in info.metadata]


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
