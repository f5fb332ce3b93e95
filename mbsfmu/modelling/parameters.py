"""Parameters and named quantities of parts with units, their ranges, and the structure without them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf, nextafter
from typing import Any, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic.fields import FieldInfo

from mbsfmu.modelling.data import Array, Data, DataError


@dataclass(frozen=True)
class Quantity:
    """A named number with its unit.

    Attributes
    ----------
    name
        Structured name, `component.quantity`.
    unit
        SI unit.
    start
        Value before anything is computed.
    minimum, maximum
        Bounds of what may be set.
    nominal
        Magnitude it usually has.
    description
        One line on it.
    tunable
        Of a parameter: whether it may change while a circuit works, as settings of valves and pumps do.
    shared
        Of an output: whether it is there for other systems, and not only to be looked at.
    rated
        Of an input: whether the next input of its part is its rate, by which it runs on where it is held.
    saturates
        Of an input: whether values beyond its bounds are taken, and act as the bound.
    """

    name: str
    unit: str
    start: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""
    tunable: bool = False
    shared: bool = False
    rated: bool = False
    saturates: bool = False


def belonging_to(owner: str, quantity: Quantity) -> Quantity:
    """Return a quantity with its owner's name as prefix."""
    return replace(quantity, name=f"{owner}.{quantity.name}")


def places(**groups: Iterable[Quantity]) -> dict[str, tuple[str, int]]:
    """Return group and index of each quantity by name, for `NamedValues`."""
    return {each.name: (group, index) for group, own in groups.items() for index, each in enumerate(own)}


class NamedValues:
    """Arrays whose elements are accessed by name.

    Parameters
    ----------
    places
        Group and index of each element, as of `places`.
    arrays
        Arrays of some groups; elements of the others are absent.
    """

    def __init__(self, places: Mapping[str, tuple[str, int]], **arrays: Array) -> None:
        self._arrays = arrays
        self._place = places

    def __getitem__(self, name: str) -> Array:
        group, index = self._place[name]
        element: Array = self._arrays[group][index]
        return element

    def __contains__(self, name: object) -> bool:
        return name in self._place and self._place[str(name)][0] in self._arrays

    def __iter__(self) -> Iterator[str]:
        return (name for name, (group, _) in self._place.items() if group in self._arrays)


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


Floats = NDArray[np.float64]

SMALL_RANGE = 1e-3
"""Fraction of the largest range in the same unit below which a variable's own range is not used."""
VARIES = 2.0
"""Ranges of the exact solution below this many errors leave open whether the variable varies at all, as either end is
known to within an error: if the range is less than `SMALL_RANGE` of the magnitude of what the variable is a component
of, the error is compared with that magnitude."""
POSITIONS = ("m", "rad")
"""Units of positions, whose zero is arbitrary: their magnitude does not measure an error."""
LEFT_OUT = ("drift",)
"""Name endings of outputs that are errors themselves."""
_RATE_WORDS = {"cardan_acceleration": "cardan_rate", "acceleration": "velocity"}
"""How accelerations are called, and the rates that they are derivatives of."""
_COMPONENT = re.compile(r"\.[xyzw](?=\.|$)|(?<=angle|ocity|ation|ement)_[12]$")
"""Of vectors, quaternions and the coordinates of one joint: angles, velocities, accelerations, displacements."""


def percent(fraction: float, digits: int = 2) -> str:
    """Return a fraction in percent, without the exponents of large numbers."""
    number = 100.0 * fraction
    if not number < 1e4:
        return "more than 10000 %"
    text = f"{number:.{digits}g}"
    return f"{number:.0f} %" if "e+" in text else f"{text} %"


def compared_ranges(errors: Floats, ranges: Floats, sizes: Floats) -> Floats:
    """Return what errors are compared with: ranges, or sizes of vectors where it is open whether anything varies.

    Parameters
    ----------
    errors, ranges, sizes
        Of variables, and of the vectors that they are components of, shape (v,).
    """
    return np.where((ranges < VARIES * errors) & (ranges < SMALL_RANGE * sizes), sizes, ranges)


def vectors_of(names: Sequence[str], units: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of the vector of each variable, and of the angular velocity squared for it, or −1.

    A vector is named without x, y, z; forces and energies belong to what they are of, and outputs that are errors
    themselves to nothing else.
    """
    keys: list[tuple[str, str]] = []
    for name, unit in zip(names, units, strict=True):
        whole = _COMPONENT.sub("", name)
        owner, _, what = whole.rpartition(".")
        keys.append((owner if unit in ("N", "J") and what not in LEFT_OUT else whole, unit))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    squares = []
    for name, unit in keys:
        word = next((word for word in _RATE_WORDS if unit == "rad/s2" and word in name), "")
        rate = name.replace(word, _RATE_WORDS[word]) if word else ""
        squares.append(numbers.get((rate, "rad/s"), -1))
    return np.array([numbers[key] for key in keys], dtype=int), np.array(squares, dtype=int)


def vector_sizes(vectors: NDArray[np.intp], squares: NDArray[np.intp], magnitudes: Floats) -> Floats:
    """Return the size of what each variable is a component of, or ω² where it is an angular acceleration, shape (v,).

    Parameters
    ----------
    vectors, squares
        As of `vectors_of`.
    magnitudes
        Of the variables, of positions their ranges, shape (v,).
    """
    sizes = np.zeros(int(vectors.max(initial=-1)) + 1)
    np.maximum.at(sizes, vectors, magnitudes)
    with np.errstate(over="ignore"):  # of a run that fails
        squared = np.where(squares >= 0, sizes[squares] ** 2, 0.0)
    return np.maximum(sizes[vectors], squared)


_NUMBER = math.nan
"""Stands for the value of a parameter; no number in data is it."""


class Role(Enum):
    """What the numbers of a field are to equations, where `Parameter` does not say it; an annotation of its type."""

    PARAMETER = "parameters with names of their own, as masses and start values are, or structural zeros"
    PICTURE = "nothing: they are for pictures"


def structure_of(value: Any) -> Any:
    """Return data without the numbers of parameters: the same for data whose traced equations are the same.

    Whether there is a number stays, and so do all numbers that equations have inside: directions, sample times, places
    of tables. A mechanism leaves zeros out of its equations; which these are shows in the names of its parameters.

    Parameters
    ----------
    value
        Data, or a value of a field.

    Returns
    -------
    object
        Nested tuples of names, numbers and texts.
    """
    return _structure(value, is_hidden=False)


def _structure(value: Any, *, is_hidden: bool) -> Any:
    if isinstance(value, Data):
        kind = type(value)
        fields = [(name, _field(kind, name, getattr(value, name), is_hidden)) for name in kind.model_fields]
        return (kind.__module__, kind.__qualname__, *fields)
    if isinstance(value, Mapping):
        return tuple((key, _structure(each, is_hidden=is_hidden)) for key, each in value.items())
    if isinstance(value, tuple):
        return tuple(_structure(each, is_hidden=is_hidden) for each in value)
    return _NUMBER if is_hidden and isinstance(value, float) else value


def _field(kind: type[Data], name: str, value: Any, is_hidden: bool) -> Any:
    field = kind.model_fields[name]
    if Role.PICTURE in field.metadata:
        return ()
    if name in parameter_fields(kind) and is_table(field.annotation) and value is not None:
        return tuple((place, _NUMBER) for place, _ in value)
    is_parameter = name in parameter_fields(kind) or Role.PARAMETER in field.metadata
    return _structure(value, is_hidden=is_hidden or is_parameter)
