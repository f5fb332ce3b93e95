"""The inputs of a simulation: set by hand, or following a signal until then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mbsfmu.errors import InputError
from mbsfmu.formulations.system import starts
from mbsfmu.formulations.workspace import Floats
from mbsfmu.signals import AnySignal
from mbsfmu.variables import Variable


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

    def over(self, passed: float) -> Callable[[float], Floats]:
        """Return the values over a stretch of time without events, as a function of the time in s.

        Which side of a jump a step sees follows from where the step begins, and not from the times inside it: these
        may miss the jump by round-off on either side.

        Parameters
        ----------
        passed
            All events up to this time in s have passed, and no other.
        """
        fixed = self.values.copy()
        pieces = [(index, self.signals[index].piece(passed)) for index in self.signals if not self.held[index]]

        def values(time: float) -> Floats:
            result = fixed.copy()
            for index, piece in pieces:
                result[index] = piece(time)
            return result

        return values

    def next_event(self, begin: float, end: float, otherwise: float) -> float:
        """Return when a followed signal jumps or bends first inside (begin, end) in s; `otherwise` where none does."""
        followed = (self.signals[index].events for index in self.signals if not self.held[index])
        firsts = (events[bisect_right(events, begin)] for events in followed if events[-1] > begin)
        return min((first for first in firsts if first < end), default=otherwise)
