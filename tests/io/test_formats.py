"""Every file format holds what a run has, as those read it who know nothing of this package."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from scipy.io import loadmat, savemat

import mbsfmu
from mbsfmu import InputError, Trajectory
from mbsfmu.io.formats import Table, TableFormat, read_table, suffixes, write_table
from mbsfmu.io.formats.binary_formats import legal_names
from mbsfmu.io.streams import SignalStream
from mbsfmu.simulation.run_result import Result

FORMATS = ("csv", "h5", "hdf5", "mat", "nc", "parquet")


@cache
def run() -> Result:
    return mbsfmu.models.pendulum(2).simulation(compiled=False).run(0.02)


def test_formats_are_known_by_their_suffixes() -> None:
    assert suffixes() == tuple(f".{suffix}" for suffix in FORMATS)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_run_reads_back(suffix: str, tmp_path: Path) -> None:
    run().to_file(tmp_path / f"run.{suffix}")
    found = Trajectory.from_file(tmp_path / f"run.{suffix}")
    np.testing.assert_array_equal(found.time, run().time)
    np.testing.assert_array_equal(found.values_by_column, run().values_by_column)
    assert found.names == run().names
    assert [found.unit(name) for name in found] == [run().unit(name) for name in found]
    assert [path.name for path in tmp_path.iterdir()] == [f"run.{suffix}"]


def test_h5py_reads_a_run(tmp_path: Path) -> None:
    run().to_file(tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        np.testing.assert_array_equal(file["link_1.angle"], run()["link_1.angle"])
        np.testing.assert_array_equal(file["time"], run().time)
        assert file["link_1.angle"].attrs["units"] == "rad"
        assert file["time"].attrs["units"] == "s"
        assert file["link_1.angle"].attrs["description"] == run().descriptions["link_1.angle"] != ""
        assert file["link_1.angle"].dims[0]["time"] == file["time"]
        assert file.attrs["model"] == run().model
        assert sorted(file) == sorted(["time", *run().names])


def test_xarray_reads_a_run(tmp_path: Path) -> None:
    run().to_file(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf", decode_timedelta=False) as file:
        angle = file["link_1.angle"]
        np.testing.assert_array_equal(angle, run()["link_1.angle"])
        np.testing.assert_array_equal(angle.coords["time"], run().time)
        assert angle.dims == ("time",)
        assert angle.attrs == {"units": "rad", "description": run().descriptions["link_1.angle"]}
        assert file.attrs["model"] == run().model
        assert set(file.data_vars) == set(run().names)


def test_matlab_reads_a_run(tmp_path: Path) -> None:
    """By SciPy: names that MATLAB takes, and a struct that says what they were."""
    run().to_file(tmp_path / "run.mat")
    file = loadmat(tmp_path / "run.mat", simplify_cells=True)
    np.testing.assert_array_equal(file["link_1_angle"], run()["link_1.angle"])
    np.testing.assert_array_equal(file["time"], run().time)
    assert loadmat(tmp_path / "run.mat")["time"].shape == (len(run().time), 1)
    columns = file["columns"]
    place = list(columns["names"]).index("link_1.angle")
    assert columns["variables"][place] == "link_1_angle"
    assert columns["units"][place] == "rad"
    assert columns["descriptions"][place] == run().descriptions["link_1.angle"]
    assert ["model", run().model] in columns["metadata"].tolist()
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,62}", name) for name in columns["variables"])


def test_names_for_matlab_are_legal_and_differ() -> None:
    long = "mechanism." + "x" * 80
    names = ["a.b", "a_b", "1st", "end", "columns", "_x", "µ", long, long + "y", "der(a.b)"]
    legal = legal_names(names)
    assert list(legal) == names
    assert len(set(legal.values())) == len(names)
    assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,62}", name) for name in legal.values())
    assert legal["a.b"] == "a_b"
    assert legal["a_b"] == "a_b_2"
    assert legal["end"] == "x_end"
    assert legal["columns"] == "columns_2"


@pytest.mark.parametrize("suffix", FORMATS)
def test_names_of_other_programs_survive(suffix: str, tmp_path: Path) -> None:
    names = ["a/b", "der(x)", "c [x]", "über", "end", "1", "columns", "time.of.day"]
    values = np.arange(16.0).reshape(2, 8)
    Trajectory(np.arange(2.0), values, names, ["m/s", "1", "kg·m²", "", "°", "1", "1", "1"]).to_file(
        tmp_path / f"run.{suffix}"
    )
    found = Trajectory.from_file(tmp_path / f"run.{suffix}")
    assert found.names == tuple(names)
    np.testing.assert_array_equal(found.values_by_column, values)
    assert found.unit("c [x]") == "kg·m²"


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_stream_is_the_whole_file(suffix: str, rows: int, tmp_path: Path) -> None:
    time, values = np.arange(float(rows)), np.sqrt(np.arange(2.0 * rows)).reshape(rows, 2)
    stream = SignalStream(tmp_path / f"stream.{suffix}", ["x.y", "z"], ["m", "N·m"])
    stream.begin()
    for row in range(rows):
        stream.add(time[row : row + 1], values[row : row + 1])
        stream.write()
    stream.finish()
    if suffix == "csv" and not rows:  # which is no table when it is read
        assert (tmp_path / "stream.csv").read_text() == "time [s],x.y [m],z [N·m]\n"
        return
    Trajectory(time, values, ["x.y", "z"], ["m", "N·m"]).to_file(tmp_path / f"whole.{suffix}")
    tables = [read_table(tmp_path / f"{name}.{suffix}") for name in ("stream", "whole")]
    assert tables[0].units == tables[1].units == {"time": "s", "x.y": "m", "z": "N·m"}
    for name in ("time", "x.y", "z"):
        np.testing.assert_array_equal(tables[0].columns[name], tables[1].columns[name])
        assert len(tables[0].columns[name]) == rows
    if suffix == "csv":
        assert (tmp_path / "stream.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"stream.{suffix}", f"whole.{suffix}"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_stream_goes_on_from_a_complete_file(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"run.{suffix}"
    Trajectory(np.arange(4.0), np.arange(4.0)[:, None] ** 2, ["x"], ["m"]).to_file(file)
    stream = SignalStream(file, ["x"], ["m"])
    stream.take_over(3)
    stream.begin()
    stream.add(np.array([3.5]), np.array([[7.0]]))
    stream.finish()
    found = Trajectory.from_file(file)
    np.testing.assert_array_equal(found.time, [0.0, 1.0, 2.0, 3.5])
    np.testing.assert_array_equal(found["x"], [0.0, 1.0, 4.0, 7.0])
    for names, units in ((["y"], ["m"]), (["x"], ["mm"]), (["x", "y"], ["m", "m"])):
        other = SignalStream(file, names, units)
        with pytest.raises(InputError, match="has other columns than those that are recorded"):
            other.take_over(1)
        other.close()


@pytest.mark.parametrize("suffix", FORMATS)
def test_values_of_all_kinds_survive(suffix: str, tmp_path: Path) -> None:
    """As a study has them; where a format knows no missing values, a number is not-a-number and a text is empty."""
    columns: dict[str, list[Any]] = {
        "mass": [1.0, 2.5, 1e-300],
        "count": [1, 2, 9_007_199_254_740_993],
        "error": [0.5, None, math.inf],
        "status": ["ok", 'it failed: µ > 1, "so"', "ok"],
        "solver": ["rk45", None, "trapezoidal"],
        "closed": [True, False, True],
    }
    metadata = {"model": "x" * 100_000}
    write_table(Table(columns, {"mass": "kg", "count": "1"}, metadata), tmp_path / f"rows.{suffix}")
    found = read_table(tmp_path / f"rows.{suffix}")
    assert found.units == {"mass": "kg", "count": "1"}
    assert list(found.columns) == list(columns)
    rows = found.rows()
    missing = [rows[1]["error"], rows[1]["solver"]]
    if suffix in ("csv", "parquet"):
        assert missing == [None, None]
    else:
        assert math.isnan(missing[0])
        assert missing[1] == ""
    for name, values in columns.items():
        assert [row[name] for row in rows if row[name] not in missing] == [each for each in values if each is not None]
    assert isinstance(rows[0]["count"], int)
    assert isinstance(rows[0]["closed"], bool)


def test_facts_are_kept_however_long(tmp_path: Path) -> None:
    metadata = {"model": "µ" * 100_000, "mbsfmu": "1.2"}
    for suffix in ("h5", "nc", "mat"):
        write_table(Table({"x": [1.0]}, {}, metadata), tmp_path / f"rows.{suffix}")
    with h5py.File(tmp_path / "rows.h5") as file:
        assert dict(file.attrs) == metadata
    with xarray.open_dataset(tmp_path / "rows.nc", engine="h5netcdf") as dataset:
        assert dataset.attrs == metadata
    assert dict(loadmat(tmp_path / "rows.mat", simplify_cells=True)["columns"]["metadata"].tolist()) == metadata


def test_files_of_other_programs_are_read(tmp_path: Path) -> None:
    time, force = np.arange(3.0), np.array([1.0, 4.0, 9.0])
    savemat(tmp_path / "measured.mat", {"t": time, "force": force[:, None], "matrix": np.eye(3), "note": "of a rig"})
    with h5py.File(tmp_path / "measured.h5", "w") as file:
        file["time"], file["force"] = time, force
        file["force"].attrs["units"] = np.bytes_("kN")
        file["matrix"] = np.eye(3)
        file.create_group("more")["x"] = time[:2]
    dataset = xarray.Dataset({"force": ("time", force, {"units": "kN"})}, {"time": time})
    dataset.to_netcdf(tmp_path / "measured.nc", engine="h5netcdf")
    for suffix in ("mat", "h5", "nc"):
        found = Trajectory.from_file(tmp_path / f"measured.{suffix}")
        np.testing.assert_array_equal(found.time, time, err_msg=suffix)
        np.testing.assert_array_equal(found["force"], force, err_msg=suffix)
        assert found.unit("force") == ("1" if suffix == "mat" else "kN")


@pytest.mark.parametrize(
    ("suffix", "what"), [("h5", "HDF5"), ("nc", "netCDF"), ("mat", "MAT-file"), ("parquet", "Par")]
)
def test_what_is_no_such_file_is_refused(suffix: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"there is no file .*run.{suffix}"):
        Trajectory.from_file(tmp_path / f"run.{suffix}")
    (tmp_path / f"run.{suffix}").write_text("something else, of some length, so that it may have a header" * 9)
    with pytest.raises(InputError, match=f"run.{suffix} is no {what}"):
        Trajectory.from_file(tmp_path / f"run.{suffix}")


def test_columns_of_different_lengths_are_no_table(tmp_path: Path) -> None:
    savemat(tmp_path / "run.mat", {"t": np.arange(3.0), "x": np.arange(4.0)})
    with pytest.raises(InputError, match=r"run\.mat is no table: its columns have different lengths \('t' 3, 'x' 4\)"):
        Trajectory.from_file(tmp_path / "run.mat")
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file.create_group("inside")["x"] = np.arange(3.0)
    with pytest.raises(InputError, match=r"run\.h5 is no table: it has no one-dimensional dataset at its top"):
        Trajectory.from_file(tmp_path / "run.h5")


def test_wrong_suffixes_of_a_format_are_refused() -> None:
    for suffix in ("txt", ".TXT", ".part"):
        with pytest.raises(InputError, match=rf"the suffix '{suffix}' of .*Wrong is refused: it must be lower case"):
            type("Wrong", (TableFormat,), {"suffixes": (suffix,)})
    with pytest.raises(InputError, match=r"there is a file format '\.csv' already"):
        type("Wrong", (TableFormat,), {"suffixes": (".csv",)})


@pytest.mark.parametrize(
    ("suffix", "library"), [("h5", "h5py"), ("nc", "h5netcdf"), ("nc", "xarray"), ("hdf5", "h5py")]
)
def test_a_library_that_is_missing_is_named_before_the_run(suffix: str, library: str, tmp_path: Path) -> None:
    (tmp_path / f"{library}.py").write_text("raise ImportError\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom mbsfmu.cli.commands import main; main()"
    command = [sys.executable, "-c", code, "simulate", "pendulum-1", "--stop", "1e9", "-o", f"run.{suffix}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"mbsfmu: run.{suffix} needs {library}: pip install 'mbsfmu[formats]'\n"


def test_an_unknown_suffix_is_refused_before_the_run(tmp_path: Path) -> None:
    allowed = r"its name must end in \.csv, \.h5, \.hdf5, \.mat, \.nc or \.parquet"
    for refused in (
        lambda: mbsfmu.cosimulate(["none.fmu"], output="run.xls"),
        lambda: mbsfmu.sweep(mbsfmu.models.pendulum(1), {"link_1.mass": [1.0]}, output="run.xls"),
        lambda: run().to_file("run.xls"),
        lambda: SignalStream(tmp_path / "run.xls", [], []),
    ):
        with pytest.raises(InputError, match=allowed):
            refused()


def test_times_of_an_hdf5_file_need_their_name(tmp_path: Path) -> None:
    """Datasets come in the order of the alphabet: the first one may be any."""
    with h5py.File(tmp_path / "theirs.h5", "w") as file:
        file["t"], file["command"] = [0.0, 1.0], [3.0, 4.0]
    with pytest.raises(InputError, match=r"theirs\.h5 has no column 'time'; its format keeps no order"):
        Trajectory.from_file(tmp_path / "theirs.h5")
