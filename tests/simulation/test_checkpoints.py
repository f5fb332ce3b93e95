"""Runs that are killed at any instant and go on from their last checkpoint: the same bits; other calls are refused."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documented import ROOT
from driven_crank import START, driven_crank

import mbsfmu
from mbsfmu import Checkpoint, InputError
from mbsfmu.io import checkpoints
from mbsfmu.io.checkpoints import RunInterrupted, read_saved

RUN = """
import sys, mbsfmu
from mbsfmu import Checkpoint
model, solver, stop, step, file = sys.argv[1:]
simulation = mbsfmu.models.built_in(model).simulation(solver=solver, step=float(step))
print("made", flush=True)
result = simulation.run(float(stop), output_step=float(step), checkpoint=Checkpoint("run.checkpoint", 1e-6))
result.to_file(file)
"""


class Killed(BaseException):
    """Ends a run at once, as a signal would."""


def ending_after(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next runs end behind so many of their parts."""
    write, written = checkpoints.write_saved, []

    def counted(*arguments: Any, **options: Any) -> None:
        write(*arguments, **options)
        written.append(None)
        if len(written) == parts:
            raise Killed

    monkeypatch.setattr(checkpoints, "write_saved", counted)


def assert_same(one: mbsfmu.Result, other: mbsfmu.Result) -> None:
    assert one.names == other.names
    for name in one.names:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert one.statistics == other.statistics
    assert one.error == other.error


