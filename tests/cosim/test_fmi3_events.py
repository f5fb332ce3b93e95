"""Events of FMUs of FMI 3.0 for co-simulation: within steps, taken back, and at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import change_description
from foreign_fmus import compiler

from mbsfmu import SimulationError, StepSignal, cosimulate
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.cosim.runs.recorded_steps import RecordedSteps

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

Unit = Callable[[str], Path]


def triangle(time: np.ndarray) -> np.ndarray:
    """Return the triangle wave that begins at zero with the slope 1 and turns at ±1."""
    return 1.0 - np.abs((time + 1.0) % 4.0 - 2.0)


@pytest.fixture(params=["0", "1"], ids=["python", "compiled"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make steps in Python or in compiled code, and count those of compiled code."""
    monkeypatch.setenv(SWITCH, request.param)
    numbers: list[int] = [int(request.param)]
    advance = RecordedSteps.advance

    def noting(self: RecordedSteps, index: int, end: int) -> int:
        made = advance(self, index, end)
        numbers.append(made if self.is_compiled else 0)
        return made

    monkeypatch.setattr(RecordedSteps, "advance", noting)
    return numbers


@pytest.mark.parametrize("step", [0.25, 0.17, 2.5])
def test_events_within_steps(foreign: Unit, ways: list[int], step: float) -> None:
    """An FMU that refuses steps beyond its next event, and comes back where it turns, is right at all points."""
    result = cosimulate(foreign("ticking"), step=step, stop=5.0)
    np.testing.assert_allclose(result["ticking.height"], triangle(result.time), atol=1e-12)
    counted = np.array([sum(0.31 * number <= time + 1e-9 for number in range(1, 20)) for time in result.time])
    np.testing.assert_array_equal(result["ticking.count"], counted)
    turns = np.floor((result.time + 1.0) / 2.0)
    np.testing.assert_array_equal(result["ticking.events"], 1 + counted + turns)
    assert sum(ways[1:]) == ways[0] * result.steps


def test_steps_of_equal_length_are_not_cut(foreign: Unit, tmp_path: Path) -> None:
    """An FMU that takes steps of one length alone is not asked for others."""
    path = tmp_path / "ticking.fmu"
    path.write_bytes(foreign("ticking").read_bytes())
    change_description(path, 'canHandleVariableCommunicationStepSize="true" ', "")
    with pytest.raises(SimulationError, match="the step goes beyond the next event"):
        cosimulate(path, step=0.25, stop=5.0)


def test_events_that_are_not_told_apart_end_the_run(foreign: Callable[[str], Path]) -> None:
    """Ten to the sixteenth of them in a step: at its begin each has a time of its own."""
    with pytest.raises(
        SimulationError, match=r"ticking returns from its steps at t = \d\.\d+e-1[45] s again and again"
    ):
        cosimulate(foreign("ticking"), parameters={"ticking.period": 1e-17}, step=0.25, stop=0.5)


