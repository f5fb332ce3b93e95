"""Linear interpolation in tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from mbsfmu.modelling.data import Array


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


class _Named(Protocol):
    """Numbers by name, as a component or a block has them."""

    def __getitem__(self, name: str, /) -> Array: ...


def tabulated(place: Array, now: _Named, field: str, points: Sequence[tuple[float, float]]) -> Array:
    """Return the value of a table whose values are parameters, as `interpolated`.

    Parameters
    ----------
    place
        Where.
    now
        Numbers of the part, among them the values as `points_1`, `points_2` and so on of a field `points`.
    field, points
        The field, and the table of the data, whose places count.
    """
    return interpolated(place, [(at, now[f"{field}_{number}"]) for number, (at, _) in enumerate(points, start=1)])
