"""Parameters that lock a machine, or set it free, change how many loop equations are independent: that is told."""

from __future__ import annotations

import logging
from math import atan2, cos, hypot, sin

import pytest

from mbsfmu import Beam, CoupledModel, Mechanism, Revolute

ANGLE, LENGTH, ABOVE, HEIGHT = 1.0, 0.5, 0.1, 0.3
TOLD = "3 loop equations are independent instead of 4"


def third_crank(above: float) -> dict[str, float]:
    """Values of a third crank that begins above the line of the others and meets the coupler in its middle."""
    end = LENGTH * cos(ANGLE), LENGTH * sin(ANGLE) - above
    return {"ground.C.y": HEIGHT + above, "k3.length": hypot(*end), "k3.angle_start": atan2(end[1], end[0])}


def three_cranks(above: float) -> CoupledModel:
    """Parallel and of one length they move, 3 independent equations of 4; else nothing does."""
    third = third_crank(above)
    bodies = (
        Beam(name="k1", length=LENGTH, mass=1.0),
        Beam(name="coupler", length=1.0, mass=2.0, points={"middle": {"along": 0.5}}),
        Beam(name="k2", length=LENGTH, mass=1.0),
        Beam(name="k3", length=third["k3.length"], mass=1.0),
        Beam(name="pendulum", length=0.4, mass=1.0),
    )
    joints = (
        Revolute(name="A", parent="ground.A", child="k1.start", angle=ANGLE),
        Revolute(name="P", parent="k1.end", child="coupler.start", angle=-ANGLE),
        Revolute(name="B", parent="ground.B", child="k2.start", angle=ANGLE),
        Revolute(name="Q", parent="coupler.end", child="k2.end", cut=True),
        Revolute(name="C", parent="ground.C", child="k3.start", angle=third["k3.angle_start"]),
        Revolute(name="R", parent="coupler.middle", child="k3.end", cut=True),
        Revolute(name="S", parent="ground.A", child="pendulum.start", angle=0.2),
    )
    ground = {"A": (0.0, HEIGHT, 0.0), "B": (1.0, HEIGHT, 0.0), "C": (0.5, HEIGHT + above, 0.0)}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=joints)
    return CoupledModel(name="cranks", systems={"mechanism": mechanism})


@pytest.mark.parametrize(("own", "given", "count"), [(ABOVE, 0.0, 1), (0.0, 0.0, 0), (ABOVE, ABOVE, 0)])
def test_a_third_crank_that_is_set_parallel(
    own: float, given: float, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    simulation = three_cranks(own).simulation(compiled=False, formulation="penalty", step=1e-3)
    for name, value in third_crank(given).items():
        simulation.set(name, value)
    simulation.set("pendulum.mass", 1.1)
    with caplog.at_level(logging.WARNING):
        simulation.initialize()
    assert sum(TOLD in each.getMessage() for each in caplog.records) == count


def test_a_dead_centre_is_no_change(caplog: pytest.LogCaptureFixture) -> None:
    """Two cranks on a line have one independent equation less there, and not beside it."""
    model = three_cranks(0.0)
    simulation = model.simulation(compiled=False, formulation="penalty", step=1e-3)
    for crank in ("k1", "k2", "k3"):
        simulation.set(f"{crank}.angle_start", 1e-12)
    with caplog.at_level(logging.WARNING):
        simulation.initialize()
    assert not any("independent instead" in each.getMessage() for each in caplog.records)
