"""Numbers that users write, with or without a unit such as `200 bar`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Self

from mbsfmu.modelling.errors import InputError
from mbsfmu.modelling.measurement_units import (
    LinearMap,
    UnitOfMeasurement,
    known_unit,
    other_spellings,
    written_conversion,
)

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MEASURED = re.compile(rf"\s*({_NUMBER})(?![eE][+-]?[0-9])\s*((?:1\s*)?/?\s*[^\W\d_][^,;]*|[%‰°].*)\s*")
"""A number followed by a unit, which is no exponent that belongs to the number."""
_BEGINS = re.compile(r"\s*[+-]?\.?[0-9]")
Bounds = tuple[float | str, float | str]
"""Least and greatest value: numbers, or texts with units of their own."""
NO_UNIT = ("", "1", "-")
"""What headers of columns say that have no unit, or a ratio: numbers are then in the unit of the variable."""


class WrittenNumber(float):
    """A number in the unit of its variable, which says how it was written where it is refused.

    Attributes
    ----------
    text
        Number and unit as they were written.
    """

    text: str

    def __new__(cls, number: float, text: str) -> Self:
        """Make it of the number and its text."""
        made = super().__new__(cls, number)
        made.text = text
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[float, str]]:
        return type(self), (float(self), self.text)


def plain_number(text: str) -> float:
    """Return the number that a text is, `inf` and `nan` among them.

    Digits of other scripts and the underscores of Python's literals are refused: other programs read them otherwise.

    Raises
    ------
    ValueError
        When it is no number; an `InputError` when it is one beyond the largest.
    """
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        return _within_reach(float(text), text)
    except InputError:
        raise
    except ValueError:
        raise ValueError(f"'{text.strip()}' is no number") from None


def _within_reach(number: float, text: str) -> float:
    if math.isinf(number) and "inf" not in text.lower():
        raise InputError(f"'{text.strip()}' is refused: its magnitude is beyond the largest number, 1.8e308")
    return number


def is_plain(text: str) -> bool:
    """Return whether a text is a number without a unit."""
    try:
        plain_number(text)
    except ValueError as error:
        return isinstance(error, InputError)
    return True


def begins_with_number(text: str) -> bool:
    """Return whether a text begins as a number, with or without a unit; others are names."""
    return _BEGINS.match(text) is not None


def number_in(text: float | str, unit: UnitOfMeasurement | str) -> float:
    """Return a number, or that of a text in a unit.

    Parameters
    ----------
    text
        A number in this unit, or one with a unit of its own: `2e7`, `200 bar`, `30 deg`, `24 l/min`.
    unit
        That of the variable, or its name, such as `N.s/m` or `m3/s`; `1` for a ratio.

    Raises
    ------
    InputError
        When it reads otherwise, its unit is not of the same kind, or it has more than one meaning.
    """
    target = unit if isinstance(unit, UnitOfMeasurement) else UnitOfMeasurement(unit)
    if not isinstance(text, str):
        if isinstance(text, bool) or not isinstance(text, Real):
            raise InputError(f"{text!r} is refused: it must be a number, or a text with a unit, as '200 bar'")
        return text
    if is_plain(text):
        return plain_number(text)
    wanted = f"a number, in {target.name}," if target.name not in ("", "1") else "a number, without a unit"
    measured = _MEASURED.fullmatch(text)
    if measured is None:
        raise InputError(f"'{text}' is refused: it must be {wanted} or with a unit as 200 bar")
    number, name = _within_reach(float(measured[1]), text), measured[2].strip()
    try:
        convert = column_conversion(name, target, number)
    except InputError as error:
        raise InputError(f"'{text}' is refused: {error}") from None
    return WrittenNumber(_within_reach(convert(number), text), text.strip())


def column_conversion(name: str, unit: UnitOfMeasurement | str, number: float = 1.0) -> LinearMap:
    """Return the conversion of values in a unit that a text or the header of a column names to that of a variable.

    Raises
    ------
    InputError
        When the unit is not known, not of the same kind, or leaves more than one meaning; the sentence says what to
        write.
    """
    target = unit if isinstance(unit, UnitOfMeasurement) else UnitOfMeasurement(unit)
    if name != target.name and known_unit(name) is None:
        others = [each for each in other_spellings(name) if _goes_into(each, target)]
        meant = " or ".join(others) or f"it in {target.name or 'the unit that it has'}"
        raise InputError(f"'{name}' is no unit that is known; write {meant}")
    return written_conversion(UnitOfMeasurement(name), target, number)


def _goes_into(name: str, target: UnitOfMeasurement) -> bool:
    try:
        written_conversion(UnitOfMeasurement(name), target)
    except InputError:
        return False
    return True


class ColumnValues(list[float]):
    """Values with a unit of their own, which are converted where it is known what they are of.

    Attributes
    ----------
    unit
        Their unit.
    """

    def __init__(self, values: Iterable[float], unit: str) -> None:
        super().__init__(values)
        self.unit = unit


def numbers_in(values: Sequence[float | str], unit: UnitOfMeasurement | str) -> list[float]:
    """Return values in a unit, from that of their column or those that texts have.

    Raises
    ------
    InputError
        As `number_in` and `column_conversion`.
    """
    if isinstance(values, ColumnValues):
        return list(map(column_conversion(values.unit, unit), values))
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{values!r} is refused: it must be a list of numbers, or of texts with units")
    return [float(number_in(each, unit)) for each in values]


def with_common_unit(texts: Sequence[str]) -> tuple[list[float], str]:
    """Return the numbers of texts and the unit that all of them have; an empty one where none has.

    Raises
    ------
    ValueError
        When one is no number, or their units differ.
    """
    measured = [_MEASURED.fullmatch(text) for text in texts]
    if not any(measured):
        return list(map(plain_number, texts)), ""
    units = {match and match[2].strip() for match in measured}
    if len(units) > 1:
        raise ValueError(f"the units of {', '.join(texts)} differ")
    return [_within_reach(float(match[1]), match[0]) for match in measured if match], str(units.pop())
