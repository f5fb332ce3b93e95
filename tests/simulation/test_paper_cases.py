"""The two hydraulic mechanisms of [Jaiswal2021]: statics, invariants, agreement of the formulations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import mbsfmu
from hydraulics import CircuitEquations
from mbsfmu.models import CIRCUITS
from mbsfmu.simulation.run_result import Result

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


@cache
def cycle(case: str, circuit: str) -> Result:
    """Run the published 10 s with one of the circuits, all with air and all without on the same compiled steps."""
    has_air = CIRCUITS[circuit].air_content > 0.0
    simulation = mbsfmu.models.built_in(case if has_air else f"{case}-frictionless").simulation(solver="trapezoidal")
    for parameter in CircuitEquations(mbsfmu.models.hydraulic.actuation(circuit)).parameters:
        if not parameter.name.endswith("initial_load"):
            simulation.set(parameter.name, parameter.start)
    return simulation.run(10.0)


@pytest.mark.parametrize("circuit", ["friction", "throttle", "friction-and-valve"])
@pytest.mark.parametrize(("case", "published"), [("four-bar", 982.95), ("quick-return", 357.47)])
def test_work_is_the_published_one(case: str, published: float, circuit: str) -> None:
    assert cycle(case, circuit).summary()["actuator_work_max"] == pytest.approx(published, rel=1.2e-3)


@pytest.mark.parametrize("case", CASES)
def test_without_friction_work_is_another(case: str) -> None:
    """Negative control: the parameters of 2020 alone give a third and a ninth more."""
    without, published = (cycle(case, circuit).summary() for circuit in ("frictionless", "friction"))
    assert without["actuator_work_max"] > 1.1 * published["actuator_work_max"]


@pytest.mark.parametrize("case", CASES)
def test_no_pressure_falls_below_the_tank_s(case: str) -> None:
    result = cycle(case, "friction")
    assert min(result[f"V{number}.pressure"].min() for number in (1, 2, 3)) > 0.5e6


def test_work_has_its_sign() -> None:
    """Work is power over time: what the cylinder gives and takes, by the rectangle rule on force and velocity."""
    result = cycle("four-bar", "friction")
    work = 1e-3 * np.cumsum(result["cylinder.force"] * result["cylinder.velocity"])
    summary = result.summary()
    assert summary["actuator_work_max"] == pytest.approx(work.max(), abs=1.0)
    assert summary["actuator_work_min"] == pytest.approx(work.min(), abs=1.0)
    # Down is further than up: from where it rests at the end, the boom hangs below its start.
    assert work.min() < -work.max() < 0.0


def test_published_drift_is_a_rectangle_rule_s() -> None:
    """With work by rectangles the drift is as large as published, and of the four-bar largest where published."""
    for case, published in (("four-bar", 0.84), ("quick-return", 0.23)):
        result = cycle(case, "friction")
        work = 1e-3 * np.cumsum(result["cylinder.force"] * result["cylinder.velocity"])
        energy = result["energy.kinetic"] + result["energy.potential"]
        drift = np.abs(energy - energy[0] - work)
        assert 0.5 * published < drift.max() < 1.5 * published
        assert result.summary()["energy_drift_max"] < 0.05 * published
        if case == "four-bar":
            assert result.time[drift.argmax()] == pytest.approx(8.0, abs=0.02)


def test_named_circuits_are_models_of_their_own() -> None:
    model = mbsfmu.models.built_in("quick-return-throttle")
    assert model.name == "quick-return-throttle"
    assert model == mbsfmu.models.quick_return(circuit="throttle")
    with pytest.raises(mbsfmu.InputError, match="there is no circuit 'oil'; there are friction, throttle, "):
        mbsfmu.models.built_in("four-bar-oil")


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


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("case", CASES)
def test_forward_difference_gives_the_same_motion(case: str, formulation: str) -> None:
    simulation = mbsfmu.models.built_in(case).simulation(formulation=formulation, jacobian="forward-difference")
    result = simulation.run(1.2)
    expected = run(case, formulation)["cylinder.length"][: len(result.time)]
    np.testing.assert_allclose(result["cylinder.length"], expected, atol=1e-8)
