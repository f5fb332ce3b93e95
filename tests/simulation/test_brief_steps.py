"""Steps far below the internal one, as importers make them that add up times: nothing but time goes on by them."""

from __future__ import annotations

import numpy as np
import pytest

from mbsfmu import CoupledModel
from mbsfmu.models import bennett, slewing_four_bar

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")


def swinging(formulation: str) -> CoupledModel:
    return bennett() if formulation == "penalty" else slewing_four_bar()


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("brief", [1e-12, 1e-9, 1e-7, 1e-6, 4e-5])
def test_brief_step_changes_nothing(formulation: str, brief: float) -> None:
    """Reactions are continuous and energy stays: the motion has no jump that a brief step could show."""
    simulation = swinging(formulation).simulation(formulation=formulation, step=2e-3, compiled=False)
    simulation.initialize()
    for index in range(20):
        simulation.step(2e-3 * index, 2e-3)
    names = [variable.name for variable in simulation.functions.system.reactions]
    before = np.array([simulation.get(name) for name in names])
    drift = simulation.get("energy.drift")
    time = 0.04
    simulation.step(time, brief)
    after = np.array([simulation.get(name) for name in names])
    # The rule's own accelerations oscillate about the equations' by the square of its step.
    np.testing.assert_allclose(after, before, atol=2e-3 * np.max(np.abs(before)))
    simulation.step(time + brief, 2e-3)
    assert simulation.get("energy.drift") == pytest.approx(drift, abs=2e-4)


def test_run_that_ends_a_moment_behind_a_step() -> None:
    result = slewing_four_bar().simulation(compiled=False).run(0.02 + 2e-8)
    assert result.time[-1] - result.time[-2] == pytest.approx(2e-8, rel=1e-3)
    for name in ("slewing.moment.z", "B.moment.y", "crank.angular_acceleration"):
        scale = np.max(np.abs(result[name])) + np.max(np.abs(result["slewing.force.z"]))
        assert result[name][-1] == pytest.approx(result[name][-2], abs=1e-4 * scale)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_internal_steps_at_round_off_are_told(formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    """Accelerations hardly change in 200 ns: what they do is round-off, which is as large as is told, or not there."""
    result = slewing_four_bar().simulation(formulation=formulation, step=1e-8, compiled=False).run(2e-7)
    spread = np.ptp(result["crank.angular_acceleration"])
    if formulation in ("double-step", "penalty"):
        warned = float(caplog.text.partition("round-off of up to ")[2].split()[0])
        assert 0.01 < spread < warned
    else:
        assert "round-off" not in caplog.text
        assert spread < 1e-10
    caplog.clear()
    slewing_four_bar().simulation(formulation=formulation, step=1e-5, compiled=False)
    assert "round-off" not in caplog.text
