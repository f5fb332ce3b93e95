"""Ropes of light links with a load at their end."""

from __future__ import annotations

from math import pi

from mbsfmu import Beam, CoupledModel, Mechanism, Revolute, RigidBody, Spherical
from mbsfmu.model import along


def rope(links: int, load: float) -> CoupledModel:
    """Return a chain in zigzag of links of 1 kg and 1 m, the last of which has the mass of the load in kg."""
    masses = [1.0] * (links - 1) + [load]
    bodies = tuple(
        RigidBody(
            name=f"link_{index}", mass=mass, inertia=(mass / 10.0,) * 3, centre=along(0.5), length=1.0,
            points={"end": along(1.0)},
        )
        for index, mass in enumerate(masses)
    )  # fmt: skip
    joints = tuple(
        Revolute(
            name=f"joint_{index}",
            parent=f"link_{index - 1}.end" if index else "ground.O",
            child=f"link_{index}.origin",
            angle=0.3 * (-1.0) ** index if index else 0.3 - pi / 2.0,
        )
        for index in range(links)
    )
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints)
    return CoupledModel(name="rope", systems={"mechanism": mechanism})


def rope_of_beams(beams: int, load: float, axial_inertia: float) -> CoupledModel:
    """Return beams of 1 kg and 1 m on ball joints, with so many kg m² about their axes, and a load in kg."""
    names = [*(f"beam_{index}" for index in range(beams)), "load"]
    links = tuple(Beam(name=name, length=1.0, mass=1.0, axial_inertia=axial_inertia) for name in names[:-1])
    body = RigidBody(name="load", mass=load, inertia=(0.1 * load,) * 3, centre=(0.0, -0.5, 0.0))
    joints = tuple(
        Spherical(
            name=f"ball_{index}",
            parent=f"{names[index - 1]}.end" if index else "ground.O",
            child=f"{name}.{'origin' if name == 'load' else 'start'}",
            angles=(0.3 * (-1.0) ** index, 0.2, 0.3 if index else -1.2),
        )
        for index, name in enumerate(names)
    )
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(*links, body), joints=joints)
    return CoupledModel(name="rope", systems={"mechanism": mechanism})
