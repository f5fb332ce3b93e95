"""Accelerations of trees in loops against an engine that shares no code with ours: ball joints, branches."""

from __future__ import annotations

import numpy as np
import pytest
from pinocchio_engine import PinocchioTree
from scipy.spatial.transform import Rotation

from mbsfmu import Mechanism, Revolute, RigidBody, Spherical
from mbsfmu.model.joint import Joint
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import LARGE, Code, starts

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


def ball(index: int, **ends: str) -> Joint:
    return Spherical(name=f"joint_{index}", **ends)


def hinge(index: int, **ends: str) -> Joint:
    return Revolute(name=f"joint_{index}", axis=AXES[(index + 1).bit_length() % 3], **ends)


def hung(parents: list[int], joint: type[Joint]) -> Mechanism:
    """Bodies, each hung by a joint on the end of another or, where that is −1, on the ground."""
    names = [f"link_{index}" for index in range(len(parents))]
    bodies = tuple(
        RigidBody(
            name=name, mass=1.0 + 0.1 * (index % 5), inertia=(0.03, 0.05, 0.06),
            products_of_inertia=(0.004, 0.002, 0.003), centre=(0.3, 0.05, -0.02), points={"end": (0.5, 0.1, 0.0)},
        )
        for index, name in enumerate(names)
    )  # fmt: skip
    made = ball if joint is Spherical else hinge
    joints = [
        made(index, parent="ground.O" if parent < 0 else f"{names[parent]}.end", child=f"{names[index]}.origin")
        for index, parent in enumerate(parents)
    ]
    return Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=tuple(joints))


@pytest.mark.parametrize("assembly", ["sequential", "balanced"])
@pytest.mark.parametrize(
    ("parents", "joint"),
    [([index - 1 for index in range(22)], Spherical), ([(index - 1) // 2 for index in range(66)], Revolute)],
    ids=["balls in a chain", "hinges in a tree"],
)
def test_accelerations_are_those_of_another_engine(parents: list[int], joint: type[Joint], assembly: str) -> None:
    mechanism = hung(parents, joint)
    functions = SystemFunctions(MechanismSystem(mechanism), code=Code.LOOPS, sequential=assembly == "sequential")
    assert len(functions.coordinates) > LARGE
    functions.parameters[:] = starts(functions.system.parameters)
    random = np.random.default_rng(11)
    functions.coordinates[:] = random.normal(scale=0.5, size=len(functions.coordinates))
    functions.velocities[:] = random.normal(size=len(functions.coordinates))
    turned = Rotation.random(len(functions.references) // 4, rng=12) if len(functions.references) else None
    if turned is not None:
        functions.references[:] = np.roll(turned.as_quat(), 1, axis=1).ravel()
    (found,) = functions.defined("accelerations", lambda given: [given.forward_dynamics(0.0)[0]])()
    engine = PinocchioTree(mechanism, functions.references)
    expected = engine.accelerations(functions.coordinates, functions.velocities)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.max(np.abs(expected)))
