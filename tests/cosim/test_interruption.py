"""Runs that end before their time keep what was recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from cosim.linear_units import CONNECTIONS

from mbsfmu.cli.cosim import command
from mbsfmu.cosim import CosimulationInterrupted, cosimulate
from mbsfmu.io.trajectory import Trajectory

STEP = 1e-3


def stopping(share: float) -> None:
    """What Ctrl-C does, in the middle of a run."""
    if share > 0.5:
        raise KeyboardInterrupt


def test_an_interrupted_run_has_its_first_half(halves_exact: list[Path]) -> None:
    options = {"connections": CONNECTIONS, "step": STEP, "algorithm": "gauss-seidel"}
    whole = cosimulate(halves_exact, stop=1.0, **options)
    with pytest.raises(CosimulationInterrupted) as ended:
        cosimulate(halves_exact, stop=1.0, progress=stopping, **options)
    result = ended.value.result
    assert 0.5 < result.time[-1] < 0.7
    for name in result.names:
        np.testing.assert_array_equal(result[name], whole[name][: len(result.time)])


def test_a_run_that_is_interrupted_while_its_units_are_closed_is_whole(
    halves_exact: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mbsfmu.cosim.fmus.archive.Archive.close", interrupted)
    with pytest.raises(CosimulationInterrupted) as ended:
        cosimulate(halves_exact, connections=CONNECTIONS, step=STEP, stop=0.1)
    assert ended.value.result.time[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("suffix", ["csv", "h5", "parquet"])
def test_the_file_of_a_run_that_fails_has_its_rows(foreign: Callable[[str], Path], tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"part.{suffix}"
    options = ["--step", "0.1", "--stop", "1", "--quiet", "-o", str(output)]
    done = CliRunner().invoke(command, [str(foreign("failing")), *options])
    assert done.exit_code != 0
    assert f"{output} has what was recorded until 0.5 s" in done.stderr
    np.testing.assert_allclose(Trajectory.from_file(output)["now"], np.linspace(0.0, 0.5, 6), atol=1e-12)
    assert list(tmp_path.iterdir()) == [output]


def test_a_run_that_the_system_ends_has_its_rows(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """It would go on for minutes; nothing stays in the temporary folder."""
    output, unpacked = tmp_path / "run.csv", tmp_path / "unpacked"
    unpacked.mkdir()
    command = [sys.executable, "-m", "mbsfmu", "cosim", str(foreign("dahlquist")), "--step", "1e-4", "--stop", "1e4"]
    process = subprocess.Popen(
        [*command, "-o", str(output)], env={**os.environ, "TMPDIR": str(unpacked)}, stderr=subprocess.PIPE, text=True
    )
    while not list(unpacked.glob("**/binaries/*/*")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted" in told
    assert list(unpacked.iterdir()) == []
    kept = Trajectory.from_file(output)
    np.testing.assert_allclose(kept["x"], np.exp(-kept.time), rtol=1e-9)


def test_a_refused_call_closes_units_without_a_word(halves_exact: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="there is no algorithm 'nothing'"):
        cosimulate(halves_exact, connections=CONNECTIONS, algorithm="nothing")
    assert caplog.text == ""
