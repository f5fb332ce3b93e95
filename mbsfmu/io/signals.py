"""Signals over time that drive inputs: steps, tables and smooth functions, with their compiled form."""

from __future__ import annotations

import logging
import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import parted
from mbsfmu.io.formats.table_format import place_of
from mbsfmu.io.trajectory import Trajectory, UnknownNameError, full_name
from mbsfmu.modelling import Data, DataError, Measured
from mbsfmu.modelling.measurement_units import NO_UNIT, UnitOfMeasurement, column_conversion


class SignalTable(NamedTuple):
    """A signal in the form of compiled code.

    Attributes
    ----------
    kind
        Its place in `SignalKind` of runtime.h.
    times
        Its events in s.
    values
        Numbers of its kind.
    initial
        Value before the first event, of one that jumps.
    """

    kind: int
    times: tuple[float, ...]
    values: tuple[float, ...]
    initial: float = 0.0


def check_times(times: tuple[float, ...], count: int, what: str) -> None:
    """Check the times of a table: ascending, and as many as its values.

    Raises
    ------
    ValueError
        When there is none, they do not ascend, or there are more or less.
    """
    if not times:
        raise ValueError("times is empty; a signal needs at least one point")
    if len(times) != count:
        raise ValueError(f"there are {len(times)} times but {count} {what}")
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ValueError(f"times is {times}; it must ascend")


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


_LOGGER = logging.getLogger(__name__)
Floats = NDArray[np.float64]


class StepSignal(Data):
    """Piecewise constant signal.

    Attributes
    ----------
    times
        Ascending times in s at which the signal jumps.
    values
        Value from each time on, in the unit of the input.
    initial
        Value before the first time.
    unit
        Unit of the values where that is not the one of the input.
    """

    largest: ClassVar[float] = sys.float_info.max  # a run that they end keeps what it has

    type: Literal["steps"] = "steps"
    times: Annotated[tuple[float, ...], Measured("s")]
    values: tuple[float, ...]
    initial: float = 0.0
    unit: str | None = None

    @model_validator(mode="after")
    def _matches(self) -> Self:
        check_times(self.times, len(self.values), "values")
        return self

    @property
    def events(self) -> tuple[float, ...]:
        """Times of the discontinuities."""
        return self.times

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        return self._value(bisect_left(self.times, time))

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        return self._value(bisect_right(self.times, time))

    def piece(self, passed: float) -> Callable[[float], float]:
        """Return the smooth continuation of the signal after all events up to a time in s."""
        value = self.after(passed)
        return lambda _: value

    def slope(self, time: float, passed: float) -> float:  # noqa: ARG002
        """Return the time derivative, without discontinuities."""
        return 0.0

    @property
    def table(self) -> SignalTable:
        """The signal as compiled code has it."""
        return SignalTable(0, self.times, self.values, self.initial)

    def mapped(self, factor: float, offset: float) -> StepSignal:
        """Return the signal with factor · value + offset for each value."""
        values = tuple(factor * value + offset for value in self.values)
        return StepSignal(times=self.times, values=values, initial=factor * self.initial + offset)

    def _value(self, passed: int) -> float:
        return self.values[passed - 1] if passed else self.initial


