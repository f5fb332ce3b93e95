"""A mass that hits a stiff, damped stop, and its rebound in closed form."""

from __future__ import annotations

from math import acos, exp, sqrt

from mbsfmu import CoupledModel, Cuboid, Mechanism, Prismatic, Revolute, RigidBody
from mbsfmu.parts import JointSpringDamper

MASS, SPEED = 200.0, 3.7
FREQUENCY, RATIO = 5000.0, 0.3  # undamped, rad/s; of critical damping
ENERGY = 0.5 * MASS * SPEED**2


def stop(gravity: float = 0.0, *, speed: float = SPEED, mass: float = MASS, spin: float = 0.0) -> CoupledModel:
    """The mass as it touches the stop, beside a flywheel of 10 kg m² that spins freely."""
    flywheel = RigidBody(name="flywheel", mass=1.0, inertia=(10.0, 10.0, 10.0))
    bearing = Revolute(name="bearing", parent="ground.O", child="flywheel.origin", angular_velocity=spin)
    mechanism = Mechanism(
        gravity=(0.0, gravity, 0.0),
        ground={"O": (0.0, 1e3, 0.0)},
        bodies=(Cuboid(name="mass", length=0.1, mass=mass), *((flywheel,) if spin else ())),
        joints=(
            Prismatic(name="guide", parent="ground.O", child="mass.centre", velocity=-speed),
            *((bearing,) if spin else ()),
        ),
        forces=(
            JointSpringDamper(
                name="stop",
                joint="guide",
                stiffness=mass * FREQUENCY**2,
                damping=2.0 * RATIO * FREQUENCY * mass,
            ),
        ),
    )
    return CoupledModel(name="stop", systems={"mechanism": mechanism})


def at_most_compressed() -> tuple[float, float]:
    """When the mass comes to rest in the stop in s, and what is stored there in J.

    x = -v / w_d exp(-z w t) sin w_d t, whose rate vanishes at cos w_d t = z.
    """
    damped = FREQUENCY * sqrt(1.0 - RATIO**2)
    time = acos(RATIO) / damped
    depth = SPEED / damped * exp(-RATIO * FREQUENCY * time) * sqrt(1.0 - RATIO**2)
    return time, 0.5 * MASS * FREQUENCY**2 * depth**2
