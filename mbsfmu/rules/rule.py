"""What a rule of integration is: how rates at the end of a step follow from the values there."""

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
    """A step in time.

    Attributes
    ----------
    size
        h in s.
    before
        Size in s of the step before; 0 where nothing is remembered: at the start, and where a motion is described anew.
    """

    size: Array
    before: Array


class FirstOrderValues(NamedTuple):
    """Quantities of first order at one end of a step, each array of shape (k,).

    Attributes
    ----------
    value, rate
        x and ẋ.
    history
        The earlier rates that the rule remembers; the rate itself where nothing is remembered.
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
        The earlier rates that the rule remembers: velocities first, then accelerations; those of `velocity` and
        `acceleration` where nothing is remembered.
    """

    position: Array
    velocity: Array
    acceleration: Array
    history: Sequence[Array] = ()


@dataclass(frozen=True)
class Rule(ABC):
    """A rule that makes a time step of differential equations a set of equations for the values at its end.

    The equations of motion hold at the end of the step; its unknowns are positions and values. A rule says how their
    rates follow, in NumPy functions that are traced: arithmetic and ufuncs, no branch on a value. These functions are
    linear in the values at the end. Differences of values round off less than sums of them.

    What a rule remembers of steps before are rates: earlier ones, means, or others that go along with the rates. Where
    the rates jump, because an input does, these jump with them.

    A class of this kind is known as a solver by its name as soon as it is defined. Its fields are numbers with default
    values, and its options, `name:field=value`.
    """

    name: ClassVar[str]
    """Name of the solver."""
    remembered: ClassVar[int] = 0
    """How many earlier rates are remembered of each quantity of first order."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            RULES.add(cls.name, cls)

    def __str__(self) -> str:
        options = (f":{field.name}={float(getattr(self, field.name))!r}" for field in fields(self))
        return self.name + "".join(options)

    @property
    def remembered_motion(self) -> tuple[int, int]:
        """How many earlier velocities and accelerations are remembered of each position."""
        return self.remembered, self.remembered

    @abstractmethod
    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ at the end of a step from x there."""

    def motion(self, end: Array, begin: PositionValues, step: Step) -> tuple[Array, Array]:
        """Return ż and z̈ at the end of a step from z there; by default ż is a quantity with the rate z̈."""
        velocities, accelerations = self._parted(begin)
        velocity = self.rate(end, velocities, step)
        return velocity, self.rate(velocity, accelerations, step)

    def history(self, end: FirstOrderValues, begin: FirstOrderValues, step: Step) -> Sequence[Array]:  # noqa: ARG002
        """Return what is remembered after a step that has led to `end`."""
        return ()

    def motion_history(self, end: PositionValues, begin: PositionValues, step: Step) -> Sequence[Array]:
        """Return what is remembered of positions after a step that has led to `end`, velocities first."""
        before, after = self._parted(begin), self._parted(end)
        return [each for k in range(2) for each in self.history(after[k], before[k], step)]

    def _parted(self, motion: PositionValues) -> tuple[FirstOrderValues, FirstOrderValues]:
        """Return positions with their velocities, and velocities with their accelerations, as quantities."""
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
    """Return the names of all rules with their options as these are by default."""
    return tuple(str(RULES.find(name)()) for name in RULES.names())


def find_rule(text: str) -> Rule | None:
    """Return the rule that is called so, as `name` or `name:field=value`; None where there is none of that name.

    Raises
    ------
    InputError
        When an option is not one of the rule, or its value not allowed.
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
