"""The inputs of a simulation: set by hand, or following a signal until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mbsfmu.errors import InputError
from mbsfmu.formulations.functions import Floats
from mbsfmu.formulations.system import starts
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

    def reset(self) -> None:
        """Go back to start values; signals are followed again."""
        self.values = starts(self._variables)
        self.held = np.zeros(len(self._variables), dtype=bool)

    def set(self, index: int, value: float) -> None:
        """Set an input by hand."""
        self.values[index] = value
        self.held[index] = True

    def undriven(self) -> list[tuple[Variable, float]]:
        """Return the inputs that follow no signal and were not set, with the values that they keep."""
        return [
            (variable, float(self.values[index]))
            for index, variable in enumerate(self._variables)
            if not self.held[index] and index not in self.signals
        ]

    def before(self, time: float) -> Floats:
        """Return the values just before a time in s."""
        return self._at(time, "before")

    def after(self, time: float) -> Floats:
        """Return the values from a time in s on."""
        return self._at(time, "after")

    def _at(self, time: float, side: str) -> Floats:
        values = self.values.copy()
        for index, signal in self.signals.items():
            if not self.held[index]:
                values[index] = signal.before(time) if side == "before" else signal.after(time)
        return values

    def events(self, begin: float, end: float, same: float) -> list[float]:
        """Return the times inside (begin, end) at which a followed signal jumps, `same` away from both ends."""
        times = {
            event
            for index, signal in self.signals.items()
            for event in signal.events
            if not self.held[index] and begin + same < event < end - same
        }
        return sorted(times)

    def next_event(self, time: float, otherwise: float) -> float:
        """Return when a followed signal jumps or bends next after a time in s; a value in s where none does."""
        return min(self.events(time, otherwise, 0.0), default=otherwise)
