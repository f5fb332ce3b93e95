"""Points run in worker processes: in any order, whole, also where a process is killed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.studies.parameter_sweep import run_points
from mbsfmu.studies.points import StudyPoint, make_points

POINTS = make_points({"a": [float(value) for value in range(12)]}, {}, {})


def double(points: Sequence[StudyPoint]) -> list[dict[str, Any]]:
    return [{"status": "ok", "message": "", "twice": 2 * point.values["a"]} for point in points]


def dies_at_five(points: Sequence[StudyPoint]) -> list[dict[str, Any]]:
    if any(point.values["a"] == 5.0 for point in points):
        os._exit(3)
    return double(points)


def raises_at_five(points: Sequence[StudyPoint]) -> list[dict[str, Any]]:
    if any(point.values["a"] == 5.0 for point in points):
        raise ZeroDivisionError("five")
    return double(points)


def run(function: Any, together: int = 1, **options: Any) -> dict[float, dict[str, Any]]:
    rows: dict[float, dict[str, Any]] = {}

    def take(point: StudyPoint, row: dict[str, Any]) -> None:
        assert point.values["a"] not in rows
        rows[point.values["a"]] = row

    tasks = [tuple(POINTS[first : first + together]) for first in range(0, len(POINTS), together)]
    run_points(function, tasks, take, workers=2, **options)
    return rows


@pytest.mark.parametrize("kind", [None, InlineExecutor, lambda: ThreadPoolExecutor(3), lambda: ProcessPoolExecutor(2)])
def test_every_point_has_its_row(kind: Any) -> None:
    if kind is None:
        rows = run(double)
    else:
        with kind() as executor:
            rows = run(double, executor=executor)
    assert {value: row["twice"] for value, row in rows.items()} == {value: 2 * value for value in map(float, range(12))}


@pytest.mark.parametrize("together", [1, 5])
def test_process_that_dies_costs_its_point_and_no_other(caplog: pytest.LogCaptureFixture, together: int) -> None:
    rows = run(dies_at_five, together)
    assert rows.pop(5.0) == {"status": "failed", "message": "the process that ran it was killed", "warnings": ""}
    assert len(rows) == 11
    assert all(row["status"] == "ok" for row in rows.values())
    assert "tried again one by one" in caplog.text


@pytest.mark.parametrize("together", [1, 5])
def test_exception_is_a_row_with_its_name(together: int) -> None:
    rows = run(raises_at_five, together)
    assert rows[5.0] == {"status": "failed", "message": "ZeroDivisionError: five", "warnings": ""}
    assert sum(row["status"] == "ok" for row in rows.values()) == 11


def test_executor_of_the_user_that_breaks_ends_the_study() -> None:
    with ProcessPoolExecutor(1) as executor, pytest.raises(SimulationError, match="the executor broke"):
        run(dies_at_five, executor=executor)
