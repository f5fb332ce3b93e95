"""Comparison of times, limits on the work of a time interval, and rows that runs keep.

Comparison of times, and limits on the work of a time interval.

Importers accumulate steps, count them, or start at 1.7e9 s: one time then has several floating-point values. All
comparisons of times use `tolerance`; native FMUs have the same numbers in their code.
"""

from __future__ import annotations

import logging
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.modelling.variables import Variable

try:
    import resource
except ImportError:  # on Windows
    resource = None

SAME_TIME = 1e-6
"""Times that differ by less than this fraction of a step are equal."""
NEIGHBOURS = 4.0
"""Times that differ by less than this multiple of the resolution of time are equal."""
RESOLVED_STEP = 16.0
"""Steps must be at least this multiple of the resolution of time, so that their ends are distinct."""
LEAST_STEP = 1e-100
"""Least step in s at any time: at t = 0 the resolution of time is that of numbers, and a step of 1e-315 s has neither a
square nor an inverse.
"""
MOST_STEPS = 1e9
"""Largest number of internal steps in one call; they take hours."""
OVERSHOOT = 1e-3
"""Fraction of a step by which the last one may end after the stop time, as importers that accumulate a million steps
need. Nothing depends on it.
"""

_UNKNOWN_MEMORY = 16e9  # bytes, where the machine does not tell
_OF_MEMORY = 0.5  # that rows may take: what is made of them takes nearly as much again


def time_in_s(value: float | str, what: str) -> float:
    """Return a time in s, converted where it is a text with a unit of its own, as `200 ms`; refuse what is no number.

    Raises
    ------
    InputError
        When it is none; the sentence says what it is of.
    """
    return value if type(value) is float else float(Variable(f"the {what}", unit="s").number(value))


def resolution(*times: float) -> float:
    """Return the largest distance of neighbouring floating-point numbers at given times in s."""
    return sys.float_info.epsilon * max(abs(time) for time in times)


def tolerance(step: float, *times: float) -> float:
    """Return the tolerance in s within which two times are equal.

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
    """Check start and stop time in s given by an importer.

    Raises
    ------
    InputError
        When the start is not finite, or the run ends before it begins. Importers that only initialize stop at the
        start, others at infinity.
    """
    if not math.isfinite(start):
        raise InputError(f"the start time is {start:g} s; it must be a finite number")
    if stop is not None and not stop >= start:
        raise InputError(f"the stop time is {stop:g} s; it must not be before the start time, {start:g} s")


def check_step(time: float, step: float, internal: float) -> None:
    """Check the time and length of a step.

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
    """Check that a run from zero and its result are feasible, before memory is allocated.

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
    """Check the stop time in s of a run from zero, without a model.

    Raises
    ------
    InputError
        When it is not positive and finite.
    """
    _check_length("stop time", stop, 0.0)


def check_grid(start: float, stop: float, step: float, columns: int) -> None:
    """Check the steps from start to stop, and the memory of a table with a row for each.

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
    asked, there = 8.0 * (count + 1.0) * columns, memory()
    if count > MOST_STEPS or asked > _OF_MEMORY * there:
        raise InputError(
            f"a run from {start:g} s to {stop:g} s with a step of {step:g} s has {count:.3g} steps, and its result of "
            f"{columns} columns takes {asked / 1e9:.3g} GB; possible are {MOST_STEPS:g} steps and "
            f"{_OF_MEMORY * there / 1e9:.3g} GB, half of the memory here; a longer interval of the rows keeps fewer"
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
    """Return the times start, start + h, start + 2 h, …, stop in s, without accumulation.

    The last step may be shorter; a stop time within round-off of the grid is on it.
    """
    times: NDArray[np.float64] = start + step * np.arange(count_steps(start, stop, step) + 1.0)
    times[-1] = stop
    return times


def memory() -> float:
    """Return the memory in bytes that this process may have: that of the machine, its container, or its limit."""
    found = [_UNKNOWN_MEMORY]
    with suppress(AttributeError, OSError, ValueError):
        found = [float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))]
    with suppress(OSError, ValueError):
        found.append(float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    if resource is not None:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        found += [float(limit)] if limit != resource.RLIM_INFINITY else []
    return min(found)


_LOGGER = logging.getLogger(__name__)

MOST_ROWS = 1e6
"""Rows that a run keeps where nobody says how many: a thousand times what a plot can show, and a quarter of an hour at
1 ms.
"""
SHARE = 0.25
"""Share of the memory that rows may take where nobody says how many: what is made of them takes as much again."""


def default_interval(name: str, start: float, stop: float, step: float, columns: int, option: str) -> float:
    """Return the interval of rows in s where none is asked for: a step, or with too many rows a multiple; warns of it.

    Parameters
    ----------
    name
        What runs.
    start, stop, step
        In s.
    columns
        Numbers in a row.
    option
        What sets the interval, in words.
    """
    if not all(math.isfinite(each) and each > 0.0 for each in (stop - start, step)):
        return step  # it is refused where times are checked
    count = count_steps(start, stop, step)
    most = max(1.0, min(MOST_ROWS, SHARE * memory() / (8.0 * columns)))
    if count <= most:
        return step
    interval = step * math.ceil(count / most)
    kept = count_steps(start, stop, interval)
    _LOGGER.warning(
        "%s: a row every %g s would make %.3g rows of %d columns, %.3g GB; a row is kept every %g s, %.3g rows of "
        "%.3g GB; %s sets another interval",
        *(name, step, count, columns, 8e-9 * count * columns, interval, kept, 8e-9 * kept * columns, option),
    )
    return interval


def warn_of_long_file(name: str, start: float, stop: float, step: float, columns: int, option: str) -> None:
    """Warn of a file with many rows, written as a run goes on; parameters as for `default_interval`."""
    count = count_steps(start, stop, step)
    if count > MOST_ROWS:
        _LOGGER.warning(
            "%s: a row every %g s makes %.3g rows of %d columns in the file; a longer interval by %s keeps fewer",
            *(name, step, count, columns, option),
        )


@contextmanager
def short_memory_in_words(name: str, option: str) -> Iterator[None]:
    """Raise an `InputError` where memory is short inside the block; parameters as for `default_interval`."""
    try:
        yield
    except MemoryError as error:
        told = f" ({error})" if str(error) else ""
        raise InputError(
            f"{name}: the memory is too small for the rows of this run{told}; {option} keeps fewer"
        ) from None
