"""Signals found by name, and their way into a CSV file."""

from __future__ import annotations

import csv
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.base.errors import InputError
from mbsfmu.io.tables import read_parquet, unit_of
from mbsfmu.io.trajectory import Trajectory

NAMES = ("mechanism.cylinder.length", "circuit.cylinder.length", "mechanism.crank.angle", "time_of_day")
UNITS = ("m", "m", "rad", "s")


def trajectory() -> Trajectory:
    """Three times, and in column k and row i the number 10 k + i."""
    values = np.array([[10.0 * column + row for column in range(4)] for row in range(3)])
    return Trajectory(np.array([0.0, 0.5, 1.0]), values, NAMES, UNITS)


def read(path: Path) -> tuple[list[str], list[list[float]]]:
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return header, [[float(cell) for cell in row] for row in rows]


def test_signal_is_a_column() -> None:
    np.testing.assert_array_equal(trajectory()["mechanism.crank.angle"], [20.0, 21.0, 22.0])
    assert trajectory().unit("mechanism.crank.angle") == "rad"


@pytest.mark.parametrize(
    ("part", "full"),
    [
        ("crank.angle", "mechanism.crank.angle"),
        ("angle", "mechanism.crank.angle"),
        ("circuit.cylinder.length", "circuit.cylinder.length"),
        ("time_of_day", "time_of_day"),
    ],
)
def test_signal_is_found_by_a_trailing_part(part: str, full: str) -> None:
    assert trajectory().full_name(part) == full
    np.testing.assert_array_equal(trajectory()[part], trajectory()[full])
    assert trajectory().unit(part) == dict(zip(NAMES, UNITS, strict=True))[full]


def test_full_name_goes_before_a_trailing_part() -> None:
    both = Trajectory(np.zeros(1), np.array([[1.0, 2.0]]), ("a.x", "x"), ("m", "rad"))
    assert both["x"] == 2.0
    assert both.unit("x") == "rad"


@pytest.mark.parametrize("part", ["length", "cylinder.length"])
def test_ambiguous_part_is_refused(part: str) -> None:
    with pytest.raises(InputError) as caught:
        trajectory()[part]
    sentence = str(caught.value)
    assert f"'{part}' is ambiguous" in sentence
    assert "mechanism.cylinder.length or circuit.cylinder.length" in sentence
    assert len(sentence.splitlines()) == 1


@pytest.mark.parametrize("name", ["speed", "ngle", "crank", "", "mechanism.crank.angle.x"])
def test_unknown_signal_is_refused_with_the_known_ones(name: str) -> None:
    """A part is whole words at the end: `ngle` and `crank` are none; to the first one a name is near."""
    with pytest.raises(InputError) as caught:
        trajectory()[name]
    sentence = str(caught.value)
    assert f"no signal '{name}'" in sentence
    told = ("did you mean 'mechanism.crank.angle'?",) if name == "ngle" else NAMES
    assert all(each in sentence for each in told)
    assert len(sentence.splitlines()) == 1


def test_unit_of_an_unknown_signal_is_refused() -> None:
    with pytest.raises(InputError, match="no signal 'speed'"):
        trajectory().unit("speed")


def test_trajectory_is_a_mapping_of_full_names() -> None:
    given_one = trajectory()
    assert list(given_one) == list(NAMES)
    assert len(given_one) == 4
    assert all(name in given_one for name in NAMES)
    assert "speed" not in given_one
    assert dict(given_one).keys() == set(NAMES)
    np.testing.assert_array_equal(dict(given_one)["time_of_day"], [30.0, 31.0, 32.0])


def test_final_values_are_the_last_row() -> None:
    assert trajectory().final() == dict(zip(NAMES, (2.0, 12.0, 22.0, 32.0), strict=True))


@pytest.mark.parametrize(
    ("values", "names", "units"),
    [
        (np.zeros((3, 2)), ("a",), ("m",)),
        (np.zeros((3, 1)), ("a", "b"), ("m", "m")),
        (np.zeros((3, 1)), ("a",), ("m", "rad")),
        (np.zeros((3, 1)), ("a",), ()),
    ],
)
def test_parts_that_do_not_match_are_refused(
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]], names: tuple[str, ...], units: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match=r"reshape|zip"):
        Trajectory(np.zeros(3), values, names, units)


def test_file_has_units_in_its_header_and_a_row_a_time(tmp_path: Path) -> None:
    trajectory().to_file(tmp_path / "run.csv")
    header, rows = read(tmp_path / "run.csv")
    assert header == [
        "time [s]",
        "mechanism.cylinder.length [m]",
        "circuit.cylinder.length [m]",
        "mechanism.crank.angle [rad]",
        "time_of_day [s]",
    ]
    assert rows == [[0.0, 0.0, 10.0, 20.0, 30.0], [0.5, 1.0, 11.0, 21.0, 31.0], [1.0, 2.0, 12.0, 22.0, 32.0]]
    assert [path.name for path in tmp_path.iterdir()] == ["run.csv"]


