"""Numbers that users write, with or without a unit such as `200 bar`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from mbsfmu.base.errors import InputError

if TYPE_CHECKING:
    from pint import Unit, UnitRegistry

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_MEASURED = re.compile(rf"\s*({_NUMBER})\s*((?:1/)?[A-Za-zµμ°%][\w°%·./*^() -]*)", re.ASCII)
"""A number followed by a unit."""
_POWER = re.compile(r"(?<=[A-Za-zµμ])\^?(-?\d)(?!\d)")
"""An exponent in FMI notation: `m3`, `s-1`."""


def plain_number(text: str) -> float:
    """Return the number that a text is, `inf` and `nan` among them.

    Digits of other scripts and the underscores of Python's literals are refused: other programs read them otherwise.

    Raises
    ------
    ValueError
        When it is no number.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"'{text}' is no number")
    return float(text)


def number_in(text: str, unit: str) -> float:
    """Return the number of a text in a unit.

    Parameters
    ----------
    text
        A number in this unit, or one with a unit of its own: `2e7`, `200 bar`, `30 deg`, `24 l/min`.
    unit
        A unit as the FMI writes it, such as `N.s/m` or `m3/s`; `1` for none.

    Raises
    ------
    InputError
        When it reads otherwise, or its unit is not of the same kind.
    """
    try:
        return plain_number(text)
    except ValueError:
        pass
    found = _MEASURED.fullmatch(text)
    if found is None:
        raise InputError(f"'{text}' is refused: it must be a number, in {unit}, or with a unit as 200 bar")
    import pint  # noqa: PLC0415 - takes a tenth of a second, and most values have no unit

    try:
        given = _unit(found[2])
    except Exception:  # pint's parser raises errors of its own and those of Python's tokenizer
        raise InputError(f"'{text}' is refused: '{found[2]}' is no unit that is known; write it in {unit}") from None
    try:
        wanted = _unit("" if unit == "1" else unit)
        # Turns or radians in a second: hertz does not say.
        if "radian" in f"{given}{wanted}" and "hertz" in f"{given}{wanted}":
            raise pint.DimensionalityError(given, wanted)
        return float(_units().Quantity(float(found[1]), given).to(wanted).magnitude)
    except pint.DimensionalityError:
        raise InputError(f"'{text}' is refused: it must be a number in {unit}, or in a unit like it") from None
    except Exception:
        raise InputError(
            f"'{text}' is refused: nothing is converted to the unit {unit}; write a number in it"
        ) from None


def _unit(text: str) -> Unit:
    return _units().parse_units(_POWER.sub(r"**\1", text.replace("·", "*").replace(".", "*")))


@cache
def _units() -> UnitRegistry[float]:
    import pint  # noqa: PLC0415 - as above

    return pint.UnitRegistry()
