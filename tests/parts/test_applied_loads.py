"""Forces and moments from outside move a body as Newton and Euler say, and their work is all that is gained."""

from __future__ import annotations

import numpy as np
import pytest
from machine_of_parts import FORMULATIONS
from scipy.integrate import solve_ivp

from mbsfmu import CoupledModel, DataError, Force, Free, Mechanism, Revolute, RigidBody
from mbsfmu.io.signals import LinearSignal
from mbsfmu.parts import AppliedForce, AppliedMoment

MASS, INERTIA = 2.0, 0.3
ARM, PUSH = np.array([0.4, -0.2, 0.0]), np.array([3.0, 5.0, 0.0])


def thrown(force: Force, name: str, values: np.ndarray) -> CoupledModel:
    """A body without gravity that turns about z, with the inputs of a force at constant values."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="body", mass=MASS, inertia=(0.2, 0.25, INERTIA), points={"p": tuple(ARM)}),
        ),
        joints=(Free(name="free", parent="ground.O", child="body.origin", angular_velocity=(0.0, 0.0, 4.0)),),
        forces=(force,),
    )  # fmt: skip
    signals = {
        f"mechanism.{force.name}.{name}.{axis}": LinearSignal(times=(0.0,), values=(value,))
        for axis, value in zip("xyz", values.tolist(), strict=True)
    }
    return CoupledModel(name="thrown", systems={"mechanism": mechanism}, signals=signals)


def plane_motion(times: np.ndarray, *, turns: bool) -> np.ndarray:
    """Place and angle of the body over time, and its energy, by Newton and Euler in the plane."""

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        angle = state[2]
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        push, arm = turn @ PUSH[:2] if turns else PUSH[:2], turn @ ARM[:2]
        spin = (arm[0] * push[1] - arm[1] * push[0]) / INERTIA
        return np.concatenate([state[3:], push / MASS, [spin]])

    return solve_ivp(rates, (0.0, times[-1]), [0, 0, 0, 0, 0, 4.0], "DOP853", times, rtol=1e-11, atol=1e-11).y


@pytest.mark.parametrize("frame", ["inertial", "body"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_force_moves_a_body_as_newton_and_euler_say(formulation: str, frame: str) -> None:
    force = AppliedForce(name="push", point="body.p", frame=frame)
    result = thrown(force, "force", PUSH).simulation(formulation=formulation, compiled=False, step=2e-3).run(1.0)
    x, y, angle, vx, vy, spin = plane_motion(result.time, turns=frame == "body")
    np.testing.assert_allclose(result["body.centre.x.position"], x, atol=2e-5)
    np.testing.assert_allclose(result["body.centre.y.position"], y, atol=2e-5)
    np.testing.assert_allclose(result["body.quaternion.w"], np.cos(angle / 2.0), atol=2e-5)
    energy = 0.5 * MASS * (vx**2 + vy**2) + 0.5 * INERTIA * (spin**2 - 16.0)
    np.testing.assert_allclose(result["energy.work"], energy, atol=1e-4 * np.ptp(energy))
    assert np.max(np.abs(result["energy.drift"])) < 1e-4 * np.ptp(energy)


@pytest.mark.parametrize(("frame", "turn"), [("inertial", 0.0), ("body", np.pi / 2.0)])
def test_moment_turns_about_the_axis_of_its_frame(frame: str, turn: float) -> None:
    """The body's y axis lies along the x axis of the inertial frame, about which it turns: θ = M t² / 2 J."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=(0.2, 0.4, 0.3), points={"p": (0.3, 0.1, 0.2)}),),
        joints=(
            Revolute(
                name="hinge",
                parent="ground.O",
                child="body.origin",
                axis=(1.0, 0.0, 0.0),
                orientation=(0.0, 0.0, -np.pi / 2.0),
            ),
        ),
        forces=(AppliedMoment(name="twist", point="body.p", frame=frame),),
    )
    simulation = CoupledModel(name="turned", systems={"mechanism": mechanism}).simulation(compiled=False)
    simulation.set("twist.moment.x", 0.6 * np.cos(turn))
    simulation.set("twist.moment.y", 0.6 * np.sin(turn))
    simulation.set("twist.moment.z", 0.0)
    result = simulation.run(0.5)
    np.testing.assert_allclose(result["body.angle"], 0.5 * 0.6 / 0.4 * result.time**2, atol=1e-9)
    np.testing.assert_allclose(result["energy.work"], 0.6 * result["body.angle"], atol=1e-6)


def test_loads_on_the_ground_are_refused() -> None:
    with pytest.raises(DataError, match=r"push.*acts on 'ground.O', which does not move; it must be a point of a body"):
        AppliedForce(name="push", point="ground.O")
    with pytest.raises(DataError, match="frame"):
        AppliedMoment(name="push", point="body.p", frame="world")  # pyright: ignore[reportArgumentType]
