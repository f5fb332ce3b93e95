"""Mechanisms with couplings between joint coordinates that tests share."""

from __future__ import annotations

import numpy as np
from spatial import GRAVITY, random_axes, random_body, vector

from mbsfmu import Constraint, CoupledModel, JointDrive, LinearCoupling, Mechanism, RigidBody, StepSignal
from mbsfmu.parts import Gear, Prismatic, Revolute, Universal

PARENTS = (-1, 0, 0, -1, 3)
"""The body that each body of the tree hangs on."""
KINDS = (Revolute, Revolute, Prismatic, Revolute, Universal)


def coupled_tree(*constraints: Constraint) -> Mechanism:
    """Two branches in space, some joints reversed; by default a coupling across both, and one of neighbours."""
    random = np.random.default_rng(7)
    joints = []
    for index, (kind, parent) in enumerate(zip(KINDS, PARENTS, strict=True)):
        ends = ["ground.O" if parent < 0 else f"body_{parent}.next", f"body_{index}.here"]
        if index in (1, 3):
            ends.reverse()
        axes = random_axes(random, kind)
        if kind is Revolute:
            axes |= {"angle": 0.2 * index, "angular_velocity": 1.0 - 0.3 * index}
        joints.append(kind(name=f"joint_{index}", parent=ends[0], child=ends[1], orientation=vector(random), **axes))
    return Mechanism(
        gravity=GRAVITY,
        ground={"O": (0.1, 0.2, 0.3)},
        bodies=tuple(random_body(random, f"body_{index}") for index in range(len(PARENTS))),
        joints=tuple(joints),
        constraints=constraints
        or (
            LinearCoupling(
                name="three", joints=("joint_1", "joint_3", "joint_2"), factors_of_joints=(1.0, -0.7, 0.4), offset=0.1
            ),
            Gear(name="pair", driving="joint_1", driven="joint_0", ratio=-1.6),
        ),
    )


def wheel(name: str, inertia: float) -> RigidBody:
    """A wheel about z, 2 kg."""
    return RigidBody(name=name, mass=2.0, inertia=(inertia, inertia, inertia), points={"hub": (0.0, 0.0, 0.0)})


def wheels(inertias: dict[str, float], constraint: Constraint, torques: dict[str, float]) -> CoupledModel:
    """Wheels on parallel shafts with one constraint between them and constant torques, without gravity."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={name: (0.3 * index, 0.0, 0.0) for index, name in enumerate(inertias)},
        bodies=tuple(wheel(name, inertia) for name, inertia in inertias.items()),
        joints=tuple(Revolute(name=f"{name}_shaft", parent=f"ground.{name}", child=f"{name}.hub") for name in inertias),
        forces=tuple(JointDrive(name=f"{name}_motor", joint=f"{name}_shaft") for name in torques),
        constraints=(constraint,),
    )
    signals = {
        f"mechanism.{name}_motor.torque": StepSignal(times=(0.0,), values=(torque,)) for name, torque in torques.items()
    }
    return CoupledModel(name="wheels", systems={"mechanism": mechanism}, signals=signals)
