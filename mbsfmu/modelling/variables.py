"""Variables of a system: name, unit, causality, bounds, description."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from mbsfmu.modelling.errors import InputError
from mbsfmu.modelling.measured_numbers import WrittenNumber, number_in, numbers_in
from mbsfmu.modelling.measurement_units import UnitOfMeasurement


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
