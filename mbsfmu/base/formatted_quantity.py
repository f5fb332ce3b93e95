"""Numbers with units as pages and tables have them: digits, prefixes, percent."""

from __future__ import annotations

import math
import re

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
