"""Coupled runs that are killed at any instant and go on from their last checkpoint: the same bits, the same file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS
from started import run_python

import mbsfmu
from mbsfmu import Checkpoint, Cosimulation, InputError, StepSignal, Trajectory, cosimulate
from mbsfmu.cosim import CosimulationInterrupted
from mbsfmu.cosim.runs.run_recorder import Record
from mbsfmu.io import checkpoints
from mbsfmu.io.streams import SignalStream

Foreign = Callable[[str], Path]


class Killed(BaseException):
    """Ends a run at once, as a signal would."""


def ending_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next runs end right after so many checkpoints; rows that wait for the file are lost."""
    write, written = checkpoints.write_saved, []

    def counted(*arguments: Any, **options: Any) -> None:
        write(*arguments, **options)
        written.append(None)
        if len(written) == count:
            raise Killed

    monkeypatch.setattr(checkpoints, "write_saved", counted)
    monkeypatch.setattr(Record, "finish", lambda _: None)  # a signal leaves no time for it


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "gauss-seidel", "extrapolation": "linear", "record_every": 7},
        {"algorithm": "newton", "extrapolation": "quadratic"},
        {"algorithm": "gauss-seidel", "extrapolation": "linear", "control": "error", "tolerance": 1e-3},
    ],
    ids=["gauss-seidel", "newton", "controlled"],
)
def test_runs_that_go_on_give_the_same_bits(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], suffix: str
) -> None:
    call: dict[str, Any] = {"connections": CONNECTIONS, "step": 5e-3, "stop": 1.5, **options}
    output, checkpoint = tmp_path / f"run.{suffix}", Checkpoint(tmp_path / "run.checkpoint", 1e-9)

    def run() -> mbsfmu.CosimulationResult:
        return cosimulate(halves_exact, output=output, checkpoint=checkpoint, **call)

    whole = cosimulate(halves_exact, **call)
    for count in (10, 7):
        with monkeypatch.context() as patched:
            ending_after(count, patched)
            with pytest.raises(Killed):
                run()
    made = run()
    np.testing.assert_array_equal(made.time, whole.time)
    np.testing.assert_array_equal(made.values_by_column, whole.values_by_column)
    np.testing.assert_array_equal(Trajectory.from_file(output).values_by_column, whole.values_by_column)
    for fact in ("steps", "iterations", "rollbacks", "rejected_steps", "unit_steps", "notes", "energy_exchanged"):
        assert getattr(made, fact) == getattr(whole, fact), fact
    assert made.wall_seconds > 0.0
    checkpoint.remove()


