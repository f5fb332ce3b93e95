"""Step control: errors within their tolerance, and what is possible without saved states."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, NAMES, exact

import mbsfmu
from mbsfmu import CosimulationResult, InputError, StepSignal, cosimulate
from mbsfmu.cosim.fmus.fmi2 import Fmi2Instance
from mbsfmu.cosim.fmus.fmu_instance import FmuError

STOP = 2.0


def run(units: list[Path], **options: object) -> CosimulationResult:
    return cosimulate(units, connections=CONNECTIONS, **{"step": 0.01, "stop": STOP, **options})


def worst_error(result: CosimulationResult) -> float:
    """Return the largest error over time as a share of each signal's magnitude."""
    chosen = np.unique(np.linspace(0, len(result.time) - 1, 100).astype(int))
    states = np.array([exact(time) for time in result.time[chosen]])
    coupled = np.column_stack([result[name][chosen] for name in NAMES])
    return float(np.max(np.max(np.abs(coupled - states), axis=0) / np.max(np.abs(states), axis=0)))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_error_control_meets_its_tolerance(halves_exact: list[Path], tolerance: float) -> None:
    """Over five decades the error stays below the tolerance, and not further than a factor of ten."""
    result = run(
        halves_exact, algorithm="gauss-seidel", extrapolation="quadratic", control="error", tolerance=tolerance,
        absolute_tolerance=0.1 * tolerance, smallest_step=1e-7,
    )  # fmt: skip
    assert 0.1 < worst_error(result) / tolerance < 1.0
    assert result.notes == []


@pytest.mark.parametrize("algorithm", ["jacobi", "newton"])
def test_error_control_of_other_algorithms(halves_exact: list[Path], algorithm: str) -> None:
    result = run(
        halves_exact, algorithm=algorithm, extrapolation="linear", control="error", tolerance=1e-3,
        absolute_tolerance=1e-4,
    )  # fmt: skip
    assert 0.1 < worst_error(result) / 1e-3 < 1.0
    assert result.smallest_step < result.largest_step
    assert result.rollbacks >= result.steps / 2
    assert result.summary()["rejected_steps"] == result.rejected_steps


def test_without_states_errors_are_only_estimated(halves_poor: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="mbsfmu"):
        results = [
            run(halves_poor, extrapolation="linear", control="error", tolerance=tolerance, step=1e-3)
            for tolerance in (1e-2, 1e-4)
        ]
    assert "one and two cannot save the state" in caplog.text
    assert any("no step is made again" in note for note in results[0].notes)
    assert results[0].rejected_steps == results[0].rollbacks == 0
    assert results[1].steps > 5 * results[0].steps
    assert worst_error(results[1]) < 0.1 * worst_error(results[0])


def test_smallest_step_that_is_not_enough_is_told(halves_exact: list[Path]) -> None:
    result = run(halves_exact, control="error", tolerance=1e-6, smallest_step=5e-3)
    assert any("steps of the smallest length, 0.005 s, do not meet" in note for note in result.notes)


def test_energy_control_lowers_the_residual(halves_exact: list[Path]) -> None:
    results = [
        run(halves_exact, extrapolation="linear", control="energy", tolerance=tolerance, absolute_tolerance=tolerance)
        for tolerance in (1e-1, 1e-2, 1e-3)
    ]
    residuals = [result.energy_residual_max for result in results]
    assert residuals[0] > 3 * residuals[1] > 9 * residuals[2]
    fixed = run(halves_exact, extrapolation="linear", step=STOP / results[1].iterations)
    assert residuals[1] < 2.0 * fixed.energy_residual_max


def test_energy_control_needs_a_bond(oscillators: list[Path]) -> None:
    connections = ("two.force=one.force_in", "one.velocity=two.velocity_in")
    with pytest.raises(InputError, match="no power bond was found"):
        cosimulate(oscillators, connections=connections, step=0.01, stop=1.0, control="energy")


def test_controlled_steps_end_at_events(halves_exact: list[Path]) -> None:
    signal = StepSignal(times=(0.1234, 0.4), values=(1.0, 0.0))
    one = halves_exact[0]
    result = cosimulate(
        [one], step=0.05, stop=1.0, inputs={"one.force": signal}, control="error", extrapolation="linear"
    )
    assert {0.1234, 0.4, 1.0} <= set(result.time)


