"""When two times are one, and how much work a stretch of time may ask for.

Importers add steps up, count them, or begin at 1.7e9 s: the same time then has several floating-point numbers. All
comparisons of times go by `tolerance`; native units have the same numbers, written into their code.
"""

from __future__ import annotations

import math
import os
import sys

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError

SAME_TIME = 1e-6
"""Times that differ by less than this share of a step are one."""
NEIGHBOURS = 4.0
"""So are times that differ by less than this many times the resolution of time."""
RESOLVED_STEP = 16.0
"""Steps must be at least this many times the resolution of time, for their ends to be told apart."""
LEAST_STEP = 1e-100
"""Least step in s, wherever time is: at t = 0 the resolution of time is as fine as numbers are, and a step of 1e-315 s
has neither a square nor an inverse."""
MOST_STEPS = 1e9
"""Most internal steps in one call; they take hours."""
OVERSHOOT = 1e-3
"""Share of a step by which the last one may end after the stop time: importers that add up a million steps get there.
Nothing depends on it."""

_UNKNOWN_MEMORY = 16e9  # bytes, where the machine does not tell


def resolution(*times: float) -> float:
    """Return the distance of neighbouring floating-point numbers, at most, at the largest of some times in s."""
    return sys.float_info.epsilon * max(abs(time) for time in times)


def tolerance(step: float, *times: float) -> float:
    """Return by how many s two times may differ that are one.

    Parameters
    ----------
    step
        The step in s that the times belong to.
    times
        Times in s; the resolution of floating-point numbers is that at the largest.
    """
    return SAME_TIME * step + NEIGHBOURS * resolution(*times)


def count_steps(begin: float, end: float, most: float) -> float:
    """Return how many equal steps, none longer than `most` in s, an interval takes: a whole number."""
    count = (end - begin - tolerance(most, begin, end)) / most
    return max(1.0, float(math.ceil(count)) if math.isfinite(count) else count)


def check_experiment(start: float, stop: float | None) -> None:
    """Check when an importer says that a run begins and ends, in s.

    Raises
    ------
    InputError
        When a time is not finite, or the run ends before it begins.
    """
    if not math.isfinite(start):
        raise InputError(f"the start time is {start:g} s; it must be a finite number")
    if stop is not None and not (math.isfinite(stop) and stop > start):
        raise InputError(f"the stop time is {stop:g} s; it must be a finite number above the start time, {start:g} s")


def check_step(time: float, step: float, internal: float) -> None:
    """Check that a step from a time can be made.

    Parameters
    ----------
    time, step
        Beginning and length of the step in s.
    internal
        Internal step in s.

    Raises
    ------
    InputError
        When a time is not finite, or the step is not positive, lost in the resolution of time, or asks for too much
        work.
    """
    if not math.isfinite(time):
        raise InputError(f"the step begins at t = {time:g} s; it must be a finite number")
    _check_length("step", step, time)
    _check_internal("step", step, internal)


def check_run(stop: float, step: float, internal: float, columns: int) -> None:
    """Check that a run from zero can be made and its result be held, before memory is asked for.

    Parameters
    ----------
    stop
        End in s.
    step, internal
        Interval of the result, and internal step in s.
    columns
        Numbers in a row of the result.

    Raises
    ------
    InputError
        When a time is not positive, a step is longer than the run, or the run asks for too much work or memory.
    """
    check_stop(stop)
    check_grid(0.0, stop, step, columns)
    _check_internal("run", stop, internal)


def check_stop(stop: float) -> None:
    """Check the end in s of a run from zero, which needs no model.

    Raises
    ------
    InputError
        When it is not positive and finite.
    """
    _check_length("stop time", stop, 0.0)


def check_grid(start: float, stop: float, step: float, columns: int) -> None:
    """Check that steps can be made from start to stop, and that a table with a row for each can be held.

    Parameters
    ----------
    start, stop, step
        In s.
    columns
        Numbers in a row.

    Raises
    ------
    InputError
        When the step is not positive, lost in the resolution of time or longer than the whole, when there are too
        many steps, or when the table is larger than the memory of this machine.
    """
    check_span(start, stop, step)
    count = count_steps(start, stop, step)
    asked, there = 8.0 * (count + 1.0) * columns, _memory()
    if count > MOST_STEPS or asked > there:
        raise InputError(
            f"a run from {start:g} s to {stop:g} s with a step of {step:g} s has {count:.3g} steps, and its result of "
            f"{columns} columns takes {asked / 1e9:.3g} GB; possible are {MOST_STEPS:g} steps and {there / 1e9:.3g} "
            "GB, the memory of this machine"
        )


def check_span(start: float, stop: float, step: float) -> None:
    """Check that a step in s fits between start and stop in s.

    Raises
    ------
    InputError
        When it is not positive, lost in the resolution of time or longer than the whole.
    """
    _check_length("step", step, max(start, stop, key=abs))
    if step > stop - start + tolerance(step, start, stop):
        raise InputError(f"the step of {step:g} s is longer than the run from {start:g} s to {stop:g} s")


def _check_length(what: str, length: float, time: float) -> None:
    if not (length > 0.0 and math.isfinite(length)):
        raise InputError(f"the {what} is {length:g} s; it must be positive and finite")
    least = max(RESOLVED_STEP * resolution(time, time + length), LEAST_STEP)
    if length < least:
        raise InputError(
            f"the {what} of {length:g} s is lost in the resolution of time at t = {time:g} s; "
            f"it must be at least {least:.3g} s there"
        )


def _check_internal(what: str, length: float, internal: float) -> None:
    if length > MOST_STEPS * internal:
        raise InputError(
            f"the {what} of {length:g} s is {length / internal:.3g} times the internal step of {internal:g} s; "
            f"it may be {MOST_STEPS:g} times as long at most"
        )


def counted(start: float, stop: float, step: float) -> NDArray[np.float64]:
    """Return the times start, start + h, start + 2 h, …, stop in s, counted and not summed up.

    The last step may be shorter; a stop time that misses the grid by round-off is on it.
    """
    times: NDArray[np.float64] = start + step * np.arange(count_steps(start, stop, step) + 1.0)
    times[-1] = stop
    return times


def _memory() -> float:
    """Return the memory of this machine in bytes."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN_MEMORY