@pytest.mark.parametrize(
    ("model", "options", "compiled"),
    [
        ("four-bar", {"solver": "trapezoidal", "step": 2e-3}, True),
        ("four-bar", {"solver": "rodas5p"}, True),
        ("four-bar", {"solver": "trapezoidal", "step": 2e-3}, False),
        ("crane", {"formulation": "dca", "solver": "rodas5p"}, False),
        ("pendulum-3", {"formulation": "dca-alm", "step": 5e-3, "check_error": True}, True),
    ],
)
def test_runs_that_go_on_give_the_same_bits(
    model: str, options: dict[str, Any], compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = 1.4 if compiled else 0.05
    made = mbsfmu.models.built_in(model)

    def run(file: str) -> mbsfmu.Result:
        checkpoint = Checkpoint(tmp_path / file, 1e-9)
        return made.simulation(**options, compiled=compiled).run(stop, checkpoint=checkpoint)

    whole = run("whole")
    with monkeypatch.context() as patched:
        ending_after(10, patched)
        with pytest.raises(Killed):
            run("killed")
    with monkeypatch.context() as patched:  # and once more, further on
        ending_after(7, patched)
        with pytest.raises(Killed):
            run("killed")
    assert_same(run("killed"), whole)
    if options.get("solver") == "trapezoidal" or "step" in options:
        assert_same(made.simulation(**options, compiled=compiled).run(stop), whole)  # steps end at outputs anyway


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_process_that_is_killed_at_any_instant_loses_nothing(tmp_path: Path) -> None:
    """Several times in one run, wherever it is just then; its file is whole or not there."""
    arguments = [sys.executable, "-c", RUN, "four-bar", "trapezoidal", "60", "1e-3"]
    killed = 0
    for delay in (0.05, 0.2, 0.4, 0.1, 0.3):
        process = subprocess.Popen([*arguments, "run.parquet"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "made\n"
        time.sleep(delay)
        process.kill()
        process.stdout.close()
        killed += process.wait() == -signal.SIGKILL
    assert killed >= 2
    subprocess.run([*arguments, "run.parquet"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    (tmp_path / "run.checkpoint").unlink()
    subprocess.run([*arguments, "whole.parquet"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    run, whole = (mbsfmu.Trajectory.from_file(tmp_path / f"{name}.parquet") for name in ("run", "whole"))
    for name in whole.names:
        np.testing.assert_array_equal(run[name], whole[name], err_msg=name)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("compiled", [True, False])
def test_motion_that_was_set_by_hand_goes_on_with_its_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    """Position and velocity of a crank are set: the position runs on, through checkpoints too, written or not."""
    model = driven_crank(signal=None)

    def run(file: str, seconds: float = 1e-9) -> mbsfmu.Result:
        simulation = model.simulation(step=1e-3, compiled=compiled)
        simulation.set("motor.position", START)
        simulation.set("motor.velocity", 3.0)
        return simulation.run(0.5, checkpoint=Checkpoint(tmp_path / file, seconds))

    unwritten = run("unwritten", 1e6)
    assert not (tmp_path / "unwritten").exists()
    with monkeypatch.context() as patched:
        ending_after(100, patched)
        with pytest.raises(Killed):
            run("killed")
    result = run("killed")
    assert_same(result, unwritten)
    np.testing.assert_allclose(result["crank.angle"], START + 3.0 * result.time, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"stop": 0.3}, "saved by a run with the stop time 0.2 s; this one has 0.3 s"),
        ({"output_step": 4e-3}, "saved by a run with the output step 0.002 s; this one has 0.004 s"),
        ({"step": 1e-3}, "saved by a run with the output step 0.002 s; this one has 0.001 s"),
        ({"step": 1e-3, "output_step": 2e-3}, "saved by a run with the values"),
        ({"formulation": "dca"}, "saved by a run with the equations and options"),
        ({"mass": 300.0}, "saved by a run with the values"),
        ({"model": "quick-return"}, "saved by a run with the model four-bar; this one has quick-return"),
    ],
)
def test_checkpoints_of_other_calls_are_refused(
    change: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(
        *,
        model: str = "four-bar",
        stop: float = 0.2,
        output_step: float | None = None,
        mass: float | None = None,
        **own: Any,
    ) -> None:
        options = {"formulation": "double-step", "solver": "trapezoidal", "step": 2e-3, **own}
        simulation = mbsfmu.models.built_in(model).simulation(**options)
        if mass is not None:
            simulation.set("boom.mass", mass)
        simulation.run(stop, output_step=output_step, checkpoint=Checkpoint(tmp_path / "run", 1e-9))

    ending_after(5, monkeypatch)
    with pytest.raises(Killed):
        run()
    with pytest.raises(InputError, match=sentence):
        run(**change)
    run()


def test_damaged_files_are_refused_and_times_must_be_positive(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"nothing")
    with pytest.raises(InputError, match="run is no saved run"):
        mbsfmu.models.pendulum(1).simulation().run(0.1, checkpoint=Checkpoint(tmp_path / "run"))
    with pytest.raises(InputError, match="the time between checkpoints is 0 s; it must be positive"):
        Checkpoint(tmp_path / "run", 0.0)


def test_checkpoints_are_as_far_apart_as_asked_and_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def passed() -> float:
        now[0] += 1.0
        return now[0]

    written: list[int] = []
    write = checkpoints.write_saved

    def counted(path: Path, call: Any, content: Any, **options: Any) -> None:
        write(path, call, content, **options)
        written.append(len(read_saved(path, call)["rows"]))

    monkeypatch.setattr(checkpoints.clock, "monotonic", passed)
    monkeypatch.setattr(checkpoints, "write_saved", counted)
    checkpoint = Checkpoint(tmp_path / "run", 10.0)
    left = tmp_path / "runabc.part"
    left.touch()
    result = mbsfmu.models.pendulum(1).simulation(step=1e-3).run(1.0, checkpoint=checkpoint)
    assert len(result.time) == 1001
    assert 20 <= len(written) <= 26
    assert not left.exists()
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []


def test_interrupted_runs_keep_their_checkpoint(tmp_path: Path) -> None:
    model, checkpoint = mbsfmu.models.pendulum(1), Checkpoint(tmp_path / "run", 1e-9)

    def interrupt(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as ended:
        model.simulation(step=1e-3, compiled=False).run(0.6, progress=interrupt, checkpoint=checkpoint)
    assert 0.25 < float(ended.value.result.time[-1]) < 0.6
    assert checkpoint.file.exists()
    went_on = model.simulation(step=1e-3, compiled=False).run(0.6, checkpoint=checkpoint)
    np.testing.assert_array_equal(
        went_on["link_1.angle"], model.simulation(step=1e-3, compiled=False).run(0.6)["link_1.angle"]
    )


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/reference/files.md: the run's file is there in the end, and its checkpoint is not."""
    page = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    code = next(each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Checkpoint" in each)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # the page is ours
    assert [path.name for path in tmp_path.iterdir()] == ["run.csv"]
