"""Kinks: where the derivative of a function jumps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = (1e-6, 8e-6, 64e-6)
"""Steps, as shares of the magnitude: the curvature of a smooth function changes slopes by about as much."""
_GROWTH = 8.0
"""What each is of the one before: so grow second differences at a kink, by the square where a function is smooth …"""
_ABOUT = 2.5
"""… and not at all where they are round-off. So many times more or less is the same."""
_STILL = (0.7e-9, 1e-9, 1.3e-9)
"""Steps in which second differences are round-off …"""
_ABOVE = 30.0
"""… that those of kinks exceed so many times."""
_KINK = 1e-2
"""Share of the slopes by which they differ at a kink."""
_COUNTS = 1e-6
"""Share of what a value changes with all that it depends on, below which a kink does not count."""
_ROUND_OFF = 1e-13
"""Share of the values by which differences may be off."""


def has_kink(function: Callable[[float], Floats], magnitude: float, range_: Floats) -> bool:
    """Tell whether the derivative of a function jumps at zero.

    Second differences grow with the step at a kink, and with its square where the function is smooth.

    Parameters
    ----------
    function
        Gives an array for a distance from the point.
    magnitude
        Distance within which the function changes noticeably.
    range_
        How much its values change with all that they depend on: what they do here counts as a share of that.
    """
    here, first = function(0.0), _STEPS[0] * magnitude
    after, before = function(first), function(-first)
    slopes = np.abs(after - here) + np.abs(here - before)
    off = _ROUND_OFF * np.maximum(np.maximum(np.abs(after), np.abs(before)), np.abs(here))
    seconds = [_second_difference(function, here, share * magnitude) for share in _STEPS]
    round_off = np.max([_second_difference(function, here, share * magnitude) for share in _STILL], axis=0)
    off = np.maximum(off, _ABOVE * round_off) + _COUNTS * _STEPS[0] * range_
    bends = seconds[0] > _KINK * slopes + off
    for smaller, larger in pairwise(seconds):
        bends &= (larger > _GROWTH / _ABOUT * smaller) & (larger < _GROWTH * _ABOUT * smaller)
    return bool(np.any(bends))


def _second_difference(function: Callable[[float], Floats], here: Floats, step: float) -> Floats:
    return np.abs(function(step) - 2.0 * here + function(-step))
