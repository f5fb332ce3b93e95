"""Parallel run with double steps, for the accumulated error of a run in halved steps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.control.discontinuities import END
from mbsfmu.cosim.control.watched import Watched
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.fmus.fmu_instance import FmuEnded

_DOUBLE_LENGTH = "run in whole steps"
"""Slot of that run's states."""


class DoubleLengthRun:
    """A run of the same members with whole steps, each from the end of its own last one.

    The difference of one step estimates what that step does wrong, the distance of both runs what all of them have done
    until now, and what the system has made of it: of two runs of order p the one in halves is off by their distance
    over 2^p − 1 (Richardson; Hairer, Nørsett, Wanner 1993, section II.4, estimate global errors by two runs as well).

    Parameters
    ----------
    stepping
        The members that make the steps.
    history
        The history of the run, at its start.
    watched
        What is compared.

    Attributes
    ----------
    errors
        Distance over 2^p − 1, with what it was where it began anew, shape (watched,).
    has_moved
        Whether a variable has ever been another one than in the run in halves.
    """

    CHANGES: ClassVar = ("errors", "has_moved", "_carried", "_history", "_states")

    def __init__(self, stepping: Stepping, history: OutputHistory, watched: Watched) -> None:
        self._stepping, self._watched = stepping, watched
        self._history = history.copy()
        self._carried, self.errors = np.zeros(len(watched)), np.zeros(len(watched))
        self.has_moved = np.zeros(len(watched), dtype=bool)
        self._is_apart = False

    def advance(self, history: OutputHistory, time: float, step: float) -> None:
        """Make a step in s after the members have made it in halves; they keep their state.

        Parameters
        ----------
        history
            That of the run in halves, at the end of the step.
        time, step
            Beginning and length of the step in s.
        """
        stepping, end = self._stepping, time + step
        reached = self._watched.read(history.now)
        stepping.save(END, end)
        try:
            stepping.restore(_DOUBLE_LENGTH)
            stepping.advance(self._history, time, step)
            found = self._watched.read(self._history.now)
            stepping.save(_DOUBLE_LENGTH, end)
        except (SimulationError, FmuEnded) as error:
            if getattr(error, "fatal", False):
                raise
            stepping.restore(END)
            self.join(history)
        else:
            stepping.restore(END)
            distance = np.abs(found - reached) / (2.0**stepping.order - 1.0)
            self.errors = self._carried + distance
            self.has_moved |= distance > 0.0
        stepping.exchange.release(END)

    def begin(self, time: float) -> None:
        """Start at the members' state at a time in s, unless already running."""
        if not self._is_apart:
            self._stepping.save(_DOUBLE_LENGTH, time)
            self._is_apart = True

    def join(self, history: OutputHistory) -> None:
        """Continue from the members' state; the error so far is kept."""
        self._carried = self.errors.copy()
        self._history = history.copy()
        self._is_apart = False

    def drop(self, history: OutputHistory) -> None:
        """Continue from the members' state, and discard the distance since the last time."""
        self.errors = self._carried.copy()
        self.join(history)

    def restart(self) -> None:
        """Discard the history at a discontinuity."""
        self._history.restart()

    @property
    def _states(self) -> list[bytes]:
        """States of the members in this run for another process; empty if it restarts."""
        members = self._stepping.exchange.members
        if not self._is_apart:
            return []
        states = []
        for member in members:
            instance = member.instance
            instance.save(END, instance.time)
            instance.restore(_DOUBLE_LENGTH)
            states.append(instance.serialize())
            instance.restore(END)
            instance.release(END)
        return states

    @_states.setter
    def _states(self, states: list[bytes]) -> None:
        self._is_apart = bool(states)
        for member, state in zip(self._stepping.exchange.members, states, strict=False):
            instance = member.instance
            instance.save(END, instance.time)
            instance.deserialize(state)
            instance.save(_DOUBLE_LENGTH, instance.time)
            instance.restore(END)
            instance.release(END)
