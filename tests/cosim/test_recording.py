"""Rows on their way to files: all of them, or those that were asked for, whatever ends the run."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from cosim.linear_units import CONNECTIONS
from started import run_python

from mbsfmu import Cosimulation, CosimulationError, InputError, cosimulate
from mbsfmu.cosim import CosimulationInterrupted
from mbsfmu.cosim.fmus.fmi2 import Fmi2Instance
from mbsfmu.cosim.runs.run_recorder import Thinning
from mbsfmu.io.streams import SignalStream
from mbsfmu.io.trajectory import Trajectory

Foreign = Callable[[str], Path]
SUFFIXES = ("csv", "h5", "mat", "nc", "parquet")


@pytest.mark.parametrize(("suffix", "control"), [*((each, "fixed") for each in SUFFIXES), ("csv", "error")])
def test_a_file_has_what_memory_has(halves_exact: list[Path], tmp_path: Path, suffix: str, control: str) -> None:
    options = {"connections": CONNECTIONS, "step": 1e-3, "stop": 1.3, "control": control, "extrapolation": "linear"}
    kept = cosimulate(halves_exact, **options)
    file = tmp_path / f"run.{suffix}"
    result = cosimulate(halves_exact, output=file, **options)
    read = Trajectory.from_file(file)
    for other in (read, result):
        assert other.names == kept.names
        assert [other.unit(name) for name in kept.names] == [kept.unit(name) for name in kept.names]
        np.testing.assert_array_equal(other.time, kept.time)
        np.testing.assert_array_equal(other.values_by_column, kept.values_by_column)
    assert result.final() == kept.final()
    assert result.summary()["stop"] == 1.3
    assert list(tmp_path.iterdir()) == [file]


def test_chosen_columns_and_rows(halves_exact: list[Path], tmp_path: Path) -> None:
    options = {"connections": CONNECTIONS, "step": 1e-3, "stop": 1.2345}
    whole = cosimulate(halves_exact, **options)
    some = cosimulate(halves_exact, record=["two.*", "*_residual.*"], record_every=100, **options)
    assert some.names == tuple(name for name in whole.names if not name.startswith("one."))
    np.testing.assert_array_equal(some.time, whole.time[[*range(0, 1235, 100), 1235]])
    np.testing.assert_array_equal(some["two.force"], whole["two.force"][[*range(0, 1235, 100), 1235]])
    assert some.steps == whole.steps
    assert some.smallest_step == pytest.approx(0.0005)
    assert some.energy_residual_max == whole.energy_residual_max  # of all steps, not of those that are recorded
    sparse = cosimulate(halves_exact, record_interval=0.25, output=tmp_path / "run.csv", **options)
    np.testing.assert_allclose(sparse.time, [0.0, 0.25, 0.5, 0.75, 1.0, 1.2345], atol=1e-12)


def test_interval_of_controlled_steps(halves_exact: list[Path]) -> None:
    result = cosimulate(
        halves_exact, connections=CONNECTIONS, step=1e-3, stop=2.0, control="error", extrapolation="linear",
        tolerance=1e-3, record_interval=0.3,
    )  # fmt: skip
    counts = np.floor(result.time / 0.3 + 1e-9)
    np.testing.assert_array_equal(counts[:-1], np.arange(7))  # the last row is the end, in the last interval


def test_a_pattern_that_means_nothing(halves_exact: list[Path]) -> None:
    with pytest.raises(InputError, match=r"nothing that is recorded is called 'two\.forces'; .*two\.force"):
        cosimulate(halves_exact, connections=CONNECTIONS, step=1e-3, stop=1.0, record=["two.forces"])
    for pattern in ("zzz*", "*zzz", "a.b.c.*"):  # no name can be made as wild as these are
        with pytest.raises(InputError, match=r"nothing that is recorded is called '.*'; .*one\.position"):
            cosimulate(halves_exact, connections=CONNECTIONS, step=1e-3, stop=1.0, record=[pattern])


def test_points_and_intervals_together(halves_exact: list[Path]) -> None:
    """Every third point, as there is at most one in each interval of two points; the last one in any case."""
    options = {"connections": CONNECTIONS, "step": 1e-3, "stop": 0.02}
    result = cosimulate(halves_exact, record_every=3, record_interval=0.002, **options)
    np.testing.assert_allclose(result.time, [*np.arange(0.0, 0.019, 0.003), 0.02], atol=1e-12)


def test_an_interval_begins_at_the_next_row_of_so_many() -> None:
    thinning = Thinning(0.0, 3, 0.010)
    times = 1e-3 * np.arange(31)
    chosen = np.concatenate([thinning.choose(times[:7]), thinning.choose(times[7:])])
    # Of the rows 0, 3, 6, … those that are the first of each interval of 10.
    np.testing.assert_array_equal(np.flatnonzero(chosen), [0, 12, 21, 30])


@pytest.mark.parametrize(
    "thinned",
    [
        {},
        {"record_every": 7},
        {"record_interval": 0.04},
        {"record_every": 8, "record_interval": 0.04},
        {"record_every": 80, "record_interval": 0.04},
        {"record": ["two.*"], "record_every": 1000},
    ],
)
def test_a_table_as_large_as_the_memory_is_the_largest(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thinned: dict[str, Any]
) -> None:
    """Of all rows and columns that there will be, times among them; a file may have more."""
    options = {"connections": CONNECTIONS, "step": 1e-3, "stop": 0.7, **thinned}
    result = cosimulate(halves_exact, **options)
    size = 8 * len(result.time) * (1 + len(result.names))
    monkeypatch.setattr("mbsfmu.base.times.SHARE", 1e9)  # rows where none are asked for are kept, whatever they take
    monkeypatch.setattr("mbsfmu.base.times.memory", lambda: 2.0 * size)
    np.testing.assert_array_equal(cosimulate(halves_exact, **options).time, result.time)
    monkeypatch.setattr("mbsfmu.base.times.memory", lambda: 2.0 * size - 1.0)
    with pytest.raises(InputError, match=f"its result of {1 + len(result.names)} columns takes"):
        cosimulate(halves_exact, **options)
    monkeypatch.setattr("mbsfmu.base.times.memory", lambda: 1.0)
    cosimulate(halves_exact, output=tmp_path / "run.csv", **options)
    np.testing.assert_array_equal(Trajectory.from_file(tmp_path / "run.csv").time, result.time)


def killed(source: Path, output: Path, rows: int) -> None:
    """Begin a run without end and kill its process when so many rows are on the disk."""
    command = [sys.executable, "-m", "mbsfmu", "cosim", str(source), "--step", "1e-4", "--stop", "1e5", "--quiet"]
    process = subprocess.Popen([*command, "-o", str(output)], env={**os.environ, "TMPDIR": str(output.parent)})
    partial = output.with_name(output.name + ".part")
    while not partial.is_file() or partial.stat().st_size < rows * 16:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_killed(foreign: Foreign, tmp_path: Path, suffix: str) -> None:
    """What the system kills leaves a file with all rows but the last ones; what is cut off is read in all formats."""
    output = tmp_path / f"run.{suffix}"
    killed(foreign("dahlquist"), output, 100000)
    read = Trajectory.from_file(tmp_path / f"run.{suffix}.part")
    assert len(read.time) > 50000
    np.testing.assert_allclose(read.time, 1e-4 * np.arange(len(read.time)), rtol=1e-12)
    np.testing.assert_allclose(read["x"], np.exp(-read.time), rtol=1e-7)
    if suffix == "parquet":  # other programs read it too
        with pyarrow.ipc.open_stream(tmp_path / "run.parquet.part") as stream:
            assert stream.schema.names == ["time", "dahlquist.x"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("left", [1, 5, 17, 200])
def test_a_cut_file(tmp_path: Path, suffix: str, left: int) -> None:
    """Wherever a file that grows is cut off, groups and lines that are whole are read, and no other number."""
    stream = SignalStream(tmp_path / f"run.{suffix}", ["x"], ["m"])
    stream.begin()
    for first in range(0, 100, 10):
        times = np.arange(first, first + 10.0)
        stream.add(times, np.sqrt(times)[:, None])
        stream.write()
    partial = tmp_path / f"run.{suffix}.part"
    partial.write_bytes(partial.read_bytes()[:-left])
    read = Trajectory.from_file(partial)
    assert 80 <= len(read.time) < 100
    np.testing.assert_array_equal(read["x"], np.sqrt(read.time))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_full_disk(foreign: Foreign, tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    """Rows that were written stay whole; those that were not are in memory still."""
    output = tmp_path / f"run.{suffix}"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(CosimulationError, match=rf"run\.{suffix} cannot be written: File too large") as ended:
            cosimulate(foreign("dahlquist"), step=1e-4, stop=10.0, output=output)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    result = ended.value.result
    assert result.recorded is not None
    file, end = result.recorded
    read = Trajectory.from_file(file)
    assert read.time[-1] == end
    assert len(read.time) < len(result.time)
    np.testing.assert_array_equal(result.time, 1e-4 * np.arange(len(result.time)))
    np.testing.assert_allclose(result["x"], np.exp(-result.time), rtol=1e-9)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_interrupted_while_rows_are_written(
    foreign: Foreign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """No row is lost, and none is there twice."""
    output, write, calls = tmp_path / f"run.{suffix}", os.write, []

    def interrupted(file: int, data: bytes) -> int:
        calls.append(write(file, data))
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return calls[-1]

    monkeypatch.setattr("mbsfmu.io.streams.os.write", interrupted)
    with pytest.raises(CosimulationInterrupted) as ended:
        cosimulate(foreign("dahlquist"), step=1e-4, stop=10.0, output=output)
    read = Trajectory.from_file(output)
    assert 1 < len(read.time) < 100000
    np.testing.assert_array_equal(read.time, 1e-4 * np.arange(len(read.time)))
    assert ended.value.result.recorded == (output, read.time[-1])


def test_what_was_there_stays_until_the_end(foreign: Foreign, tmp_path: Path) -> None:
    output = tmp_path / "run.csv"
    output.write_text("time [s],old [m]\n0,1\n")
    with pytest.raises(InputError):
        cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, record=["nothing"], output=output)
    assert "old" in output.read_text()
    seen = []

    def look(_: float) -> None:
        seen.append(output.read_text())

    cosimulate(foreign("dahlquist"), step=1e-3, stop=1.0, output=output, progress=look)
    assert all("old" in text for text in seen)
    assert "dahlquist.x" in output.read_text()


def test_grids_in_pieces(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid that is laid out piece by piece has the steps of a whole one, with events on it and beside it."""
    events = {"dahlquist.u": Bends((0.03, 0.3, 0.55, 0.61))}
    options = {"step": 0.1, "stop": 1.03, "inputs": events}
    whole = cosimulate(foreign("dahlquist"), **options)
    np.testing.assert_allclose(
        whole.time, [0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.61, 0.7, 0.8, 0.9, 1.0, 1.03], atol=1e-12
    )
    for piece in (1, 2, 3, 5):
        monkeypatch.setattr("mbsfmu.cosim.runs.coupled_run_loop._PIECE", piece)
        pieces = cosimulate(foreign("dahlquist"), **options)
        np.testing.assert_array_equal(pieces.time, whole.time)
        np.testing.assert_array_equal(pieces["x"], whole["x"])


