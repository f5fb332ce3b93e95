"""Small mechanisms of the same density move as large ones do under weights that are small alike."""

from __future__ import annotations

import numpy as np
import pytest
from cranks import parallel_cranks

from mbsfmu import CoupledModel, Mechanism, RigidBody
from mbsfmu.model import Point


def small_cranks(size: float) -> CoupledModel:
    """Parallel cranks so many times as large, with masses by its cube and gravity by itself."""
    model = parallel_cranks(1.0, speed=2.0)
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    places = {f"p{number}": Point(position=(size * number, 0.0, 0.0)) for number in range(3)}
    bodies = []
    for body in mechanism.bodies:
        assert isinstance(body, RigidBody)
        changes = {"mass": size**3 * body.mass, "inertia": tuple(size**5 * each for each in body.inertia)}
        own = {"centre": places["p1"], "points": places} if body.name == "coupler" else {}
        bodies.append(body.model_copy(update={**changes, **own, "length": size}))
    ground = {name: place.position for name, place in places.items()}
    gravity = tuple(size * each for each in mechanism.gravity)
    smaller = mechanism.model_copy(update={"bodies": tuple(bodies), "ground": ground, "gravity": gravity})
    return model.model_copy(update={"systems": {"mechanism": smaller}})


@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_small_cranks_move_as_large_ones(size: float) -> None:
    """By the formulation that takes joint coordinates, at full size."""
    expected = parallel_cranks(1.0, speed=2.0).simulation(step=1e-3, compiled=False).run(0.1)
    result = small_cranks(size).simulation(formulation="dca-alm", step=1e-3, compiled=False).run(0.1)
    np.testing.assert_allclose(result["crank_0.angle"], expected["crank_0.angle"], rtol=0, atol=1e-6)
