"""Signals over time that drive inputs, with both values where they jump."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from mbsfmu.data import Data
from mbsfmu.errors import InputError
from mbsfmu.trajectory import Trajectory


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

    largest: ClassVar[float] = sys.float_info.max  # a run that they end keeps what it has

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

    def piece(self, passed: float) -> Callable[[float], float]:
        """Return the signal as it goes on, smoothly, where all events up to a time in s have passed and no other."""
        value = self.after(passed)
        return lambda _: value

    def mapped(self, factor: float, offset: float) -> StepSignal:
        """Return the signal with factor · value + offset for each value."""
        values = tuple(factor * value + offset for value in self.values)
        return StepSignal(times=self.times, values=values, initial=factor * self.initial + offset)

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

    largest: ClassVar[float] = sys.float_info.max  # a run that they end keeps what it has

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

    def piece(self, passed: float) -> Callable[[float], float]:  # noqa: ARG002
        """Return the signal: as it does not jump, it is the same whichever events have passed."""
        return self.after

    def mapped(self, factor: float, offset: float) -> LinearSignal:
        """Return the signal with factor · value + offset for each value."""
        return LinearSignal(times=self.times, values=tuple(factor * value + offset for value in self.values))


def read_signal(text: str) -> StepSignal | LinearSignal:
    """Read a signal from a table, as it is asked for on the command line.

    Parameters
    ----------
    text
        `table.csv:column`, or a Parquet file; straight between the times. With `:steps` behind it, each value holds
        until the next time. Values are in the unit of the input.

    Raises
    ------
    InputError
        When it does not read so, or the file has no such column.
    """
    rest, _, last = text.rpartition(":")
    kind = last if last in ("steps", "linear") and ":" in rest else "linear"
    file, colon, column = (rest if kind == last and rest else text).rpartition(":")
    if not colon or not file or not column:
        raise InputError(f"the signal '{text}' is refused: it must read table.csv:column or table.csv:column:steps")
    table = Trajectory.from_file(file)
    try:
        times, values = tuple(table.time.tolist()), tuple(table[column].tolist())
        if kind == "steps":
            return StepSignal(times=times, values=values, initial=values[0])
        return LinearSignal(times=times, values=values)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


AnySignal = Annotated[StepSignal | LinearSignal, Field(discriminator="type")]


def _check_table(times: tuple[float, ...], values: tuple[float, ...]) -> None:
    if not times:
        raise ValueError("times is empty; a signal needs at least one point")
    if len(times) != len(values):
        raise ValueError(f"there are {len(times)} times but {len(values)} values")
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ValueError(f"times is {times}; it must ascend")
