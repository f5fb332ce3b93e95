"""Linear interpolation in tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mbsfmu.modelling.fields import Array


def interpolated(place: Array, points: Sequence[tuple[float, Array | float]]) -> Array:
    """Return the value of a table by linear interpolation, constant beyond its ends.

    Parameters
    ----------
    place
        Where.
    points
        Pairs of a place and the value there, places ascending.
    """
    value = np.asarray(points[0][1])
    for (begin, first), (end, last) in pairwise(points):
        value = value + (last - first) * np.clip((place - begin) / (end - begin), 0.0, 1.0)
    return value
