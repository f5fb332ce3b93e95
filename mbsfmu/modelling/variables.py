"""Variables of a system: name, unit, causality, bounds, and names for importers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Literal, get_args

from mbsfmu.modelling.errors import InputError
from mbsfmu.modelling.measurement_units import UnitOfMeasurement, WrittenNumber, number_in, numbers_in

Naming = Literal["structured", "flat"]
"""`variableNamingConvention` of the FMI."""
NAMINGS: tuple[Naming, ...] = get_args(Naming)
LONGEST_FLAT_NAME = 63
"""Largest length of a flat name: `namelengthmax` of MATLAB, and significant characters of C99 identifiers."""
_PART = r"(?:[A-Za-z_][A-Za-z0-9_]*(?:\[\d+(?:,\d+)*\])?)"
_NAME = rf"{_PART}(?:\.{_PART})*"
STRUCTURED_NAME = re.compile(rf"^(?:{_NAME}|der\({_NAME}\))$")
"""Names of the convention `structured` [FMI 2.0.4, section 2.2.9]."""
_C_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
)
_MATLAB_KEYWORDS = "catch classdef elseif end function global otherwise parfor persistent spmd try"
KEYWORDS = frozenset(f"{_C_KEYWORDS} {_MATLAB_KEYWORDS}".split())
"""Keywords of C and MATLAB, which cannot be identifiers there."""
_MIDDLE = "__"
"""Replacement of the middle of a name that is too long."""


def identifier(name: str) -> str:
    """Return a name as an identifier of C; keywords of C and MATLAB get a `_`."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{text}_" if text in KEYWORDS else text


def flat_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as identifiers of C and MATLAB, each once, in the order of the names.

    Characters that are no letters or digits become `_`: `boom.angle` is `boom_angle`, `b.quaternion[1]` is
    `b_quaternion_1`, `der(boom.angle)` is `der_boom_angle`. Of names that would be the same the later ones get `_2`,
    `_3`, and so on. Names of more than 63 characters lose their middle.
    """
    found: dict[str, None] = {}
    for name in names:
        flat, number = _flat(name), 1
        while flat in found:
            number += 1
            flat = _flat(name, f"_{number}")
        found[flat] = None
    return tuple(found)


def flat_name(name: str) -> str:
    """Return the flat name of a variable that is alone."""
    return _flat(name)


def endings(name: str) -> tuple[str, ...]:
    """Return a structured name, and its remainders without leading parts."""
    parts = name.split(".")
    return tuple(".".join(parts[begin:]) for begin in range(len(parts)))


def flat_description(name: str, description: str) -> str:
    """Return the description of a variable with a flat name, which starts with the structured one."""
    return f"{name}: {description}" if description else name


def structured_name(flat: str, description: str) -> str:
    """Return the structured name from a description made by `flat_description`; the flat one without.

    The structured name is used only if it has a dot and gives the flat one. Names without a dot are unchanged.
    """
    name = description.partition(": ")[0]
    if name == flat or "." not in name or not STRUCTURED_NAME.match(name):
        return flat
    number = re.search(r"_\d+$", flat)
    return name if flat in {_flat(name), _flat(name, number[0] if number else "")} else flat


def _flat(name: str, ending: str = "") -> str:
    """Return a name as an identifier of at most 63 characters with an ending."""
    text = identifier(re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "v")
    if text[0].isdigit():
        text = f"v{text}"
    left = LONGEST_FLAT_NAME - len(ending)
    if len(text) > left:
        half = (left - len(_MIDDLE)) // 2
        text = text[: left - len(_MIDDLE) - half] + _MIDDLE + text[-half:]
    return text + ending


class Causality(StrEnum):
    """Causality of a variable, in the words of FMI 2.0."""

    PARAMETER = "parameter"
    CALCULATED_PARAMETER = "calculatedParameter"
    INPUT = "input"
    OUTPUT = "output"
    LOCAL = "local"


class Variability(StrEnum):
    """Variability of a variable, in the words of FMI 2.0."""

    FIXED = "fixed"
    TUNABLE = "tunable"
    DISCRETE = "discrete"
    CONTINUOUS = "continuous"


@dataclass(frozen=True)
class Variable:
    """A named real variable with its unit and its role in the interface of a system.

    Parameters
    ----------
    name
        Structured name, such as `cylinder.length`.
    causality, variability
        As in FMI 2.0.
    unit
        SI unit, such as `m/s`; `1` for ratios, and nothing for what an FMU shows without a unit.
    start
        Value before anything is computed; every input and parameter has one.
    minimum, maximum
        Bounds of what may be set, or of what has an effect where `saturates`.
    nominal
        Magnitude the variable usually has; absolute tolerances are taken from it.
    description
        One line for the user of the variable.
    rated
        Of an input: whether the next input is its rate, by which it runs on where it is held.
    saturates
        Of an input: whether values beyond its bounds are taken, and act as the bound.
    definition
        Unit with its definition, of a variable of an FMU.
    """

    name: str
    causality: Causality = Causality.LOCAL
    variability: Variability = Variability.CONTINUOUS
    unit: str = "1"
    start: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""
    rated: bool = False
    saturates: bool = False
    definition: UnitOfMeasurement | None = None

    @property
    def measured_unit(self) -> UnitOfMeasurement:
        """Unit to convert values to; without a name where an FMU says none."""
        return self.definition or UnitOfMeasurement(self.unit)

    @property
    def accepted(self) -> tuple[float | None, float | None]:
        """Least and greatest value that is not refused; a controller's command may go beyond what saturates."""
        return (None, None) if self.saturates else (self.minimum, self.maximum)

    def number(self, value: float | str, name: str = "") -> float:
        """Return a value in the unit of the variable, converted where it is a text with a unit of its own.

        Parameters
        ----------
        value
            A number, or a text such as `200 bar`.
        name
            What the user calls the variable; its name by default.

        Raises
        ------
        InputError
            When it is no such number; the sentence names the variable.
        """
        try:
            return number_in(value, self.measured_unit)
        except InputError as error:
            raise InputError(f"{name or self.name}: {error}") from None

    def numbers(self, values: Sequence[float | str], name: str = "") -> list[float]:
        """Return values in the unit of the variable, from that of their column or those that texts have.

        Parameters
        ----------
        values, name
            As for `number`.

        Raises
        ------
        InputError
            When a unit cannot be converted; the sentence names the variable.
        """
        try:
            return numbers_in(values, self.measured_unit)
        except InputError as error:
            raise InputError(f"{name or self.name}: {error}") from None

    @property
    def settable(self) -> bool:
        """Whether a user may set it."""
        return self.causality in (Causality.PARAMETER, Causality.INPUT)