class LinearSignal(Data):
    """Piecewise linear signal, constant outside its points.

    Attributes
    ----------
    times
        Ascending times in s.
    values
        Values at these times, in the unit of the input.
    unit
        Unit of the values where that is not the one of the input.
    """

    largest: ClassVar[float] = sys.float_info.max  # a run that they end keeps what it has

    type: Literal["linear"] = "linear"
    times: Annotated[tuple[float, ...], Measured("s")]
    values: tuple[float, ...]
    unit: str | None = None

    @model_validator(mode="after")
    def _matches(self) -> Self:
        check_times(self.times, len(self.values), "values")
        return self

    @property
    def events(self) -> tuple[float, ...]:
        """Times at which the slope changes."""
        return self.times

    def before(self, time: float) -> float:
        """Return the value at a time in s."""
        return float(np.interp(time, self.times, self.values))

    def after(self, time: float) -> float:
        """Return the value at a time in s; the signal is continuous."""
        return self.before(time)

    def piece(self, passed: float) -> Callable[[float], float]:  # noqa: ARG002
        """Return the signal itself, which is continuous."""
        return self.after

    def slope(self, time: float, passed: float) -> float:  # noqa: ARG002
        """Return the time derivative after all events up to `passed` in s."""
        index = bisect_right(self.times, passed)
        if index in (0, len(self.times)):
            return 0.0
        rise, run = (each[index] - each[index - 1] for each in (self.values, self.times))
        return rise / run

    @property
    def table(self) -> SignalTable:
        """The signal as compiled code has it."""
        return SignalTable(1, self.times, self.values)

    def mapped(self, factor: float, offset: float) -> LinearSignal:
        """Return the signal with factor · value + offset for each value."""
        return LinearSignal(times=self.times, values=tuple(factor * value + offset for value in self.values))

    @classmethod
    def sampled(cls, function: Callable[[float], float], times: Sequence[float]) -> LinearSignal:
        """Return the piecewise linear signal through values of a function.

        Parameters
        ----------
        function
            Of the time in s; it is called here, once for each time.
        times
            Ascending times in s.
        """
        return cls(times=tuple(map(float, times)), values=tuple(float(function(time)) for time in times))

    @classmethod
    def ramp(cls, begin: float, end: float, height: float, offset: float = 0.0) -> LinearSignal:
        """Return a ramp by a height from one time in s to another."""
        return cls(times=(begin, end), values=(offset, offset + height))


class SineSignal(Data):
    """Sine signal with an optional linear frequency sweep (chirp).

    With τ = t - begin it is offset + amplitude · sin(phase + 2π (frequency · τ + sweep_rate · τ²/2)) from `begin` to
    `end`, and constant before and after.

    Attributes
    ----------
    amplitude, offset
        In the unit of the input.
    frequency
        In Hz.
    phase
        In rad.
    begin, end
        In s; `end` is None where it goes on.
    sweep_rate
        Change of the frequency with time, in Hz/s.
    """

    largest: ClassVar[float] = sys.float_info.max  # a run that they end keeps what it has

    type: Literal["sine"] = "sine"
    amplitude: float
    frequency: Annotated[float, Field(ge=0), Measured("Hz")]
    phase: Annotated[float, Measured("rad")] = 0.0
    offset: float = 0.0
    begin: Annotated[float, Measured("s")] = 0.0
    end: Annotated[float | None, Measured("s")] = None
    sweep_rate: float = 0.0

    @model_validator(mode="after")
    def _ends_behind_its_beginning(self) -> Self:
        if self.end is not None and self.end <= self.begin:
            raise ValueError(f"end is {self.end:g} s; it must be after begin, {self.begin:g} s")
        return self

    @property
    def events(self) -> tuple[float, ...]:
        """Times at which the slope changes."""
        return (self.begin,) if self.end is None else (self.begin, self.end)

    def before(self, time: float) -> float:
        """Return the value at a time in s."""
        return self._value(time, bisect_right(self.events, time))

    def after(self, time: float) -> float:
        """Return the value at a time in s; the signal is continuous."""
        return self.before(time)

    def piece(self, passed: float) -> Callable[[float], float]:
        """Return the smooth continuation of the signal after all events up to a time in s."""
        count = bisect_right(self.events, passed)
        return lambda time: self._value(time, count)

    def slope(self, time: float, passed: float) -> float:
        """Return the time derivative after all events up to `passed` in s."""
        if bisect_right(self.events, passed) != 1:
            return 0.0
        elapsed = time - self.begin
        rate = 2.0 * math.pi * (self.frequency + self.sweep_rate * elapsed)
        return self.amplitude * rate * math.cos(self._angle(elapsed))

    @property
    def table(self) -> SignalTable:
        """The signal as compiled code has it."""
        turns = (2.0 * math.pi * self.frequency, math.pi * self.sweep_rate)
        return SignalTable(2, self.events, (self.offset, self.amplitude, self.phase, *turns))

    def mapped(self, factor: float, offset: float) -> SineSignal:
        """Return the signal with factor · value + offset for each value."""
        changes = {"amplitude": factor * self.amplitude, "offset": factor * self.offset + offset}
        return SineSignal.from_dict({**self.to_dict(), **changes})

    def rate(self) -> SineSignal:
        """Return the time derivative as a signal.

        Raises
        ------
        ValueError
            When that is no sine from the start of runs on; the sentence says why.
        """
        if self.begin > 0.0 or self.end is not None:
            raise ValueError(
                "it begins after t = 0 or ends, where it bends; a sine has a rate that goes on all the time"
            )
        if self.sweep_rate:
            raise ValueError(f"its frequency changes by {self.sweep_rate:g} Hz/s; a sine has a rate where that is 0")
        amplitude, phase = 2.0 * math.pi * self.frequency * self.amplitude, self.phase + 0.5 * math.pi
        return SineSignal(amplitude=amplitude, frequency=self.frequency, phase=phase, begin=self.begin)

    def _value(self, time: float, passed: int) -> float:
        if passed != 1:
            time = self.begin if passed == 0 or self.end is None else self.end
        return self.offset + self.amplitude * math.sin(self._angle(time - self.begin))

    def _angle(self, elapsed: float) -> float:
        rate, growth = 2.0 * math.pi * self.frequency, math.pi * self.sweep_rate
        return self.phase + elapsed * (rate + growth * elapsed)


