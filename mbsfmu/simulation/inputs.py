"""The inputs of a simulation: set by hand, or following a signal until then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mbsfmu.errors import InputError
from mbsfmu.formulations.system import starts
from mbsfmu.formulations.workspace import Floats
from mbsfmu.signals import AnySignal
from mbsfmu.variables import Variable


class InputCourse:
    """Values of all inputs over a stretch of time without events; called with a time in s.

    Parameters
    ----------
    values
        What those that follow no signal are, shape (number of inputs,).
    signals
        Signals that are followed, by the input's index.
    passed
        All events up to this time in s have passed, and no other.
    """

    def __init__(self, values: Floats, signals: Mapping[int, AnySignal], passed: float) -> None:
        self._fixed = values.copy()
        self._signals, self._passed = signals, passed
        self._pieces = [(index, signal.piece(passed)) for index, signal in signals.items()]

    def __call__(self, time: float) -> Floats:
        """Return the values at a time."""
        result = self._fixed.copy()
        for index, piece in self._pieces:
            result[index] = piece(time)
        return result

    def slopes(self, time: float) -> Floats:
        """Return their derivatives by time."""
        result = np.zeros(len(self._fixed))
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

    Attributes
    ----------
    values
        Values set by hand, start values before; shape (number of inputs,).
    held
        Which inputs were set by hand: these keep their value and follow no signal.
    signals
        Signals by the input's index.

    Raises
    ------
    InputError
        When a signal drives what is no input.
    """

    def __init__(self, variables: Sequence[Variable], signals: Mapping[str, AnySignal]) -> None:
        names = [variable.name for variable in variables]
        for name in signals:
            if name not in names:
                raise InputError(
                    f"a signal drives '{name}', which is no input; inputs are {', '.join(names) or 'none'}"
                )
        self._variables = variables
        self.signals = {names.index(name): signal for name, signal in signals.items()}
        self.reset()

    def starting(self) -> tuple[Variable, ...]:
        """Return the inputs with the start values that they have: those of their signals at time zero."""
        driven = {index: signal.after(0.0) for index, signal in self.signals.items()}
        return tuple(replace(each, start=driven.get(index, each.start)) for index, each in enumerate(self._variables))

    def reset(self) -> None:
        """Go back to start values; signals are followed again."""
        self.values = starts(self._variables)
        self.held = np.zeros(len(self._variables), dtype=bool)

    def set(self, index: int, value: float) -> None:
        """Set an input by hand."""
        self.values[index] = value
        self.held[index] = True

    @property
    def undriven(self) -> tuple[str, ...]:
        """Names of the inputs that follow no signal and were not set."""
        return tuple(
            variable.name
            for index, variable in enumerate(self._variables)
            if not self.held[index] and index not in self.signals
        )

    def over(self, passed: float) -> InputCourse:
        """Return the values over a stretch of time without events, as a function of the time in s.

        Which side of a jump a step sees follows from where the step begins, and not from the times inside it: these
        may miss the jump by round-off on either side.

        Parameters
        ----------
        passed
            All events up to this time in s have passed, and no other.
        """
        followed = {index: self.signals[index] for index in self.signals if not self.held[index]}
        return InputCourse(self.values, followed, passed)

    def next_event(self, begin: float, end: float, otherwise: float) -> float:
        """Return when a followed signal jumps or bends first inside (begin, end) in s; `otherwise` where none does."""
        followed = (self.signals[index].events for index in self.signals if not self.held[index])
        firsts = (events[bisect_right(events, begin)] for events in followed if events[-1] > begin)
        return min((first for first in firsts if first < end), default=otherwise)
