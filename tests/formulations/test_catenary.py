"""A rope of rigid links that hangs from both ends, against its closed form and against the catenary."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.model import along
from mbsfmu.tracing.workspace import Floats

SPAN, LENGTH, MASS, GRAVITY = 8.0, 10.0, 3.0, 9.81
WEIGHT = MASS * GRAVITY


def resting(links: int) -> tuple[float, Floats]:
    """Horizontal tension in N, and the angle of each link: at its centre, the load has tan θ of the tension.

    A link of a rope at rest has no moment: the mean of what pulls at its ends has its direction.
    """
    vertical = WEIGHT * (np.arange(links) - 0.5 * (links - 1)) / links

    def angles(tension: float) -> Floats:
        return np.asarray(np.arctan2(vertical, tension), dtype=np.float64)

    tension = brentq(lambda each: np.cos(angles(each)).sum() * LENGTH / links - SPAN, 1e-3, 1e4, xtol=1e-13)
    return tension, angles(tension)


def catenary_tension() -> float:
    """Horizontal tension in N of a rope that bends freely."""
    parameter = brentq(lambda a: 2.0 * a * np.sinh(0.5 * SPAN / a) - LENGTH, 1.0, 100.0, xtol=1e-14)
    return parameter * WEIGHT / LENGTH


def rope(angles: Floats) -> CoupledModel:
    """Links hinged to each other and, at both ends, to the ground, at these angles."""
    links = len(angles)
    length, mass = LENGTH / links, MASS / links
    inertia = (1e-4 * mass, mass * length**2 / 12.0, mass * length**2 / 12.0)
    names = [f"link_{number}" for number in range(links)]
    bodies = [
        RigidBody(name=name, mass=mass, inertia=inertia, centre=along(0.5), length=length, points={"end": along(1.0)})
        for name in names
    ]
    turns = np.diff(angles, prepend=0.0).tolist()
    before = ["ground.A", *(f"{name}.end" for name in names[:-1])]
    hinges = [
        Revolute(name=f"hinge_{index}", parent=parent, child=f"{name}.origin", angle=turn)
        for index, (parent, name, turn) in enumerate(zip(before, names, turns, strict=True))
    ]
    last = Revolute(name="last", parent="ground.B", child=f"{names[-1]}.end", cut=True)
    ground = {"A": (0.0, 0.0, 0.0), "B": (SPAN, 0.0, 0.0)}
    mechanism = Mechanism(ground=ground, bodies=tuple(bodies), joints=(*hinges, last), gravity=(0.0, -GRAVITY, 0.0))
    return CoupledModel(name="rope", systems={"mechanism": mechanism})


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
def test_a_rope_that_hangs_as_it_rests_does_not_move(formulation: str) -> None:
    links = 70
    tension, angles = resting(links)
    simulation = rope(angles).simulation(formulation=formulation, solver="rk45", compiled=False)
    assert simulation.functions.in_loops
    simulation.initialize()
    accelerations = [simulation.get(f"link_{index}.angular_acceleration") for index in range(links)]
    np.testing.assert_allclose(accelerations, 0.0, atol=1e-7)
    np.testing.assert_allclose(simulation.get("last.force.x"), tension, rtol=1e-9)
    np.testing.assert_allclose(simulation.get("last.force.y"), 0.5 * WEIGHT, rtol=1e-9)


def test_ropes_of_more_links_come_nearer_to_the_catenary() -> None:
    errors = []
    for links in (8, 16, 32):
        tension, angles = resting(links)
        rested = rope(angles + 0.02 * np.sin(np.arange(links))).equilibrium().model
        simulation = rested.simulation(formulation="dca", solver="rk45", code="loops", compiled=False)
        simulation.initialize()
        heights = [simulation.get(f"link_{index}.centre.y.position") for index in range(links)]
        rises = np.sin(angles) * LENGTH / links
        np.testing.assert_allclose(heights, np.cumsum(rises) - 0.5 * rises, atol=1e-7)
        np.testing.assert_allclose(simulation.get("last.force.x"), tension, rtol=1e-6)
        errors.append(simulation.get("last.force.x") / catenary_tension() - 1.0)
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4.0, rtol=0.05)
