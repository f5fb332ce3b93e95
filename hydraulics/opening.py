"""Valve opening laws: ramps and tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from mbsfmu.modelling.fields import Array, NonNegative

ROUNDED = 0.05
"""Fraction of a ramp, at each end, over which its slope is rounded."""


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    if len(points) < 2:
        raise ValueError(f"points are {len(points)}; a table has at least two")
    for (one, _), (other, _) in pairwise(points):
        if other <= one:
            raise ValueError(f"points go from {one} to {other}; each must lie beyond the one before")
    return points


Points = Annotated[tuple[tuple[float, NonNegative], ...], AfterValidator(_rising)]
"""Field type: a table with ascending arguments and non-negative area fractions."""


def opening(acting: Array, cracking: Array | float, full: Array | float) -> Array:
    """Return the opening, from 0 to 1, of a spring-loaded valve.

    It is the pressure beyond cracking divided by that at full opening: spring and stroke are linear [Merritt: Hydraulic
    Control Systems, 1967, on relief valves]. The first and the last twentieth are rounded by a cubic, so that the slope
    is continuous. Below cracking the valve is exactly closed, beyond full opening exactly open.

    Parameters
    ----------
    acting
        Pressure in Pa that opens the valve.
    cracking, full
        Pressures in Pa of cracking and of full opening; the second is greater.
    """
    share = (acting - cracking) / (full - cracking)
    return np.clip(share, 0.0, 1.0) + _rounding(share) - _rounding(1.0 - share)


def _rounding(share: Array) -> Array:
    """Return w (2 t² − t³ − t) with t = u / w, the rounding from slope 0 to slope 1 over the width w."""
    way = np.clip(share / ROUNDED, 0.0, 1.0)
    return ROUNDED * way * (way * (2.0 - way) - 1.0)


def kept_below(value: Array, most: Array | float) -> Array:
    """Return the lesser of a value and a limit, rounded by a parabola within a twentieth of the limit."""
    width = ROUNDED * most
    rest = most - value
    return most - np.clip(rest + width, 0.0, 2.0 * width) ** 2 / (4.0 * width) - np.maximum(rest - width, 0.0)
