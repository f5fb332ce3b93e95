"""A damped oscillator that forces drive: every solver must meet its closed form."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from mbsfmu import CoupledModel, Mechanism, Prismatic, RigidBody, StepSignal
from mbsfmu.parts import JointDrive, JointSpringDamper
from mbsfmu.tracing.workspace import Floats

MASS, STIFFNESS, DAMPING = 2.0, 50.0, 0.8
START, SPEED = 0.3, 1.0
JUMPS, FORCES = (0.217, 0.6503, 1.11), (30.0, -10.0, 0.0)
"""Times in s, off every grid, and values in N from there on; no force before."""


def oscillator(*, driven: bool = True) -> CoupledModel:
    """The oscillator, with or without the steps of the force."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="slider", mass=MASS, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="slider.origin", displacement=START, velocity=SPEED),),
        forces=(
            JointSpringDamper(name="spring", joint="rail", stiffness=STIFFNESS, damping=DAMPING),
            JointDrive(name="motor", joint="rail"),
        ),
    )
    signals = {"mechanism.motor.force": StepSignal(times=JUMPS, values=FORCES)} if driven else {}
    return CoupledModel(name="oscillator", systems={"mechanism": mechanism}, signals=signals)


def displacement(times: Floats, *, driven: bool = True) -> Floats:
    """The closed form at times in s."""
    return motion(times, driven=driven)[0]


def motion(times: Floats, *, driven: bool = True) -> Floats:
    """Displacement and velocity at times in s, by the matrix exponential from jump to jump; shape (2, k)."""
    matrix = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]])
    state, begin, force, result = np.array([START, SPEED]), 0.0, 0.0, []
    jumps = list(zip(JUMPS, FORCES, strict=True)) if driven else []

    def moved(time: float) -> Floats:
        rest = np.array([force / STIFFNESS, 0.0])
        return rest + expm(matrix * (time - begin)) @ (state - rest)

    for time in times:
        while jumps and jumps[0][0] <= time:
            jump, value = jumps.pop(0)
            state, begin, force = moved(jump), jump, value
        result.append(moved(float(time)))
    return np.array(result).T
