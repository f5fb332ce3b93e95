"""Large explicit steps of coordinate partitioning over dead centres, where the loops cannot be closed beyond."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from rssr import DEAD_CENTRES, LEAPING_FAR, rssr

from mbsfmu.formulations import double_step
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.workspace import Floats

STOP = 1.5


def run(seed: int, solver: str, tolerance: float) -> Result:
    options: dict[str, Any] = {"relative_tolerance": tolerance, "absolute_tolerance": tolerance, "step": 0.05}
    return rssr(seed).simulation(solver=solver, compiled=False, **options).run(STOP)


def angles(result: Result) -> Floats:
    return np.stack([result["crank.angle"], result["rocker.angle"]])


@cache
def expected(seed: int) -> Floats:
    """At a tolerance at which no stage comes near a dead centre; the energy stays."""
    result = run(seed, "dop853", 1e-10)
    assert result.statistics.retries == 0
    assert result.largest("energy.drift") < 1e-7 * np.max(result["energy.kinetic"])
    assert np.min(np.ptp(angles(result), axis=1)) > 1.0, "it swings far"
    return angles(result)


@pytest.mark.parametrize("solver", ["dop853", "rk45", "rk23"])
def test_stages_beyond_a_dead_centre_shorten_the_step(solver: str) -> None:
    result = run(DEAD_CENTRES, solver, 1e-4 if solver == "dop853" else 1e-5)
    if solver == "dop853":
        assert result.statistics.retries > result.statistics.repartitions, "not by other coordinates alone"
    np.testing.assert_allclose(angles(result), expected(DEAD_CENTRES), atol=0.05)


def test_loops_are_closed_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another assembly of the same independent coordinates is refused: all stages in it agree with each other.

    At so large a tolerance a long step beside a dead centre may lose energy in one assembly too: what refusing keeps is
    seen beside a run that takes the other one.
    """
    kept = run(LEAPING_FAR, "dop853", 1e-3)
    monkeypatch.setattr(double_step, "LEAP", np.inf)
    lost = run(LEAPING_FAR, "dop853", 1e-3)
    assert kept.largest("energy.drift") < 0.01 * np.max(kept["energy.kinetic"])
    assert lost.largest("energy.drift") > np.max(kept["energy.kinetic"])