def test_four_bar_with_error_control(tmp_path: Path) -> None:
    """Against the monolithic run with the units' internal step, so that what is off is the coupling.

    The valve's signal is given to the master, which ends a step where it jumps; units at rest would not show it.
    """
    model = mbsfmu.models.four_bar()
    package = mbsfmu.export(model, tmp_path, layout="separate", step=2e-4)[-1]
    reference = model.simulation(step=2e-4).run(1.1)
    for tolerance in (1e-2, 1e-3):
        result = cosimulate(
            package, algorithm="gauss-seidel", extrapolation="linear", control="error", tolerance=tolerance,
            step=1e-3, stop=1.1, inputs=model.signals,
        )  # fmt: skip
        force = np.interp(result.time, reference.time, reference["cylinder.force"])
        assert np.max(np.abs(result["cylinder.force"] - force)) < tolerance * np.max(force)


def test_steps_end_where_a_unit_discards_them(foreign: Callable[[str], Path]) -> None:
    """It says up to where it has made a step: the next one ends there, not after halves of halves."""
    result = cosimulate(foreign("halting"), step=0.1, stop=1.0, control="error", tolerance=1e-3, smallest_step=1e-3)
    wall = np.argmin(np.abs(result.time - 0.3337))
    assert result.time[wall] == pytest.approx(0.3337, abs=1e-12)
    np.testing.assert_allclose(result["now"], result.time, atol=1e-12)
    assert result.rejected_steps == 1


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_equal_steps_that_a_unit_discards_are_finished(
    foreign: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, compiled: str
) -> None:
    """The grid stays as it is: the unit makes the rest of its step by itself; several pieces, if it must."""
    monkeypatch.setenv("MBSFMU_COMPILED", compiled)
    for isolate in (None, "all"):
        result = cosimulate(foreign("halting"), step=0.1, stop=1.0, isolate=isolate)
        np.testing.assert_allclose(result.time, np.linspace(0.0, 1.0, 11), atol=1e-15)
        np.testing.assert_allclose(result["now"], result.time, atol=1e-12)
        assert (result.steps, result.unit_steps) == (10, {"halting": 11})


@pytest.mark.parametrize("extrapolation", ["zero", "linear", "quadratic"])
def test_inputs_run_on_in_the_rest_of_a_step(
    halves_exact: list[Path], monkeypatch: pytest.MonkeyPatch, extrapolation: str
) -> None:
    """An FMU that comes half the way and then goes on is one that makes two steps of half the length."""
    call: dict[str, Any] = {
        "connections": CONNECTIONS, "step": 0.01, "stop": 0.2, "extrapolation": extrapolation, "algorithm": "jacobi",
    }  # fmt: skip
    expected = cosimulate(halves_exact, rates={"one": 2}, **call)
    monkeypatch.setenv("MBSFMU_COMPILED", "0")
    step = Fmi2Instance.step

    def stops(instance: Fmi2Instance, time: float, length: float) -> None:
        if instance.name == "one" and length > 0.009:
            step(instance, time, 0.5 * length)
            raise FmuError("half the way", False, time + 0.5 * length)
        step(instance, time, length)

    monkeypatch.setattr(Fmi2Instance, "step", stops)
    found = cosimulate(halves_exact, **call)
    # Of a parabola a unit gets straight lines: one over both halves here, one over each there.
    np.testing.assert_allclose(
        found["one.position"], expected["one.position"], atol=1e-6 if extrapolation == "quadratic" else 1e-13
    )


def test_unit_that_stands_still_is_told(foreign: Callable[[str], Path]) -> None:
    """Step doubling finds that it is exact, whatever the tolerance; another FMU moves, or rests."""
    call: dict[str, Any] = {"control": "error", "tolerance": 1e-3, "step": 0.01, "largest_step": 0.02, "stop": 2.0}
    inputs = {"stubborn.u": np.sin}
    result = cosimulate(foreign("stubborn"), inputs=inputs, **call)
    assert any(note.startswith("stubborn repeats its values exactly") for note in result.notes)
    exact = 0.5 * (np.exp(-2.0) + np.sin(2.0) - np.cos(2.0))
    assert abs(result["x"][-1] - exact) > 0.1
    for moving in (np.sin, lambda time: 0.0 * time):
        result = cosimulate(foreign("dahlquist"), inputs={"dahlquist.u": moving}, **call)
        assert not any("repeats" in note for note in result.notes)


def test_steps_that_crawl_say_what_would_help(halves_exact: list[Path]) -> None:
    def crawling(extrapolation: str, stop: float) -> list[str]:
        result = run(
            halves_exact, control="error", extrapolation=extrapolation, tolerance=1e-4, stop=stop, smallest_step=1e-6
        )
        assert result.steps > 200
        return [note for note in result.notes if "times shorter than the first one" in note]

    (note,) = crawling("zero", 0.05)
    assert "--extrapolation linear takes far fewer" in note
    assert crawling("linear", 1.0) == []
