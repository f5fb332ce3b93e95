"""Sweeps whose points run in ensembles: rows of single runs, failures and warnings by point, studies that go on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mortal import MORTAL

import mbsfmu
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.base.repeated_warnings import KeptWarnings
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.studies import point_run

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
STOP = 0.4
RODS = [0.03, 0.04, 0.09, 0.05, -1.0, 0.045]
"""Diameters: one of them is as no rod is, and one greater than that of its piston."""


@pytest.fixture(autouse=True)
def compiled_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_run, "LEAST_STEPS", 0.0)


@pytest.fixture
def single_runs(monkeypatch: pytest.MonkeyPatch) -> list[mbsfmu.StudyResult]:
    """Points that were run alone."""
    alone: list[Any] = []
    run = point_run.Study._alone

    def noted(study: point_run.Study, point: Any) -> Any:
        alone.append(point.values)
        return run(study, point)

    monkeypatch.setattr(point_run.Study, "_alone", noted)
    return alone


def outcome(simulation: mbsfmu.Simulation, row: dict[str, Any]) -> mbsfmu.Result | str:
    """Return the result of a single run, or why there is none."""
    try:
        simulation.set("cylinder.rod_diameter", row["circuit.cylinder.rod_diameter"])
        simulation.set("valve.command", row["circuit.valve.command"])
        return simulation.run(STOP)
    except mbsfmu.InputError as error:
        return str(error)


EQUAL: dict[str, Any] = {"step": 1e-3, "solver": "trapezoidal"}
CHOSEN: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-8, "absolute_tolerance": 1e-8}


@pytest.mark.parametrize("options", [EQUAL, CHOSEN])
def test_rows_are_those_of_single_runs(single_runs: list[Any], options: dict[str, Any]) -> None:
    """Values, counts of steps, estimates of errors, warnings; and the messages of points that fail."""
    model = mbsfmu.models.four_bar()
    vary = {"cylinder.rod_diameter": RODS, "valve.command": [2.0, 8.0]}
    model = model.model_copy(update={"signals": {}})
    settings = {name: [value] for name, value in options.items()}
    rows = mbsfmu.sweep(model, vary, settings=settings, stop=STOP, executor=InlineExecutor()).rows
    assert [row["circuit.cylinder.rod_diameter"] for row in rows] == [rod for rod in RODS for _ in range(2)]
    assert sorted({point["circuit.cylinder.rod_diameter"] for point in single_runs}) == [-1.0, 0.09]
    simulation = model.simulation(**options)
    for row in rows:
        simulation.reset()
        with KeptWarnings() as told:
            run = outcome(simulation, row)
        if isinstance(run, str):
            assert (row["status"], row["message"]) == ("failed", run)
            assert row["final.cylinder.length"] is None
            continue
        assert (row["status"], row["message"], row["steps"]) == ("ok", "", run.statistics.steps)
        for name, value in run.final().items():
            scale = max(float(np.ptp(run[name])), 1e-3 * float(np.max(np.abs(run[name]))), 1e-6)
            if f"final.{name}" in row and "drift" not in name:
                assert row[f"final.{name}"] == pytest.approx(value, abs=1e-6 * scale), name
        assert ("error_estimate" in row) == (options is EQUAL)
        if options is EQUAL:
            assert row["error_estimate"] == pytest.approx(run.error.share, rel=0.05)
        assert row["error_variable"] == run.error.variable
        assert row["warnings"].splitlines() == told.sentences


def test_remarks_are_those_of_the_points(single_runs: list[Any]) -> None:
    """Where the boom is heavy the cylinder's oil cavitates, which rows of those tell."""
    model = mbsfmu.models.four_bar()
    masses = [50.0, 225.0, 2000.0]
    settings = {"step": [1e-3]}
    rows = mbsfmu.sweep(model, {"boom.mass": masses}, settings=settings, stop=1.5, executor=InlineExecutor()).rows
    assert single_runs == []
    simulation = model.simulation(step=1e-3)
    told = []
    for mass in masses:
        simulation.reset()
        simulation.set("boom.mass", mass)
        with KeptWarnings() as kept:
            simulation.run(1.5)
        told.append([each for each in kept.sentences if "cavitates" in each])
    assert [[each for each in row["warnings"].splitlines() if "cavitates" in each] for row in rows] == told
    assert any(told)
    assert not all(told)


