"""Inputs of a simulation: set manually, or driven by a signal."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.io.signals import AnySignal, in_unit, rate_of
from mbsfmu.modelling import DataError
from mbsfmu.modelling.variables import Variable, forgotten_inputs
from mbsfmu.systems.system import starts
from mbsfmu.tracing.workspace import Floats


def run_on(values: Floats, rated: NDArray[np.bool_], passed: float) -> Floats:
    """Return inputs after a time in s, extrapolated by their rates."""
    result = values.copy()
    for index in np.flatnonzero(rated):
        second = values[index + 2] if rated[index + 1] else 0.0
        result[index] += passed * (values[index + 1] + 0.5 * passed * second)
    return result


class InputHistory:
    """Values of all inputs over an interval without events, as a function of the time in s.

    Parameters
    ----------
    values
        What those that follow no signal are at a time, shape (number of inputs,).
    since
        That time in s.
    rated
        Which of the inputs have a rate, by which they run on: the next input.
    signals
        Signals that are followed, by the input's index.
    passed
        All events up to this time in s have passed, and no other.
    """

    def __init__(
        self, values: Floats, since: float, rated: NDArray[np.bool_], signals: Mapping[int, AnySignal], passed: float
    ) -> None:
        self._fixed, self._since, self._rated = values.copy(), since, rated
        self._signals, self._passed = signals, passed
        self._pieces = [(index, signal.piece(passed)) for index, signal in signals.items()]

    def __call__(self, time: float) -> Floats:
        """Return the values at a time."""
        result = run_on(self._fixed, self._rated, time - self._since)
        for index, piece in self._pieces:
            result[index] = piece(time)
        return result

    def slopes(self, time: float) -> Floats:
        """Return their derivatives by time."""
        running = run_on(self._fixed, self._rated, time - self._since)
        result = np.where(self._rated, np.append(running, 0.0)[1:], 0.0)
        for index, signal in self._signals.items():
            result[index] = signal.slope(time, self._passed)
        return result


class InputValues:
    """Values of all inputs over time.

    Parameters
    ----------
    variables
        The inputs.
    signals
        Signals by the input's name.
    connected
        What else of the same systems connections drive, as `system.variable`.
    given
        Inputs, among others, that were given a value to start with, as `system.variable`.

    Attributes
    ----------
    values
        Values set by hand, start values before; shape (number of inputs,).
    held
        Which inputs were set by hand: these keep their value and follow no signal.
    signals
        Signals by the input's index.
    since
        Time in s at which what was set by hand has these values; what has a rate runs on from there.

    Raises
    ------
    InputError
        When a signal drives what is no input.
    DataError
        When a signal has no rate, and the input has one.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        signals: Mapping[str, AnySignal],
        connected: Sequence[str] = (),
        given: Collection[str] = (),
    ) -> None:
        names = [variable.name for variable in variables]
        for name in signals:
            if name not in names:
                raise InputError(
                    f"a signal drives '{name}', which is no input; inputs are {', '.join(names) or 'none'}"
                )
        self._variables, self._connected, self._given = variables, connected, given
        driven = {
            names.index(name): in_unit(signal, variables[names.index(name)].measured_unit, name)
            for name, signal in signals.items()
        }
        self.signals = _with_rates(variables, driven)
        self._rated = np.array([variable.rated for variable in variables], dtype=bool)
        self.reset()

    def starting(self) -> tuple[Variable, ...]:
        """Return the inputs with their start values: those of their signals at time zero, 0 where there are none."""
        driven = {index: signal.after(0.0) for index, signal in self.signals.items()}
        return tuple(
            replace(each, start=driven.get(index, each.start or 0.0)) for index, each in enumerate(self._variables)
        )

    def reset(self) -> None:
        """Reset to start values; signals are active again."""
        self.values = starts(self._variables)
        self.held = np.zeros(len(self._variables), dtype=bool)
        self.since = 0.0

    def advance(self, time: float) -> None:
        """Extrapolate inputs with rates to a time in s."""
        self.values, self.since = run_on(self.values, self._rated, time - self.since), time

    def set(self, index: int, value: float) -> None:
        """Set an input manually."""
        self.values[index] = value
        self.held[index] = True

    def decides_start(self, index: int) -> bool:
        """Return whether an input is part of prescribed motion, which the start must satisfy."""
        return bool(self._rated[index] or (index and self._rated[index - 1]))

    def check_rates(self, given: Collection[str] = ()) -> None:
        """Check that no rate was set by hand, or given a start value, beside the signal that it follows from.

        Parameters
        ----------
        given
            Names of inputs that were given start values.

        Raises
        ------
        InputError
            When one was.
        """
        for index, (variable, rate) in enumerate(pairwise(self._variables)):
            follows = variable.rated and index in self.signals and not self.held[index]
            if follows and (self.held[index + 1] or rate.name in given):
                raise InputError(
                    f"'{rate.name}' has a value of its own, but is the rate of '{variable.name}', which follows a "
                    "signal; give both a value, or neither"
                )

    @property
    def undriven(self) -> tuple[str, ...]:
        """Names of the inputs that follow no signal and were not set."""
        return tuple(
            variable.name
            for index, variable in enumerate(self._variables)
            if not self.held[index] and index not in self.signals
        )

    def forgotten(self, references: Mapping[str, str]) -> list[str]:
        """Return the unconnected inputs that were probably forgotten."""
        undriven = {references.get(name, name): name for name in self.undriven}
        every = {references.get(each.name, each.name) for each in self._variables}
        left = forgotten_inputs(undriven, {*self._connected, *(every - undriven.keys())})
        return [undriven[each] for each in left if each not in self._given]

    def over(self, passed: float) -> InputHistory:
        """Return the values over an interval without events, as a function of the time in s.

        The side of a discontinuity follows from the start of the step, not from times within it, which may miss the
        discontinuity by round-off.

        Parameters
        ----------
        passed
            All events up to this time in s have passed, and no other.
        """
        followed = {index: self.signals[index] for index in self.signals if not self.held[index]}
        return InputHistory(self.values, self.since, self._rated, followed, passed)

    def next_event(self, begin: float, end: float, otherwise: float) -> float:
        """Return the first event of an active signal inside (begin, end) in s; `otherwise` without one."""
        followed = (self.signals[index].events for index in self.signals if not self.held[index])
        firsts = (events[bisect_right(events, begin)] for events in followed if events and events[-1] > begin)
        return min((first for first in firsts if first < end), default=otherwise)


def _with_rates(variables: Sequence[Variable], signals: Mapping[int, AnySignal]) -> dict[int, AnySignal]:
    """Return signals plus the rate signals of inputs with rates.

    Raises
    ------
    DataError
        When such a rate is not known, or has a signal of its own beside an input that has none.
    """
    result = dict(signals)
    for index, variable in enumerate(variables):
        if not variable.rated:
            continue
        rate = variables[index + 1].name
        if index in result and index + 1 not in result:
            result[index + 1] = rate_of(result[index], f"'{variable.name}'")
        elif index not in result and index + 1 in result:
            raise DataError(f"'{rate}' has a signal, but '{variable.name}' has none; give that one, its rate follows")
    return result
