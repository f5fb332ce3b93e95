"""Bodies that turn freely: conservation, closed forms and orders while reference orientations move."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest
from mechanisms import ball_pendulum, floating
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from mbsfmu import SimulationError
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.workspace import Floats

BODY, JOINT = floating().systems["mechanism"].bodies[0], floating().systems["mechanism"].joints[0]
START = Rotation.from_rotvec(JOINT.orientation)
TOP_INERTIA, TOP_VELOCITY = np.array([1.0, 1.0, 1.7]), np.array([2.0, 4.0, 1.5])
STOP = 10.0
TIGHT = {"solver": "rk45", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10, "step": 5e-3}
EXPLICIT = ("double-step", "dca", "hdca")
FORMULATIONS = (*EXPLICIT, "penalty")
WAYS = [*(("trapezoidal", each) for each in FORMULATIONS), *(("rk4", each) for each in EXPLICIT)]


def orientation(result: Result) -> Rotation:
    quaternions = [result[f"body.quaternion.{part}"] for part in "wxyz"]
    return Rotation.from_quat(np.stack(quaternions, axis=1), scalar_first=True)


def vectors(result: Result, quantity: str) -> Floats:
    return np.stack([result[f"body.{quantity}.{axis}"] for axis in "xyz"], axis=1)


def moved_references(result: Result) -> int:
    """How often a Cardan angle has jumped, by more than its rate explains."""
    jumps = [
        np.diff(result[f"body.cardan_angle.{axis}"]) - np.diff(result.time) * result[f"body.cardan_rate.{axis}"][:-1]
        for axis in "xyz"
    ]
    return int(np.sum(np.max(np.abs(jumps), axis=0) > 0.3))


def momenta(result: Result) -> tuple[Floats, Floats]:
    """Linear and angular momentum about the inertial origin, from outputs and the body's data."""
    turned, angular = orientation(result), vectors(result, "angular_velocity")
    arm = turned.apply(np.array(BODY.centre.position) - BODY.points["here"].position)
    place = vectors(result, "displacement") + arm
    linear = BODY.mass * (vectors(result, "velocity") + np.cross(angular, arm))
    spin = turned.apply(turned.inv().apply(angular) * BODY.inertia)
    return linear, spin + np.cross(place, linear)


def eulers_equations(times: Floats) -> Rotation:
    """The orientation without torque, from quaternions and the angular velocity in the body, by DOP853."""
    inertia = np.array(BODY.inertia)

    def rates(_: float, values: Floats) -> Floats:
        w, v, angular = values[0], values[1:4], values[4:]
        turning = np.concatenate([[-v @ angular], w * angular + np.cross(v, angular)]) / 2.0
        return np.concatenate([turning, np.cross(inertia * angular, angular) / inertia])

    first = np.concatenate([START.as_quat(scalar_first=True), START.inv().apply(JOINT.angular_velocity)])
    found = solve_ivp(rates, times[[0, -1]], first, "DOP853", times, rtol=1e-12, atol=1e-13)
    return Rotation.from_quat(found.y[:4].T, scalar_first=True)


@cache
def tumbled(formulation: str, step: float) -> Result:
    """Explicit at tight tolerance, or with the trapezoidal rule where a step is given."""
    options: dict[str, Any] = {"step": step, "newton_tolerance": 1e-11} if step else TIGHT
    return floating().simulation(formulation=formulation, **options).run(STOP, output_step=5e-3)


def departures(formulation: str, step: float) -> Floats:
    """Largest relative departures of energy, linear and angular momentum, and the angle to Euler's solution."""
    result = tumbled(formulation, step)
    energy = np.abs(result["energy.kinetic"] / result["energy.kinetic"][0] - 1.0)
    changes = [np.linalg.norm(m - m[0], axis=1) / np.linalg.norm(m[0]) for m in momenta(result)]
    turn = (orientation(result) * eulers_equations(result.time).inv()).magnitude()
    return np.array([np.max(each) for each in (energy, *changes, turn)])


@pytest.mark.parametrize("formulation", EXPLICIT)
def test_tumbling_at_tight_tolerance(formulation: str) -> None:
    """Invariants to a hundred times the tolerance; the orientation, which is unstable, to a hundred thousand times."""
    energy, linear, angular, turn = departures(formulation, 0.0)
    assert moved_references(tumbled(formulation, 0.0)) >= 3
    assert max(energy, linear, angular) < 1e-8
    assert turn < 1e-5
    if formulation == "hdca":
        assert linear < 1e-13  # momenta of slides are its unknowns, and have no rate


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_tumbling_with_the_trapezoidal_rule(formulation: str) -> None:
    """What the rule loses of the invariants falls with the square of its step."""
    coarse, fine = (departures(formulation, step)[:3] for step in (3.125e-4, 1.5625e-4))
    assert moved_references(tumbled(formulation, 3.125e-4)) >= 3
    assert np.max(fine) < 1e-3
    kept = fine < 1e-13
    assert kept.tolist() == [False, formulation == "hdca", False]
    assert np.all(coarse[~kept] / fine[~kept] > 3.5)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_quaternion_has_length_one_and_no_jumps(formulation: str) -> None:
    """A quaternion moves at half the angular velocity, also where a reference moves."""
    result = tumbled(formulation, 6.25e-4)
    quaternions = np.stack([result[f"body.quaternion.{part}"] for part in "wxyz"], axis=1)
    np.testing.assert_allclose(np.linalg.norm(quaternions, axis=1), 1.0, rtol=0.0, atol=1e-14)
    fastest = np.max(np.linalg.norm(vectors(result, "angular_velocity"), axis=1))
    moves = np.linalg.norm(np.diff(quaternions, axis=0), axis=1)
    assert np.max(moves) < 0.5 * fastest * np.max(np.diff(result.time)) * (1.0 + 1e-6)


