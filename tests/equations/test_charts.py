"""Moving the reference of Cardan angles is a change of coordinates, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spatial import in_motion, random_tree

from mbsfmu.equations.kinematics import (
    NO_TURN,
    ChartedMotion,
    angle_rates,
    orientation,
    with_present_references,
    with_reference,
)
from mbsfmu.systems.expressions import PARTS
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LoopsInUse, SystemContext
from mbsfmu.tracing.workspace import Floats

TURNING = [seed for seed in range(16) if random_tree(seed).topology.references]
MOVED = ("coordinates", "velocities", "accelerations", "momenta", "references")


def observer(functions: SystemFunctions) -> Callable[[SystemContext], list[Floats]]:
    """What does not depend on coordinates: all outputs, their rates and, of what velocities have no part in, ÿ.

    The rates are exact derivatives along the motion, so that nothing but the positions is taken from the equations.
    """
    given = functions.expressions
    z, velocities, accelerations = (given.symbol_by_part[part] for part in PARTS[:3])
    rate = ca.jtimes(given.outputs, z, velocities) + ca.jtimes(
        given.outputs, given.symbol_by_part["velocities"], accelerations
    )
    names = [variable.name for variable in functions.system.outputs]
    places = given.outputs[[index for index, name in enumerate(names) if ".centre." in name]]
    speeds = ca.jtimes(places, z, velocities)
    second = ca.jtimes(speeds, z, velocities) + ca.jtimes(speeds, velocities, accelerations)
    observed = functions.traced("observed", [given.outputs, rate, second])

    def observe(instant: SystemContext) -> list[Floats]:
        for part in PARTS:
            getattr(functions, part)[:] = getattr(instant, part)
        return [value.copy() for value in observed()]

    return observe


@pytest.mark.parametrize("seed", TURNING)
def test_bodies_do_not_notice(seed: int) -> None:
    functions = in_motion(random_tree(seed), np.random.default_rng(seed), turned=True)
    functions.accelerations[:] = np.random.default_rng(seed + 1).normal(size=functions.accelerations.shape)
    system = functions.system
    functions.momenta[:] = system.initial_momenta(functions.numeric_instant())
    before = functions.numeric_instant()
    traced = [part.copy() for part in functions.with_present_references()]
    after = system.with_references(before, None)
    for part, value in zip(MOVED, traced, strict=True):
        np.testing.assert_allclose(getattr(after, part), value, rtol=1e-13, atol=1e-13)
    turning = [joint for joint in random_tree(seed).topology.tree if joint.reference is not None]
    hinges = [index for joint in turning for index in joint.coordinates[-3:]]
    assert not after.coordinates[hinges].any()
    others = np.setdiff1d(np.arange(len(after.coordinates)), hinges)
    np.testing.assert_array_equal(after.coordinates[others], before.coordinates[others])
    observe = observer(functions)
    for one, other in zip(observe(before), observe(after), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12 * np.max(np.abs(one)))
    momenta = system.initial_momenta(after)
    np.testing.assert_allclose(after.momenta, momenta, rtol=1e-11, atol=1e-12 * np.max(np.abs(momenta)))


@pytest.mark.parametrize("seed", TURNING)
def test_accelerations_do_not_depend_on_the_reference(seed: int) -> None:
    """Dynamics in the old chart, moved, are the dynamics in the new one."""
    functions = in_motion(random_tree(seed), np.random.default_rng(seed), turned=True)
    system = functions.system
    functions.accelerations[:] = system.forward_dynamics(functions.numeric_instant(), LoopsInUse(()), 0.0)[0]
    moved = system.with_references(functions.numeric_instant(), None)
    expected = system.forward_dynamics(moved, LoopsInUse(()), 0.0)[0]
    np.testing.assert_allclose(moved.accelerations, expected, rtol=1e-10, atol=1e-11 * np.max(np.abs(expected)))


def turns(seed: int) -> tuple[list[Floats], ChartedMotion]:
    """Cardan angles about a random right-handed frame."""
    random = np.random.default_rng(seed)
    axes = list(Rotation.random(rng=random).as_matrix())
    angles = random.uniform((-3.0, -1.2, -3.0), (3.0, 1.2, 3.0))
    reference = Rotation.random(2, rng=random).as_quat(scalar_first=True).ravel()
    return axes, ChartedMotion(angles, *random.normal(size=(3, 3)), reference)


def rotation(axes: list[Floats], angles: Floats, reference: Floats) -> Rotation:
    """The orientation by SciPy."""
    result, outer = (Rotation.from_quat(part, scalar_first=True) for part in np.split(reference, 2))
    for axis, angle in zip(axes, angles, strict=True):
        result = result * Rotation.from_rotvec(angle * np.asarray(axis))
    return result * outer


@pytest.mark.parametrize("seed", range(5))
def test_quaternion_is_the_orientation(seed: int) -> None:
    axes, turning = turns(seed)
    quaternion = orientation(axes, turning.coordinates, turning.reference)
    expected = rotation(axes, turning.coordinates, turning.reference)
    assert np.linalg.norm(quaternion) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(
        Rotation.from_quat(quaternion, scalar_first=True).as_matrix(), expected.as_matrix(), atol=1e-14
    )
    new = with_present_references(axes, turning)
    speed = np.linalg.norm(new.velocities)
    np.testing.assert_allclose(np.abs(new.velocities), [0.0, 0.0, speed], atol=1e-14 * speed)
    back = with_reference(axes, new, turning.reference)
    np.testing.assert_allclose(back.velocities, turning.velocities, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(back.accelerations, turning.accelerations, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(back.momenta, turning.momenta, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        rotation(axes, new.coordinates, new.reference).as_matrix(), expected.as_matrix(), atol=1e-14
    )


@pytest.mark.parametrize("seed", range(5))
def test_angle_rates_give_the_angular_velocity(seed: int) -> None:
    """Against central differences of SciPy's rotations."""
    axes, turning = turns(seed)
    wanted = np.random.default_rng(seed).normal(size=3)
    rates = angle_rates(axes, turning.coordinates, wanted)
    step, unturned = 1e-5, np.array(NO_TURN)
    ahead, behind = (rotation(axes, turning.coordinates + sign * step * rates, unturned) for sign in (1.0, -1.0))
    np.testing.assert_allclose((ahead * behind.inv()).as_rotvec() / (2 * step), wanted, rtol=0.0, atol=1e-8)
