"""Base class of integration rules: rates at the end of a step from the values there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.registry import Registry
from mbsfmu.modelling import closest_match

Array = NDArray[Any]


class Step(NamedTuple):
    """A time step.

    Attributes
    ----------
    size
        h in s.
    before
        Size in s of the previous step; 0 without a history: at the start, and after a change of coordinates.
    """

    size: Array
    before: Array


class FirstOrderValues(NamedTuple):
    """First-order variables at one end of a step, each array of shape (k,).

    Attributes
    ----------
    value, rate
        x and ẋ.
    history
        Earlier rates of the history; the rate itself without a history.
    """

    value: Array
    rate: Array
    history: Sequence[Array] = ()


class PositionValues(NamedTuple):
    """Positions at one end of a step, each array of shape (k,).

    Attributes
    ----------
    position, velocity, acceleration
        z, ż and z̈.
    history
        Earlier rates of the history: velocities first, then accelerations; `velocity` and `acceleration` without a
        history.
    """

    position: Array
    velocity: Array
    acceleration: Array
    history: Sequence[Array] = ()


@dataclass(frozen=True)
class Rule(ABC):
    """A rule that turns a step of differential equations into equations for the values at its end.

    The equations of motion hold at the end of the step; the unknowns are positions and first-order variables. A rule
    gives their rates by NumPy functions that are traced: arithmetic and ufuncs, no branch on a value. These functions
    are linear in the values at the end. Use differences of values rather than sums, for less round-off.

    The history of a rule consists of rates: earlier ones, means, or auxiliary ones. Where rates are discontinuous,
    because an input is, the history receives the same change.

    A derived class is registered as a solver by its name. Its fields are numbers with defaults; they are the options
    `name:field=value`.
    """

    name: ClassVar[str]
    """Name of the solver."""
    remembered: ClassVar[int] = 0
    """Number of earlier rates in the history of each first-order variable."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            RULES.add(cls.name, cls)

    def __str__(self) -> str:
        options = (f":{field.name}={float(getattr(self, field.name))!r}" for field in fields(self))
        return self.name + "".join(options)

    @property
    def remembered_motion(self) -> tuple[int, int]:
        """Number of earlier velocities and accelerations in the history of each position."""
        return self.remembered, self.remembered

    @abstractmethod
    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ at the end of a step from x there."""

    def motion(self, end: Array, begin: PositionValues, step: Step) -> tuple[Array, Array]:
        """Return ż and z̈ at the end of a step from z there; by default ż has the rate z̈."""
        velocities, accelerations = self._parted(begin)
        velocity = self.rate(end, velocities, step)
        return velocity, self.rate(velocity, accelerations, step)

    def history(self, end: FirstOrderValues, begin: FirstOrderValues, step: Step) -> Sequence[Array]:  # noqa: ARG002
        """Return the history after a step that ends at `end`."""
        return ()

    def motion_history(self, end: PositionValues, begin: PositionValues, step: Step) -> Sequence[Array]:
        """Return the history of positions after a step that ends at `end`, velocities first."""
        before, after = self._parted(begin), self._parted(end)
        return [each for k in range(2) for each in self.history(after[k], before[k], step)]

    def _parted(self, motion: PositionValues) -> tuple[FirstOrderValues, FirstOrderValues]:
        """Return positions with velocities, and velocities with accelerations, as first-order variables."""
        position, velocity, acceleration, history = motion
        return (
            FirstOrderValues(position, velocity, history[: self.remembered]),
            FirstOrderValues(velocity, acceleration, history[self.remembered :]),
        )


RULES: Registry[type[Rule]] = Registry("rule", "trapezoidal", replaced=True)
"""All rules by name."""


def rule_names() -> tuple[str, ...]:
    """Return the names of all rules."""
    return RULES.names()


def rule_texts() -> tuple[str, ...]:
    """Return the names of all rules with their options and defaults."""
    return tuple(str(RULES.find(name)()) for name in RULES.names())


def find_rule(text: str) -> Rule | None:
    """Return the rule for `name` or `name:field=value`; None if there is no rule of that name.

    Raises
    ------
    InputError
        If the rule has no such option, or its value is not allowed.
    """
    name, *options = text.split(":")
    kind = RULES.get(name)
    if kind is None:
        return None
    allowed = [field.name for field in fields(kind)]
    values = {}
    for option in options:
        field, _, number = option.partition("=")
        if field not in allowed:
            raise InputError(f"the solver '{name}' has no option '{field}'; {closest_match(field, allowed)}")
        try:
            values[field] = float(number)
        except ValueError:
            raise InputError(f"'{option}' of the solver '{name}' is refused: it must read {field}=number") from None
    return kind(**values)
