"""The command `sweep`: its file, its words, its exit statuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from scipy.stats import qmc
from started import run_python


def call(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "mbsfmu", "sweep", *arguments, folder=folder)


def test_sweep_writes_a_row_a_point(tmp_path: Path) -> None:
    done = call(
        "pendulum-1", "--vary", "link_1.mass=1,2,-3", "--step", "1e-3,2e-3", "--set", "solver=trapezoidal,rk4",
        "--stop", "0.1", "-o", "rows.parquet", "--json", "rows.json", "--report", "rows.html", folder=tmp_path,
    )  # fmt: skip
    assert "points ran to the end" in (tmp_path / "rows.html").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "12 points in rows.parquet" in done.stdout
    assert "4 points: link_1.mass = -3 kg is refused" in done.stdout
    table = pyarrow.parquet.read_table(tmp_path / "rows.parquet")
    assert table.column("status").to_pylist() == ["ok"] * 8 + ["failed"] * 4
    assert set(table.column("solver").to_pylist()) == {"trapezoidal", "rk4"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.html", "rows.json", "rows.parquet"]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["pendulum-1", "-o", "r.parquet"], 2, "nothing is varied; give --vary"),
        (["pendulum-1", "--vary", "link_1.mass", "-o", "r.parquet"], 2, "must read name=values"),
        (["pendulum-1", "--vary", "link_1.mass=1:2", "-o", "r.parquet"], 2, "'1:2' is no list of values"),
        (["pendulum-1", "--vary", "link_1.mass=1"], 2, "Missing option '-o'"),
        (["pendulum-1", "--step", "1e-3", "--set", "step=1e-3", "-o", "r.parquet"], 2, "step is given twice"),
        (["pendulum-1", "--step", "1e-3", "--workers", "0", "-o", "r.parquet"], 2, "workers is 0"),
        (["pendulum-1", "--step", "1e-3", "-o", "no/r.parquet"], 2, "the folder of no/r.parquet is not there"),
        (["pendulum-1", "--vary", "link_1.mass=-1", "-o", "r.parquet"], 1, "every point failed"),
    ],
)
def test_refusals(tmp_path: Path, arguments: list[str], status: int, sentence: str) -> None:
    done = call(*arguments, folder=tmp_path)
    assert done.returncode == status
    assert sentence in done.stderr.splitlines()[-1]


def test_samples_are_drawn_or_read(tmp_path: Path) -> None:
    """The same seed gives the same rows, drawn by the command or by SciPy's generator itself."""
    drawn = ("--vary", "link_1.mass=1:3", "--sample", "latin-hypercube:4", "--seed", "5", "--stop", "0.1")
    done = call("pendulum-1", *drawn, "-o", "rows.csv", "--quiet", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 points in rows.csv" in done.stdout
    masses = [float(row.split(",")[0]) for row in (tmp_path / "rows.csv").read_text().splitlines()[1:]]
    expected = 1.0 + 2.0 * qmc.LatinHypercube(1, rng=np.random.default_rng(5)).random(4)[:, 0]
    np.testing.assert_allclose(masses, expected, rtol=1e-12)
    (tmp_path / "points.csv").write_text("link_1.mass,link_1.length\n1,2\n2,1\n3,1\n")
    done = call("pendulum-1", *("--points", "points.csv", "--stop", "0.1", "-o", "p.csv"), folder=tmp_path)
    assert "3 points in p.csv" in done.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sample", "sobol"], "samples must read METHOD:COUNT"),
        (["--sample", "sobl:8"], "there is no sampling method 'sobl'; did you mean 'sobol'"),
        (["--sample", "sobol:0"], "the number of samples is 0; it must be at least 1"),
        (["--seed", "3"], "--seed 3 has no effect without --sample"),
        (["--sample", "sobol:8", "--points", "p.csv"], "give one of them"),
        (["--points", "nothing.csv"], "there is no file nothing.csv"),
    ],
)
def test_samples_are_refused_in_a_sentence(tmp_path: Path, options: list[str], sentence: str) -> None:
    words = ("pendulum-1", "--vary", "link_1.mass=1:3:2" if "--points" in options else "link_1.mass=1:3")
    done = call(*words, "-o", "r.csv", *options, folder=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "r.csv").exists()
