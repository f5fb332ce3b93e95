"""A ring whose masses differ by four orders of magnitude: what formulations are off by is the error of their steps."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.model import along

STOP, SIDES = 0.1, 6


def ring(odd: float) -> CoupledModel:
    """A regular hexagon under its top side, the ground; the mass of the middle link is another one."""
    turn, links = 2.0 * pi / SIDES, SIDES - 1
    masses = [odd if index == links // 2 else 1.0 for index in range(links)]
    ends = ["ground.A", *(f"link_{index}.end" for index in range(links))]
    bodies = tuple(
        RigidBody(
            name=f"link_{index}", mass=mass, inertia=(mass / 12.0, mass / 12.0, mass / 12.0), centre=along(0.5),
            length=1.0, points={"end": along(1.0)},
        )
        for index, mass in enumerate(masses)
    )  # fmt: skip
    joints = [
        Revolute(name=f"joint_{index}", parent=ends[index], child=f"link_{index}.origin", angle=turn - pi * (not index))
        for index in range(links)
    ]
    joints.append(Revolute(name="closing", parent="ground.B", child=f"{ends[-1]}", cut=True))
    ground = {"A": (-0.5, 0.0, 0.0), "B": (0.5, 0.0, 0.0)}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=tuple(joints))
    return CoupledModel(name="ring", systems={"mechanism": mechanism})


def test_the_trapezoidal_rule_with_momenta_is_of_second_order() -> None:
    model = ring(odd=1e-4)
    names = [f"link_{index}.angle" for index in range(SIDES - 1)]
    tight = {"relative_tolerance": 1e-12, "absolute_tolerance": 1e-12, "stabilisation": 10.0}
    exact = model.simulation(formulation="dca", solver="dop853", **tight).run(stop=STOP)

    def off(step: float) -> float:
        run = model.simulation(formulation="hdca", solver="trapezoidal", step=step).run(stop=STOP)
        return max(abs(float(run[name][-1] - exact[name][-1])) for name in names)

    steps = np.array([4e-3, 2e-3, 1e-3])
    errors = [off(step) for step in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)
