"""Runs in one's own hands: stepped, read, changed, by a scenario, in pace with the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS

from mbsfmu import Cosimulation, CosimulationError, InputError, StepSignal, cosimulate

Foreign = Callable[[str], Path]


def lag(times: np.ndarray, inputs: list[tuple[float, float]]) -> np.ndarray:
    """x' = u − x from x = 1, u being each of some values from a time on; in closed form."""
    x, now, u, values = 1.0, 0.0, 0.0, []
    pending = list(inputs)
    for end in times:
        while pending and pending[0][0] <= end + 1e-12:
            x, now = u + (x - u) * np.exp(now - pending[0][0]), pending[0][0]
            u = pending.pop(0)[1]
        values.append(u + (x - u) * np.exp(now - end))
    return np.array(values)


@pytest.mark.parametrize("control", ["fixed", "error"])
@pytest.mark.parametrize("algorithm", ["gauss-seidel", "newton"])
def test_step_by_step_is_all_at_once(halves_exact: list[Path], control: str, algorithm: str) -> None:
    options = {"connections": CONNECTIONS, "step": 5e-3, "stop": 0.5, "algorithm": algorithm, "control": control}
    options["extrapolation"] = "linear"
    whole = cosimulate(halves_exact, **options)
    with Cosimulation(halves_exact, **options) as run:
        times = [run.time]
        while not run.done:
            if len(times) == 7:
                run.run(0.1)
                times.append(run.time)
            times.append(run.step())
            assert run["one.position"] == run.result()["one.position"][-1]
        result = run.result()
    assert set(times) <= set(whole.time)
    np.testing.assert_array_equal(result.time, whole.time)
    np.testing.assert_array_equal(result.values_by_column, whole.values_by_column)
    assert (result.steps, result.iterations, result.rollbacks) == (whole.steps, whole.iterations, whole.rollbacks)


@pytest.mark.parametrize("control", ["fixed", "error"])
def test_values_set_by_hand(foreign: Foreign, control: str) -> None:
    with Cosimulation(foreign("dahlquist"), step=0.1, stop=2.0, control=control) as run:
        run.run(0.5)
        first = run.time
        run["dahlquist.u"] = 3.0
        run.run(1.2)
        second = run.time
        run.set({"dahlquist.u": -1})
        result = run.run()
        assert run["dahlquist.u"] == -1.0
    expected = lag(result.time, [(first, 3.0), (second, -1.0)])
    np.testing.assert_allclose(result["x"], expected, rtol=1e-12)


def test_a_table_of_values(foreign: Foreign, tmp_path: Path) -> None:
    """Steps end at its times; a cell without a value changes nothing; what holds at the start is a start value."""
    table = tmp_path / "scenario.csv"
    table.write_text("time [s],dahlquist.u,dahlquist.x_start\n0,,1\n0.25,3,\n0.333,3,\n0.7,-1,\n")
    for control in ("fixed", "error"):
        result = cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, scenario=table, control=control)
        assert {0.25, 0.333, 0.7} <= set(result.time)
        np.testing.assert_allclose(result["x"], lag(result.time, [(0.25, 3.0), (0.7, -1.0)]), rtol=1e-12)
    signal = StepSignal(times=(0.25, 0.7), values=(3.0, -1.0))
    driven = cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, inputs={"dahlquist.u": signal})
    same = cosimulate(
        foreign("dahlquist"), step=0.1, stop=1.0, scenario={0.25: {"dahlquist.u": 3}, 0.7: {"dahlquist.u": "-1"}}
    )
    np.testing.assert_array_equal(same["x"], driven["x"])


