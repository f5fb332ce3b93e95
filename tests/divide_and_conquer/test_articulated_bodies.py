"""Articulated bodies against a dense solution of the equations of motion."""

from __future__ import annotations

import numpy as np
import pytest
from spatial import Random, in_motion, random_body, random_tree, vector

from mbsfmu.model import Mechanism, RigidBody
from mbsfmu.parts import Free, Revolute, Spherical
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LoopsInUse
from mbsfmu.tracing.workspace import Floats


def one_by_one(functions: SystemFunctions) -> Floats:
    """z̈ with joints passed one after the other."""
    found = functions.system.forward_dynamics(functions.numeric_instant(), LoopsInUse((), sequential=True), 0.0)  # pyright: ignore
    return np.asarray(found[0])


def dense(functions: SystemFunctions) -> Floats:
    """z̈ of M z̈ = Q as one linear system."""
    mass, rest, _, _ = functions.equilibrium()
    return np.linalg.solve(mass, -rest)


def hung(joints: list[type], random: Random) -> Mechanism:
    """Bodies that all hang on the first one, which hangs on the ground."""
    bodies = [random_body(random, f"body_{index}") for index in range(len(joints))]
    made = [
        kind(
            name=f"joint_{index}",
            parent="body_0.next" if index else "ground.O",
            child=f"body_{index}.here",
            orientation=vector(random),
        )
        for index, kind in enumerate(joints)
    ]
    return Mechanism(ground={"O": (1.0, 2.0, -3.0)}, bodies=tuple(bodies), joints=tuple(made))


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_of_all_joints(seed: int) -> None:
    functions = in_motion(random_tree(seed, bodies=12), np.random.default_rng(seed), turned=seed % 2 == 1)
    expected = dense(functions)
    np.testing.assert_allclose(one_by_one(functions), expected, atol=1e-9 * np.max(np.abs(expected)))


@pytest.mark.parametrize(
    "joints",
    [[Revolute] * 7, [Free, Revolute, Spherical, Free], [Revolute, Free, Free], [Spherical] * 4],
    ids=["star", "floating", "free-on-a-body", "balls"],
)
def test_branches(joints: list[type]) -> None:
    random = np.random.default_rng(3)
    functions = in_motion(hung(joints, random), random)
    expected = dense(functions)
    np.testing.assert_allclose(one_by_one(functions), expected, atol=1e-10 * np.max(np.abs(expected)))


def turning(centre: tuple[float, float, float]) -> Floats:
    """Angular z̈ of a free body of 1 kg and some mm that turns about its centre of mass at the origin."""
    body = RigidBody(name="body", mass=1.0, inertia=(1e-6, 2e-6, 2.5e-6), centre=centre)
    free = Free(name="joint", parent="ground.O", child="body.origin")
    mechanism = Mechanism(gravity=(0.0, 0.0, 0.0), ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(free,))
    functions = in_motion(mechanism, np.random.default_rng(2))
    rates = np.array([1.0, 2.0, 3.0])
    functions.coordinates[:] = [*-np.array(centre), 0.0, 0.0, 0.0]
    functions.velocities[:] = [*-np.cross(rates, centre), *rates]
    return one_by_one(functions)[3:]


def test_a_free_body_keeps_its_digits_far_from_its_frame() -> None:
    """About a frame 10 m away, moments of inertia would be a hundred millionth of what they are added to."""
    np.testing.assert_allclose(turning((8.0, 2.0, -5.0)), turning((0.0, 0.0, 0.0)), rtol=1e-11)
