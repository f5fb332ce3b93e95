"""Signals over time that drive inputs, with both values where they jump."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.data import Data


class StepSignal(Data):
    """A signal that keeps each value until the next time.

    Attributes
    ----------
    times
        Ascending times in s at which the signal jumps.
    values
        Value from each time on, in the unit of the input.
    initial
        Value before the first time.
    """

    type: Literal["steps"] = "steps"
    times: tuple[float, ...]
    values: tuple[float, ...]
    initial: float = 0.0

    @model_validator(mode="after")
    def _matches(self) -> Self:
        _check_table(self.times, self.values)
        return self

    @property
    def events(self) -> tuple[float, ...]:
        """Times at which the signal jumps."""
        return self.times

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        return self._value(bisect_left(self.times, time))

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        return self._value(bisect_right(self.times, time))

    def _value(self, passed: int) -> float:
        return self.values[passed - 1] if passed else self.initial


class LinearSignal(Data):
    """A signal that runs straight between points, and keeps its first and last value outside.

    Attributes
    ----------
    times
        Ascending times in s.
    values
        Values at these times, in the unit of the input.
    """

    type: Literal["linear"] = "linear"
    times: tuple[float, ...]
    values: tuple[float, ...]

    @model_validator(mode="after")
    def _matches(self) -> Self:
        _check_table(self.times, self.values)
        return self

    @property
    def events(self) -> tuple[float, ...]:
        """Times at which the slope changes."""
        return self.times

    def before(self, time: float) -> float:
        """Return the value at a time in s."""
        return float(np.interp(time, self.times, self.values))

    def after(self, time: float) -> float:
        """Return the value at a time in s: it does not jump."""
        return self.before(time)


AnySignal = Annotated[StepSignal | LinearSignal, Field(discriminator="type")]


def _check_table(times: tuple[float, ...], values: tuple[float, ...]) -> None:
    if not times:
        raise ValueError("times is empty; a signal needs at least one point")
    if len(times) != len(values):
        raise ValueError(f"there are {len(times)} times but {len(values)} values")
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ValueError(f"times is {times}; it must ascend")
