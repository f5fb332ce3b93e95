"""How valves open: along a ramp, or along a table."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from mbsfmu.modelling.fields import Array

ROUNDED = 0.05
"""Share of a ramp, at each of its ends, over which its slope comes and goes."""


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    if len(points) < 2:
        raise ValueError(f"points are {len(points)}; a table has at least two")
    for (one, _), (other, _) in pairwise(points):
        if other <= one:
            raise ValueError(f"points go from {one} to {other}; each must lie beyond the one before")
    for place, share in points:
        if share < 0.0:
            raise ValueError(f"points have the share {share} at {place}; it must be at least 0")
    return points


Points = Annotated[tuple[tuple[float, float], ...], AfterValidator(_rising)]
"""The type of a field: a table, places ascending, shares of an area not negative."""


def opening(acting: Array, cracking: Array | float, full: Array | float) -> Array:
    """Return the share by which a valve is open that a spring closes.

    It is the quotient of what acts beyond cracking by what acts beyond it where the valve is open, from 0 to 1: spring
    and stroke are linear [Merritt: Hydraulic Control Systems, 1967, on relief valves]. Over the first and the last
    twentieth a cubic leads to it, so that the slope has no jump: the valve is closed up to cracking and open from full
    opening on, exactly.

    Parameters
    ----------
    acting
        Pressure in Pa that opens the valve.
    cracking, full
        What acts in Pa where it begins to open, and where it is open; the second is greater.
    """
    share = (acting - cracking) / (full - cracking)
    return np.clip(share, 0.0, 1.0) + _rounding(share) - _rounding(1.0 - share)


def _rounding(share: Array) -> Array:
    """Return w (2 t² − t³ − t) with t = u / w, which leads from a slope of 0 to one of 1 over the width w."""
    way = np.clip(share / ROUNDED, 0.0, 1.0)
    return ROUNDED * way * (way * (2.0 - way) - 1.0)


def kept_below(value: Array, most: Array | float) -> Array:
    """Return the lesser of a value and a limit; within a twentieth of the limit about it a parabola leads over."""
    width = ROUNDED * most
    rest = most - value
    return most - np.clip(rest + width, 0.0, 2.0 * width) ** 2 / (4.0 * width) - np.maximum(rest - width, 0.0)