def read_signal(text: str) -> TableSignal:
    """Return a signal from a table, as given on the command line.

    Parameters
    ----------
    text
        `table.csv:column`, or a file of another format; straight between the times, and with a jump where two
        rows have one time. With `:steps` behind it, each
        value holds until the next time. Values of a column without a unit are in the unit of the input; others are
        converted to it where the signal drives one.

    Raises
    ------
    InputError
        When it does not read so, or the file has no such column.
    """
    rest, kind = _file_and_kind(text)
    colons = [place for place, letter in enumerate(rest) if letter == ":"]
    end = next((place for place in colons if Path(rest[:place]).is_file()), max(colons, default=len(rest)))
    file, colon, column = rest[:end], rest[end : end + 1], rest[end + 1 :]
    if not colon or not file or not column:
        raise InputError(f"the signal '{text}' is refused: it must read table.csv:column or table.csv:column:steps")
    table = Trajectory.from_file(file)
    try:
        return _signal_of(table, column, kind)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def read_signals(text: str, names: Collection[str]) -> dict[str, TableSignal]:
    """Read the signals of all columns of a table that are called as an input; the log names those that are left out.

    Parameters
    ----------
    text
        `table.csv`, or a file of another format; straight between the times. With `:steps` behind it, each value holds
        until the next time. Units as of `read_signal`. `name=table.csv:column` is the signal of one input.
    names
        What inputs are called; a column may be called by the trailing part of such a name.

    Raises
    ------
    InputError
        When there is no such file, no column is called as an input, or two as the same one.
    """
    file, kind = _file_and_kind(text)
    one, equals, column = parted(text, "=")
    if equals and not Path(file).is_file():
        return {full_name(one.strip(), names, "input"): read_signal(column.strip())}
    table = Trajectory.from_file(file)
    found: dict[str, str] = {}
    for column in table.names:
        try:
            name = full_name(column, names, "input")
        except UnknownNameError:
            continue
        if name in found:
            raise InputError(f"{file}: the columns '{found[name]}' and '{column}' are both {name}; leave one out")
        found[name] = column
    if not found:
        raise InputError(f"{file} has no column of an input; inputs are {', '.join(names) or 'none'}")
    if left := [column for column in table.names if column not in found.values()]:
        _LOGGER.warning("%s: columns of variables that are no free inputs are ignored: %s", file, ", ".join(left))
    try:
        return {name: _signal_of(table, column, kind) for name, column in found.items()}
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _file_and_kind(text: str) -> tuple[str, str]:
    """Return a text without what it says of how values are connected, and that."""
    rest, _, last = text.rpartition(":")
    return (rest, last) if rest and last in ("steps", "linear") else (text, "linear")