@given(st.lists(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3), max_size=5))
def test_numbers_survive_the_file_to_the_last_bit(rows: list[list[float]]) -> None:
    table = np.array(rows).reshape(len(rows), 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.csv"
        Trajectory(table[:, 0], table[:, 1:], ("a", "b"), ("m", "rad")).to_file(path)
        header, found = read(path)
    assert header == ["time [s]", "a [m]", "b [rad]"]
    assert found == rows
    assert [math.copysign(1.0, cell) for row in found for cell in row] == [
        math.copysign(1.0, cell) for row in rows for cell in row
    ]


def test_what_is_not_a_number_is_written_as_such(tmp_path: Path) -> None:
    Trajectory(np.array([0.0]), np.array([[math.nan]]), ("a",), ("m",)).to_file(tmp_path / "run.csv")
    assert math.isnan(read(tmp_path / "run.csv")[1][0][1])


def test_names_with_commas_and_quotes_stay_one_cell(tmp_path: Path) -> None:
    Trajectory(np.array([0.0]), np.array([[1.0]]), ('a,"b"',), ("kg m²",)).to_file(tmp_path / "run.csv")
    assert read(tmp_path / "run.csv") == (["time [s]", 'a,"b" [kg m²]'], [[0.0, 1.0]])


def test_no_signals_leave_the_times(tmp_path: Path) -> None:
    Trajectory(np.array([0.0, 1.0]), np.zeros((2, 0)), (), ()).to_file(tmp_path / "run.csv")
    assert read(tmp_path / "run.csv") == (["time [s]"], [[0.0], [1.0]])


def test_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("old\n" * 100)
    trajectory().to_file(path)
    assert len(read(path)[1]) == 3


def test_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """A lone surrogate has no UTF-8 form: the write breaks off at the header."""
    path = tmp_path / "run.csv"
    path.write_text("old\n")
    with pytest.raises(UnicodeEncodeError):
        Trajectory(np.zeros(1), np.zeros((1, 1)), ("a\ud800",), ("m",)).to_file(path)
    assert path.read_text() == "old\n"
    assert [each.name for each in tmp_path.iterdir()] == ["run.csv"]


def test_folder_that_is_not_there_is_an_os_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"there is no folder .*nowhere"):
        trajectory().to_file(tmp_path / "nowhere" / "run.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "h5", "mat", "nc", "parquet"])
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5, unique=True),
    st.lists(st.floats(allow_nan=False), min_size=10, max_size=10),
)
def test_file_reads_back_to_the_last_bit(suffix: str, times: list[float], numbers: list[float]) -> None:
    values = np.array(numbers).reshape(5, 2)[: len(times)]
    written = Trajectory(np.array(sorted(times)), values, ("a.b", "c [x]"), ("m/s", "1"))
    with tempfile.TemporaryDirectory() as folder:
        written.to_file(Path(folder) / f"run.{suffix}")
        found = Trajectory.from_file(Path(folder) / f"run.{suffix}")
    np.testing.assert_array_equal(found.time, written.time)
    np.testing.assert_array_equal(found.values_by_column, written.values_by_column)
    assert found.names == written.names
    assert [found.unit(name) for name in found.names] == ["m/s", "1"]


def test_parquet_has_units_in_the_metadata_of_its_columns(tmp_path: Path) -> None:
    trajectory().to_file(tmp_path / "run.parquet")
    table = read_parquet(tmp_path / "run.parquet")
    assert table.column_names == ["time", *NAMES]
    assert [unit_of(table, name) for name in table.column_names] == ["s", *UNITS]
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_times_may_stand_in_any_column(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("force [N],time [s]\n1,0.5\n\n2,1.5\n")
    table = Trajectory.from_file(path)
    np.testing.assert_array_equal(table.time, [0.5, 1.5])
    np.testing.assert_array_equal(table["force"], [1.0, 2.0])
    assert table.unit("force") == "N"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no table: it needs a header"),
        ("time,a\n", "is no table: it needs a header"),
        ("time,a\n0,1\n1\n", "line 3: there are 1 values for 2 columns"),
        ("time,a\n0,one\n", "line 2: the column 'a' is 'one'; it must be a number"),
        ("time,a\n1,1\n0,2\n", "line 3: the times in the column 'time' must be finite and ascend"),
        ("t,a\nnan,1\n", "the times in the column 't' must be finite and ascend"),
        ("time [m],a\n1,1\n", "the times are in m: 'm' and 's' are units of different quantities"),
        ("time,a,a\n1,1,1\n", "has two columns of one name: time, a, a"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Trajectory.from_file(path)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"its name must end in \.csv, \.h5, \.hdf5, \.mat, \.nc or \.parquet"):
        trajectory().to_file(tmp_path / "run.txt")
    with pytest.raises(InputError, match="there is no file"):
        Trajectory.from_file(tmp_path / "run.csv")
    with pytest.raises(InputError, match="there is no file"):
        Trajectory.from_file(tmp_path / "run.parquet")
    (tmp_path / "run.parquet").write_text("no Parquet")
    with pytest.raises(InputError, match="is no Parquet file"):
        Trajectory.from_file(tmp_path / "run.parquet")


def test_signal_is_added_once() -> None:
    made = trajectory()
    made.add("sum", np.array([1.0, 2.0, 3.0]), "N")
    np.testing.assert_array_equal(made["sum"], [1.0, 2.0, 3.0])
    assert made.names == (*NAMES, "sum")
    assert made.unit("sum") == "N"
    with pytest.raises(InputError, match="there is a signal 'sum' already"):
        made.add("sum", np.zeros(3), "N")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"table\.csv is no CSV file"):
        Trajectory.from_file(tmp_path / "table.csv")
