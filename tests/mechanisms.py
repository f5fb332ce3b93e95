"""Mechanisms that tests share."""

from __future__ import annotations

from mbsfmu import Beam, CoupledModel, Cuboid, Mechanism, Prismatic, Revolute, RigidBody
from mbsfmu.parts import Free, Spherical


def slider_crank(speed: float = 6.0, size: float = 1.0) -> CoupledModel:
    """A crank of 0.3 m, a rod of 1 m and a slider on the x axis, without gravity, thrown into full turns.

    Or so many times as large, with the same masses.
    """
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            Beam(name="crank", length=0.3 * size, mass=3.0),
            Beam(name="rod", length=size, mass=1.0),
            Cuboid(name="slider", length=0.1 * size, mass=2.0),
        ),
        joints=(
            Revolute(name="A", parent="ground.O", child="crank.start", angle=1.5, angular_velocity=speed),
            Revolute(name="B", parent="crank.end", child="rod.start", angle=-1.8, angular_velocity=-speed),
            Prismatic(name="slide", parent="ground.O", child="slider.centre", displacement=size),
            Revolute(name="C", parent="slider.centre", child="rod.end", cut=True),
        ),
    )
    return CoupledModel(name="slider-crank", systems={"mechanism": mechanism})


def floating() -> CoupledModel:
    """A body without gravity on a free joint, which holds it at a point away from its centre of mass.

    It tumbles about its middle axis, which is unstable (Dzhanibekov).
    """
    body = RigidBody(
        name="body", mass=2.0, inertia=(1.0, 2.0, 3.0), centre=(0.1, -0.2, 0.3), points={"here": (0.4, 0.1, -0.2)}
    )
    free = Free(
        name="free",
        parent="ground.O",
        child="body.here",
        orientation=(0.0, 0.7, 0.0),
        velocity=(0.3, -0.2, 0.5),
        angular_velocity=(0.01, 5.0, 0.02),
    )
    mechanism = Mechanism(gravity=(0.0, 0.0, 0.0), ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(free,))
    return CoupledModel(name="floating", systems={"mechanism": mechanism})


def ball_pendulum() -> CoupledModel:
    """A body that hangs on a ball and tumbles under gravity: what it feels depends on its orientation."""
    body = RigidBody(name="body", mass=2.0, inertia=(1.0, 2.0, 2.5), centre=(0.8, -0.2, 0.3))
    ball = Spherical(name="ball", parent="ground.O", child="body.origin", angular_velocity=(2.0, 7.0, 1.0))
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(ball,))
    return CoupledModel(name="ball-pendulum", systems={"mechanism": mechanism})
