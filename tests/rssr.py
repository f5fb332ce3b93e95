"""Revolute–spherical–spherical–revolute linkages in space, which oscillate between dead centres."""

from __future__ import annotations

import numpy as np

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.parts import Spherical

DEAD_CENTRES = 2
"""A seed with which a step over a dead centre has stages where the loop cannot be closed."""
LEAPING = 18
"""A seed with which a large step closes the loop in another way at its end."""
LEAPING_FAR = 188
"""A seed with which that costs most of the energy, at a tolerance of 1e-3."""
LEAPING_EQUALLY = 56
"""A seed with which one of the equal steps of `LEAPING_STEP` seconds does."""
LEAPING_STEP = 0.125


def rssr(seed: int) -> CoupledModel:
    """A crank about z, a rocker about x and a coupler on two balls, of random dimensions, at rest in a random field."""
    random = np.random.default_rng(seed)
    crank_tip = np.array([random.uniform(0.3, 0.9), 0.0, 0.0])
    pivot = np.array([1.2, random.uniform(0.3, 0.9), 0.0])
    rocker_tip = np.array([0.0, 0.0, random.uniform(0.6, 1.2)])
    along = pivot + rocker_tip - crank_tip
    bodies = (
        _link("crank", 2.0, (0.02, 0.05, 0.05), crank_tip),
        RigidBody(name="coupler", mass=1.0, inertia=(0.1, 0.12, 0.11), points={"tip": tuple(along)}),
        _link("rocker", 1.5, (0.1, 0.11, 0.03), rocker_tip),
    )
    joints = (
        Revolute(name="A", parent="ground.O", child="crank.origin", axis=(0.0, 0.0, 1.0)),
        Spherical(name="B", parent="crank.tip", child="coupler.origin"),
        Revolute(name="D", parent="ground.P", child="rocker.origin", axis=(1.0, 0.0, 0.0)),
        Spherical(name="C", parent="coupler.tip", child="rocker.tip", cut=True),
    )
    mechanism = Mechanism(
        gravity=tuple(9.81 * random.normal(size=3)),
        ground={"O": (0.0, 0.0, 0.0), "P": tuple(pivot)},
        bodies=bodies,
        joints=joints,
    )
    return CoupledModel(name="rssr", systems={"mechanism": mechanism})


def _link(name: str, mass: float, inertia: tuple[float, float, float], tip: np.typing.NDArray[np.float64]) -> RigidBody:
    return RigidBody(name=name, mass=mass, inertia=inertia, centre=tuple(0.5 * tip), points={"tip": tuple(tip)})
