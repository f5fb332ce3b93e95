"""A ball that spins about its centre without gravity, in closed form: all is constant but its orientation."""

from __future__ import annotations

import numpy as np

from mbsfmu import CoupledModel, Mechanism, RigidBody, Spherical
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.workspace import Floats


def spinning(*velocity: float) -> CoupledModel:
    """Return the model of a ball with an angular velocity in rad/s."""
    ball = RigidBody(name="ball", mass=2.0, inertia=(1.0, 1.0, 1.0))
    joint = Spherical(name="joint", parent="ground.O", child="ball.origin", angular_velocity=velocity)
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(ball,), joints=(joint,), gravity=(0.0, 0.0, 0.0))
    return CoupledModel(name="spinning", systems={"mechanism": mechanism})


def quaternions(result: Result) -> Floats:
    """Return the quaternions of the ball in a run, shape (t, 4)."""
    return np.stack([result[f"ball.quaternion.{each}"] for each in "wxyz"], axis=1)


def expected_quaternions(result: Result, *velocity: float) -> Floats:
    """Return those of a turn about a fixed axis, shape (t, 4)."""
    speed = float(np.linalg.norm(velocity))
    halves = 0.5 * speed * result.time[:, None]
    return np.hstack([np.cos(halves), np.sin(halves) * np.array(velocity) / speed])
