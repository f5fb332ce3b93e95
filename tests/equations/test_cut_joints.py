"""Cut joints: what they let through, and the power of what they transmit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spatial import GRAVITY, KINDS, in_motion, random_axes, random_body, vector

from mbsfmu.equations.rotation import rotation_from_quaternion
from mbsfmu.model import Mechanism
from mbsfmu.parts import Free
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_parts import given
from mbsfmu.systems.system import LoopsInUse
from mbsfmu.tracing.workspace import Floats

CUT_KINDS = [kind for kind in KINDS if kind is not Free]


def bridged(kind: type, seed: int) -> Mechanism:
    """Two bodies that float, and a cut joint of a kind between them."""
    random = np.random.default_rng(seed)
    bodies = tuple(random_body(random, name) for name in ("one", "two"))
    joints = [
        Free(name=f"free_{body.name}", parent="ground.O", child=f"{body.name}.here", orientation=vector(random))
        for body in bodies
    ]
    axes = random_axes(random, kind)
    cut = kind(name="cut", parent="one.next", child="two.next", orientation=vector(random), cut=True, **axes)
    return Mechanism(gravity=GRAVITY, ground={"O": (0.1, 0.2, 0.3)}, bodies=bodies, joints=(*joints, cut))


def let_through(mechanism: Mechanism, functions: SystemFunctions, random: np.random.Generator) -> None:
    """Move the second body to where the joint, at random coordinates of its own, lets it be; geometry by SciPy."""
    joint = mechanism.topology.cuts[0]
    frames = functions.system.motion(functions.numeric_instant()).frames
    turned, place = (
        Rotation.from_matrix(frames.rotation[0]),
        frames.point(0, np.array(mechanism.point(joint.parent).position)),
    )
    for element in joint.elements:
        axis, value = np.array(element.axis) / np.linalg.norm(element.axis), random.normal()
        if element.slides:
            place = place + turned.apply(value * axis)
        else:
            turned = turned * Rotation.from_rotvec(value * axis)
    turned = turned * Rotation.from_rotvec(joint.orientation)
    origin = place - turned.apply(mechanism.point(joint.child).position)
    free = mechanism.topology.tree[1]
    here = origin + turned.apply(mechanism.point(free.joint.child).position)
    functions.coordinates[list(free.coordinates)] = [*(here - mechanism.ground["O"]), 0.0, 0.0, 0.0]
    start = Rotation.from_rotvec(free.joint.orientation)
    functions.references[-4:] = [1.0, 0.0, 0.0, 0.0]
    functions.references[-8:-4] = (turned * start.inv()).as_quat(scalar_first=True)
    np.testing.assert_allclose(
        rotation_from_quaternion(functions.references[-8:-4]) @ start.as_matrix(), turned.as_matrix(), atol=1e-14
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", CUT_KINDS)
def test_what_the_joint_allows_satisfies_its_equations(kind: type, seed: int) -> None:
    """And nothing else does: as many independent equations as it takes degrees of freedom away."""
    mechanism = bridged(kind, seed)
    random = np.random.default_rng(seed + 50)
    functions = in_motion(mechanism, random, turned=True)
    violated = np.max(np.abs(functions.all_closure()[0]))
    assert violated > 1e-2
    let_through(mechanism, functions, random)
    closure, jacobian, _ = functions.all_closure()
    np.testing.assert_allclose(closure, 0.0, atol=1e-13)
    count = 6 - len(mechanism.topology.cuts[0].elements)
    assert len(closure) == count
    assert np.linalg.matrix_rank(jacobian, rtol=1e-9) == count


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", CUT_KINDS)
def test_power_of_the_wrenches(kind: type, seed: int) -> None:
    """dΦ/dt from wrenches is Φ_z ż, and d²Φ/dt² from their rates Φ_z z̈ + Φ̇_z ż, by exact derivatives; wherever.

    A unit multiplier's power is therefore what the equations of motion take it for.
    """
    functions = in_motion(bridged(kind, seed), np.random.default_rng(seed), turned=True)
    random = np.random.default_rng(seed + 1)
    functions.accelerations[:] = random.normal(size=functions.accelerations.shape)
    functions.multipliers[:] = random.normal(size=functions.multipliers.shape)
    system, given_to_all = functions.system, functions.expressions
    instant, motion = functions.numeric_instant(), system.motion(functions.numeric_instant())
    loops = LoopsInUse(functions.rows, multipliers=functions.multipliers)
    articulation = system.dynamics.articulation(loops)
    wanted = ("closure", "closure_rate", "closure_acceleration", "balance", "initial_momenta", "closure_jacobian")
    gap, rate, acceleration, balance, momenta, jacobian = functions.traced(
        "closing", [getattr(given_to_all, each) for each in wanted], matrices=[5]
    )()
    same(articulation.loop_rates(motion, given(instant)), rate)
    same(system.loop_rates(instant, loops, 3.0), rate + 3.0 * gap)
    same(system.loop_accelerations(instant, loops, 0.0), acceleration)
    same(system.loop_accelerations(instant, loops, 3.0), acceleration + 6.0 * rate + 9.0 * gap)
    same(system.balance(instant, loops), balance)
    same(system.canonical_momenta(instant, loops), momenta - jacobian.T @ functions.multipliers)


def same(ours: Floats, theirs: Floats) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11 * np.max(np.abs(theirs)))
