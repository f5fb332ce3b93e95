"""Unit strings and what they are in SI base units, for the unit definitions of a model description."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass

from mbsfmu.errors import InputError

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
    """A unit that people read; value in it = factor · value in SI."""

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

    Exponents are whole, as Modelica and the FMI have them: a coefficient with a root in its unit is given for a drop of
    one unit instead.

    Raises
    ------
    InputError
        When a part of it is no SI unit.
    """
    numerator, _, denominator = unit.partition("/")
    exponents: defaultdict[str, int] = defaultdict(int)
    for part, sign in ((numerator, 1), (denominator.removeprefix("(").removesuffix(")"), -1)):
        for factor in filter(None, part.split(".")):
            match = re.fullmatch(r"([A-Za-z]+|1)(\d+)?", factor)
            if match is None or match[1] not in _SYMBOLS:
                raise InputError(f"the unit '{unit}' is not known: '{factor}' is no SI unit")
            for base, exponent in _SYMBOLS[match[1]].items():
                exponents[base] += sign * exponent * int(match[2] or 1)
    return {base: exponent for base, exponent in exponents.items() if exponent}
