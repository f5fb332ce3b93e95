"""Piecewise polynomial signals with derivatives."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from mbsfmu.io.signal_tables import SignalTable, check_times
from mbsfmu.modelling import Data

DEGREE = 5
"""The highest degree of the pieces."""
_ROUND_OFF = 1e-9
"""Relative discontinuity up to which a signal has a derivative."""
_MINIMUM_JERK = (10.0, -15.0, 6.0)
"""Coefficients of u³, u⁴ and u⁵ of the polynomial from 0 to 1 whose first and second derivative vanish at both ends."""


class PolynomialSignal(Data):
    """Piecewise polynomial signal in the time since the start of each piece.

    Attributes
    ----------
    times
        Ascending times in s at which pieces begin; the first one is there before, too, and the last one goes on.
    coefficients
        For each, the factors of 1, t, t² and so on, up to t⁵.
    unit
        Unit of the values where that is not the one of the input.
    """

    largest: ClassVar[float] = sys.float_info.max

    type: Literal["polynomial"] = "polynomial"
    times: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    unit: str | None = None

    @model_validator(mode="after")
    def _matches(self) -> Self:
        check_times(self.times, len(self.coefficients), "pieces")
        for each in self.coefficients:
            if not 1 <= len(each) <= DEGREE + 1:
                raise ValueError(f"a piece has {len(each)} coefficients; it must have 1 to {DEGREE + 1}")
        return self

    @property
    def events(self) -> tuple[float, ...]:
        """Start times of the pieces."""
        return self.times

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        return self._value(bisect_left(self.times, time), time)

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        return self._value(bisect_right(self.times, time), time)

    def piece(self, passed: float) -> Callable[[float], float]:
        """Return the piece that is active after all events up to a time in s."""
        number = bisect_right(self.times, passed)
        return lambda time: self._value(number, time)

    def slope(self, time: float, passed: float) -> float:
        """Return the time derivative after all events up to `passed` in s."""
        return self._derivative.piece(passed)(time)

    @property
    def table(self) -> SignalTable:
        """The signal as compiled code has it."""
        padded = (each for piece in self.coefficients for each in (*piece, *[0.0] * (DEGREE + 1 - len(piece))))
        return SignalTable(3, self.times, tuple(padded))

    def mapped(self, factor: float, offset: float) -> PolynomialSignal:
        """Return the signal with factor · value + offset for each value."""
        scaled = [[factor * each for each in piece] for piece in self.coefficients]
        coefficients = tuple((first + offset, *rest) for first, *rest in scaled)
        return PolynomialSignal(times=self.times, coefficients=coefficients)

    def rate(self) -> PolynomialSignal:
        """Return the time derivative as a signal.

        Raises
        ------
        ValueError
            When it jumps; the sentence says where.
        """
        for time in self.times[1:]:
            before, after = self.before(time), self.after(time)
            if abs(after - before) > _ROUND_OFF * max(1.0, abs(before), abs(after)):
                raise ValueError(f"it jumps from {before:g} to {after:g} at t = {time:g} s, and has no rate there")
        return self._derivative

    @cached_property
    def _derivative(self) -> PolynomialSignal:
        """Return the derivative of each piece."""
        slopes = (tuple(power * each for power, each in enumerate(piece))[1:] or (0.0,) for piece in self.coefficients)
        return PolynomialSignal(times=self.times, coefficients=tuple(slopes))

    def _value(self, number: int, time: float) -> float:
        piece = max(number, 1) - 1
        since, value = time - self.times[piece], 0.0
        for coefficient in reversed(self.coefficients[piece]):
            value = value * since + coefficient
        return value


class _Through(Data):
    """Base of polynomial signals through points, constant outside."""

    largest: ClassVar[float] = sys.float_info.max

    times: tuple[float, ...]
    values: tuple[float, ...]

    @model_validator(mode="after")
    def _matches(self) -> Self:
        check_times(self.times, len(self.values), "values")
        return self

    def _pieces(self) -> Sequence[tuple[float, ...]]:
        raise NotImplementedError

    @cached_property
    def polynomial(self) -> PolynomialSignal:
        """The same as a piecewise polynomial signal."""
        pieces = ((self.values[0],), *self._pieces(), (self.values[-1],))
        return PolynomialSignal(times=(self.times[0] - 1.0, *self.times), coefficients=pieces)

    @property
    def events(self) -> tuple[float, ...]:
        """Times of the points."""
        return self.times

    def before(self, time: float) -> float:
        """Return the value at a time in s; the signal is continuous."""
        return self.polynomial.before(time)

    def after(self, time: float) -> float:
        """Return the value at a time in s."""
        return self.polynomial.after(time)

    def piece(self, passed: float) -> Callable[[float], float]:
        """Return the piece that is active after all events up to a time in s."""
        return self.polynomial.piece(passed)

    def slope(self, time: float, passed: float) -> float:
        """Return the time derivative after all events up to `passed` in s."""
        return self.polynomial.slope(time, passed)

    @property
    def table(self) -> SignalTable:
        """The signal as compiled code has it."""
        return self.polynomial.table

    def mapped(self, factor: float, offset: float) -> Self:
        """Return the signal with factor · value + offset for each value."""
        return self.model_copy(update={"values": tuple(factor * value + offset for value in self.values)})

    def rate(self) -> PolynomialSignal:
        """Return its derivative by time."""
        return self.polynomial.rate()


class RestToRestSignal(_Through):
    """Minimum-jerk signal between values by u³ (10 − 15 u + 6 u²), u from 0 to 1, with zero velocity at each.

    Its first and second derivative are continuous and vanish at the points.

    Attributes
    ----------
    times
        Ascending times in s.
    values
        Values at these times, in the unit of the input.
    """

    type: Literal["rest-to-rest"] = "rest-to-rest"

    def _pieces(self) -> Sequence[tuple[float, ...]]:
        moves = zip(pairwise(self.times), pairwise(self.values), strict=True)
        return [
            (one, 0.0, 0.0, *((other - one) * c / (end - begin) ** p for p, c in enumerate(_MINIMUM_JERK, start=3)))
            for (begin, end), (one, other) in moves
        ]


class SplineSignal(_Through):
    """Cubic spline signal through points, with zero velocity at its ends, where its second derivative is discontinuous.

    Attributes
    ----------
    times
        Ascending times in s.
    values
        Values at these times, in the unit of the input.
    """

    type: Literal["spline"] = "spline"

    def _pieces(self) -> Sequence[tuple[float, ...]]:
        if len(self.times) < 2:
            return []
        from scipy.interpolate import CubicSpline  # noqa: PLC0415 - it takes long to import, and few have splines

        found = CubicSpline(np.array(self.times), np.array(self.values), bc_type="clamped").c[::-1].T
        return [tuple(piece) for piece in found.tolist()]
