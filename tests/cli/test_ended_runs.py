"""Runs of `simulate` that fail or are interrupted leave the rows until then, say so, and exit with 1 or 130."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from started import run_python

import mbsfmu
from mbsfmu import JointDrive, Mechanism, StepSignal
from mbsfmu.io.checkpoints import RunError, RunInterrupted


def failing() -> mbsfmu.CoupledModel:
    """A pendulum in whose hinge a torque that no number can hold jumps in at 0.05 s."""
    plain = mbsfmu.models.pendulum(1).systems["mechanism"]
    assert isinstance(plain, Mechanism)
    driven = plain.model_copy(update={"forces": (JointDrive(name="motor", joint="joint_1"),)})
    torque = StepSignal(times=(0.05,), values=(1e308,))
    return mbsfmu.CoupledModel(
        name="failing", systems={"mechanism": driven}, signals={"mechanism.motor.torque": torque}, stop_time=0.1
    )


def swing() -> mbsfmu.Trajectory:
    """What the pendulum does until then."""
    return mbsfmu.models.pendulum(1).simulation().run(0.05)


@pytest.mark.parametrize("solver", ["trapezoidal", "dop853"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_failing_run_has_what_it_did(solver: str) -> None:
    with pytest.raises(RunError) as caught:
        failing().simulation(solver=solver, compiled=False).run()
    result = caught.value.result
    assert 0.049 < result.time[-1] < 0.0515
    reached = np.searchsorted(result.time, 0.0499)
    np.testing.assert_allclose(result["link_1.angle"][:reached], swing()["link_1.angle"][:reached], atol=1e-6)


def test_an_interrupted_run_has_its_first_half() -> None:
    def interrupt(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as caught:
        mbsfmu.models.pendulum(1).simulation(compiled=False).run(1.0, progress=interrupt)
    result = caught.value.result
    assert 0.5 < result.time[-1] < 0.7
    assert len(result.time) == len(result["link_1.angle"])


def test_the_command_writes_what_a_failing_run_did(tmp_path: Path) -> None:
    failing().to_file(tmp_path / "failing.json")
    arguments = ["simulate", "failing.json", "-o", "run.csv", "--report", "run.html"]
    done = run_python("-m", "mbsfmu", *arguments, folder=tmp_path)
    assert done.returncode == 1
    assert "run.csv and run.html have what was recorded until 0.05" in done.stderr
    assert '<p class="bad">The run ended at' in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "Traceback" not in done.stderr
    kept = mbsfmu.Trajectory.from_file(tmp_path / "run.csv")
    assert kept.time[-1] == pytest.approx(0.05, abs=1.1e-3)
    assert kept["link_1.angle"][:50] == pytest.approx(swing()["link_1.angle"][:50], abs=1e-9)


def test_the_command_writes_what_an_interrupted_run_did(tmp_path: Path) -> None:
    """It says that nothing drives the motor where it begins to step; then comes what Ctrl-C sends."""
    failing().model_copy(update={"signals": {}}).to_file(tmp_path / "swing.json")
    arguments = ["simulate", "swing.json", "--solver", "dop853", "--stop", "1e3", "-o", "run.parquet"]
    command = [sys.executable, "-m", "mbsfmu", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "nothing drives motor.torque" in process.stderr.readline()
        time.sleep(5.0)  # long enough for some steps on a machine with other work
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
    assert process.returncode == 130, told
    assert told.splitlines()[-1] == "mbsfmu: interrupted"
    assert "run.parquet has what was recorded until" in told
    assert 0.0 < mbsfmu.Trajectory.from_file(tmp_path / "run.parquet").time[-1] < 1e3
