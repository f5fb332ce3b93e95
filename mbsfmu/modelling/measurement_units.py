"""Units of measurement, and numbers that users write with them.

Units of measurement: their definitions, what their names mean, and the one conversion between two of them.

Angles count: a revolution is 2π rad, and a unit per radian is no unit per revolution. The SI takes rad for 1, so that
`10 cm3` for a displacement in m3/rad, or `100 1/s` for an angular velocity, leaves a factor of 2π open. Such pairs are
refused with both readings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from numbers import Real
from string import Formatter
from typing import Any, NamedTuple, Self

from mbsfmu.modelling.errors import InputError

BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
UNIT_ATTRIBUTES = (*BASE_UNITS, "factor", "offset")
"""Attributes of a `BaseUnit` element."""
_RAD = BASE_UNITS.index("rad")
_TURN = 2.0 * math.pi
_INCH, _POUND, _GRAVITY = 0.0254, 0.45359237, 9.80665  # exact by definition [NIST SP 811, appendix B]
_MERCURY = 133.322387415  # Pa a millimetre, conventional [NIST SP 811, appendix B]
_ZERO_CELSIUS, _ZERO_FAHRENHEIT = 273.15, 459.67 / 1.8  # K

_PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "da": 1e1, "d": 1e-1, "c": 1e-2, "m": 1e-3,
             "u": 1e-6, "n": 1e-9, "p": 1e-12}  # fmt: skip
_PREFIXED: Mapping[str, tuple[float, str]] = {
    "m": (1.0, "m"), "g": (1e-3, "kg"), "s": (1.0, "s"), "A": (1.0, "A"), "K": (1.0, "K"), "mol": (1.0, "mol"),
    "cd": (1.0, "cd"), "rad": (1.0, "rad"),
    "N": (1.0, "kg.m.s-2"), "Pa": (1.0, "kg.m-1.s-2"), "bar": (1e5, "kg.m-1.s-2"), "J": (1.0, "kg.m2.s-2"),
    "Wh": (3600.0, "kg.m2.s-2"), "W": (1.0, "kg.m2.s-3"), "V": (1.0, "kg.m2.s-3.A-1"), "Ohm": (1.0, "kg.m2.s-3.A-2"),
    "S": (1.0, "kg-1.m-2.s3.A2"), "F": (1.0, "kg-1.m-2.s4.A2"), "H": (1.0, "kg.m2.s-2.A-2"), "C": (1.0, "s.A"),
    "T": (1.0, "kg.s-2.A-1"), "Wb": (1.0, "kg.m2.s-2.A-1"), "l": (1e-3, "m3"), "L": (1e-3, "m3"),
    "St": (1e-4, "m2.s-1"), "P": (0.1, "kg.m-1.s-1"), "Hz": (_TURN, "rad.s-1"),
}  # fmt: skip
"""Factor and SI base units of the symbols that take prefixes."""
_PLAIN: Mapping[str, tuple[float, str]] = {
    "1": (1.0, ""), "-": (1.0, ""), "%": (1e-2, ""), "‰": (1e-3, ""), "ppm": (1e-6, ""),
    "min": (60.0, "s"), "h": (3600.0, "s"), "d": (86400.0, "s"),
    "deg": (_TURN / 360.0, "rad"), "gon": (_TURN / 400.0, "rad"), "arcmin": (_TURN / 21600.0, "rad"),
    "arcsec": (_TURN / 1296e3, "rad"),
    **dict.fromkeys(("rev", "r", "U", "turn", "tr", "Umdr", "cycle"), (_TURN, "rad")), "rpm": (_TURN / 60.0, "rad.s-1"),
    "rps": (_TURN, "rad.s-1"),
    "cc": (1e-6, "m3"), "ccm": (1e-6, "m3"), "lpm": (1e-3 / 60.0, "m3.s-1"),
    "gal_us": (231.0 * _INCH**3, "m3"), "gal_uk": (4.54609e-3, "m3"), "cfm": ((12.0 * _INCH) ** 3 / 60.0, "m3.s-1"),
    "t": (1e3, "kg"), "kgf": (_GRAVITY, "kg.m.s-2"), "kp": (_GRAVITY, "kg.m.s-2"),
    "in": (_INCH, "m"), "ft": (12.0 * _INCH, "m"), "yd": (36.0 * _INCH, "m"), "mil": (1e-3 * _INCH, "m"),
    "lb": (_POUND, "kg"), "oz": (_POUND / 16.0, "kg"), "slug": (_POUND * _GRAVITY / (12.0 * _INCH), "kg"),
    "lbf": (_POUND * _GRAVITY, "kg.m.s-2"), "psi": (_POUND * _GRAVITY / _INCH**2, "kg.m-1.s-2"),
    "kip": (1e3 * _POUND * _GRAVITY, "kg.m.s-2"), "ksi": (1e3 * _POUND * _GRAVITY / _INCH**2, "kg.m-1.s-2"),
    "mph": (63360.0 * _INCH / 3600.0, "m.s-1"), "hp": (550.0 * 12.0 * _INCH * _POUND * _GRAVITY, "kg.m2.s-3"),
    "PS": (75.0 * _GRAVITY, "kg.m2.s-3"), "atm": (101325.0, "kg.m-1.s-2"), "mmHg": (_MERCURY, "kg.m-1.s-2"),
    "inHg": (1e3 * _INCH * _MERCURY, "kg.m-1.s-2"), "Torr": (101325.0 / 760.0, "kg.m-1.s-2"),
    "at": (1e4 * _GRAVITY, "kg.m-1.s-2"), "mH2O": (1e3 * _GRAVITY, "kg.m-1.s-2"), "mmH2O": (_GRAVITY, "kg.m-1.s-2"),
    "inH2O": (1e3 * _INCH * _GRAVITY, "kg.m-1.s-2"), "kn": (1852.0 / 3600.0, "m.s-1"),
    "degC": (1.0, "K"), "degF": (1.0 / 1.8, "K"), "delta_degC": (1.0, "K"), "delta_degF": (1.0 / 1.8, "K"),
}  # fmt: skip
"""The same of those without."""
_OFFSETS = {"degC": _ZERO_CELSIUS, "degF": _ZERO_FAHRENHEIT}
"""Of a temperature itself in K; a unit that a temperature is only part of has none."""
_SPELLINGS = {
    "\u00b5": "u", "\u03bc": "u", "°C": "degC", "°F": "degF", "°": "deg", "\u2126": "Ohm", "\u03a9": "Ohm",
    "ohm": "Ohm", "·": ".", "⋅": ".", "**": "", "*": ".", "^": "", "²": "2", "³": "3", "⁻¹": "-1", "⁻²": "-2",
    "(a)": "",
}  # fmt: skip
_WORDS = {
    "inch": "in", "foot": "ft", "lbm": "lb", "degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad",
    "revolution": "rev", "revolutions": "rev", "RPM": "rpm", "sec": "s", "hour": "h", "minute": "min", "second": "s",
    "meter": "m", "metre": "m", "newton": "N", "liter": "l", "litre": "l", "percent": "%", "kelvin": "K",
    "bara": "bar", "psia": "psi", "Nm": "N.m", "kNm": "kN.m", "Nmm": "N.mm", "mNm": "mN.m", "daNm": "daN.m",
    "MNm": "MN.m", "kpm": "kp.m", "kgfm": "kgf.m", "kgm2": "kg.m2", "kgcm2": "kg.cm2", "mPas": "mPa.s", "mWS": "mH2O",
    "torr": "Torr", "thou": "mil", "micron": "um", "tonne": "t", "lbs": "lb", "hr": "h", "ltr": "l", "msec": "ms",
    "knot": "kn", "knots": "kn", "bhp": "hp", "kips": "kip", "USgpm": "gal_us/min", "ft-lbf": "ft.lbf",
    "ft-lb": "ft.lbf", "in-lbf": "in.lbf", "USgal": "gal_us", "UKgal": "gal_uk",
    "delta_K": "K", "kph": "km/h",
}  # fmt: skip
_GALLON = "a gallon is 3.78541 l in the USA and 4.54609 l elsewhere"
_UNCLEAR = {
    **dict.fromkeys(("gal", "gallon", "gallons"), (_GALLON, "gal_us, gal_uk or l")),
    "gpm": (_GALLON, "gal_us/min, gal_uk/min or l/min"),
    "grad": ("it is a degree in German, and a 400th of a turn elsewhere", "deg or gon"),
    "ton": ("a ton is 907.185 kg in the USA, 1016.05 kg in Britain and 1000 kg elsewhere", "kg or t"),
    **dict.fromkeys(
        ("barg", "psig", "bar(g)", "psi(g)"),
        ("it counts from the pressure around, which is 1 bar or 1.01325 bar", "bar, from vacuum on"),
    ),
}
"""Why a unit has several meanings, and what to write in place of it."""
_FACTOR = re.compile(r"(delta_degC|delta_degF|delta_K|gal_u[sk]|m?mH2O|inH2O|[A-Za-z%‰]+|1|-)(-?\d)?")
_SPEED = (0, 0, -1, 0, 0, 0, 0, 1)
_ENERGY = (1, 2, -2, 0, 0, 0, 0, 0)
_ENERGIES = re.compile(r"[TGMkmun]?(J|Wh)")


@dataclass(frozen=True)
class UnitOfMeasurement:
    """A unit: a value in SI base units is factor · (value in this unit) + offset [FMI 2.0.4, section 2.2.2].

    Attributes
    ----------
    name
        Its name, such as `bar`; empty where a variable says none.
    exponents
        Of the SI base units in the order of `BASE_UNITS`; None where the file that uses the unit does not define it.
    factor, offset
        Of the conversion to SI base units.
    relative
        Whether values in it are differences, for which the offset does not count [FMI 2.0.4, `relativeQuantity`]; None
        where nothing says so, which then follows what the value is converted to or from.
    """

    name: str
    exponents: tuple[int, ...] | None = None
    factor: float = 1.0
    offset: float = 0.0
    relative: bool | None = None

    @classmethod
    def of_attributes(cls, name: str, attributes: Mapping[Any, Any]) -> UnitOfMeasurement:
        """Make a unit of the attributes of a `BaseUnit` element.

        Raises
        ------
        InputError
            When the factor is zero: no value could be converted to such a unit.
        """
        exponents = tuple(int(attributes.get(base, 0)) for base in BASE_UNITS)
        factor, offset = float(attributes.get("factor", 1.0)), float(attributes.get("offset", 0.0))
        if factor == 0.0:
            raise InputError(f"the unit '{name}' has the factor 0; a unit needs another one")
        return cls(name, exponents, factor, offset)

    @property
    def is_ratio(self) -> bool:
        """Whether values in it have no dimension, as those in `1`, `%` and `ppm`."""
        try:
            return not any(_meant(self).exponents or ())
        except InputError:
            return False

    def in_base_units(self, value: float) -> float:
        """Return a value in this unit in SI base units."""
        return self.factor * value + (0.0 if self.relative else self.offset)


@dataclass(frozen=True)
class LinearMap:
    """Conversion of a value: factor · value + offset."""

    factor: float = 1.0
    offset: float = 0.0

    def __call__(self, value: float) -> float:
        """Return the value at the end."""
        return self.factor * value + self.offset

    def then(self, other: LinearMap) -> LinearMap:
        """Return the composition of this map with a following one."""
        return LinearMap(other.factor * self.factor, other.factor * self.offset + other.offset)

    def inverse(self) -> LinearMap:
        """Return the inverse map."""
        return LinearMap(1.0 / self.factor, -self.offset / self.factor)


IDENTITY = LinearMap()


@lru_cache(1024)
def known_unit(name: str) -> UnitOfMeasurement | None:
    """Return the unit that a name means, as `bar`, `N.m/rad`, `cm³/U`, `1/min`; None where it means none.

    Raises
    ------
    InputError
        When it has several meanings.
    """
    text = name.strip()
    _check_clear(text)
    for spelling, meaning in _SPELLINGS.items():
        text = text.replace(spelling, meaning)
    text = re.sub(r"\s*([./()])\s*", r"\1", text)
    text = re.sub(r"(?<=[\w%)])\s+(?=[A-Za-z(])", ".", text)  # a blank between two units is a product
    text = f"1{text}" if text.startswith("/") else text
    factors = _factors(text)
    if factors is None:
        return None
    exponents, factor = [0] * len(BASE_UNITS), 1.0
    for symbol, power in factors:
        symbol_factor, base = _symbol(symbol)
        factor *= symbol_factor**power
        for part in filter(None, base.split(".")):
            match = re.fullmatch(r"([A-Za-z]+)(-?\d+)?", part)
            assert match is not None
            exponents[BASE_UNITS.index(match[1])] += power * int(match[2] or 1)
    if not math.isfinite(factor) or factor == 0.0:
        return None
    alone = factors[0][0] if len(factors) == 1 and factors[0][1] == 1 else ""
    relative = True if alone.startswith("delta_") else None
    return UnitOfMeasurement(name.strip(), tuple(exponents), factor, _OFFSETS.get(alone, 0.0), relative)


def _factors(text: str) -> list[tuple[str, int]] | None:
    """Return the symbols of a unit with their exponents; None where it does not read so.

    What follows a slash is one factor, or has parentheses: a product without them would have two meanings.
    """
    result: list[tuple[str, int]] = []
    parts = [part for part in re.split(r"([./]|\([^()]*\)(?:-?\d)?)", text) if part]
    sign, divided, separated = 1, False, True
    for part in parts:
        if part in "./":
            if separated or (part == "." and divided):
                return None
            sign, divided, separated = (-1 if part == "/" else 1), part == "/", True
            continue
        if not separated:
            return None
        separated = False
        if part.startswith("("):
            inside, _, power = part[1:].partition(")")
            inner = _factors(inside)
            if inner is None:
                return None
            result += [(symbol, sign * each * int(power or 1)) for symbol, each in inner]
            continue
        match = _FACTOR.fullmatch(_WORDS.get(part, part))
        if match is None:
            inner = _factors(_WORDS[part]) if part in _WORDS else None
            if inner is None:
                return None
            result += [(symbol, sign * each) for symbol, each in inner]
            continue
        symbol = _WORDS.get(match[1], match[1])
        _check_clear(symbol)
        if _symbol(symbol) == _NO_SYMBOL:
            return None
        result.append((symbol, sign * int(match[2] or 1)))
    return None if separated else result


def _check_clear(text: str) -> None:
    if text in _UNCLEAR:
        reason, other = _UNCLEAR[text]
        raise InputError(f"the unit '{text}' has several meanings: {reason}; write it in {other}")


def other_spellings(name: str) -> list[str]:
    """Return the units that a name without one would mean in other letters, as `MPa` and `mPa` for `mpa`."""
    return _spellings().get(name.strip().casefold(), [])


@lru_cache(1)
def _spellings() -> dict[str, list[str]]:
    """Return the known symbols by their small letters."""
    spellings: dict[str, list[str]] = {}
    prefixed = [prefix + symbol for symbol in _PREFIXED for prefix in ("", *_PREFIXES)]
    for symbol in (*_PLAIN, *_WORDS, *prefixed):
        spellings.setdefault(symbol.casefold(), []).append(symbol)
    return spellings


_NO_SYMBOL = 0.0, ""


def _symbol(symbol: str) -> tuple[float, str]:
    """Return factor and SI base units of a symbol with or without prefix; factor 0 of one that is not known."""
    for known in (_PLAIN, _PREFIXED):
        if symbol in known:
            return known[symbol]
    for prefix, factor in _PREFIXES.items():
        if symbol.startswith(prefix) and (rest := symbol.removeprefix(prefix)) in _PREFIXED:
            return factor * _PREFIXED[rest][0], _PREFIXED[rest][1]
    return _NO_SYMBOL


def _meant(unit: UnitOfMeasurement) -> UnitOfMeasurement:
    """Return a unit with its angle, where its definition leaves that out but its name has it.

    Definitions often count radians or revolutions as 1: `Hz` as s⁻¹, `rpm` as s⁻¹/60 or 0.105 s⁻¹.

    Raises
    ------
    InputError
        When nothing defines it, or it has several meanings.
    """
    if unit.exponents is None:
        known = known_unit(unit.name)
        if known is None:
            raise InputError(f"the unit '{unit.name}' has no definition in SI base units")
        return known if unit.relative is None else replace(known, relative=unit.relative)
    try:
        known = known_unit(unit.name)
    except InputError:
        return unit
    if known is None or known.exponents is None or known.exponents == unit.exponents or unit.exponents[_RAD]:
        return unit
    angle = known.exponents[_RAD]
    counted = (known.factor, known.factor / _TURN**angle)
    if _without_angle(known) == _without_angle(unit) and any(math.isclose(unit.factor, each) for each in counted):
        return replace(known, offset=unit.offset, relative=unit.relative)
    return unit


def _without_angle(unit: UnitOfMeasurement) -> tuple[int, ...]:
    return (unit.exponents or ())[:_RAD]


def conversion(source: UnitOfMeasurement, target: UnitOfMeasurement) -> LinearMap:
    """Return the conversion of values that variables, connectors or files declare.

    Values of a unit without a name stay as they are, and so do those in `1` where the other unit has a dimension: many
    files say `1` of everything.

    Raises
    ------
    InputError
        When the units are of different quantities, leave open whether revolutions or radians are counted, or one of
        them is not known.
    """
    if not source.name or not target.name:
        return IDENTITY
    if "1" in (source.name, target.name) and not (source.is_ratio and target.is_ratio):
        return IDENTITY
    return written_conversion(source, target)


def written_conversion(source: UnitOfMeasurement, target: UnitOfMeasurement, number: float = 1.0) -> LinearMap:
    """Return the conversion of a value that a user writes with a unit, here or in the header of a table.

    Parameters
    ----------
    source, target
        The unit that is written, and that of the variable.
    number
        The value, for messages.

    Raises
    ------
    InputError
        As `conversion`, and when the variable has no unit, or `1` and the value a dimension.
    """
    if source.name == target.name:
        return IDENTITY
    if not target.name:
        raise InputError(_onto_no_unit(source, number))
    given, wanted = _meant(source), _meant(target)
    if given.exponents == wanted.exponents:
        defined = source.exponents is not None and target.exponents is not None
        if not defined and given.exponents == _ENERGY and _ENERGIES.fullmatch(source.name) and "N" in target.name:
            raise InputError(f"'{source.name}' is a unit of energy, and '{target.name}' one of torque")
        return _affine(given, wanted, number)
    if _without_angle(given) != _without_angle(wanted):
        hint = "; lb is a unit of mass, and lbf one of force" if re.search(r"\blbm?\b", source.name) else ""
        raise InputError(f"'{source.name}' and '{target.name}' are units of different quantities{hint}")
    for one, other in ((given, wanted), (wanted, given)):
        if _is_per_minute(one) and other.exponents == _SPEED:  # in which nobody counts radians
            turns = _TURN if one is given else 1.0 / _TURN
            return LinearMap(turns * given.factor / wanted.factor)
    if source.exponents is not None and source.exponents == target.exponents:
        return LinearMap(source.factor / target.factor)
    raise InputError(_two_readings(given, wanted, number))


def _is_per_minute(unit: UnitOfMeasurement) -> bool:
    return unit.exponents == (*_SPEED[:_RAD], 0) and math.isclose(unit.factor, 1.0 / 60.0)


def _affine(given: UnitOfMeasurement, wanted: UnitOfMeasurement, number: float) -> LinearMap:
    """Return the conversion between two units of one kind; the offset counts for values that are no differences."""
    differences = {each.relative for each in (given, wanted)} - {None}
    factor = given.factor / wanted.factor
    if len(differences) > 1 and any(each.offset and not each.relative for each in (given, wanted)):
        absolute = (given.offset - wanted.offset + given.factor * number) / wanted.factor
        raise InputError(
            f"a value in '{given.name}' and one in '{wanted.name}' do not go together: one of them is a difference, "
            f"the other one is none; {number:.6g} {given.name} would be {factor * number:.6g} {wanted.name} as a "
            f"difference, and {absolute:.6g} {wanted.name} otherwise"
        )
    if True in differences:
        return LinearMap(factor)
    return LinearMap(factor, (given.offset - wanted.offset) / wanted.factor)


def _onto_no_unit(source: UnitOfMeasurement, number: float) -> str:
    if source.is_ratio:
        return (
            f"the variable has no unit; write {number:.6g} if it counts in {source.name}, and "
            f"{_meant(source).factor * number:.6g} if it is a ratio"
        )
    return f"the variable has no unit to convert '{source.name}' to; write the number alone, as the variable counts"


def _two_readings(given: UnitOfMeasurement, wanted: UnitOfMeasurement, number: float) -> str:
    """Return what a value may mean where one of two units leaves the angle open, and what to write."""
    one, other = ((unit.exponents or _SPEED)[_RAD] for unit in (given, wanted))
    if (one and other) or not _turns(given, wanted):
        return f"'{given.name}' and '{wanted.name}' are units of different quantities"
    as_radians = given.factor / wanted.factor * number
    as_turns = as_radians * _TURN ** (other - one)
    if one:
        return (
            f"the unit '{wanted.name}' leaves open whether revolutions or radians are counted: write {as_turns:.6g} if "
            f"they are revolutions, and {as_radians:.6g} if they are radians"
        )
    texts = [f"'{number:.6g} {_with_angle(given.name, angle, other)}'" for angle in ("rev", "rad")]
    return (
        f"'{given.name}' leaves open whether revolutions or radians are counted: write {texts[0]} "
        f"({as_turns:.6g} {wanted.name}) or {texts[1]} ({as_radians:.6g} {wanted.name})"
    )


def _turns(given: UnitOfMeasurement, wanted: UnitOfMeasurement) -> bool:
    """Return whether revolutions or radians may be meant, where one of two units counts them.

    In rates, as 1/s and rad/s; and by the revolution what has a length: displacements, leads, torques.
    """
    mass, length, _, *others = _without_angle(given)
    if any((unit.exponents or _SPEED)[_RAD] < 0 for unit in (given, wanted)):
        return length > 0
    return any(given.exponents or ()) and not any((mass, length, *others))


def _with_angle(name: str, angle: str, power: int) -> str:
    """Return the name of a unit with an angle in it, as `rev/s` of `1/s` and `cm3/rad` of `cm3`."""
    exponent = str(abs(power)) if abs(power) > 1 else ""
    if power > 0:
        return angle + exponent + name.removeprefix("1") if name.startswith("1/") else f"{angle}{exponent}.{name}"
    return f"{angle}{power}.{name}" if "/" in name else f"{name}/{angle}{exponent}"


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


_EXAMPLES = {"s": "200 ms", "m": "20 mm", "rad": "30 deg", "rad/s": "3000 rpm", "m3/s": "24 l/min", "K": "40 degC"}
"""Numbers with a unit of their own, by the unit that is wanted."""


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
        raise InputError(
            f"'{text}' is refused: it must be {wanted} or with a unit as {_EXAMPLES.get(target.name, '200 bar')}"
        )
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


class JointWords(NamedTuple):
    """Words and units of a joint coordinate: effort, coordinate, rate.

    Attributes
    ----------
    effort, position, rate
        Names of effort, coordinate and rate.
    load, coordinate
        Units of effort and coordinate.
    """

    effort: str
    load: str
    coordinate: str
    position: str
    rate: str


SLIDE = JointWords("force", "N", "m", "displacement", "velocity")
HINGE = JointWords("torque", "N.m", "rad", "angle", "angular_velocity")


def readings(pattern: str) -> tuple[str, ...]:
    """Return the units that a pattern such as `{joint.load}/{joint.coordinate}` may be, for slides and hinges.

    Parameters
    ----------
    pattern
        Unit with words of joints; another one is itself alone.
    """
    joints = sorted({name.partition(".")[0] for _, name, _, _ in Formatter().parse(pattern) if name})
    kinds = product((SLIDE, HINGE), repeat=len(joints))
    return tuple(dict.fromkeys(pattern.format(**dict(zip(joints, each, strict=True))) for each in kinds))
