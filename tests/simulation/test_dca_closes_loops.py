"""`dca` closes loops that drift, by default; as published it does not."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu
from mbsfmu import SimulationError


def test_fast_machine_runs_on() -> None:
    """The house of the slewing four-bar turns three times, as with coordinates that close loops exactly."""
    model = mbsfmu.models.slewing_four_bar()
    result, expected = (
        model.simulation(formulation=name, solver="trapezoidal", step=1e-3).run() for name in ("dca", "double-step")
    )
    assert result.largest("constraint.position") < 1e-4
    assert result.largest("constraint.velocity") < 1e-3
    turned = result["house.angle"][-1] - result["house.angle"][0]
    assert turned / (2.0 * np.pi) == pytest.approx(3.0, abs=1e-3)
    off = np.max(np.abs(result["crank.angle"] - expected["crank.angle"]))
    assert off < 1e-2 * np.ptp(expected["crank.angle"])


def test_as_published_it_ends_with_an_open_loop() -> None:
    model = mbsfmu.models.slewing_four_bar()
    simulation = model.simulation(formulation="dca", solver="trapezoidal", step=1e-3, stabilisation=0.0)
    with pytest.raises(SimulationError, match=r"at t = 2\.\d+ s the loop has come open"):
        simulation.run()
