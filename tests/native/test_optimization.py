"""Code computes the same however much it is optimized; tests of all else may take what is compiled soonest."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from native_fmus import model_of

import mbsfmu
from mbsfmu.compiling import compiler, kept


@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [
        ("four-bar", "double-step", "trapezoidal"),
        ("four-bar", "penalty", "trapezoidal"),
        ("ball-pendulum", "dca-alm", "trapezoidal"),
        ("loop-4", "hdca", "rk45"),
        ("pendulum-4", "dca", "trapezoidal"),
    ],
)
def test_units_as_they_are_shipped_compute_the_same_to_the_last_bit(
    name: str, formulation: str, solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for level in ("", "0"):
        monkeypatch.setenv(compiler.OPTIMIZATION, level)
        options = {"layout": "monolithic", "formulation": formulation, "solver": solver}
        (path,) = mbsfmu.export(model_of(name), tmp_path / f"level{level}", **options)
        results.append(fmpy.simulate_fmu(str(path), stop_time=0.3, step_size=1e-2, output_interval=1e-2))
    shipped, plain = results
    assert len(shipped) == 31
    for output in shipped.dtype.names:
        np.testing.assert_array_equal(shipped[output], plain[output], err_msg=output)


def test_runs_in_process_compute_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for level in ("2", "0"):
        monkeypatch.setenv(compiler.OPTIMIZATION, level)
        results.append(mbsfmu.models.built_in("loop-4").simulation().run(0.2))
    assert all(np.array_equal(results[0][name], results[1][name]) for name in results[0].names)


def test_levels_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    sources = {"sum.c": "double sum(double *x) { double s = 0; for (int i = 0; i < 9; i++) s += x[i]; return s; }\n"}
    mains = {"sum.c": "-O3"}
    made = []
    for level in ("0", "3"):
        monkeypatch.setenv(compiler.OPTIMIZATION, level)
        with compiler.unoptimized():  # where no level is given
            made.append(compiler.compile_library(sources, mains, None, portable=False))
    assert made[0].read_bytes() != made[1].read_bytes()
    monkeypatch.delenv(compiler.OPTIMIZATION)
    suited = compiler.compile_library(sources, mains, None, portable=False)
    with compiler.unoptimized():
        quick = compiler.compile_library(sources, mains, None, portable=False)
    assert [quick.read_bytes(), suited.read_bytes()] == [each.read_bytes() for each in made]


def test_unknown_levels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiler.OPTIMIZATION, "fast")
    with pytest.raises(mbsfmu.SimulationError, match="MBSFMU_OPTIMIZATION is 'fast'; it must be 0, 1, 2, 3 or suited"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path / "out", layout="monolithic")
    assert not (tmp_path / "out").exists()
