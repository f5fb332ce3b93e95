"""Step control: errors within their tolerance, and what is possible without saved states."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, NAMES, exact

import mbsfmu
from mbsfmu import CosimulationError, CosimulationResult, InputError, StepSignal, cosimulate

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
    with pytest.raises(CosimulationError, match=r"it has come to t = 0\.3337 s, where a step would end"):
        cosimulate(foreign("halting"), step=0.1, stop=1.0)
