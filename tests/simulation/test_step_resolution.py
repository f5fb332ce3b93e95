"""Rough errors of equal steps without an estimate: against errors of the rule in closed form, and what is no error."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from mbsfmu import CoupledModel, JointSpringDamper, Mechanism, Revolute, RigidBody
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.watches import roughness

STEP = 1e-3
ACCELERATION = Variable("crank.angular_acceleration", unit="rad/s2")


def times(count: int, step: float = STEP) -> NDArray[np.float64]:
    return np.asarray(step * np.arange(count), dtype=np.float64)


def rough(acceleration: ArrayLike) -> float:
    course = np.asarray(acceleration, dtype=np.float64)
    found = roughness([ACCELERATION], times(len(course)), course[:, np.newaxis], STEP)
    assert found is not None
    return found.share


@pytest.mark.parametrize(("frequency", "periods"), [(20.0, 5), (40.0, 4), (80.0, 2)])
def test_oscillations_against_the_error_of_the_rule(frequency: float, periods: int) -> None:
    """The trapezoidal rule turns a phase ω h into 2 atan(ω h/2)."""
    phase = 2.0 * np.pi * frequency * STEP
    found = 2.0 * np.arctan(0.5 * phase)
    steps = np.arange(round(periods / frequency / STEP) + 1)
    error = np.max(np.abs(np.cos(found * steps) - np.cos(phase * steps))) / 2.0
    assert 0.3 * error < rough(np.cos(found * steps)) < 3.0 * error


def test_a_course_that_alternates() -> None:
    """Ringing by 0.1 about a course from 1 to cos(2), a range of 1.42 and both rings."""
    steps = np.arange(200)
    assert rough(np.cos(0.01 * steps) + 0.1 * (-1.0) ** steps) == pytest.approx(0.1 / 1.6, rel=0.1)


def test_jumps_kinks_and_what_stands_still_are_no_errors() -> None:
    steps = np.arange(200)
    assert rough(np.where(steps < 100, 1.0, -3.0)) < 1e-12
    assert rough(np.abs(steps - 100.0)) < 1e-12
    assert rough(1e-9 * (-1.0) ** steps) < 1e-4
    assert roughness([ACCELERATION], times(200, 2.0 * STEP), np.zeros((200, 1)), STEP) is None
    cardan = Variable("ball.cardan_acceleration.x", unit="rad/s2")
    assert roughness([cardan], times(200), np.cos(2.0 * times(200, 1.0))[:, np.newaxis], STEP) is None


def balance() -> CoupledModel:
    """The balance of a watch: 1000 rad/s, undamped but for a breath."""
    wheel = RigidBody(name="wheel", mass=1e-6, inertia=(1e-13, 1e-13, 1e-13))
    hinge = Revolute(name="staff", parent="ground.O", child="wheel.origin", angle=0.3)
    hair = JointSpringDamper(name="hair", joint="staff", stiffness=1e-7, damping=1e-14)
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(wheel,), joints=(hinge,), forces=(hair,))
    return CoupledModel(name="watch", systems={"mechanism": mechanism})


@pytest.mark.parametrize("formulation", ["penalty", "dca-alm"])
def test_a_fast_oscillation_is_told(formulation: str, caplog: pytest.LogCaptureFixture) -> None:
    """In steps of 1 ms, the default, 6 to a period; its energy stays, and nothing else tells. 10 µs resolve it.

    Steps of bounded work have no estimate of their error.
    """
    with caplog.at_level(logging.WARNING):
        balance().simulation(formulation=formulation, iterations=3).run(0.1)
        (told,) = [record.getMessage() for record in caplog.records if "hardly resolve" in record.getMessage()]
        assert told.startswith("watch: steps of 0.001 s hardly resolve the motion: wheel.")
        caplog.clear()
        balance().simulation(formulation=formulation, iterations=3, step=1e-5).run(0.01)
        balance().simulation(formulation=formulation, iterations=3, check_error=True).run(0.02)
    assert not [record for record in caplog.records if "hardly resolve" in record.getMessage()]