def test_events_are_one_after_the_other_where_time_stands_still(foreign: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight periods and a turn are in a step, though no more than three events may follow at one time."""
    monkeypatch.setattr("mbsfmu.cosim.fmus.fmi3.MOST_ITERATIONS", 3)
    result = cosimulate(foreign("ticking"), step=2.5, stop=2.5)
    assert result.final()["ticking.count"] == 8
    assert result.final()["ticking.events"] == 1 + 8 + 1


def test_discrete_inputs_are_set_in_event_mode(foreign: Unit) -> None:
    """And only where they change: each change is one event more."""
    factor = StepSignal(times=(0.0, 0.5, 1.0), values=(1.0, 3.0, -1.0))
    result = cosimulate(foreign("ticking"), inputs={"ticking.factor": factor}, step=0.25, stop=2.0)
    factors = np.where(result.time <= 0.5, 1.0, np.where(result.time <= 1.0, 3.0, -1.0))
    np.testing.assert_allclose(result["ticking.scaled"], factors * triangle(result.time), atol=1e-12)
    assert result["ticking.events"][-1] == 1 + 6 + 1 + 2


def test_controlled_steps_end_at_events_that_are_announced(foreign: Unit) -> None:
    result = cosimulate(foreign("ticking"), control="error", step=0.25, stop=2.0)
    for number in range(1, 7):
        assert np.min(np.abs(result.time - 0.31 * number)) < 1e-12
    np.testing.assert_allclose(result["ticking.height"], triangle(result.time), atol=1e-12)


@pytest.mark.parametrize("period", [0.1, 0.31])
@pytest.mark.parametrize(("algorithm", "control", "steps"), [
    ("gauss-seidel", "error", 0.25), ("jacobi", "fixed", 0.1),
])  # fmt: skip
def test_events_to_round_off_of_times(
    foreign: Unit, ways: list[int], period: float, algorithm: str, control: str, steps: float
) -> None:
    """Times that add up lengths of steps are neighbours of those that the FMU names, and its own are others again."""
    options = {"algorithm": algorithm, "control": control, "extrapolation": "linear", "step": steps, "stop": 2.0}
    units = [foreign("ticking"), foreign("dahlquist")]
    parameters = {"ticking.period": period}
    result = cosimulate(units, connections=["ticking.height=dahlquist.u"], parameters=parameters, **options)
    np.testing.assert_allclose(result["ticking.height"], triangle(result.time), atol=1e-12)
    counts = [sum(period * number <= time + 1e-12 for number in range(1, 30)) for time in result.time]
    np.testing.assert_array_equal(result["ticking.count"], counts)
    assert control == "error" or any(ways[1:]) == bool(ways[0])


def test_steps_that_are_made_again(foreign: Unit) -> None:
    """What was announced before counts again after a return, and a discrete input is set again."""
    result = cosimulate(
        [foreign("ticking"), foreign("vectors")],
        connections=["ticking.scaled=vectors.force[1]", "vectors.product[1]=ticking.factor"],
        parameters={"vectors.constant[1]": 2.0, "vectors.matrix": np.zeros((2, 2))},
        algorithm="newton", extrapolation="linear", step=0.25, stop=2.0,
    )  # fmt: skip
    np.testing.assert_allclose(result["ticking.height"], triangle(result.time), atol=1e-12)
    np.testing.assert_allclose(result["ticking.scaled"], 2.0 * triangle(result.time), atol=1e-12)
    np.testing.assert_array_equal(
        result["ticking.count"], [sum(0.31 * k <= time + 1e-9 for k in range(1, 9)) for time in result.time]
    )


def test_a_unit_that_ends_the_run(foreign: Unit, ways: list[int]) -> None:
    result = cosimulate(foreign("ticking"), parameters={"ticking.last": 1.1}, step=0.25, stop=5.0)
    assert result.time[-1] == pytest.approx(1.1)
    assert result["ticking.height"][-1] == pytest.approx(0.9)
    assert any("ticking ended the run at t = 1.1 s" in note for note in result.notes)
    assert sum(ways[1:]) <= 4


def test_a_unit_that_says_more_than_it_can(foreign: Unit, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One that declares event mode and gives no instance with it runs without."""
    path = tmp_path / "vectors.fmu"
    path.write_bytes(foreign("vectors").read_bytes())
    change_description(path, "canHandleVariable", 'hasEventMode="true" canHandleVariable')
    result = cosimulate(path, parameters={"vectors.force": [1.0, 0.0, 0.0]}, step=0.5, stop=1.0)
    assert result["vectors.point[1]"][-1] == 1.0
    assert "gives no instance with it" in caplog.text


def test_controlled_steps_end_where_a_unit_comes_back_early(foreign: Unit) -> None:
    """The triangle turns at 1 s, which the FMU does not announce; of periods there is none until then."""
    options = {"extrapolation": "linear", "step": 0.4, "largest_step": 0.4, "stop": 2.0}
    result = cosimulate(foreign("ticking"), parameters={"ticking.period": 10.0}, control="error", **options)
    assert np.min(np.abs(result.time - 1.0)) < 1e-12
    assert result.rejected_steps == 1
    np.testing.assert_allclose(result["ticking.height"], triangle(result.time), atol=1e-12)
