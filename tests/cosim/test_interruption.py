"""Runs that end before their time keep what was recorded."""

from __future__ import annotations

import os
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
from mbsfmu.cosim import CosimulationError, CosimulationInterrupted, cosimulate
from mbsfmu.trajectory import Trajectory

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

    monkeypatch.setattr("mbsfmu.cosim.archive.Archive.close", interrupted)
    with pytest.raises(CosimulationInterrupted) as ended:
        cosimulate(halves_exact, connections=CONNECTIONS, step=STEP, stop=0.1)
    assert ended.value.result.time[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("ending", ["interrupted", "failed"])
def test_the_command_writes_it(
    halves_exact: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    def ended(*_: object, **__: object) -> None:
        result = cosimulate(halves_exact, connections=CONNECTIONS, step=STEP, stop=0.2)
        raise CosimulationInterrupted(result) if ending == "interrupted" else CosimulationError("one fails", result)

    monkeypatch.setattr("mbsfmu.cli.cosim.cosimulate", ended)
    output = tmp_path / "part.csv"
    done = CliRunner().invoke(command, ["a.fmu", "--quiet", "-o", str(output)])
    assert done.exit_code != 0
    assert f"{output} has what was recorded until 0.2 s" in done.stderr
    assert Trajectory.from_file(output).time[-1] == pytest.approx(0.2)


def test_a_run_that_the_system_ends_has_its_rows(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """It would go on for minutes; nothing stays in the temporary folder."""
    output, unpacked = tmp_path / "run.csv", tmp_path / "unpacked"
    unpacked.mkdir()
    command = [sys.executable, "-m", "mbsfmu", "cosim", str(foreign("dahlquist")), "--step", "1e-4", "--stop", "1e4"]
    process = subprocess.Popen(
        [*command, "-o", str(output)], env={**os.environ, "TMPDIR": str(unpacked)}, stderr=subprocess.PIPE, text=True
    )
    while not list(unpacked.glob("*/binaries/*/*")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "interrupted" in told
    assert list(unpacked.iterdir()) == []
    kept = Trajectory.from_file(output)
    np.testing.assert_allclose(kept["x"], np.exp(-kept.time), rtol=1e-9)


def test_a_refused_call_closes_units_without_a_word(halves_exact: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="there is no algorithm 'nothing'"):
        cosimulate(halves_exact, connections=CONNECTIONS, algorithm="nothing")
    assert caplog.text == ""
