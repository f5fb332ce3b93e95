"""Inputs driven by signals: functions of time, or tables with events."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.times import tolerance
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.fmus.fmu_instance import Floats, Instance
from mbsfmu.modelling.variables import Causality


@runtime_checkable
class EventSignal(Protocol):
    """A signal with events, as those of `mbsfmu.io.signals`."""

    @property
    def events(self) -> tuple[float, ...]:
        """Times in s."""
        ...

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        ...

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        ...


@dataclass(frozen=True)
class Constant:
    """A signal that never changes."""

    value: float

    def __call__(self, time: float) -> float:
        """Return its value at a time in s."""
        del time
        return self.value


Signal = Callable[[float], float] | EventSignal


class DrivenInputs:
    """Inputs driven by signals.

    Parameters
    ----------
    signals
        Signals by (instance, input).
    instances, connections
        What they are driven beside.
    step
        Communication step in s, the first one where steps are controlled: an event that misses a communication point
        by less than `mbsfmu.base.times.tolerance` is at it.

    Attributes
    ----------
    targets
        (instance, input) of each signal.

    Raises
    ------
    InputError
        When a variable is no numeric input, or is driven by a connection already.
    """

    def __init__(
        self,
        signals: Mapping[tuple[str, str], Signal],
        instances: Mapping[str, Instance],
        connections: Iterable[Connection],
        step: float,
    ) -> None:
        driven = {connection.target for connection in connections}
        for name, variable in signals:
            if instances[name].variables[variable].causality is not Causality.INPUT:
                raise InputError(f"{name}.{variable} is no input; a signal cannot drive it")
            if instances[name].kinds[variable] in ("String", "Binary", "Clock"):
                raise InputError(f"{name}.{variable} is a {instances[name].kinds[variable]}; a signal cannot drive it")
            if (name, variable) in driven:
                raise InputError(f"{name}.{variable} is driven by a connection and by a signal")
        self.targets = tuple(signals)
        self._step = step
        self._variables = [instances[name].variables[variable] for name, variable in signals]
        self._followers = [
            _Follower(each, step) if isinstance(each, EventSignal) else each for each in signals.values()
        ]

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def are_constant(self) -> bool:
        """Whether no signal ever changes."""
        return all(isinstance(each, Constant) for each in self._followers)

    def nominals(self) -> Floats:
        """Return the nominal value of each driven input, 1 where none is declared; shape (number of signals,)."""
        return np.array([abs(variable.nominal or 1.0) for variable in self._variables], dtype=float)

    def after(self, time: float) -> Floats:
        """Return the values from a time in s on, shape (number of signals,)."""
        return np.array(
            [each.after(time) if isinstance(each, _Follower) else each(time) for each in self._followers], dtype=float
        )

    def before(self, time: float) -> Floats:
        """Return the values just before a time in s, shape (number of signals,)."""
        return np.array(
            [each.before(time) if isinstance(each, _Follower) else each(time) for each in self._followers], dtype=float
        )

    def jumps(self, time: float) -> bool:
        """Return whether a signal is discontinuous at a time in s."""
        return any(each.before(time) != each.after(time) for each in self._followers if isinstance(each, _Follower))

    def events(self, start: float, stop: float) -> list[float]:
        """Return the event times of the signals inside (start, stop) in s, without duplicates."""
        same = tolerance(self._step, start, stop)
        found = sorted({time for each in self._followers if isinstance(each, _Follower) for time in each.events})
        kept = [start]
        kept += [time for time in found if start < time < stop - same]
        return [later for earlier, later in pairwise(kept) if later - earlier > same]


class _Follower:
    """A signal evaluated at communication points: an event within round-off is at the point."""

    def __init__(self, signal: EventSignal, step: float) -> None:
        self.events = sorted(signal.events)
        self._signal, self._step = signal, step

    def after(self, time: float) -> float:
        """Return the value from a time in s on."""
        same = tolerance(self._step, time)
        passed = bisect_right(self.events, time + same)
        is_event = passed and self.events[passed - 1] >= time - same
        return self._signal.after(self.events[passed - 1] if is_event else time)

    def before(self, time: float) -> float:
        """Return the value just before a time in s."""
        same = tolerance(self._step, time)
        passed = bisect_left(self.events, time - same)
        is_event = passed < len(self.events) and self.events[passed] <= time + same
        return self._signal.before(self.events[passed] if is_event else time)