def _signal_of(table: Trajectory, column: str, kind: str) -> TableSignal:
    """Return the signal that a column of a table is."""
    values = table[column]
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        where = f"{place_of(table.lines, row)}: the column '{column}' at {table.time[row]:.9g} s"
        raise InputError(f"{where} is {values[row]:g} or empty; a signal needs a number at each of its times")
    unit = None if table.unit(column) in NO_UNIT else table.unit(column)
    if kind == "steps":
        last = np.append(np.diff(table.time) > 0.0, True)  # the value after a jump holds
        held = tuple(values[last].tolist())
        return StepSignal(times=tuple(table.time[last].tolist()), values=held, initial=float(values[0]), unit=unit)
    return straight_signal(table.time, values, unit)


def straight_signal(times: Floats, values: Floats, unit: str | None = None) -> LinearSignal | PolynomialSignal:
    """Return a signal that is straight between points and constant outside, with jumps where two have one time.

    Parameters
    ----------
    times
        In s, ascending; of more than two equal ones the first value is that before the jump, the last one that after.
    values
        At these times, of the same shape.
    unit
        Of the values where that is not the one of the input.
    """
    rises = np.diff(times) > 0.0
    if rises.all():
        return LinearSignal(times=tuple(times.tolist()), values=tuple(values.tolist()), unit=unit)
    before, after = values[np.append(True, rises)], values[np.append(rises, True)]
    places = times[np.append(rises, True)]
    slopes = [*((before[1:] - after[:-1]) / np.diff(places)).tolist(), 0.0]
    pieces = [(float(before[0]),), *zip(after.tolist(), slopes, strict=True)]
    return PolynomialSignal(times=(float(places[0]) - 1.0, *places.tolist()), coefficients=tuple(pieces), unit=unit)


TableSignal: TypeAlias = "StepSignal | LinearSignal | PolynomialSignal"
"""What a column of a table is."""


def in_unit(signal: Any, unit: UnitOfMeasurement | str, name: str) -> Any:
    """Return a signal in the unit of the variable that it drives; one that says no unit stays as it is.

    Raises
    ------
    InputError
        When its unit cannot be converted; the sentence begins with the name of the variable.
    """
    if getattr(signal, "unit", None) is None:
        return signal
    try:
        way = column_conversion(signal.unit, unit)
    except InputError as error:
        raise InputError(f"{name}: its signal is in {signal.unit}: {error}") from None
    return signal.mapped(way.factor, way.offset)


AnySignal = Annotated[
    StepSignal | LinearSignal | SineSignal | RestToRestSignal | SplineSignal | PolynomialSignal,
    Field(discriminator="type"),
]
"""Any signal, or a dictionary with the `type` of one."""


def rate_of(signal: AnySignal, described: str) -> SineSignal | PolynomialSignal:
    """Return the time derivative of a signal.

    Parameters
    ----------
    signal
        The signal.
    described
        What it is, for a message.

    Raises
    ------
    DataError
        When it has none everywhere; the sentence says why.
    """
    if isinstance(signal, StepSignal | LinearSignal):
        why = "it jumps" if isinstance(signal, StepSignal) else "it bends, so that its rate jumps"
        raise DataError(
            f"the signal of {described} is of type {signal.type}: {why}; take rest-to-rest, spline or sine, or give "
            "its rates as signals too"
        )
    try:
        return signal.rate()
    except ValueError as error:
        raise DataError(f"the signal of {described} is refused: {error}") from None
