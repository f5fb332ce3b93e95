"""Units as strings and their SI base units, and numbers with units as pages and tables have them."""

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


# -- numbers with units as pages and tables have them: digits, prefixes, percent ---------------------------------------

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
PREFIXED = frozenset({"A", "J", "N", "N.m", "Pa", "V", "W", "m", "m/s", "m/s2", "s"})
"""Units with a leading prefix only: in mm³ it would count three times."""
BETWEEN = "\N{NO-BREAK SPACE}"
"""Separator between a number and its unit."""
NOTHING = "–"
"""Text for a missing number."""
_POWERS = str.maketrans("234", "²³⁴")
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e6


def written(unit: str) -> str:
    """Return a unit in readable form: m3/s as m³/s, N.m as N·m, empty for ratios."""
    if unit == "1":
        return ""
    powers = re.sub(r"([a-zA-Z])([234])(?![0-9])", lambda found: found[1] + found[2].translate(_POWERS), unit)
    return powers.replace(".", "·")


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with a number of digits, with a power of ten if very small or large; a dash for none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    rounded = float(f"{value:.{digits}g}") or 0.0  # and no −0
    if rounded == 0.0 or _LEAST_PLAIN <= abs(value) < _MOST_PLAIN:
        text = f"{rounded:.12f}".rstrip("0").rstrip(".") if abs(rounded) < _MOST_PLAIN else f"{rounded:.0f}"
    else:
        mantissa, _, exponent = f"{rounded:e}".partition("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return text.replace("-", "−")


def quantity(value: float | None, unit: str, digits: int = 3) -> str:
    """Return a number with unit and suitable prefix: 0.0015 s as 1.5 ms."""
    if value is None or not math.isfinite(value):
        return NOTHING
    factor, prefix = next(((factor, prefix) for factor, prefix in PREFIXES if abs(value) >= factor), (1.0, ""))
    if unit not in PREFIXED:
        factor, prefix = 1.0, ""
    return f"{number(value / factor, digits)}{BETWEEN}{prefix}{written(unit)}".rstrip()


def percent(share: float | None, digits: int = 3) -> str:
    """Return a fraction in percent."""
    return NOTHING if share is None or not math.isfinite(share) else f"{number(100.0 * share, digits)}{BETWEEN}%"


def step_length(step: float | None) -> str:
    """Return a step in s without a prefix."""
    return NOTHING if step is None else f"{number(step)}{BETWEEN}s"
