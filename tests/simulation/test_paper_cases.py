"""The two hydraulic mechanisms of [Jaiswal2021]: statics, invariants, agreement of the formulations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import mbsfmu
from mbsfmu.simulation.result import Result

FORMULATIONS = ("double-step", "penalty")
CASES = ("four-bar", "quick-return")


@cache
def run(case: str, formulation: str, step: float = 1e-3, stop: float = 3.0) -> Result:
    return mbsfmu.models.built_in(case).simulation(formulation=formulation, step=step).run(stop)


@pytest.mark.parametrize(
    ("case", "expected", "tolerance"),
    # By hand √2 g (3 m₁ + 2 m₂ + m₃); the other one from an independent computation, to two decimals.
    [("four-bar", np.sqrt(2.0) * 9.81 * (3 * 225 + 2 * 35 + 50), 1e-9), ("quick-return", -4151.56, 5e-3)],
)
def test_static_force(case: str, expected: float, tolerance: float) -> None:
    simulation = mbsfmu.models.built_in(case).simulation()
    assert simulation.get("cylinder.static_force") == pytest.approx(expected, abs=tolerance)
    assert simulation.get("cylinder.force") == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("case", CASES)
def test_stands_still_until_the_valve_opens(case: str, formulation: str) -> None:
    result = run(case, formulation)
    still = result.time < 1.0
    assert np.ptp(result["cylinder.length"][still]) < 1e-9
    assert np.ptp(result["cylinder.length"]) > 0.01


@pytest.mark.parametrize(("case", "independent"), [("four-bar", "rocker.angle"), ("quick-return", "crank.angle")])
def test_independent_coordinate_is_the_published_one(case: str, independent: str) -> None:
    simulation = mbsfmu.models.built_in(case).simulation(formulation="double-step")
    assert simulation.independent == (independent,)


@pytest.mark.parametrize(("formulation", "position"), [("double-step", 1e-12), ("penalty", 1e-7)])
@pytest.mark.parametrize("case", CASES)
def test_invariants(case: str, formulation: str, position: float) -> None:
    summary = run(case, formulation).summary()
    assert summary["constraint_position_max"] < position
    assert summary["energy_drift_max"] < 1e-3 * summary["actuator_work_max"]
    assert summary["newton_mean"] < 2.0
    assert summary["failures"] == 0


@pytest.mark.parametrize("case", CASES)
def test_formulations_agree_and_the_difference_falls(case: str) -> None:
    differences = []
    for step in (4e-3, 1e-3):
        one, other = (run(case, formulation, step) for formulation in FORMULATIONS)
        angles = [name for name in one.names if name.endswith(".angle")]
        differences.append(max(np.max(np.abs(one[name] - other[name])) for name in angles))
    assert differences[1] < 1e-4
    assert differences[1] < 0.25 * differences[0]


@pytest.mark.parametrize("case", CASES)
def test_forward_difference_gives_the_same_motion(case: str) -> None:
    simulation = mbsfmu.models.built_in(case).simulation(jacobian="forward-difference")
    result = simulation.run(1.2)
    expected = run(case, "double-step")["cylinder.length"][: len(result.time)]
    np.testing.assert_allclose(result["cylinder.length"], expected, atol=1e-8)
