"""A slider-crank whose crank turns at a constant speed, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu import Beam, CoupledModel, Cuboid, Mechanism, PolynomialSignal, PrescribedMotion, Prismatic, Revolute
from mbsfmu.io.signals import AnySignal

Floats = NDArray[np.float64]
CRANK, ROD, SPEED, START = 0.3, 1.0, 6.0, 0.5
CRANK_MASS, ROD_MASS, SLIDER_MASS = 3.0, 1.0, 2.0
STEADY = PolynomialSignal(times=(0.0,), coefficients=((START, SPEED),))


def driven_crank(signal: AnySignal | None = STEADY) -> CoupledModel:
    """Crank, rod and slider without gravity; the crank follows a signal, or inputs."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            Beam(name="crank", length=CRANK, mass=CRANK_MASS),
            Beam(name="rod", length=ROD, mass=ROD_MASS),
            Cuboid(name="slider", length=0.1, mass=SLIDER_MASS),
        ),
        joints=(
            Revolute(name="A", parent="ground.O", child="crank.start", angle=START),
            Revolute(name="B", parent="crank.end", child="rod.start", angle=-0.65),
            Prismatic(name="slide", parent="ground.O", child="slider.centre", displacement=1.2),
            Revolute(name="C", parent="slider.centre", child="rod.end", cut=True),
        ),
        constraints=(PrescribedMotion(name="motor", joint="A"),),
    )
    signals = {} if signal is None else {"mechanism.motor.position": signal}
    return CoupledModel(name="driven-crank", systems={"mechanism": mechanism}, signals=signals)


def in_closed_form(time: Floats) -> dict[str, Floats]:
    """Return place and acceleration of the slider, torque on the crank, and kinetic energy, at the constant speed.

    With β the rod's angle, sin β = −r/l sin φ; the torque is the derivative of the kinetic energy by φ.
    """
    phi = START + SPEED * time
    ratio = CRANK / ROD
    sine, cosine = -ratio * np.sin(phi), np.sqrt(1.0 - (ratio * np.sin(phi)) ** 2)
    beta_1 = -ratio * np.cos(phi) / cosine  # dβ/dφ, and so on
    beta_2 = (ratio * np.sin(phi) + sine * beta_1**2) / cosine
    place = CRANK * np.cos(phi) + ROD * cosine
    place_1 = -CRANK * np.sin(phi) - ROD * sine * beta_1
    place_2 = -CRANK * np.cos(phi) - ROD * (cosine * beta_1**2 + sine * beta_2)
    centre_1 = np.array(
        [-CRANK * np.sin(phi) - 0.5 * ROD * sine * beta_1, CRANK * np.cos(phi) + 0.5 * ROD * cosine * beta_1]
    )
    centre_2 = np.array(
        [
            -CRANK * np.cos(phi) - 0.5 * ROD * (cosine * beta_1**2 + sine * beta_2),
            -CRANK * np.sin(phi) + 0.5 * ROD * (-sine * beta_1**2 + cosine * beta_2),
        ]
    )
    turning = ROD_MASS * ROD**2 / 12.0
    reduced = SLIDER_MASS * place_1**2 + ROD_MASS * (centre_1**2).sum(axis=0) + turning * beta_1**2
    slope = SLIDER_MASS * place_1 * place_2 + ROD_MASS * (centre_1 * centre_2).sum(axis=0) + turning * beta_1 * beta_2
    return {
        "slider.displacement": place,
        "slider.acceleration": place_2 * SPEED**2,
        "motor.torque": slope * SPEED**2,
        "energy.kinetic": 0.5 * (reduced + CRANK_MASS * CRANK**2 / 3.0) * SPEED**2,
    }
