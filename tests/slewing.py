"""A planar four-bar upright on a house that turns, and the same laid into the world in any attitude."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody

NAMES = ("house.angle", "crank.angle", "coupler.angle", "rocker.angle")


def slewing_four_bar(rate: float = np.pi / 2, attitude: Rotation | None = None) -> CoupledModel:
    """A house on a vertical hinge with a four-bar in its plane; at 90° of slew it lies in another plane of the world.

    Parameters
    ----------
    rate
        Angular velocity of the house in rad/s.
    attitude
        Rotation of all that is fixed to the world, gravity too; bodies stay laid out as they are.
    """
    turn = Rotation.identity() if attitude is None else attitude
    house = RigidBody(
        name="house", mass=1000.0, inertia=(6e5, 6e5, 1e6), points={"A": (0.0, 0.0, 0.0), "B": (2.0, 0.0, 0.0)}
    )
    across = (0.0, -1.0, 0.0)
    angles = dict(zip("abc", closed_angles(np.radians(80.0)), strict=True))
    joints = (
        Revolute(
            name="slew", parent="ground.O", child="house.origin", axis=tuple(turn.apply([0.0, 0.0, 1.0])),
            orientation=tuple(turn.as_rotvec()), angular_velocity=rate,
        ),
        Revolute(name="a", parent="house.A", child="crank.origin", axis=across, angle=angles["a"]),
        Revolute(name="b", parent="crank.end", child="coupler.origin", axis=across, angle=angles["b"]),
        Revolute(name="c", parent="house.B", child="rocker.origin", axis=across, angle=angles["c"]),
        Revolute(name="d", parent="coupler.end", child="rocker.end", axis=across, cut=True),
    )  # fmt: skip
    bodies = (house, _bar("crank", 1.0, 10.0), _bar("coupler", 2.0, 20.0), _bar("rocker", 1.5, 15.0))
    gravity = tuple(turn.apply([0.0, 0.0, -9.81]))
    mechanism = Mechanism(gravity=gravity, ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints)
    return CoupledModel(name="slewing-four-bar", systems={"mechanism": mechanism})


def closed_angles(crank: float) -> tuple[float, float, float]:
    """Return the angles of crank, coupler relative to the crank, and rocker, with which the loop is closed."""
    tip = np.array([np.cos(crank), np.sin(crank)])
    span = np.array([2.0, 0.0]) - tip
    distance = float(np.hypot(*span))
    coupler = np.arctan2(span[1], span[0]) + np.arccos((2.0**2 + distance**2 - 1.5**2) / (4.0 * distance))
    end = tip + 2.0 * np.array([np.cos(coupler), np.sin(coupler)])
    return crank, float(coupler - crank), float(np.arctan2(end[1], end[0] - 2.0))


def _bar(name: str, length: float, mass: float) -> RigidBody:
    across = {"crank": 1.0, "coupler": 5.0, "rocker": 3.0}[name]
    return RigidBody(
        name=name,
        mass=mass,
        inertia=(0.1, across, across),
        centre=(length / 2, 0.0, 0.0),
        points={"end": (length, 0.0, 0.0)},
    )
