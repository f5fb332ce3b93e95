"""Derivatives of functions that are only evaluated, for tests: central differences, extrapolated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FIRST = 1e-2
"""First step, as a share of the magnitude: larger ones leave what is linear."""
_SHRINK = 4.0
"""What each step is shorter by than the one before."""
_STEPS = 7
"""Number of steps: at the last one, 2.4e-6 of the magnitude, round-off weighs most."""
_WORSE = 2.0
"""An extrapolation that differs so many times more from the one before is worse."""


def derivative(function: Callable[[float], Floats], magnitude: float) -> tuple[Floats, Floats]:
    """Return the derivative of a function at zero, and how much it may be off.

    Central differences with falling steps are extrapolated as polynomials in h²; of each element the extrapolation is
    taken that differs least from those before [Ridders 1982].

    Parameters
    ----------
    function
        Gives an array for a distance from the point.
    magnitude
        Distance within which the function changes noticeably.

    Returns
    -------
    derivative, error
        Of the shape of what the function gives.
    """
    step = _FIRST * magnitude
    row = [_difference(function, step)]
    best, error = row[0], np.full(row[0].shape, np.inf)
    for _ in range(_STEPS - 1):
        step /= _SHRINK
        before, row = row, [_difference(function, step)]
        factor = 1.0
        for earlier in before:
            factor *= _SHRINK**2
            finer = row[-1] + (row[-1] - earlier) / (factor - 1.0)
            off = np.maximum(np.abs(finer - row[-1]), np.abs(finer - earlier))
            better = off < error
            best, error = np.where(better, finer, best), np.where(better, off, error)
            row.append(finer)
        if np.all(np.abs(row[-1] - before[-1]) >= _WORSE * error):
            break
    return best, error


def _difference(function: Callable[[float], Floats], step: float) -> Floats:
    return (function(step) - function(-step)) / (2.0 * step)
