"""Tables as other countries and tools write them, and jumps: two rows of one time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mbsfmu import InputError, Trajectory
from mbsfmu.analysis.residuals import read_experiment
from mbsfmu.cosim.runs.scenario import read_scenario
from mbsfmu.io.signals import PolynomialSignal, StepSignal, read_signal
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.studies.points import read_samples

SAME = {
    "plain": "time,force [kN],a\n0,1.5,1\n1,3.5,2\n",
    "semicolons and decimal commas": "time;force [kN];a\n0,0;1,5;1\n1,0;3,5;2\n",
    "semicolons": "time;force [kN];a\n0;1.5;1\n1;3.5;2\n",
    "tabs": "time\tforce [kN]\ta\n0\t1,5\t1\n1\t3,5\t2\n",
    "a line with the separator": '"sep=;"\ntime;force [kN];a\n0;1,5;1\n1;3,5;2\n',
    "another separator": "sep=|\ntime|force [kN]|a\n0|1,5|1\n1|3,5|2\n",
    "byte order mark and line ends": "\ufefftime,force [kN],a\r\n0,1.5,1\r\n1,3.5,2\r\n",
    "a row of units": "time,force,a\n[s],[kN],\n0,1.5,1\n1,3.5,2\n",
    "units without brackets": "time;force;a\ns;kN;-\n0;1,5;1\n1;3,5;2\n",
    "quotes": '"time","force [kN]","a"\n"0","1.5","1"\n1,3.5,2\n',
    "separators at the ends": "time,force [kN],a,\n0,1.5,1,\n1,3.5,2,\n",
    "separators at the ends of rows": "time,force [kN],a\n0,1.5,1,\n1,3.5,2,\n",
    "comments and empty lines": "# measured on Monday\n\ntime,force [kN],a\n# begin\n0,1.5,1\n\n1,3.5,2\n",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_dialects_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    table = Trajectory.from_file(path)
    np.testing.assert_array_equal(table.time, [0.0, 1.0])
    np.testing.assert_array_equal(table["force"], [1.5, 3.5])
    np.testing.assert_array_equal(table["a"], [1.0, 2.0])
    assert table.unit("force") == "kN"
    assert read_scenario(path)[1.0] == {"force": "3.5 kN", "a": "2"}
    assert dict(read_samples(str(path)))["force"] == [1.5, 3.5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time,c\n0,0,1,5\n", "line 2: there are 4 values for 2 columns, between commas"),
        ("time;c\n0;1;2\n", "line 2: there are 3 values for 2 columns, between semicolons"),
        ("time;c\n0;1,5\n1;2.5\n", "'1,5' in line 2 has a decimal comma, '2.5' in line 3 a decimal point"),
        ("time;c\n0;1.000,5\n", "line 2: the column 'c' is '1.000,5'; it must be a number"),
        ("# a\ntime,c\n0,1\n0.5,\n1,3\n", "line 4: the column 'c' at 0.5 s is nan or empty"),
        ("time,c\n0,1\n0.5,nan\n", "line 3: the column 'c' at 0.5 s is nan or empty"),
        ("time,c\n0,1\n1,inf\n", "line 3: the column 'c' at 1 s is inf or empty"),
        ("time,c\n0,1\n\n1,2\n0.5,1\n", "line 5: the times in the column 'time' must be finite and ascend"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_signal(f"{path}:c")
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_gap_in_other_formats_is_named(tmp_path: Path) -> None:
    Trajectory(np.array([0.0, 0.5]), np.array([[1.0], [np.nan]]), ["c"], ["1"]).to_file(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet: row 2: the column 'c' at 0\.5 s is nan or empty"):
        read_signal(f"{tmp_path / 't.parquet'}:c")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "mat", "h5"])
def test_two_rows_of_one_time_are_a_jump(tmp_path: Path, suffix: str) -> None:
    """1 + 2 t to 0.5 s, where it goes from 2 to 5; then 5 to 1.5 s, where it goes to −1; constant outside."""
    times, values = np.array([0.0, 0.5, 0.5, 0.5, 1.5, 1.5]), np.array([1.0, 2.0, 99.0, 5.0, 5.0, -1.0])
    path = tmp_path / f"jump.{suffix}"
    Trajectory(times, values.reshape(-1, 1), ["c"], ["bar"]).to_file(path)
    signal = read_signal(f"{path}:c")
    assert isinstance(signal, PolynomialSignal)
    assert signal.unit == "bar"
    expected = {
        -3.0: (1.0, 1.0),
        0.25: (1.5, 1.5),
        0.5: (2.0, 5.0),
        1.0: (5.0, 5.0),
        1.5: (5.0, -1.0),
        9.0: (-1.0, -1.0),
    }
    for time, (before, after) in expected.items():
        assert (signal.before(time), signal.after(time)) == (before, after)
    held = read_signal(f"{path}:c:steps")
    assert isinstance(held, StepSignal)
    assert (held.before(0.5), held.after(0.5), held.before(1.5), held.after(1.5)) == (1.0, 5.0, 5.0, -1.0)


def test_a_jump_of_a_measured_input(tmp_path: Path) -> None:
    """The output before the jump of an input is not compared after it; what is measured twice is compared twice."""
    path = tmp_path / "log.csv"
    path.write_text("time,u,y\n0,0,1\n1,0,1\n1,2,7\n2,2,7\n2,2,8\n")
    known = [Variable("u", Causality.INPUT)], [Variable("y", Causality.OUTPUT)]
    experiment = read_experiment(str(path), "log", *known, lambda name: name, {})
    assert (experiment.signals["u"].before(1.0), experiment.signals["u"].after(1.0)) == (0.0, 2.0)
    np.testing.assert_array_equal(experiment.times[0], [0.0, 1.0, 2.0, 2.0])
    np.testing.assert_array_equal(experiment.values[0], [1.0, 7.0, 7.0, 8.0])


def test_rows_of_a_scenario_at_one_time(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("time;a.u;a.on\n0;1,5;true\n0,5;1,5;\n0,5;4,5;false\n")
    assert read_scenario(path) == {0.0: {"a.u": "1.5", "a.on": "true"}, 0.5: {"a.u": "4.5", "a.on": "false"}}
