"""Event iteration of FMUs: updates of discrete states until convergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.times import NEIGHBOURS, resolution

MOST_ITERATIONS = 1000
"""Largest number of event iterations at one instant, and of returns without progress."""


class Update(NamedTuple):
    """Result of an update of discrete states.

    Attributes
    ----------
    again
        Whether they have to be updated once more.
    ends
        Whether it ends the run.
    nominals
        Whether nominal values of its continuous states have changed.
    following
        Time of its next event in s; infinity where it names none.
    """

    again: bool
    ends: bool
    nominals: bool
    following: float


def next_event(defined: bool, time: float) -> float:
    """Return the time in s of the next event, if defined."""
    return time if defined else math.inf


def gets_nowhere(before: float, now: float, end: float) -> bool:
    """Return whether two times in s of a step differ by less than round-off.

    FMUs that test whether a time is behind that of an event, or name events by round-off, go on so for ever.
    """
    return now <= before + NEIGHBOURS * resolution(end)


def iterate_events(name: str, time: float, update: Callable[[], Update]) -> Update:
    """Update discrete states until convergence, or the end of the run; return the combined result.

    Parameters
    ----------
    name, time
        The unit, and where it is in s, for the message.
    update
        Makes one update.

    Raises
    ------
    SimulationError
        When they do not settle.
    """
    nominals = False
    for _ in range(MOST_ITERATIONS):
        event_info = update()
        nominals = nominals or event_info.nominals
        if event_info.ends or not event_info.again:
            return event_info._replace(nominals=nominals)
    raise SimulationError(
        f"{name} at t = {time:.9g} s: the event iteration does not converge in {MOST_ITERATIONS} iterations"
    )
