"""A mechanism that passes through singular configurations, and its motion in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from mbsfmu import Beam, CoupledModel, Cuboid, Mechanism, Prismatic, Revolute

Floats = NDArray[np.float64]


def folding() -> CoupledModel:
    """A crank and a rod of equal lengths, which fold up in every turn: the slider's equation vanishes there."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            Beam(name="crank", length=1.0, mass=1.0),
            Beam(name="rod", length=1.0, mass=1.0),
            Cuboid(name="slider", length=0.1, mass=1.0),
        ),
        joints=(
            Revolute(name="A", parent="ground.O", child="crank.start", angle=0.3, angular_velocity=4.0),
            Revolute(name="B", parent="crank.end", child="rod.start", angle=-0.6, angular_velocity=-8.0),
            Revolute(name="C", parent="rod.end", child="slider.centre", angle=0.3, angular_velocity=4.0),
            Prismatic(name="slide", parent="ground.O", child="slider.centre", cut=True),
        ),
    )
    return CoupledModel(name="folding", systems={"mechanism": mechanism})


def folding_angle(times: Floats) -> Floats:
    """The crank's angle φ, the rod's being -φ, from Lagrange's equation of the one degree of freedom."""

    def flow(_: float, y: Floats) -> list[float]:
        sine, cosine = np.sin(y[0]), np.cos(y[0])
        inertia = 1.0 / 3.0 + 1.0 / 12.0 + 2.25 * sine**2 + 0.25 * cosine**2 + 4.0 * sine**2
        return [y[1], (-6.0 * sine * cosine * y[1] ** 2 - 9.81 * cosine) / inertia]

    found = solve_ivp(flow, (0.0, times[-1]), [0.3, 4.0], "DOP853", times, rtol=1e-12, atol=1e-12)
    return np.asarray(found.y[0])
