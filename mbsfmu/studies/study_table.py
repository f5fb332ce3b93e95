"""Table of a study's rows with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbsfmu.studies.journal import KEY, Row
from mbsfmu.studies.points import StudyPoint

_UNITS = {"wall_seconds": "s", "cpu_seconds": "s", "stop": "s", "step": "s", "energy_residual_max": "J"}
_UNITS |= {"energy_drift_max": "J", "actuator_work_max": "J", "actuator_work_min": "J"}


def study_table(
    points: Sequence[StudyPoint],
    rows: Mapping[str, Row],
    units: Mapping[str, str],
    outputs: Mapping[str, str],
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the columns of all rows and their units: parameters, settings, status, results.

    Parameters
    ----------
    points
        In the order of the rows.
    rows
        What was told of each point, by its key.
    units, outputs
        Units of the varied parameters, and of the outputs.
    """
    every = {**_UNITS, **units, **{f"final.{name}": unit for name, unit in outputs.items()}}
    whole = [{**point.values, **point.settings, **rows[point.key]} for point in points]
    first = [*points[0].values, *points[0].settings, "status", "message", "warnings"]
    told = {name: None for row in whole for name in row if name != KEY and name not in first}
    return {name: [row.get(name) for row in whole] for name in (*first, *told, KEY)}, every
