"""The command `sweep`: its file, its words, its exit statuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow.parquet
import pytest
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
    assert "4 times: link_1.mass = -3 kg is refused" in done.stdout
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