def test_values_of_every_type_by_a_scenario(foreign: Foreign) -> None:
    """Tunable parameters too; words and truth values as they are read from a table."""
    early = {"integer_parameter": "7", "boolean_in": "true", "mode_in": "locked"}
    scenario = {
        0.5: {f"feed_through.{name}": value for name, value in early.items()},
        1.0: {"feed_through.text_in": "late"},
    }
    result = cosimulate(foreign("feed_through"), step=0.25, stop=1.5, scenario=scenario)
    np.testing.assert_array_equal(result["integer_shown"], [3, 3, 3, 7, 7, 7, 7])
    np.testing.assert_array_equal(result["boolean_out"], [0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(result["mode_out"], [1, 1, 1, 5, 5, 5, 5])
    assert result.texts["feed_through.text_out"] == [(0.0, "nothing"), (1.25, "late")]


def test_what_connections_drive_takes_no_start_values(halves_exact: list[Path], foreign: Callable[[str], Path]) -> None:
    options = {"connections": CONNECTIONS, "step": 0.1, "stop": 0.2}
    sentence = r"one\.force cannot be given a start value: the connection two\.force=one\.force drives it"
    for given in ({"parameters": {"one.force": 1.0}}, {"scenario": {0.0: {"one.force": 1.0}}}):
        with pytest.raises(InputError, match=sentence):
            cosimulate(halves_exact, **options, **given)
    masses = [f"one={foreign('sprung')}", f"two={foreign('sprung')}"]
    options["connections"] = ("one.x=two.u", "two.x=one.u", "one.x=two.ground")
    cosimulate(masses, parameters={"one.ground": 20.0}, **options)
    with pytest.raises(InputError, match=r"two\.ground cannot be given .* the connection one\.x=two\.ground drives it"):
        cosimulate(masses, parameters={"two.ground": 1.0}, **options)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"two.velocity": 1.0}, "two.velocity cannot be set at t = 0.5 s: a connection or a signal drives it"),
        ({"two.position": 1.0}, "two.position cannot be set at t = 0.5 s: it is an output"),
        ({"two.place": 1.0}, "two has no variable 'place'"),
        ({"three.x": 1.0}, "there is no FMU 'three'"),
    ],
)
def test_what_cannot_be_set(halves_exact: list[Path], values: dict[str, float], sentence: str) -> None:
    options = {"connections": CONNECTIONS, "step": 0.1, "stop": 1.0}
    with Cosimulation(halves_exact, **options) as run:
        run.run(0.5)
        with pytest.raises(InputError, match=sentence):
            run.set(values)
        run.run()
    with pytest.raises(InputError, match=sentence):
        cosimulate(halves_exact, scenario={0.5: values}, **options)


def test_fixed_parameters_are_set_before_the_start(foreign: Foreign) -> None:
    with Cosimulation(foreign("dahlquist"), step=0.1, stop=1.0) as run:
        with pytest.raises(InputError, match="rate cannot be set at t = 0 s: it is a fixed parameter"):
            run["dahlquist.rate"] = 2.0
        with pytest.raises(InputError, match=r"dahlquist\.u: 'much' is refused: it must be a number"):
            run["dahlquist.u"] = "much"
        with pytest.raises(InputError, match="shall go on to 2 s; it can to any time up to its end, 1 s"):
            run.run(2.0)


def test_a_run_that_has_ended_does_not_go_on(foreign: Foreign) -> None:
    run = Cosimulation(foreign("failing"), step=0.1, stop=1.0)
    with pytest.raises(InputError, match="the FMUs are not loaded"):
        run.step()
    with run:
        with pytest.raises(CosimulationError, match=r"failing at t = 0\.5 s: .*it does not go beyond 0\.5 s") as ended:
            run.run()
        assert ended.value.result.time[-1] == pytest.approx(0.5)
        with pytest.raises(InputError, match=r"the run has ended at t = 0\.5 s"):
            run.step()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time,dahlquist.u\n", "it needs a header with a column of times and others, and lines"),
        ("time,dahlquist.u\n0,1,2\n", "line 2: there are 3 values for 2 columns"),
        ("time,dahlquist.u\nsoon,1\n", "line 2: 'soon' is no time in s"),
        ("time,dahlquist.u\n1,1\n0,2\n", "line 3: the time 0 s is before the one above"),
        ("time,dahlquist.u,dahlquist.u\n1,1,2\n", "has two columns of one name"),
    ],
)
def test_tables_that_are_none(foreign: Foreign, tmp_path: Path, text: str, sentence: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=sentence):
        cosimulate(foreign("dahlquist"), step=0.1, stop=1.0, scenario=table)


