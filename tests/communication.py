"""Communication times as importers make them: counted, added up, or off by round-off."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, repeat

import numpy as np
from numpy.typing import NDArray

Times = Callable[[float, float, int], NDArray[np.float64]]
"""Start and step in s and number of steps to the times at which steps begin."""


def counted(start: float, step: float, count: int) -> NDArray[np.float64]:
    """Return start + n h."""
    return start + step * np.arange(count)


def added_up(start: float, step: float, count: int) -> NDArray[np.float64]:
    """Return what t += h gives."""
    return np.array(list(accumulate(repeat(step, count - 1), initial=start)))


def shifted(shift: float) -> Times:
    """Return times that are off by so many s, all but the start."""
    return lambda start, step, count: counted(start, step, count) + shift * (np.arange(count) > 0)


def scattered(start: float, step: float, count: int) -> NDArray[np.float64]:
    """Return times that are off by up to 1e-12 s on either side, each by another amount."""
    off = np.random.default_rng(7).uniform(-1e-12, 1e-12, count)
    off[0] = 0.0
    return counted(start, step, count) + off


VARIANTS: dict[str, Times] = {
    "added up": added_up,
    "late": shifted(1e-12),
    "early": shifted(-1e-12),
    "scattered": scattered,
}


def largest_change(runs: tuple[NDArray[np.float64], NDArray[np.float64]]) -> float:
    """Return the largest difference of two runs, of shape (times, variables), as a share of each variable's range."""
    one, other = runs
    ranges = np.ptp(one, axis=0)
    moving = ranges > 1e-9 * np.max(np.abs(one), axis=0)
    return float(np.max(np.abs(one - other)[:, moving] / ranges[moving]))
