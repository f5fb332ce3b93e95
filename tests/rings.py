"""Rings of links."""

from __future__ import annotations

from math import pi

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.model import along


def ring(sides: int, odd: float = 1.0, usual: float = 1.0) -> CoupledModel:
    """A regular polygon under its top side, the ground; the mass of the middle link may be another one."""
    turn, links = 2.0 * pi / sides, sides - 1
    masses = [odd if index == links // 2 else usual for index in range(links)]
    ends = ["ground.A", *(f"link_{index}.end" for index in range(links))]
    bodies = tuple(
        RigidBody(
            name=f"link_{index}", mass=mass, inertia=(mass / 12.0, mass / 12.0, mass / 12.0), centre=along(0.5),
            length=1.0, points={"end": along(1.0)},
        )
        for index, mass in enumerate(masses)
    )  # fmt: skip
    joints = [
        Revolute(name=f"joint_{index}", parent=ends[index], child=f"link_{index}.origin", angle=turn - pi * (not index))
        for index in range(links)
    ]
    joints.append(Revolute(name="closing", parent="ground.B", child=f"{ends[-1]}", cut=True))
    ground = {"A": (-0.5, 0.0, 0.0), "B": (0.5, 0.0, 0.0)}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=tuple(joints))
    return CoupledModel(name="ring", systems={"mechanism": mechanism})