def test_pace(foreign: Foreign) -> None:
    """0.2 s of simulated time twice as fast as the clock; a step that is slow comes late, and later ones catch up."""
    begin = time.perf_counter()
    result = cosimulate(foreign("dahlquist"), step=0.01, stop=0.2, pace=2.0)
    assert time.perf_counter() - begin > 0.1
    assert result.pace == 2.0

    def slow(now: float) -> float:
        time.sleep(0.05 if abs(now - 0.1) < 1e-9 else 0.0)
        return 0.0

    late = cosimulate(foreign("dahlquist"), step=0.01, stop=0.2, pace=1.0, inputs={"dahlquist.u": slow})
    assert late.lateness_max > 0.035
    assert late.late_steps >= 4
    np.testing.assert_array_equal(late["x"], result["x"])


def test_units_of_one_file(foreign: Foreign) -> None:
    file = foreign("dahlquist")
    result = cosimulate(
        [f"slow={file}", f"fast={file}"], step=0.01, stop=1.0, parameters={"fast.rate": 3.0}, start_time=0.5
    )
    assert result.time[0] == 0.5
    np.testing.assert_allclose(result["slow.x"], np.exp(0.5 - result.time), rtol=1e-12)
    np.testing.assert_allclose(result["fast.x"], np.exp(3.0 * (0.5 - result.time)), rtol=1e-12)
    with pytest.raises(InputError, match="two FMUs are called 'slow'; give one another name, as name="):
        cosimulate([f"slow={file}", f"slow={file}"])
    with pytest.raises(InputError, match=r"the unit 'a\.b' is refused"):
        cosimulate([f"a.b={file}"])


def test_declared_bonds(foreign: Foreign) -> None:
    """Lags without FMUs that take what the other gives: what the one got is what the other gave, but for the delay."""
    file, options = foreign("dahlquist"), {"step": 0.01, "stop": 1.0, "algorithm": "jacobi"}
    options["connections"] = ["a.x=b.u", "b.x=a.u"]
    options["parameters"] = {"a.x_start": 2.0}
    assert not cosimulate([f"a={file}", f"b={file}"], **options).energy_residual
    result = cosimulate([f"a={file}", f"b={file}"], bonds=["a.x,b.x"], **options)
    (name,) = result.energy_residual
    a, b, step = result["a.x"], result["b.x"], 0.01
    got = 0.5 * step * a[:-1] * (b[:-1] + b[1:])  # b takes a, held, and gives b
    given = 0.5 * step * b[:-1] * (a[:-1] + a[1:])
    np.testing.assert_allclose(result[f"energy_residual.{name}"][1:], np.cumsum(got - given), rtol=1e-9)
    for bond, sentence in (("a.x", "it must read a.effort,b.flow"), ("a.x,b.u", "a connection must go from each")):
        with pytest.raises(InputError, match=f"the bond '{bond}' is refused: {sentence}"):
            cosimulate([f"a={file}", f"b={file}"], bonds=[bond], **options)


def test_a_value_that_is_set_is_a_jump(halves_exact: list[Path]) -> None:
    """What is known of the past says nothing of what comes: as where a signal jumps, nothing is continued over it."""
    call = {"connections": CONNECTIONS[:1], "step": 0.01, "stop": 1.0, "extrapolation": "quadratic"}
    signal = StepSignal(times=(0.3,), values=(0.5,))
    driven = cosimulate(halves_exact, inputs={"two.velocity": signal}, **call)
    changed = cosimulate(halves_exact, scenario={0.3: {"two.velocity": 0.5}}, **call)
    with Cosimulation(halves_exact, **call) as run:
        run.run(0.3)
        run["two.velocity"] = 0.5
        by_hand = run.run()
    for result in (changed, by_hand):
        np.testing.assert_allclose(result.values_by_column, driven.values_by_column, rtol=0.0, atol=1e-12)
