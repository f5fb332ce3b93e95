"""Rest of bars that spin about their axes: that neither grows nor fades, whatever round-off makes of it."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

from mbsfmu import (
    AppliedForce,
    Beam,
    CoupledModel,
    Equilibrium,
    JointSpringDamper,
    LinearSignal,
    Mechanism,
    Revolute,
    RigidBody,
    Spherical,
)

GRAVITY = 9.81


def hung_plate(axial: float, *others: Mechanism) -> Equilibrium[CoupledModel]:
    """A plate that hangs by two bars, each on a ball at either end, and machines beside it.

    The bars begin out of plumb: Newton's iteration leaves loads that are not zero to the last digit.
    """
    plate = RigidBody(
        name="plate", mass=5.0, inertia=(0.01, 0.4, 0.4), centre=(0.5, 0.0, 0.0), points={"b": (1.0, 0.0, 0.0)}
    )
    left, right = (
        RigidBody(
            name=name, mass=0.3, inertia=(axial, 0.02, 0.02), centre=(0.4, 0.0, 0.0), points={"end": (0.8, 0.0, 0.0)}
        )
        for name in ("left", "right")
    )
    joints = (
        Spherical(name="A", parent="ground.A", child="left.origin", angles=(0.0, 0.1, -pi / 2.0)),
        Spherical(name="C", parent="left.end", child="plate.origin", angles=(0.0, -0.1, pi / 2.0)),
        Spherical(name="D", parent="plate.b", child="right.end", angles=(0.0, 0.0, -pi / 2.0)),
        Spherical(name="B", parent="ground.B", child="right.origin", cut=True),
    )
    ground = {"A": (0.0, 0.0, 0.0), "B": (1.0, 0.0, 0.0)}
    hung = Mechanism(ground=ground, bodies=(plate, left, right), joints=joints)
    systems = {"hung": hung, **{f"other_{number}": other for number, other in enumerate(others)}}
    return CoupledModel(name="plates", systems=systems).equilibrium()


def inverted(rate: float) -> Mechanism:
    """A rod above its hinge, on a spring that is just too weak: J φ̈ = (m g l − k) φ, J being one and m g l 10 N m."""
    mass = 10.0 / (0.5 * GRAVITY)
    about = 1.0 - mass * 0.5**2
    rod = RigidBody(name="rod", mass=mass, inertia=(about, about, about), centre=(0.0, 0.5, 0.0))
    hinge = Revolute(name="hinge", parent="ground.O", child="rod.origin")
    spring = JointSpringDamper(name="spring", joint="hinge", stiffness=10.0 - rate**2)
    return Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(rod,), joints=(hinge,), forces=(spring,))


def test_bars_that_spin_are_neither_stable_nor_unstable() -> None:
    """Both bars and the plate spin: six zeros. The plate swings along, across and about the vertical.

    With the moment of the bars J about their upper ends, and their centres at c, the swings have
    ω² = g (M L + 2 m c) / (M L² + 2 J), and about the vertical, with arms r and the plate's moment I,
    ω² = g (M L / 2 + m c) 2 r² / (I L² + 2 J r²).
    """
    found = hung_plate(1e-6)
    assert found.stable is None
    assert found.drifts
    assert "drift" in found.stability
    bar = 0.02 + 0.3 * 0.4**2
    swing = sqrt(GRAVITY * (5.0 * 0.8 + 0.6 * 0.4) / (5.0 * 0.8**2 + 2.0 * bar))
    turn = sqrt(GRAVITY * (2.5 * 0.8 + 0.3 * 0.4) * 0.5 / (0.4 * 0.8**2 + bar * 0.5))
    expected = [*[0.0] * 6, *[swing] * 4, *[turn] * 2]
    assert sorted(np.abs(found.eigenvalues)) == pytest.approx(expected, rel=1e-6)


def test_a_body_on_a_ball_swings_and_spins() -> None:
    """Two swings of ω = √(m g l / J), J about the ball, and a double zero; upside down they grow with as much."""
    for side in (-1.0, 1.0):
        bob = RigidBody(name="bob", mass=1.0, inertia=(0.08, 1e-6, 0.08), centre=(0.0, 0.5 * side, 0.0))
        ball = Spherical(name="ball", parent="ground.O", child="bob.origin")
        mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(bob,), joints=(ball,))
        found = CoupledModel(name="one", systems={"mechanism": mechanism}).equilibrium()
        speed = sqrt(GRAVITY * 0.5 / (0.08 + 0.25))
        assert sorted(np.abs(found.eigenvalues)) == pytest.approx([0.0, 0.0, *[speed] * 4])
        assert found.stable is (None if side < 0.0 else False)


def test_what_grows_slowly_beside_bars_that_spin_is_told() -> None:
    rate = 1e-3
    found = hung_plate(1e-6, inverted(rate))
    assert found.stable is False
    assert np.max(found.eigenvalues.real) == pytest.approx(rate, rel=1e-4)
    assert f"a motion grows with {rate:.3g} 1/s" in found.stability


@pytest.mark.parametrize("pull", [(5.0, 0.0, 0.0), (0.0, 0.0, 5.0), (0.0, 2.0, 3.0), (3.0, 0.0, 4.0)])
def test_a_bar_that_is_pulled_aside_spins_whichever_way_it_points(pull: tuple[float, float, float]) -> None:
    """Two swings of ω = √(|F l + m g l / 2| / (m l² / 3)), and a double zero with one eigenvector."""
    bar = Beam(name="bar", length=0.2, mass=0.6, axial_inertia=1e-3)
    ball = Spherical(name="ball", parent="ground.O", child="bar.start", angles=(0.0, 0.0, -0.5 * pi))
    force = AppliedForce(name="pull", point="bar.end")
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(bar,), joints=(ball,), forces=(force,))
    signals = {
        f"mechanism.pull.force.{axis}": LinearSignal(times=(0.0, 1.0), values=(part, part))
        for axis, part in zip("xyz", pull, strict=True)
    }
    found = CoupledModel(name="pulled", systems={"mechanism": mechanism}, signals=signals).equilibrium()
    moment = np.linalg.norm(0.2 * np.array(pull) - [0.0, 0.1 * 0.6 * GRAVITY, 0.0])
    speed = sqrt(moment / (0.6 * 0.2**2 / 3.0))
    assert sorted(np.abs(found.eigenvalues)) == pytest.approx([0.0, 0.0, *[speed] * 4])
    assert (found.stable, found.drifts) == (None, True)