@dataclass(frozen=True)
class ModelExchangeData:
    """Model-exchange data of an FMU, by variable names.

    Attributes
    ----------
    added
        Variables that are there for it, behind all others.
    derivatives
        The derivative of each continuous state by the state, in the order in which solvers have them.
    dependencies
        The inputs and continuous states that outputs and derivatives depend on; None where it may be all.
    magnitudes
        Usual ones of what is integrated: of all coordinates and their velocities where states are chosen among them,
        else of the states; those of circuits, blocks and integrals behind.
    indicators
        The event indicators by name, each with the width of its hysteresis to either side of zero.
    derivatives_known
        Whether unknowns have directional derivatives by the states.
    beside_steps
        Whether the unit can make its steps itself too.
    """

    added: tuple[Variable, ...]
    derivatives: Mapping[str, str]
    dependencies: Mapping[str, tuple[str, ...] | None]
    magnitudes: tuple[float, ...]
    indicators: Mapping[str, float]
    derivatives_known: bool
    beside_steps: bool


def rated_names(inputs: Sequence[Variable]) -> frozenset[str]:
    """Return the names of the inputs that have a rate, and of their rates."""
    rates = (each for before, each in pairwise(inputs) if before.rated)
    return frozenset(each.name for each in (*(each for each in inputs if each.rated), *rates))


def with_unit(number: float, variable: Variable) -> str:
    """Return a number with the variable's unit, without one for ratios; as it was written first, where that differs."""
    in_unit = f"{number:g}" if variable.unit == "1" else f"{number:g} {variable.unit}"
    return f"{number.text} ({in_unit})" if isinstance(number, WrittenNumber) else in_unit


def out_of_range(called: str, variable: Variable, number: float) -> str:
    """Return the sentence on a number that a variable does not accept, called by its full name; empty otherwise."""
    low, high = variable.accepted
    if (low is None or number >= low) and (high is None or number <= high):
        return ""
    allowed = f"at least {low:g}" if high is None else f"at most {high:g}"
    if low is not None and high is not None:
        allowed = f"between {low:g} and {high:g}"
    return f"{called} = {with_unit(number, variable)} is refused: it must be {allowed}"


def forgotten_inputs(undriven: Iterable[str], driven: Collection[str]) -> list[str]:
    """Return unconnected inputs that were probably forgotten.

    Components of a vector, such as `payload.force.x`, are excluded if another component is driven: a planar load leaves
    them at zero.
    """
    given = {_vector_of(name) for name in driven} - {""}
    return [name for name in undriven if _vector_of(name) not in given]


def _vector_of(name: str) -> str:
    """Return the name of the vector of a component; empty for other variables."""
    vector, _, axis = name.rpartition(".")
    return vector if axis in ("x", "y", "z") else ""
