"""Heavy loads on light links: with momenta errors of steps grow as the load does, with accelerations they do not."""

from __future__ import annotations

import numpy as np
import pytest
from ropes import rope

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, Universal
from mbsfmu.formulations.dca import HEAVY
from mbsfmu.model import along

STOP = 0.02


def off(links: int, load: float, formulation: str) -> float:
    """Return the largest error of an angle with trapezoidal steps of 1 ms."""
    names = [f"link_{index}.angle" for index in range(links)]
    model = rope(links, load)
    tight = {"relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
    exact = model.simulation(formulation="dca", solver="dop853", compiled=False, **tight).run(STOP)
    found = model.simulation(formulation=formulation, solver="trapezoidal", step=1e-3, compiled=False).run(STOP)
    return max(abs(float(found[name][-1] - exact[name][-1])) for name in names)


def test_errors_grow_with_the_load_where_velocities_come_from_momenta() -> None:
    by_momenta, by_velocities = ([off(6, load, formulation) for load in (1e3, 1e4)] for formulation in ("hdca", "dca"))
    assert by_momenta[1] / by_momenta[0] == pytest.approx(10.0, rel=0.2)
    assert by_velocities[1] / by_velocities[0] == pytest.approx(1.0, rel=0.2)
    assert by_momenta[1] > 100.0 * by_velocities[1]


def test_carried_inertias_of_a_bent_arm() -> None:
    """On a column that turns 0.4 m beside its axis: an arm of 2 m with a load of 7 kg at its end, itself of 3 kg."""
    column = RigidBody(name="column", mass=5.0, inertia=(1.0,) * 3, points={"side": (0.4, 1.0, 0.0)})
    arm = RigidBody(name="arm", mass=3.0, inertia=(1.0,) * 3, centre=along(0.5), length=2.0, points={"end": along(1.0)})
    load = RigidBody(name="load", mass=7.0, inertia=(1.0,) * 3)
    joints = (
        Revolute(name="turns", parent="ground.O", child="column.origin", axis=(0.0, 1.0, 0.0)),
        Revolute(name="lifts", parent="column.side", child="arm.origin", angle=0.5),
        Universal(name="swings", parent="arm.end", child="load.origin"),
    )
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(column, arm, load), joints=joints)
    model = CoupledModel(name="arm", systems={"mechanism": mechanism})
    found = model.simulation(formulation="hdca", compiled=False).initialization.carried_inertias
    np.testing.assert_allclose(found, [10.0 * 0.4**2, 7.0 * 2.0**2, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(("load", "heavy"), [(1e4, True), (1e2, False)])
def test_heavy_loads_are_told_of_once(load: float, heavy: bool, caplog: pytest.LogCaptureFixture) -> None:
    rope(6, load).simulation(formulation="hdca", compiled=False).run(1e-3)
    told = [each for each in caplog.messages if "hdca has velocities from momenta" in each]
    assert len(told) == heavy
    if heavy:
        assert float(told[0].partition("weighs ")[2].split()[0]) > HEAVY
        assert "what hangs beyond link_1.angle" in told[0]


def test_built_in_models_have_no_heavy_loads(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("slewing-four-bar", "loop-8", "pendulum-256"):
        mbsfmu.models.built_in(name).simulation(formulation="hdca", compiled=False)
    assert not [each for each in caplog.messages if "momenta" in each]
