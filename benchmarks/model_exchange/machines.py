"""The machines that FMUs for model exchange are measured on."""

from __future__ import annotations

import sys
from pathlib import Path

import mbsfmu
from mbsfmu.model import Mechanism, RigidBody
from mbsfmu.models import built_in
from mbsfmu.parts import Revolute

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from crane import crane
from excavator import excavator

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.6, 0.0, 0.8))


def spatial_chain(links: int) -> mbsfmu.CoupledModel:
    """Return an open chain of links with full inertia tensors, hinged about axes that are askew."""
    names = [f"link_{number}" for number in range(1, links + 1)]
    ends = ["ground.O", *(f"{name}.end" for name in names)]
    bodies = tuple(
        RigidBody(
            name=name,
            mass=1.0 + 0.1 * (number % 3),
            inertia=(0.02, 0.10, 0.11),
            products_of_inertia=(0.005, -0.004, 0.003),
            centre=(0.5, 0.05, -0.03),
            points={"end": (1.0, 0.1, 0.05)},
        )
        for number, name in enumerate(names)
    )
    joints = tuple(
        Revolute(name=f"hinge_{k + 1}", parent=ends[k], child=f"{name}.origin", axis=AXES[k % 3], angle=0.2 + 0.1 * k)
        for k, name in enumerate(names)
    )
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints)
    return mbsfmu.CoupledModel(name=f"spatial-{links}", systems={"chain": mechanism})


def machine(name: str) -> mbsfmu.CoupledModel:
    """Return a machine by its name: a built-in one, `crane`, `excavator`, or `spatial-` with a number of links."""
    if name == "crane":
        return crane()
    if name == "excavator":
        return excavator()
    if name.startswith("spatial-"):
        return spatial_chain(int(name.removeprefix("spatial-")))
    return built_in(name)
