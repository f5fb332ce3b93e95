"""The bushing is the gradient of its energy, in closed form where it turns about one axis."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbsfmu import Bushing, CoupledModel, Free, Mechanism, Revolute, RigidBody

STIFFNESS, TURNING = np.array([200.0, 300.0, 250.0]), np.array([5.0, 8.0, 6.0])
ORIENTATION, AXES = np.array([0.2, -0.3, 0.5]), np.array([-0.4, 0.1, 0.6])


@pytest.mark.parametrize("start", [1e-3, 0.09, 2.5])
def test_turn_about_one_axis_is_that_of_a_linear_spring(start: float) -> None:
    """J θ̈ = −k θ: θ₀ cos(√(k/J) t), however far it turns."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=(0.3, 0.3, 0.5)),),
        joints=(Revolute(name="axle", parent="ground.O", child="body.origin", angle=start),),
        forces=(
            Bushing(
                name="rubber",
                parent="ground.O",
                child="body.origin",
                stiffness=(0.0, 0.0, 0.0),
                turning_stiffness=(7.0, 9.0, 8.0),
            ),
        ),
    )
    result = CoupledModel(name="m", systems={"mechanism": mechanism}).simulation(compiled=False, step=5e-4).run(1.0)
    np.testing.assert_allclose(result["body.angle"], start * np.cos(4.0 * result.time), atol=2e-6 * start)
    np.testing.assert_allclose(result["rubber.turn.z"], result["body.angle"], atol=1e-12)


def energy(place: np.ndarray, turn: Rotation) -> float:
    """Energy of a bushing from the inertial frame to a body, from its definition."""
    axes = Rotation.from_rotvec(AXES)
    shift = axes.inv().apply(place)
    vector = (axes.inv() * turn * Rotation.from_rotvec(ORIENTATION).inv() * axes).as_rotvec()
    return 0.5 * float(STIFFNESS @ shift**2 + TURNING @ vector**2)


@pytest.mark.parametrize("size", [1e-2, 0.3, 1.0])
def test_accelerations_from_rest_are_the_gradient_of_the_energy(size: float) -> None:
    """m a = −∂E/∂x and J α = −∂E/∂φ, the energy being that of SciPy's rotation vectors."""
    inertia, mass, place = np.diag([0.2, 0.3, 0.25]), 1.5, size * np.array([0.1, -0.2, 0.15])
    turn = Rotation.from_rotvec(ORIENTATION) * Rotation.from_rotvec(size * np.array([1.2, -0.5, 0.8]))
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=mass, inertia=tuple(np.diag(inertia).tolist())),),
        joints=(
            Free(
                name="free",
                parent="ground.O",
                child="body.origin",
                orientation=tuple(turn.as_rotvec().tolist()),
                displacement=tuple(place.tolist()),
            ),
        ),
        forces=(
            Bushing(
                name="rubber",
                parent="ground.O",
                child="body.origin",
                stiffness=tuple(STIFFNESS.tolist()),
                turning_stiffness=tuple(TURNING.tolist()),
                orientation=tuple(ORIENTATION.tolist()),
                axes=tuple(AXES.tolist()),
            ),
        ),
    )
    step = 1e-5
    simulation = CoupledModel(name="m", systems={"mechanism": mechanism}).simulation(compiled=False, step=step)
    simulation.initialize()
    simulation.step(0.0, step)
    small, e = 1e-6, np.eye(3)
    force = [-(energy(place + small * i, turn) - energy(place - small * i, turn)) / (2.0 * small) for i in e]
    turned = [[Rotation.from_rotvec(way * small * i) * turn for way in (-1.0, 1.0)] for i in e]
    moment = [(energy(place, back) - energy(place, on)) / (2.0 * small) for back, on in turned]
    frame = turn.as_matrix()
    spin = np.array([simulation.get(f"body.angular_velocity.{axis}") for axis in "xyz"])
    speed = np.array([simulation.get(f"body.velocity.{axis}") for axis in "xyz"])
    expected = np.linalg.solve(frame @ inertia @ frame.T, moment)
    np.testing.assert_allclose(spin / step, expected, atol=2e-6 * np.max(np.abs(expected)))
    np.testing.assert_allclose(speed / step, np.array(force) / mass, atol=2e-6 * np.max(np.abs(force)))
