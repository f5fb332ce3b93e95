"""Rest of machines of many bodies in a row: a boom of links on springs, held against its own statics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import fsolve

from mbsfmu import AppliedForce, Beam, CoupledModel, LinearSignal, Mechanism, PointSensor, Revolute, Spherical
from mbsfmu.models import pendulum
from mbsfmu.parts import JointSpringDamper

LINKS, LENGTH, BENDING, MASS_PER_LENGTH, GRAVITY = 72, 8.0, 4e5, 30.0, 9.81
FIRST = 1.8751041
"""Of a cantilever, cos x cosh x = −1."""


def boom() -> CoupledModel:
    """Springs of EI / l between links, twice as stiff at the wall, half a link from where the first one bends."""
    part = LENGTH / LINKS
    bodies = [
        Beam(name=f"e{each}", length=part, mass=MASS_PER_LENGTH * part, axial_inertia=1e-3) for each in range(LINKS)
    ]
    ends = ["ground.O", *(f"e{each}.end" for each in range(LINKS))]
    joints = [Revolute(name=f"h{each}", parent=ends[each], child=f"e{each}.start") for each in range(LINKS)]
    spring = BENDING / part
    springs = [
        JointSpringDamper(
            name=f"k{each}", joint=f"h{each}", stiffness=(1 + (each == 0)) * spring, damping=1e-4 * spring
        )
        for each in range(LINKS)
    ]
    sensor = PointSensor(name="tip", point=ends[-1])
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=tuple(bodies),
        joints=tuple(joints),
        forces=tuple(springs),
        sensors=(sensor,),
    )
    return CoupledModel(name="boom", systems={"boom": mechanism})


def tip_at_rest() -> tuple[float, float]:
    """Moments about each hinge, of the weights beyond it."""
    part = LENGTH / LINKS
    stiffness = np.full(LINKS, BENDING / part)
    stiffness[0] *= 2.0

    def off(bent: np.ndarray) -> np.ndarray:
        reach = np.cos(np.cumsum(bent)) * part
        hinges = np.cumsum(reach) - reach
        centres = hinges + 0.5 * reach
        beyond = [np.sum(centres[each:] - hinges[each]) for each in range(LINKS)]
        return (-MASS_PER_LENGTH * part * GRAVITY * np.array(beyond) - stiffness * bent) / 1e4

    angles = np.cumsum(fsolve(off, np.zeros(LINKS), xtol=1e-13))
    return float(np.sum(np.cos(angles)) * part), float(np.sum(np.sin(angles)) * part)


def test_a_boom_of_many_links_rests_as_its_statics_say_and_swings_as_a_beam() -> None:
    """Its mass matrix is badly conditioned, as that of every long chain, and no motion without inertia."""
    found = boom().equilibrium()
    x, y = tip_at_rest()
    assert found["boom.tip.position.x"] == pytest.approx(x, rel=1e-12)
    assert found["boom.tip.position.y"] == pytest.approx(y, rel=1e-10)
    assert found.stable
    slowest = min(abs(each.imag) for each in np.asarray(found.eigenvalues) if abs(each.imag) > 1e-6)
    assert slowest == pytest.approx((FIRST / LENGTH) ** 2 * np.sqrt(BENDING / MASS_PER_LENGTH), rel=5e-3)


def test_a_chain_that_begins_level_hangs_straight_down() -> None:
    rest = pendulum(70).equilibrium()
    angles = [rest[f"mechanism.link_{number}.angle"] for number in range(1, 71)]
    np.testing.assert_allclose(angles, [-0.5 * np.pi, *[0.0] * 69], atol=1e-9)
    assert rest.stable


def test_slender_bars_on_balls_follow_the_loads_beyond_them() -> None:
    """A rope of bars without stiffness: each points along what it carries, its own weight by half."""
    count, length, mass, pull = 6, 0.2, 0.6, np.array([60.0, 0.0, -50.0])
    bodies = [Beam(name=f"bar_{each}", length=length, mass=mass, axial_inertia=1e-3) for each in range(count)]
    ends = ["ground.O", *(f"bar_{each}.end" for each in range(count))]
    joints = [Spherical(name=f"ball_{each}", parent=ends[each], child=f"bar_{each}.start") for each in range(count)]
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=tuple(bodies),
        joints=tuple(joints),
        forces=(AppliedForce(name="pull", point=ends[-1]),),
        sensors=(PointSensor(name="tip", point=ends[-1]),),
    )
    signals = {
        f"rope.pull.force.{axis}": LinearSignal(times=(0.0, 1.0), values=(value, value))
        for axis, value in zip("xyz", pull.tolist(), strict=True)
    }
    rest = CoupledModel(name="rope", systems={"rope": mechanism}, signals=signals).equilibrium()
    carried = pull - np.outer(mass * GRAVITY * (count - 0.5 - np.arange(count)), [0.0, 1.0, 0.0])
    tip = np.sum(length * carried / np.linalg.norm(carried, axis=1)[:, None], axis=0)
    np.testing.assert_allclose([rest[f"rope.tip.position.{axis}"] for axis in "xyz"], tip, atol=1e-9)


def test_a_chain_folded_between_two_supports_hangs_as_tensions_say() -> None:
    """Each link points along the tension at its middle: level it is the same everywhere, and weights add up."""
    count, mass, supports = 10, 1.2, np.array([5.0, 1.0])
    bodies = [Beam(name=f"link_{each}", length=0.8, mass=mass, axial_inertia=1e-3) for each in range(count)]
    ends = ["ground.O", *(f"link_{each}.end" for each in range(count))]
    folds = [0.6, *(1.2 * (-1) ** each for each in range(1, count))]
    joints = [
        Revolute(name=f"hinge_{each}", parent=ends[each], child=f"link_{each}.start", angle=folds[each])
        for each in range(count)
    ]
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "P": (*supports.tolist(), 0.0)},
        bodies=tuple(bodies),
        joints=(*joints, Revolute(name="last", parent=ends[-1], child="ground.P")),
        sensors=(PointSensor(name="middle", point=ends[4]),),
    )
    rest = CoupledModel(name="chain", systems={"chain": mechanism}).equilibrium()

    def ends_of(pull: np.ndarray) -> np.ndarray:
        tensions = np.column_stack([np.full(count, pull[0]), pull[1] + mass * GRAVITY * (np.arange(count) + 0.5)])
        return np.cumsum(0.8 * tensions / np.linalg.norm(tensions, axis=1)[:, None], axis=0)

    pull = fsolve(lambda pull: ends_of(pull)[-1] - supports, [40.0, -0.5 * count * mass * GRAVITY], xtol=1e-13)
    found = [rest[f"chain.middle.position.{axis}"] for axis in "xy"]
    np.testing.assert_allclose(found, ends_of(pull)[3], atol=1e-9)
    assert rest.stable
