"""A joint's reaction is all that it transmits: its own springs, dampers and drives too, in the inertial frame."""

from __future__ import annotations

import numpy as np
import pytest

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, along
from mbsfmu.parts import JointDrive, JointSpringDamper

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
ANGLE, SPEED, TORQUE = 0.7, 2.0, 5.0


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_moment_about_the_axis_is_of_spring_damper_and_drive(formulation: str) -> None:
    """About an axis askew in the inertial frame: nothing else in the joint acts about it."""
    axis = np.array([1.0, 2.0, 2.0]) / 3.0
    body = RigidBody(name="arm", mass=2.0, inertia=(0.1, 0.2, 0.3), centre=along(0.5), length=1.0)
    joint = Revolute(
        name="O", parent="ground.O", child="arm.origin", axis=tuple(axis), angle=ANGLE, angular_velocity=SPEED
    )
    spring = JointSpringDamper(name="spring", joint="O", stiffness=30.0, damping=1.5, free_coordinate=0.2)
    forces = (spring, JointDrive(name="motor", joint="O"))
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(joint,), forces=forces)
    simulation = CoupledModel(name="arm", systems={"m": mechanism}).simulation(formulation=formulation, compiled=False)
    simulation.set("motor.torque", TORQUE)
    simulation.initialize()
    moment = np.array([simulation.get(f"O.moment.{each}") for each in "xyz"])
    assert moment @ axis == pytest.approx(TORQUE - 30.0 * (ANGLE - 0.2) - 1.5 * SPEED, rel=1e-9)
    described = {each.name: each.description for each in simulation.variables}
    assert "in the inertial frame (what springs, dampers and drives in the joint exert" in described["O.moment.x"]