class Bends:
    """A signal with events at which nothing happens."""

    def __init__(self, events: tuple[float, ...]) -> None:
        self.events = events

    def before(self, time: float) -> float:
        return np.sin(time)

    after = before


def test_what_is_not_recorded_is_told_from_what_there_is_not(halves_exact: list[Path]) -> None:
    options: dict[str, Any] = {"connections": CONNECTIONS, "step": 1e-3, "stop": 1.0}
    with pytest.raises(
        InputError, match=r"called 'one\.force': one\.force is an input, and numbers that are outputs are"
    ):
        cosimulate(halves_exact, record=["one.force"], **options)
    for pattern in ("one*.forces", "o*.sped", "one.pos*y", "t?o.for*e.x"):
        with pytest.raises(InputError) as refused:
            cosimulate(halves_exact, record=[pattern], **options)
        told = str(refused.value).split("; ")[1].removeprefix("did you mean '").removeprefix("there are ").rstrip("'?")
        for name in told.split(", "):
            cosimulate(halves_exact, record=[name], **options | {"stop": 1e-3})


def test_not_a_number_is_told_where_it_is_set(halves_exact: list[Path]) -> None:
    options: dict[str, Any] = {"step": 1e-2, "stop": 0.1}
    with pytest.raises(InputError, match=r"one\.force cannot be set at t = 0\.05 s to nan: it must be a number"):
        cosimulate(halves_exact, scenario={0.05: {"one.force": "nan"}}, **options)
    with pytest.raises(InputError, match=r"one\.force is nan; it must be a number"):
        cosimulate(halves_exact, parameters={"one.force": math.nan}, **options)
    with Cosimulation(halves_exact, **options) as run:
        run.run(until=0.03)
        with pytest.raises(InputError, match=r"one\.force cannot be set at t = 0\.03 s to nan: it must be a number"):
            run["one.force"] = math.nan
        assert run.run().final()["one.position"] == pytest.approx(
            cosimulate(halves_exact, **options).final()["one.position"]
        )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_two_runs_do_not_write_one_file(halves_exact: list[Path], tmp_path: Path, suffix: str) -> None:
    """Of another process, say; what a run has left that was killed is nobody's."""
    file = tmp_path / f"run.{suffix}"
    options: dict[str, Any] = {"connections": CONNECTIONS, "step": 1e-3, "stop": 0.01, "output": file}
    sentence = rf"run\.{suffix} is being written by another run; choose another file, or wait for its end"
    with Cosimulation(halves_exact, **options) as run:
        run.step()
        with pytest.raises(InputError, match=sentence):
            cosimulate(halves_exact, **options)
        command = ("-m", "mbsfmu", "cosim", *map(str, halves_exact), "--step", "1e-3", "--stop", "0.01")
        other = run_python(*command, "-o", str(file))
        assert other.returncode != 0
        assert "is being written by another run" in other.stderr
        assert run.run().steps == 10
    np.testing.assert_allclose(Trajectory.from_file(file).time, np.arange(11) * 1e-3, atol=1e-15)
    (tmp_path / f"run.{suffix}.part").write_bytes(b"left")
    assert cosimulate(halves_exact, **options).steps == 10


def test_a_unit_that_leaves_the_folder_does_not_move_the_files(
    foreign: Foreign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are those of where the call was made, and that is where the caller finds itself after it."""
    monkeypatch.chdir(tmp_path)
    setup = Fmi2Instance.setup

    def leaves(instance: Fmi2Instance, *given: Any) -> None:
        os.chdir("/")
        setup(instance, *given)

    monkeypatch.setattr(Fmi2Instance, "setup", leaves)
    cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, output="run.csv")
    assert Path.cwd() == tmp_path
    assert len(Trajectory.from_file(tmp_path / "run.csv").time) == 11
