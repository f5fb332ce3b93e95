"""Rough error of equal steps that have no estimate of their own, from how accelerations bend between steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbsfmu.modelling.variables import Variable
from mbsfmu.tracing.workspace import Floats

SMALL_RANGE = 0.05
"""Least range that an acceleration is compared with, relative to the largest range in its unit."""
LEAST_RANGE = 1e-3
"""The same in rad/s² or m/s²: what stands still has round-off for a course."""
UNITS = ("rad/s2", "m/s2")
FEWEST = 12
"""Rows below which a course is not judged."""


class Roughness(NamedTuple):
    """A rough error of a run.

    Attributes
    ----------
    variable
        Name of the acceleration with the largest one.
    share
        The error of it, or of its velocity, relative to the range.
    """

    variable: str
    share: float


def roughness(variables: Sequence[Variable], times: Floats, rows: Floats, step: float) -> Roughness | None:
    """Return the rough error of a run in equal steps; None where its rows are not these steps, or too few.

    The trapezoidal rule makes the local error h³/12 d²a/dt² in a velocity [Hairer1993, sect. II.1], which is h/12 of
    the second difference of the acceleration; these are summed, as they are in an undamped oscillation. An acceleration
    that alternates from step to step about its course has an error of a quarter of the second difference. Of three
    differences in a row the least counts: a load that jumps, or a course with one kink, is no error.

    Parameters
    ----------
    variables
        Of the columns; accelerations are known by their units. Those of Cardan angles, whose reference moves, are left
        out.
    times, rows
        Times in s, shape (k,), and values, shape (k, number of variables).
    step
        Length of the steps in s.
    """
    if len(times) < FEWEST or not np.allclose(np.diff(times)[:-1], step, rtol=1e-4, atol=0.0):
        return None
    found: list[Roughness] = []
    for unit in UNITS:
        columns = [index for index, each in enumerate(variables) if each.unit == unit and "cardan" not in each.name]
        if not columns:
            continue
        courses = rows[:, columns]
        bends = np.abs(np.diff(courses, 2, axis=0))
        bends = np.minimum(np.minimum(bends[2:], bends[1:-1]), bends[:-2])
        velocities = step * np.cumsum(courses, axis=0)
        shares = np.maximum(
            0.25 * bends.max(axis=0) / _ranges(courses, LEAST_RANGE),
            step / 12.0 * bends.sum(axis=0) / _ranges(velocities, step * LEAST_RANGE),
        )
        worst = int(np.argmax(shares))
        found.append(Roughness(variables[columns[worst]].name, float(shares[worst])))
    return max(found, key=lambda each: each.share, default=None)


def _ranges(courses: Floats, least: float) -> Floats:
    """Return the range of each column, at least a share of the largest one."""
    ranges = np.ptp(courses, axis=0)
    return np.maximum(ranges, max(SMALL_RANGE * float(ranges.max()), least))
