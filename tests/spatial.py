"""Mechanisms in space that tests share: random trees, and what is needed to move them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.initialization.closing_loops import OwnStarts, onto_velocity_constraints
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.model import Mechanism, RigidBody
from mbsfmu.parts import Cylindrical, Fixed, Free, Planar, Prismatic, Revolute, Spherical, Universal
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import starts

KINDS = (Revolute, Prismatic, Cylindrical, Universal, Spherical, Planar, Free, Fixed)
GRAVITY = (0.3, -9.81, 1.0)

Random = np.random.Generator
Floats = NDArray[np.float64]


def vector(random: Random) -> tuple[float, float, float]:
    x, y, z = random.normal(size=3).tolist()
    return x, y, z


def random_body(random: Random, name: str) -> RigidBody:
    """A body with a full inertia tensor that satisfies the triangle inequality in any axes."""
    a = random.normal(size=(3, 3))
    inertia = a @ a.T + np.eye(3)
    inertia += np.eye(3) * np.trace(inertia)
    return RigidBody(
        name=name,
        mass=random.uniform(0.5, 3.0),
        inertia=tuple(np.diag(inertia)),
        products_of_inertia=(inertia[0, 1], inertia[0, 2], inertia[1, 2]),
        centre=vector(random),
        points={"next": vector(random), "here": vector(random)},
    )


def random_axes(random: Random, kind: type) -> dict[str, Any]:
    """The axes that a joint of a kind needs, askew."""
    axis = np.array(vector(random))
    across = np.cross(axis, vector(random))
    if kind in (Spherical, Free, Fixed):
        return {}
    if kind is Universal:
        return {"axis": tuple(axis), "second_axis": tuple(across)}
    if kind is Planar:
        return {"axis": tuple(axis), "direction": tuple(across)}
    return {"axis": tuple(axis)}


def random_tree(seed: int, bodies: int = 6) -> Mechanism:
    """A branched tree of joints of all kinds, about half of them with the child nearer to the ground."""
    random = np.random.default_rng(seed)
    made = [random_body(random, f"body_{index}") for index in range(bodies)]
    joints = []
    for index in range(bodies):
        ends = ["ground.O" if index == 0 else f"body_{random.integers(index)}.next", f"body_{index}.here"]
        kind = KINDS[random.integers(len(KINDS))]
        if random.random() < 0.5:
            ends.reverse()
        joints.append(
            kind(
                name=f"joint_{index}",
                parent=ends[0],
                child=ends[1],
                orientation=vector(random),
                **random_axes(random, kind),
            )
        )
    return Mechanism(gravity=GRAVITY, ground={"O": (0.1, 0.2, 0.3)}, bodies=tuple(made), joints=tuple(joints))


def in_motion(mechanism: Mechanism, random: Random, *, turned: bool = False) -> SystemFunctions:
    """Functions of a mechanism at random coordinates and velocities.

    Cardan angles stay where the reference need not move; `turned` makes the references random rotations.
    """
    functions = SystemFunctions(MechanismSystem(mechanism))
    functions.parameters[:] = starts(functions.system.parameters)
    functions.coordinates[:] = random.normal(size=functions.coordinates.shape)
    gimbal_angles = [second for _, second, _ in functions.system.turning_angles]
    functions.coordinates[gimbal_angles] = random.uniform(-1.0, 1.0, size=len(gimbal_angles))
    functions.velocities[:] = random.normal(size=functions.velocities.shape)
    if turned:
        quaternions = random.normal(size=(2 * functions.system.references, 4))
        functions.references[:] = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).ravel()
    return functions


def assembled(mechanism: Mechanism, random: Random, *, redundant: bool = False) -> SystemFunctions:
    """Functions of a mechanism where it starts, its loops closed, at random velocities that keep them so."""
    system = MechanismSystem(mechanism)
    initialization = Initialization(system)
    start = initialization.run(starts(system.parameters))
    functions = SystemFunctions(system, None if redundant else initialization.loops)
    functions.parameters[:] = start.parameters
    velocities = random.normal(size=functions.velocities.shape)
    functions.velocities[:] = onto_velocity_constraints(
        functions, start.coordinates, velocities, OwnStarts.of(velocities)
    ).values
    functions.coordinates[:] = start.coordinates
    functions.inputs[:] = 1e3 * random.normal(size=functions.inputs.shape)
    return functions