@pytest.mark.parametrize(
    "settings",
    [{"solver": ["rk45"]}, {"step": [1e-3], "check_error": [True]}, {"formulation": ["dca"], "step": [1e-3]}],
)
def test_other_settings_run_alone(single_runs: list[Any], settings: dict[str, list[Any]]) -> None:
    mbsfmu.sweep(
        mbsfmu.models.pendulum(1), {"link_1.mass": [1.0, 2.0]}, settings=settings, stop=0.05, executor=InlineExecutor()
    )
    assert len(single_runs) == 2


def test_nothing_is_compiled_for_few_points(monkeypatch: pytest.MonkeyPatch, single_runs: list[Any]) -> None:
    monkeypatch.setattr(point_run, "LEAST_STEPS", 1e9)
    monkeypatch.setattr(point_run, "kept_ensemble_library", lambda *_, **__: None)
    monkeypatch.setattr(point_run, "ensemble_library", None)
    settings = {"step": [1e-3]}
    options: dict[str, Any] = {"settings": settings, "stop": 0.05, "executor": InlineExecutor()}
    mbsfmu.sweep(mbsfmu.models.pendulum(1), {"link_1.mass": [1.0, 2.0]}, **options)
    assert len(single_runs) == 2


def test_tasks_are_no_larger_than_the_memory(monkeypatch: pytest.MonkeyPatch, single_runs: list[Any]) -> None:
    sizes: list[int] = []
    run = point_run.Study._in_ensemble

    def noted(study: point_run.Study, points: Any) -> Any:
        sizes.append(len(points))
        return run(study, points)

    monkeypatch.setattr(point_run.Study, "_in_ensemble", noted)
    model, masses = mbsfmu.models.pendulum(1), [float(number) for number in range(1, 21)]
    options: dict[str, Any] = {"settings": {"step": [1e-3]}, "stop": 0.05, "executor": InlineExecutor()}
    mbsfmu.sweep(model, {"link_1.mass": masses}, **options)
    assert sizes == [16, 4]
    columns = len(model.simulation(step=1e-3).continuous)
    monkeypatch.setattr(point_run, "_ROOM", 3 * 51 * 8 * columns)
    sizes.clear()
    mbsfmu.sweep(model, {"link_1.mass": masses[:6]}, **options)
    assert sizes == [3, 3]
    assert single_runs == []


KILLED = (
    MORTAL
    + """
from mbsfmu.studies import point_run

point_run.LEAST_STEPS = 0.0
masses = [1.0 + index for index in range(40)]
model = mbsfmu.models.pendulum(1)
options = {"settings": {"step": [1e-3]}, "stop": 0.1, "output": "rows.csv"}
mbsfmu.sweep(model, {"link_1.mass": masses}, executor=Mortal(), **options)
"""
)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_killed_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def call(calls: int) -> int:
        return subprocess.run([sys.executable, "-c", KILLED, str(calls)], cwd=tmp_path, check=False).returncode

    assert call(1) == -signal.SIGKILL
    kept = [json.loads(line) for line in (tmp_path / "rows.csv.journal").read_text().splitlines()]
    assert len(kept) == 16
    assert call(2) == 0
    rows = mbsfmu.sweep(
        mbsfmu.models.pendulum(1),
        {"link_1.mass": [1.0 + index for index in range(40)]},
        settings={"step": [1e-3]},
        stop=0.1,
        output=tmp_path / "rows.csv",
        executor=InlineExecutor(),
    ).rows
    assert [row["mechanism.link_1.mass"] for row in rows] == [1.0 + index for index in range(40)]
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["wall_seconds"] for row in rows[:16]] == [row["wall_seconds"] for row in kept]
