"""How many rows runs keep: what plots can show, unless more are asked for; and memory that is short, in words."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

from mbsfmu.base.errors import InputError
from mbsfmu.base.times import count_steps, memory

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
