"""Explicit methods of fixed steps in absolute coordinates: as accurate as in joint coordinates, however it lies."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from turning import turned_model

from mbsfmu.models import slewing_four_bar
from mbsfmu.tracing.workspace import Floats

NAMES = ("house.angle", "crank.angle", "coupler.angle", "rocker.angle")
STOP = 1.2
"""The house passes 90° of slew at 1 s."""


def motion(formulation: str, attitude: Rotation | None = None, **options: object) -> Floats:
    model = slewing_four_bar() if attitude is None else turned_model(slewing_four_bar(), attitude)
    simulation = model.simulation(formulation=formulation, compiled=False, **options)
    result = simulation.run(STOP, output_step=0.05)
    return np.stack([result[name] for name in NAMES])


@cache
def expected() -> Floats:
    """Coordinate partitioning, which closes the loop in every evaluation, with a method of order eight."""
    tight = {"relative_tolerance": 1e-11, "absolute_tolerance": 1e-11}
    found = motion("double-step", solver="dop853", step=0.05, **tight)
    assert np.max(found[0]) > np.pi / 2
    return found


@pytest.mark.parametrize(
    "attitude", [None, Rotation.from_rotvec([0.0, 1.4, 0.0]), Rotation.from_rotvec([1.0, -0.8, 2.0])]
)
def test_redundant_constraints_cost_no_accuracy(attitude: Rotation | None) -> None:
    """A planar loop in space: beside its constraints, in the stages of the method, redundant ones contradict."""
    error = np.max(np.abs(motion("dca-alm", attitude, solver="rk4", step=2e-3) - expected()))
    assert error < 2e-7


def test_order_is_four() -> None:
    errors = [np.max(np.abs(motion("dca-alm", solver="rk4", step=step) - expected())) for step in (2e-3, 1e-3)]
    assert np.log2(errors[0] / errors[1]) > 3.8  # references change at different times