@pytest.mark.parametrize("formulation", EXPLICIT)
def test_without_moving_references_the_run_is_lost(
    formulation: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Negative control: the tumbling body comes near the singularity of its first chart, and the solver says so."""
    options = {"formulation": formulation, "solver": "rk4", "step": 2.5e-3, "compiled": False}
    good = floating().simulation(**options).run(1.0)
    assert np.max(np.abs(good["energy.drift"])) < 1e-7
    assert "inaccurate" not in caplog.text
    for limit in ("NEAR_GIMBAL_LOCK", "LOST"):
        monkeypatch.setattr(f"mbsfmu.formulations.formulation.{limit}", np.inf)
    with suppress(SimulationError):
        lost = floating().simulation(**options).run(1.0)
        assert not np.max(np.abs(lost["energy.drift"])) < 1.0
    assert "rk4 with steps of 0.0025 s is inaccurate: at t = " in caplog.text


def top(formulation: str, solver: str, step: float, output_step: float) -> Result:
    """The body with two equal moments of inertia."""
    simulation = floating().simulation(
        formulation=formulation, step=step, **({"solver": solver} if solver == "rk4" else {})
    )
    for axes, moment in zip(("xx", "yy", "zz"), TOP_INERTIA, strict=True):
        simulation.set(f"body.inertia_{axes}", moment)
    for axis, velocity in zip("xyz", TOP_VELOCITY, strict=True):
        simulation.set(f"body.angular_velocity_start.{axis}", velocity)
    return simulation.run(3.0, output_step=output_step)


def top_error(result: Result) -> float:
    """Largest angle to the closed form of the symmetric top: about the angular momentum, and about its own axis.

    R = exp(L t / I₁) R₀ exp((1 − I₃/I₁) ω₃ t e₃) with the fixed angular momentum L and the spin ω₃ in the body.
    """
    spin = START.inv().apply(TOP_VELOCITY)
    momentum = START.apply(TOP_INERTIA * spin)
    own = np.array([0.0, 0.0, (1.0 - TOP_INERTIA[2] / TOP_INERTIA[0]) * spin[2]])
    times = result.time[:, np.newaxis]
    exact = Rotation.from_rotvec(times * momentum / TOP_INERTIA[0]) * START * Rotation.from_rotvec(times * own)
    return float(np.max((orientation(result) * exact.inv()).magnitude()))


@pytest.mark.parametrize(("solver", "formulation"), WAYS)
def test_order_against_the_symmetric_top(solver: str, formulation: str) -> None:
    order, tolerance, steps = (
        (2.0, 0.1, (4e-3, 2e-3, 1e-3)) if solver == "trapezoidal" else (4.0, 0.15, (5e-3, 2.5e-3, 1.25e-3))
    )
    assert moved_references(top(formulation, solver, steps[0], steps[0])) >= 2
    errors = [top_error(top(formulation, solver, step, 0.3)) for step in steps]
    found = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert found == pytest.approx(order, abs=tolerance) if solver == "rk4" else found > order - tolerance


@pytest.mark.parametrize(("solver", "formulation"), WAYS)
def test_reading_outputs_changes_nothing(solver: str, formulation: str) -> None:
    """Under gravity a step that took another reference than its state's would go astray."""
    often, seldom = (
        ball_pendulum()
        .simulation(formulation=formulation, solver=solver, step=1e-2, compiled=False)
        .run(2.0, output_step=each)
        for each in (1e-2, 0.5)
    )
    assert moved_references(often) >= 2
    for name in (f"body.{quantity}" for quantity in ("quaternion.x", "angular_velocity.y", "cardan_acceleration.z")):
        np.testing.assert_allclose(seldom[name], often[name][::50], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_compiled_steps_move_references_too(formulation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is left to the interpreter."""
    slow = floating().simulation(formulation=formulation, step=5e-3, compiled=False).run(2.0)
    simulation = floating().simulation(formulation=formulation, step=5e-3)
    if type(simulation.solver) is ImplicitSolver:
        pytest.skip("there is no compiler")
    monkeypatch.setattr(ImplicitSolver, "_step", None)
    fast = simulation.run(2.0)
    assert moved_references(slow) >= 5
    for name in fast:
        if name != "energy.drift":
            scale = np.max(np.abs(slow[name]))
            np.testing.assert_allclose(fast[name], slow[name], atol=1e-9 * scale, err_msg=name)
