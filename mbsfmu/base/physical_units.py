"""Unit strings and their SI base units, for unit definitions of model descriptions."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from mbsfmu.base.errors import InputError

Dimension = dict[str, int]

_SYMBOLS: dict[str, Dimension] = {
    **{base: {base: 1} for base in ("kg", "m", "s", "A", "K", "mol", "cd", "rad")},
    "N": {"kg": 1, "m": 1, "s": -2},
    "Pa": {"kg": 1, "m": -1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
    "Hz": {"s": -1},
    "1": {},
}


@dataclass(frozen=True)
class DisplayUnit:
    """Display unit: value in it = factor · value in SI."""

    name: str
    factor: float


DISPLAY_UNITS: dict[str, DisplayUnit] = {
    "Pa": DisplayUnit("bar", 1e-5),
    "m3/s": DisplayUnit("l/min", 6e4),
    "m3": DisplayUnit("l", 1e3),
    "rad": DisplayUnit("deg", 180.0 / math.pi),
    "rad/s": DisplayUnit("deg/s", 180.0 / math.pi),
    "m": DisplayUnit("mm", 1e3),
    "N": DisplayUnit("kN", 1e-3),
}


def dimension(unit: str) -> Dimension:
    """Return the exponents of the SI base units of a unit such as `kg.m2`, `N/m` or `m3/(s.V)`.

    Exponents are integers, as in Modelica and FMI: a coefficient with a root in its unit is given for a drop of one
    unit instead.

    Raises
    ------
    InputError
        When a part of it is no SI unit.
    """
    exponents: defaultdict[str, int] = defaultdict(int)
    for symbol, power in _factors(unit):
        for base, exponent in _SYMBOLS[symbol].items():
            exponents[base] += exponent * power
    return {base: exponent for base, exponent in exponents.items() if exponent}


def is_si(unit: str) -> bool:
    """Return whether a unit is an SI unit without a factor."""
    try:
        dimension(unit)
    except InputError:
        return False
    return True


def combined(*units: tuple[str, int]) -> str:
    """Return the product of powers of units, as `V.s/m` of ("V", 1) and ("m/s", -1).

    Raises
    ------
    InputError
        When a part of one is no SI unit.
    """
    powers: defaultdict[str, int] = defaultdict(int)
    for unit, power in units:
        for symbol, exponent in _factors(unit):
            powers[symbol] += power * exponent
    above, below = (
        [symbol + (str(abs(each)) if abs(each) > 1 else "") for symbol, each in powers.items() if each * sign > 0]
        for sign in (1, -1)
    )
    numerator, denominator = ".".join(above) or "1", ".".join(below)
    if not below:
        return numerator
    return f"{numerator}/{denominator}" if len(below) == 1 else f"{numerator}/({denominator})"


def _factors(unit: str) -> Iterator[tuple[str, int]]:
    """Yield the symbols of a unit with their exponents, without ratios.

    Raises
    ------
    InputError
        When one is no SI unit.
    """
    numerator, _, denominator = unit.partition("/")
    for part, sign in ((numerator, 1), (denominator.removeprefix("(").removesuffix(")"), -1)):
        for factor in filter(None, part.split(".")):
            match = re.fullmatch(r"([A-Za-z]+|1)(\d+)?", factor)
            if match is None or match[1] not in _SYMBOLS:
                raise InputError(f"the unit '{unit}' is not known: '{factor}' is no SI unit; {_instead(unit, factor)}")
            if match[1] != "1":
                yield match[1], sign * int(match[2] or 1)


def _instead(unit: str, factor: str) -> str:
    """Return the unit in SI notation with its factor, for display units."""
    for own, display in DISPLAY_UNITS.items():
        if display.name in (unit, factor):
            return f"write {own}, and numbers in it: 1 {display.name} is {1.0 / display.factor:.6g} {own}"
    return "write N.m, m/s2, kg/(m.s)"


def _known(unit: str) -> str:
    try:
        dimension(unit)
    except InputError as error:
        raise ValueError(str(error)) from None
    return unit


Unit = Annotated[str, AfterValidator(_known)]
"""Field type: a unit of SI symbols, such as `m`, `N.m/rad` or `m3/(s.V)`; `1` for ratios."""
