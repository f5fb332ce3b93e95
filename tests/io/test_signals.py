"""Signals over time: values on both sides of their jumps, and what is no signal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.base.errors import InputError
from mbsfmu.io.signals import LinearSignal, StepSignal, in_unit, read_signal, read_signals
from mbsfmu.modelling import DataError

Signal = StepSignal | LinearSignal
SIGNALS = (StepSignal, LinearSignal)

finite = st.floats(-1e6, 1e6, allow_subnormal=False)
time_tables = st.lists(st.integers(-1000, 1000), min_size=1, max_size=8, unique=True).map(
    lambda numbers: tuple(number / 8 for number in sorted(numbers))
)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, tuple[float, ...]]:
    times = draw(time_tables)
    return {"times": times, "values": tuple(draw(st.lists(finite, min_size=len(times), max_size=len(times))))}


def test_step_signal_has_both_values_where_it_jumps() -> None:
    signal = StepSignal(times=(1.0, 2.5), values=(10.0, -10.0), initial=3.0)
    assert signal.events == (1.0, 2.5)
    assert [signal.before(time) for time in (0.0, 1.0, 1.5, 2.5, 9.0)] == [3.0, 3.0, 10.0, 10.0, -10.0]
    assert [signal.after(time) for time in (0.0, 1.0, 1.5, 2.5, 9.0)] == [3.0, 10.0, 10.0, -10.0, -10.0]


def test_step_signal_is_zero_before_its_first_time_unless_told() -> None:
    assert StepSignal(times=(1.0,), values=(5.0,)).after(0.0) == 0.0


def test_step_signal_that_begins_at_zero_has_its_value_there() -> None:
    signal = StepSignal(times=(0.0,), values=(5.0,), initial=-1.0)
    assert (signal.before(0.0), signal.after(0.0)) == (-1.0, 5.0)


def test_step_signal_jumps_at_its_time_and_not_a_bit_off() -> None:
    signal = StepSignal(times=(0.1,), values=(1.0,))
    earlier, later = math.nextafter(0.1, 0.0), math.nextafter(0.1, 1.0)
    assert [signal.after(time) for time in (earlier, 0.1, later)] == [0.0, 1.0, 1.0]
    assert [signal.before(time) for time in (earlier, 0.1, later)] == [0.0, 0.0, 1.0]


@given(tables(), finite, st.integers(-8100, 8100).map(lambda number: number / 8))
def test_step_signal_holds_the_last_value_that_came(
    table: dict[str, tuple[float, ...]], initial: float, time: float
) -> None:
    signal = StepSignal(**table, initial=initial)
    pairs = list(zip(table["times"], table["values"], strict=True))
    assert signal.before(time) == [initial, *(value for start, value in pairs if start < time)][-1]
    assert signal.after(time) == [initial, *(value for start, value in pairs if start <= time)][-1]
    if time not in signal.events:
        assert signal.before(time) == signal.after(time)


def test_linear_signal_runs_straight_and_keeps_its_ends() -> None:
    signal = LinearSignal(times=(1.0, 2.0, 4.0), values=(0.0, 8.0, -8.0))
    assert signal.events == (1.0, 2.0, 4.0)
    expected = {0.0: 0.0, 1.0: 0.0, 1.25: 2.0, 2.0: 8.0, 3.0: 0.0, 3.5: -4.0, 4.0: -8.0, 7.0: -8.0}
    assert {time: signal.before(time) for time in expected} == expected


def test_linear_signal_of_one_point_is_constant() -> None:
    signal = LinearSignal(times=(1.0,), values=(5.0,))
    assert [signal.after(time) for time in (-1.0, 1.0, 3.0)] == [5.0, 5.0, 5.0]


@given(tables(), st.floats(0.0, 1.0))
def test_linear_signal_does_not_jump_and_stays_between_neighbours(
    table: dict[str, tuple[float, ...]], share: float
) -> None:
    signal = LinearSignal(**table)
    times, values = table["times"], table["values"]
    assert [signal.before(time) for time in times] == list(values)
    for first, last, low, high in zip(times, times[1:], values, values[1:], strict=False):
        time = min(first + share * (last - first), last)
        assert signal.before(time) == signal.after(time)
        slack = 1e-12 * max(abs(low), abs(high))
        assert min(low, high) - slack <= signal.before(time) <= max(low, high) + slack
        middle = signal.before((first + last) / 2)
        assert middle == pytest.approx((low + high) / 2, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"times": (), "values": ()}, ("times is empty", "at least one")),
        ({"times": (0.0, 1.0), "values": (1.0,)}, ("2 times", "1 values")),
        ({"times": (0.0,), "values": (1.0, 2.0, 3.0)}, ("1 times", "3 values")),
        ({"times": (1.0, 0.5), "values": (1.0, 2.0)}, ("(1.0, 0.5)", "ascend")),
        ({"times": (1.0, 1.0), "values": (1.0, 2.0)}, ("(1.0, 1.0)", "ascend")),
        ({"times": (0.0, math.nan), "values": (1.0, 2.0)}, ("times[1] is nan", "finite")),
        ({"times": (0.0, math.inf), "values": (1.0, 2.0)}, ("times[1] is inf", "finite")),
        ({"times": (0.0, 1.0), "values": (-math.inf, 2.0)}, ("values[0] is -inf", "finite")),
        ({"times": (0.0, 1.0), "values": ("fast", 2.0)}, ("values[0] is 'fast'", "number")),
        ({"times": (0.0, 1.0)}, ("values is missing",)),
        ({"values": (0.0, 1.0)}, ("times is missing",)),
        ({"times": (0.0,), "values": (1.0,), "scale": 2.0}, ("no field scale", "times", "values")),
    ],
)
def test_what_is_no_signal_is_refused(kind: type[Signal], table: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        kind(**table)
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1
    for word in (kind.__name__, *words):
        assert word in sentence


def test_only_step_signals_have_an_initial_value() -> None:
    with pytest.raises(DataError, match="no field initial"):
        LinearSignal(times=(0.0,), values=(1.0,), initial=2.0)  # type: ignore[call-arg]


@given(tables(), st.sampled_from(SIGNALS))
def test_signal_survives_json_form(table: dict[str, tuple[float, ...]], kind: type[Signal]) -> None:
    signal = kind(**table)
    assert kind.from_dict(signal.to_dict()) == signal


@pytest.mark.parametrize(("kind", "middle"), [("", 3.0), (":linear", 3.0), (":steps", 2.0)])
def test_signal_is_read_from_a_table(tmp_path: Path, kind: str, middle: float) -> None:
    path = tmp_path / "table.csv"
    path.write_text("time [s],valve.command [V],other\n0.5,2,7\n1.5,4,8\n")
    signal = read_signal(f"{path}:command{kind}")
    assert [signal.after(time) for time in (0.0, 0.5, 1.0, 1.5, 9.0)] == [2.0, 2.0, middle, 4.0, 4.0]
    assert signal.events == (0.5, 1.5)


@pytest.mark.parametrize(
    ("header", "unit", "value"),
    [
        ("[deg]", "rad", math.radians(1.5)),
        ("[1/min]", "rad/s", 0.05 * math.pi),
        ("[Hz]", "rad/s", 3.0 * math.pi),
        ("[bar]", "Pa", 1.5e5),
        ("[1]", "Pa", 1.5),
        ("", "Pa", 1.5),
    ],
)
def test_a_column_is_converted_to_the_unit_of_the_input(tmp_path: Path, header: str, unit: str, value: float) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"time [ms],column {header}\n0,1\n1000,2\n")
    assert in_unit(read_signal(f"{path}:column"), unit, "input").after(0.5) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("header", "unit"), [("Pa", "N"), ("1/s", "rad/s"), ("cm3", "m3/rad"), ("what", "m")])
def test_a_column_of_another_quantity_is_refused(tmp_path: Path, header: str, unit: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"time,column [{header}]\n0,1\n1,2\n")
    with pytest.raises(InputError, match=f"input: its signal is in {header}: '{header}'"):
        in_unit(read_signal(f"{path}:column"), unit, "input")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("table.csv", "must read table.csv:column"),
        (":a", "must read table.csv:column"),
        ("table.csv:", "must read table.csv:column"),
        ("table.csv:b", "there is no signal 'b'; there are a"),
        ("literals.csv:a", "line 2: the column 'a' is '1_000'; it must be a number"),
        ("nothing.csv:a", "there is no file nothing.csv"),
        ("table.txt:a", "must end in .csv, .h5, .hdf5, .mat, .nc or .parquet"),
    ],
)
def test_what_names_no_column_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("time,a\n0,1\n")
    (tmp_path / "literals.csv").write_text("time,a\n0,1_000\n")
    with pytest.raises(InputError) as caught:
        read_signal(text)
    assert sentence in str(caught.value)


@given(tables(), st.sampled_from(SIGNALS), st.floats(-3, 3), st.floats(-5, 5))
def test_mapped_signal_has_the_mapped_values(
    table: dict[str, tuple[float, ...]], kind: type[Signal], factor: float, offset: float
) -> None:
    signal = kind(**table)
    mapped = signal.mapped(factor, offset)
    assert mapped.events == signal.events
    for time in (*signal.times, signal.times[0] - 1.0):
        assert mapped.after(time) == pytest.approx(factor * signal.after(time) + offset, rel=1e-9, abs=1e-9)


def test_all_inputs_of_a_table_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "recorded.csv"
    path.write_text("time,valve.command,circuit.pump.pressure,other\n0,0,1e7,3\n0.5,1,2e7,4\n", encoding="utf-8")
    names = ("circuit.valve.command", "circuit.pump.pressure", "mechanism.tip.force")
    found = read_signals(f"{path}:steps", names)
    command, pressure = (
        StepSignal(times=(0.0, 0.5), values=each, initial=each[0]) for each in ((0.0, 1.0), (1e7, 2e7))
    )
    assert found == {"circuit.valve.command": command, "circuit.pump.pressure": pressure}
    assert "columns of variables that are no free inputs are ignored: other" in caplog.text
    assert read_signals(str(path), names)["circuit.valve.command"].before(0.25) == 0.5
    with pytest.raises(InputError, match=r"has no column of an input; inputs are mechanism\.tip\.force"):
        read_signals(str(path), names[2:])
    path.write_text("time,valve.command,circuit.valve.command\n0,0,1\n1,0,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"the columns 'valve\.command' and 'circuit\.valve\.command' are both"):
        read_signals(str(path), names)