def test_rows_are_there_while_a_run_takes_over_its_file(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends right after the new file has taken the place of the one with the rows."""
    call: dict[str, Any] = {"connections": CONNECTIONS, "step": 5e-3, "stop": 1.5, "output": tmp_path / "run.csv"}
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", 1e-9)
    with monkeypatch.context() as patched:
        ending_after(10, patched)
        with pytest.raises(Killed):
            cosimulate(halves_exact, checkpoint=checkpoint, **call)
        begin = SignalStream.begin

        def ended(stream: SignalStream) -> None:
            begin(stream)
            raise Killed

        patched.setattr(SignalStream, "begin", ended)
        with pytest.raises(Killed):
            cosimulate(halves_exact, checkpoint=checkpoint, **call)
    made = cosimulate(halves_exact, checkpoint=checkpoint, **call)
    whole = cosimulate(halves_exact, **(call | {"output": None}))
    np.testing.assert_array_equal(made.values_by_column, whole.values_by_column)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_process_that_is_killed_at_any_instant_loses_nothing(halves_exact: list[Path], tmp_path: Path) -> None:
    """Several times in one run, by the command, wherever it is just then, also while it takes over its file."""
    call = ["-m", "mbsfmu", "cosim", *map(str, halves_exact), "--quiet", "--step", "1e-3", "--stop", "20"]
    call += ["--algorithm", "newton", "--record-every", "20"]
    for connection in CONNECTIONS:
        call += ["--connect", connection]
    file, killed = tmp_path / "run.csv.checkpoint", 0
    for delay in (0.1, 0.0, 0.05, 0.01):
        before = file.stat().st_mtime_ns if file.exists() else 0
        process = subprocess.Popen([sys.executable, *call, "-o", "run.csv", "--checkpoint", "1e-6"], cwd=tmp_path)
        while process.poll() is None and (file.stat().st_mtime_ns if file.exists() else 0) == before:
            time.sleep(1e-3)
        time.sleep(delay)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
    assert killed >= 2
    for more in (["-o", "run.csv", "--checkpoint", "1e-6"], ["-o", "whole.csv"]):
        done = run_python(*call, *more, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not file.exists()


def test_fmus_without_serialization_are_refused_before_the_run(foreign: Foreign, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dahlquist cannot save the state for another process; the run cannot be sav"):
        cosimulate(
            foreign("dahlquist"),
            step=0.1,
            stop=1.0,
            output=tmp_path / "run.csv",
            checkpoint=Checkpoint(tmp_path / "run.checkpoint"),
        )
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_needs_an_output(halves_exact: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a checkpoint needs an output: the rows of the run are kept in its file"):
        Cosimulation(halves_exact, step=1e-2, checkpoint=Checkpoint(tmp_path / "run.checkpoint"))
    refused = run_python("-m", "mbsfmu", "cosim", str(halves_exact[0]), "--checkpoint", "60", folder=tmp_path)
    assert refused.returncode == 2
    assert "--checkpoint 60 needs --output: the run is saved beside it" in refused.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"stop": 0.9}, r"saved by a run with the stop time 0\.8 s; this one has 0\.9 s"),
        ({"algorithm": "jacobi"}, "saved by a run with the algorithm gauss-seidel; this one has jacobi"),
        ({"inputs": {"one.force": StepSignal(times=(0.1,), values=(2.0,))}}, "saved by a run with the signals"),
    ],
)
def test_checkpoints_of_other_calls_are_refused(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], sentence: str
) -> None:
    call: dict[str, Any] = {
        "inputs": {"one.force": StepSignal(times=(0.1,), values=(1.0,))},
        "step": 0.01,
        "stop": 0.8,
        "connections": CONNECTIONS[1:],
        "output": tmp_path / "run.csv",
        "checkpoint": Checkpoint(tmp_path / "run.checkpoint", 1e-9),
    }
    ending_after(5, monkeypatch)
    with pytest.raises(Killed):
        cosimulate(halves_exact, **call)
    with pytest.raises(InputError, match=sentence):
        cosimulate(halves_exact, **(call | change))
    cosimulate(halves_exact, **call)


def test_the_file_of_another_run_is_not_gone_on_with(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows, of another force."""
    call: dict[str, Any] = {"step": 0.01, "stop": 0.8, "connections": CONNECTIONS[1:], "output": tmp_path / "run.csv"}
    force = {"parameters": {"one.force": 1.0}}
    with monkeypatch.context() as patched:
        ending_after(20, patched)
        with pytest.raises(Killed):
            cosimulate(halves_exact, checkpoint=Checkpoint(tmp_path / "saved", 1e-9), **force, **call)
    cosimulate(halves_exact, parameters={"one.force": 2.0}, **call)
    with pytest.raises(InputError, match=r"run\.csv has other rows than those that were recorded"):
        cosimulate(halves_exact, checkpoint=Checkpoint(tmp_path / "saved"), **force, **call)


def test_interrupted_runs_keep_their_checkpoint(halves_exact: list[Path], tmp_path: Path) -> None:
    call: dict[str, Any] = {"connections": CONNECTIONS, "step": 1e-3, "stop": 1.0}
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", 1e-9)

    def interrupt(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    kept = {"output": tmp_path / "run.csv", "checkpoint": checkpoint}
    with pytest.raises(CosimulationInterrupted):
        cosimulate(halves_exact, progress=interrupt, **kept, **call)
    assert checkpoint.file.exists()
    whole, run = cosimulate(halves_exact, **call), cosimulate(halves_exact, **kept, **call)
    np.testing.assert_array_equal(run.values_by_column, whole.values_by_column)


def test_checkpoints_are_as_far_apart_as_asked(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, written = [1e9], []

    def passed() -> float:
        now[0] += 1.0
        return now[0]

    write = checkpoints.write_saved
    monkeypatch.setattr(checkpoints.clock, "monotonic", passed)
    monkeypatch.setattr(checkpoints, "write_saved", lambda *given, **how: (write(*given, **how), written.append(None)))
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", 1e6)
    options: dict[str, Any] = {"connections": CONNECTIONS, "step": 1e-3, "stop": 1.0}
    cosimulate(halves_exact, output=tmp_path / "run.csv", checkpoint=checkpoint, **options)
    assert not written
    cosimulate(halves_exact, output=tmp_path / "run.csv", checkpoint=Checkpoint(checkpoint.path, 1e-3), **options)
    assert len(written) == checkpoints.PARTS - 1
