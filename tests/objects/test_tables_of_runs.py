"""Runs, comparisons and studies as data frames, datasets and Arrow tables: the same numbers, with their units."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import mbsfmu
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.comparison import Comparison
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.runs.run_recorder import CosimulationResult
from mbsfmu.io.trajectory import Trajectory

TIMES = np.linspace(0.0, 1.0, 5)


@pytest.fixture(scope="module")
def fall() -> Trajectory:
    """What falls has v = g t and s = g t² / 2."""
    values = np.column_stack([9.81 * TIMES, 0.5 * 9.81 * TIMES**2])
    return Trajectory(TIMES, values, ["stone.velocity", "machine.stone.height"], ["m/s", "m"])


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    runs = [
        mbsfmu.Run(
            algorithm, step, "ok", {"x": share * step}, 0.1 * step, round(1 / step), 0.5, error_total={"x": step}
        )
        for algorithm, share in (("jacobi", 10.0), ("gauss-seidel", 5.0))
        for step in (1e-3, 2e-3)
    ]
    lost = mbsfmu.Run("jacobi", 4e-3, "diverged", {"x": None}, None, 3, 0.1, "x is off", error_total={"x": None})
    reference = {"cost": 0.1, "step": 1e-3, "error": {}}
    orders: dict[str, float | None] = {"jacobi": 1.0, "gauss-seidel": 1.0}
    return Comparison("four-bar", "", "penalty", reference, {"x": "m"}, [*runs, lost], orders, {})


@pytest.fixture(scope="module")
def study() -> mbsfmu.StudyResult:
    model, lengths = mbsfmu.models.pendulum(1), [0.5, 1.0]
    settings = {"step": [2e-3, 1e-3, 5e-4]}
    return mbsfmu.sweep(model, {"link_1.length": lengths}, settings=settings, stop=0.05, executor=InlineExecutor())


def test_signals_become_columns_of_a_data_frame(fall: Trajectory) -> None:
    frame = fall.to_pandas()
    assert frame.index.name == "time"
    np.testing.assert_array_equal(frame.index, TIMES)
    assert list(frame) == ["stone.velocity", "machine.stone.height"]
    np.testing.assert_array_equal(frame["machine.stone.height"], 0.5 * 9.81 * TIMES**2)
    assert frame.attrs["units"] == {"time": "s", "stone.velocity": "m/s", "machine.stone.height": "m"}


def test_signals_become_variables_of_a_dataset(fall: Trajectory) -> None:
    dataset = fall.to_xarray()
    assert dataset["stone.velocity"].attrs == {"units": "m/s"}
    assert dataset["time"].attrs == {"units": "s"}
    assert float(dataset["machine.stone.height"].sel(time=0.5)) == pytest.approx(9.81 / 8.0)
    assert dataset["stone.velocity"].dims == ("time",)


def test_signals_go_through_the_arrow_protocol(fall: Trajectory) -> None:
    table = pa.table(fall)
    assert table.column_names == ["time", "stone.velocity", "machine.stone.height"]
    assert table.schema.field("stone.velocity").metadata == {b"unit": b"m/s"}
    np.testing.assert_array_equal(table["stone.velocity"].to_numpy(), 9.81 * TIMES)
    as_reader = pa.RecordBatchReader.from_stream(fall).read_all()
    assert as_reader.equals(table)


def test_a_signal_cannot_have_the_name_of_the_times() -> None:
    clash = Trajectory(TIMES, TIMES, ["time"], ["s"])
    for convert in (clash.to_pandas, clash.to_xarray, clash.to_arrow):
        with pytest.raises(mbsfmu.InputError, match="a signal is called 'time'"):
            convert()


def test_runs_tell_what_they_are() -> None:
    result = mbsfmu.models.pendulum(1).simulation(compiled=False, step=2e-3).run(0.01)
    for told in (result.to_pandas().attrs, result.to_xarray().attrs):
        assert (told["model"], told["formulation"], told["step"]) == ("pendulum-1", "double-step", 2e-3)
    assert pa.table(result).schema.metadata[b"solver"] == b"trapezoidal"
    frame = pd.read_parquet(pa.BufferReader(_parquet(result)))
    np.testing.assert_array_equal(frame["link_1.angle"], result["link_1.angle"])


def _parquet(result: Trajectory) -> Any:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(result.to_arrow(), sink)
    return sink.getvalue()


def test_coupled_runs_tell_what_they_are() -> None:
    result = CosimulationResult(TIMES, TIMES, ["unit.x"], ["m"])
    result.statistics = RunStatistics(algorithm="jacobi", step=0.25, notes=["a note"])
    told = result.to_xarray().attrs
    assert (told["algorithm"], told["step"]) == ("jacobi", 0.25)
    assert "notes" not in told  # no attribute of a file can be a list of sentences
    assert {"algorithm", "energy_residual", "statistics", "to_pandas"} <= set(dir(result))


def test_a_comparison_has_one_row_a_run(comparison: Comparison) -> None:
    frame = comparison.to_pandas()
    assert len(frame) == 5
    assert frame.loc[1, ["algorithm", "step", "error.x", "steps"]].tolist() == ["jacobi", 2e-3, 0.02, 500]
    assert np.isnan(frame["error.x"][4])
    assert frame["message"][4] == "x is off"
    assert frame.attrs["units"]["cost"] == "s/s"
    assert pa.table(comparison).num_rows == 5
    assert [(row["algorithm"], row["step"]) for row in comparison.rows[:2]] == [("jacobi", 1e-3), ("jacobi", 2e-3)]


def test_a_comparison_is_a_grid_of_algorithms_and_steps(comparison: Comparison) -> None:
    dataset = comparison.to_xarray()
    error = dataset["error"]
    assert error.dims == ("algorithm", "step", "output")
    assert dataset["step"].attrs == {"units": "s"}
    assert float(error.sel(algorithm="gauss-seidel", step=1e-3, output="x")) == pytest.approx(5e-3)
    assert float(dataset["energy_residual"].sel(algorithm="jacobi", step=2e-3)) == pytest.approx(2e-4)
    assert np.isnan(error.sel(algorithm="gauss-seidel", step=4e-3)).all()  # not run
    ratio = error.sel(step=2e-3) / error.sel(step=1e-3)
    np.testing.assert_allclose(ratio.values[..., 0], 2.0)


def test_a_study_is_a_grid_of_what_is_varied(study: mbsfmu.StudyResult) -> None:
    """From rest φ̈ = m g L / (2 (J + m L² / 4)), with m = 1 kg and J = 1 kg m² whatever the length."""
    dataset = study.to_xarray()
    angle = dataset["final.link_1.angular_velocity"]
    assert angle.dims == ("mechanism.link_1.length", "step")
    assert angle.shape == (2, 3)
    assert angle.attrs == {"units": "rad/s"}
    assert dataset["mechanism.link_1.length"].attrs == {"units": "m"}
    assert str(dataset["formulation"].values) == "double-step"
    assert dataset["formulation"].dims == ()
    half, full = (angle.sel({"mechanism.link_1.length": length}) for length in (0.5, 1.0))
    np.testing.assert_allclose(half / full, (0.5 / 1.0625) / (1.0 / 1.25), rtol=1e-4)
    np.testing.assert_array_equal(dataset["steps"].sel({"mechanism.link_1.length": 0.5}), [25, 50, 100])
    assert dataset.attrs["model"] == "pendulum-1"


def test_columns_of_a_study_are_found_by_what_is_left_of_their_names(study: mbsfmu.StudyResult) -> None:
    assert study["link_1.length"].tolist() == [0.5] * 3 + [1.0] * 3
    assert study["steps"].dtype == int
    assert study["status"].tolist() == ["ok"] * 6
    assert study.unit("link_1.length") == "m"
    assert "no.such" not in study
    with pytest.raises(mbsfmu.InputError, match=r"there is no column 'link_1.lenght'; did you mean"):
        study["link_1.lenght"]
    assert list(study.to_pandas()["step"]) == [2e-3, 1e-3, 5e-4] * 2
    assert pa.table(study).schema.field("mechanism.link_1.length").metadata == {b"unit": b"m"}
    assert [row["step"] for row in study.rows] == [2e-3, 1e-3, 5e-4] * 2


def _without(folder: Path, *packages: str) -> str:
    """Return lines of Python that hide packages, as where they are not installed."""
    for package in packages:
        (folder / f"{package}.py").write_text("raise ImportError\n")
    return f"import sys; sys.path.insert(0, {str(folder)!r})\n"


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    """A base installation has neither of these."""
    code = _without(tmp_path, "pandas", "xarray", "pyarrow") + (
        "import mbsfmu\nfrom mbsfmu import InputError, Trajectory\n"
        "import numpy as np\n"
        "result = Trajectory(np.zeros(1), np.zeros((1, 1)), ['x'], ['m'])\n"
        "result.to_file('run.csv')\n"
        "study = lambda: mbsfmu.sweep(None, output='study.parquet')\n"
        "file = lambda: result.to_file('r.parquet')\n"
        "for wanted in (result.to_pandas, result.to_xarray, result.to_arrow, file, study):\n"
        "    try:\n        wanted()\n    except InputError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{what} needs {module}: pip install 'mbsfmu[data]'"
        for what, module in (
            ("to_pandas", "pandas"),
            ("to_xarray", "xarray"),
            ("a table in Arrow's form", "pyarrow"),
            ("r.parquet", "pyarrow"),
            ("study.parquet", "pyarrow"),
        )
    ]


def test_a_study_needs_nothing_that_is_not_always_installed(tmp_path: Path) -> None:
    code = _without(tmp_path, "pandas", "xarray", "pyarrow") + "from mbsfmu.cli.commands import main; main()"
    command = [sys.executable, "-c", code, "sweep", "pendulum-1", "--vary", "link_1.mass=1,2", "--stop", "0.01"]
    files = ["-o", "rows.csv", "--json", "rows.json", "--report", "page.html"]
    for _ in range(2):  # the second time nothing runs
        done = subprocess.run([*command, *files], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        assert "2 points in rows.csv" in done.stdout
    assert "2 of 2 points are done already" in done.stderr
    header = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.startswith("mechanism.link_1.mass [kg],formulation,status,message,")
    refused = subprocess.run(
        [*command, "-o", "rows.parquet"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        2,
        "mbsfmu: rows.parquet needs pyarrow: pip install 'mbsfmu[data]'",
    )


def test_a_command_says_what_is_not_installed_before_it_runs(tmp_path: Path) -> None:
    code = _without(tmp_path, "pyarrow") + "from mbsfmu.cli.commands import main; main()"
    command = [sys.executable, "-c", code, "simulate", "four-bar", "--stop", "1e9", "-o", "run.parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "mbsfmu: run.parquet needs pyarrow: pip install 'mbsfmu[data]'\n"


def test_importing_the_package_loads_no_library() -> None:
    """So it takes some hundredths of a second, whatever else is installed."""
    code = (
        "import sys; before = set(sys.modules); import mbsfmu; dir(mbsfmu)\n"
        "print(*{module.partition('.')[0] for module in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - set(sys.stdlib_module_names) == {"mbsfmu"}


def test_a_run_loads_what_only_tables_need_when_they_are_asked_for() -> None:
    code = (
        "import sys, mbsfmu\nmbsfmu.models.pendulum(1).simulation(compiled=False).run(0.002)._repr_html_()\n"
        "print(*{'pandas', 'xarray', 'pyarrow', 'matplotlib', 'fmpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
