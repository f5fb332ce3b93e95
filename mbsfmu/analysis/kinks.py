"""Detection of kinks: discontinuities of a derivative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = (1e-6, 8e-6, 64e-6)
"""Relative steps, at which the curvature of a smooth function changes slopes similarly."""
_GROWTH = 8.0
"""Ratio of consecutive steps: second differences grow by it at a kink, by its square for a smooth function …"""
_ABOUT = 2.5
"""… and not at round-off. Tolerance factor of these ratios."""
_STILL = (0.7e-9, 1e-9, 1.3e-9)
"""Steps with second differences at round-off …"""
_ABOVE = 30.0
"""… which those of kinks exceed by this factor."""
_KINK = 1e-2
"""Relative difference of slopes at a kink."""
_COUNTS = 1e-6
"""Change relative to the value's total change below which a kink is ignored."""
_ROUND_OFF = 1e-13
"""Relative round-off of differences."""


def has_kink(function: Callable[[float], Floats], magnitude: float, range_: Floats) -> bool:
    """Return whether the derivative of a function is discontinuous at zero.

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
    counted, second = _COUNTS * _STEPS[0] * range_, np.abs(after - 2.0 * here + before)
    bends, smaller = second > _KINK * slopes + off + counted, second
    # Most functions are smooth, and are known to be so by now.
    for share in _STEPS[1:]:
        if not bends.any():
            return False
        larger = _second_difference(function, here, share * magnitude)
        bends &= (larger > _GROWTH / _ABOUT * smaller) & (larger < _GROWTH * _ABOUT * smaller)
        smaller = larger
    if not bends.any():
        return False
    round_off = np.max([_second_difference(function, here, share * magnitude) for share in _STILL], axis=0)
    return bool(np.any(bends & (second > _KINK * slopes + np.maximum(off, _ABOVE * round_off) + counted)))


def _second_difference(function: Callable[[float], Floats], here: Floats, step: float) -> Floats:
    return np.abs(function(step) - 2.0 * here + function(-step))
