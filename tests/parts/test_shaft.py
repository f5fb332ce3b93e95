"""A shaft beside mechanisms: closed form, energy, and a rotor in a machine by the same law."""

from __future__ import annotations

import numpy as np
import pytest

from mbsfmu import CoupledModel, DataError, JointSpringDamper, LinearSignal, Mechanism, Revolute, RigidBody, Shaft
from mbsfmu.parts import JointDrive

INERTIA, DAMPING, SPEED = 0.05, 0.1, 150.0


def turned() -> CoupledModel:
    shaft = Shaft(inertia=INERTIA, damping=DAMPING, torques=("motor", "load"), initial_speed=SPEED, initial_angle=0.3)
    constant = {"motor": 12.0, "load": -4.0}
    signals = {f"shaft.{name}": LinearSignal(times=(0.0,), values=(value,)) for name, value in constant.items()}
    return CoupledModel(name="drive", systems={"shaft": shaft}, signals=signals)


def test_shaft_turns_by_the_sum_of_torques_as_in_closed_form() -> None:
    """ω = T/d + (ω₀ − T/d) exp(−d t/J); what comes in is stored or lost."""
    result = turned().simulation(compiled=False).run(1.0)
    steady, decay = 8.0 / DAMPING, np.exp(-DAMPING * result.time / INERTIA)
    speed = steady + (SPEED - steady) * decay
    angle = 0.3 + steady * result.time + (SPEED - steady) * INERTIA / DAMPING * (1.0 - decay)
    np.testing.assert_allclose(result["angular_velocity"], speed, atol=1e-4)
    np.testing.assert_allclose(result["angle"], angle, atol=1e-4)
    came = np.trapezoid(8.0 * result["angular_velocity"] - DAMPING * result["angular_velocity"] ** 2, result.time)
    stored = result["kinetic_energy"]
    assert stored[-1] - stored[0] == pytest.approx(came, rel=1e-5)
    assert stored[0] == pytest.approx(0.5 * INERTIA * SPEED**2)


def test_shaft_is_the_body_on_a_hinge_that_it_stands_for() -> None:
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="rotor", mass=1.0, inertia=(INERTIA, INERTIA, INERTIA)),),
        joints=(Revolute(name="axle", parent="ground.O", child="rotor.origin", angle=0.3, angular_velocity=SPEED),),
        forces=(JointDrive(name="motor", joint="axle"), JointSpringDamper(name="rub", joint="axle", damping=DAMPING)),
    )
    simulation = CoupledModel(name="rotor", systems={"mechanism": mechanism}).simulation(compiled=False)
    simulation.set("motor.torque", 8.0)
    body, shaft = simulation.run(0.5), turned().simulation(compiled=False).run(0.5)
    np.testing.assert_allclose(shaft["angle"], body["rotor.angle"], atol=1e-6)
    np.testing.assert_allclose(shaft["kinetic_energy"], body["energy.kinetic"], rtol=1e-8)


def test_wrong_shafts_are_refused_in_words() -> None:
    with pytest.raises(DataError, match="inertia is 0"):
        Shaft(inertia=0.0)
    with pytest.raises(DataError, match="the name 'load' is given to more than one of its numbers"):
        Shaft(inertia=1.0, torques=("load", "load"))
    with pytest.raises(DataError, match="torques"):
        Shaft(inertia=1.0, torques=())
