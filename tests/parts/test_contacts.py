"""Contacts against an integration of their own and closed forms: bounces, slopes, moving planes, large steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine_of_parts import FORMULATIONS
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from mbsfmu import CoupledModel, DataError, Free, Mechanism, PlaneContact, Prismatic, Revolute, RigidBody

MASS, RADIUS, STIFFNESS, DAMPING = 0.5, 0.1, 2e5, 0.3


def ball(**fields: Any) -> RigidBody:
    moment = 0.4 * MASS * RADIUS**2
    return RigidBody(name="ball", mass=MASS, inertia=(moment, moment, moment), **fields)


def falling(height: float, gravity: float = 9.81, velocity: float = 0.0, **fields: Any) -> CoupledModel:
    """A ball that falls on a floor."""
    fall = {"axis": (0, 1, 0), "displacement": height + RADIUS, "velocity": velocity}
    mechanism = Mechanism(
        gravity=(0.0, -gravity, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(ball(),),
        joints=(Prismatic(name="fall", parent="ground.O", child="ball.origin", **fall),),
        forces=(
            PlaneContact(
                name="floor",
                sphere="ball.origin",
                plane="ground.O",
                **{"radius": RADIUS, "stiffness": STIFFNESS, "damping": DAMPING, **fields},
            ),
        ),
    )
    return CoupledModel(name="falling", systems={"mechanism": mechanism})


def bounce(speed: float, damping: float = DAMPING) -> tuple[float, float, float]:
    """Time of the contact, speed that is left and greatest depth, by SciPy from first touch to the end."""

    def rates(_: float, state: np.ndarray) -> list[float]:
        depth, rate = state
        push = STIFFNESS * max(depth, 0.0) ** 1.5 * max(1.0 + damping * rate, 0.0)
        return [rate, 9.81 - push / MASS]

    def over(time: float, state: np.ndarray) -> float:
        return state[0] if time > 1e-6 else 1.0

    over.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    solved = solve_ivp(rates, (0.0, 0.1), [0.0, speed], "DOP853", events=over, rtol=1e-11, atol=1e-14, max_step=1e-5)
    return float(solved.t[-1]), float(-solved.y[1, -1]), float(np.max(solved.y[0]))


@pytest.mark.parametrize("solver", ["trapezoidal", "rodas5p", "rk45"])
def test_bounce_is_that_of_an_integration_of_its_own(solver: str) -> None:
    given = {"step": 2e-5} if solver == "trapezoidal" else {"relative_tolerance": 1e-7, "step": 1e-3}
    simulation = falling(0.2).simulation(solver=solver, **given)
    result = simulation.run(0.3, output_step=1e-4)
    speed = np.sqrt(2.0 * 9.81 * 0.2)
    duration, left, deep = bounce(speed)
    time = speed / 9.81 + duration
    after = result.time > time
    expected = RADIUS + left * (result.time - time) - 0.5 * 9.81 * (result.time - time) ** 2
    np.testing.assert_allclose(result["ball.displacement"][after], expected[after], atol=2e-5)
    assert 0.4 * speed < left < 0.8 * speed
    assert np.max(result["floor.penetration"]) == pytest.approx(deep, rel=1e-2)
    assert np.min(result["floor.normal_force"]) >= 0.0
    total = result["energy.kinetic"] + result["energy.potential"]
    assert np.max(total) <= total[0] * (1.0 + 1e-6)
    assert result["energy.dissipated"][-1] == pytest.approx(0.5 * MASS * (speed**2 - left**2), rel=1e-3)


@pytest.mark.parametrize("damping", [0.02, 0.3, 3.0])
def test_restitution_without_gravity_is_that_of_hunt_and_crossley(damping: float) -> None:
    """D v (1 + e) = ln((1 + D v)/(1 − D e v)), from m u du/(1 + D u) = −k δⁿ dδ; to first order 1 − 2/3 D v."""
    most = min(1.0, 1.0 / damping) * (1.0 - 1e-9)
    expected = brentq(lambda e: damping * (1.0 + e) - np.log((1.0 + damping) / (1.0 - damping * e)), 1e-3, most)
    model = falling(0.1, damping=damping, gravity=0.0, velocity=-1.0)
    result = model.simulation(solver="rodas5p", relative_tolerance=1e-8).run(0.2)
    assert result["ball.velocity"][-1] == pytest.approx(expected, rel=1e-4)
    assert abs(expected - (1.0 - 2.0 / 3.0 * damping)) < 0.6 * damping**2


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_formulation_bounces_as_hunt_and_crossley_have_it(formulation: str) -> None:
    expected = brentq(lambda e: 0.3 * (1.0 + e) - np.log(1.3 / (1.0 - 0.3 * e)), 1e-3, 1.0)
    model = falling(2e-3, gravity=0.0, velocity=-1.0)
    result = model.simulation(formulation=formulation, step=5e-5, compiled=False).run(0.025)
    assert result["floor.normal_force"][-1] == 0.0
    assert result["ball.velocity"][-1] == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(("velocity", "share"), [(0.0, 1.0), (0.1, 0.5), (0.5, 0.0)])
def test_plane_that_is_left_faster_than_it_follows_does_not_pull(velocity: float, share: float) -> None:
    simulation = falling(-0.01, velocity=velocity, damping=5.0).simulation(compiled=False)
    assert simulation.get("floor.penetration") == pytest.approx(0.01)
    assert simulation.get("floor.normal_force") == pytest.approx(share * STIFFNESS * 0.01**1.5, abs=1e-9)


@pytest.mark.parametrize("solver", ["rodas5p", "rk45"])
@pytest.mark.parametrize("height", [1.0, 50.0])
def test_steps_by_tolerance_do_not_fall_through_the_floor(solver: str, height: float) -> None:
    """A fall has no error, so steps grow; who steps into the floor meets its force there, and the step is refused."""
    speed = np.sqrt(2.0 * 9.81 * height)
    duration, left, _ = bounce(speed)
    stop = speed / 9.81 + duration + 0.5 * left / 9.81
    result = falling(height).simulation(solver=solver, step=stop, relative_tolerance=1e-6).run(stop)
    assert len(result.time) == 2
    assert result["ball.velocity"][-1] == pytest.approx(0.5 * left, abs=2e-3 * speed)


def test_dip_that_another_force_ends_needs_steps_that_are_shorter() -> None:
    """The limit that the page tells of: steps by tolerance pass over it, for the way without a contact is smooth."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "floor": (0.0, -0.999, 0.0)},
        bodies=(RigidBody(name="arm", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"tip": (1.0, 0.0, 0.0)}),),
        joints=(Revolute(name="axle", parent="ground.O", child="arm.origin", angle=-2.5, angular_velocity=2.0),),
        forces=(PlaneContact(name="touch", sphere="arm.tip", plane="ground.floor", stiffness=1e5, damping=5.0),),
    )
    model = CoupledModel(name="arm", systems={"mechanism": mechanism})
    fine, finer, passed = (
        model.simulation(**given).run(1.0)["energy.dissipated"][-1]
        for given in ({"step": 1e-3}, {"step": 2e-4}, {"solver": "rk45"})
    )
    assert fine == pytest.approx(finer, rel=5e-3)
    assert finer > 5e-4
    assert passed == 0.0


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("friction", "share"), [(0.5, 5.0 / 7.0), (0.05, None)])
def test_ball_on_a_slope_rolls_or_slides(formulation: str, friction: float, share: float | None) -> None:
    """It rolls with 5/7 g sin α, and where friction does not suffice slides with g (sin α − μ cos α)."""
    slope = 0.4
    sine, cosine = np.sin(slope), np.cos(slope)
    deep = (MASS * 9.81 * cosine / STIFFNESS) ** (2.0 / 3.0)
    start = (RADIUS - deep) * np.array([-sine, cosine, 0.0])
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(ball(),),
        joints=(Free(name="free", parent="ground.O", child="ball.origin", displacement=tuple(start.tolist())),),
        forces=(
            PlaneContact(
                name="slope",
                sphere="ball.origin",
                plane="ground.O",
                normal=(-sine, cosine, 0.0),
                radius=RADIUS,
                stiffness=STIFFNESS,
                friction=friction,
                creep_speed=1e-3,
            ),
        ),
    )
    model = CoupledModel(name="slope", systems={"mechanism": mechanism})
    result = model.simulation(formulation=formulation, step=5e-4).run(0.4)
    along = -(np.array([result[f"ball.centre.{axis}.position"] for axis in "xyz"]).T - start) @ [cosine, sine, 0.0]
    expected = 9.81 * (share * sine if share else sine - friction * cosine)
    assert along[-1] == pytest.approx(0.5 * expected * 0.4**2, rel=5e-3 if share else 2e-2)
    spin = result["ball.angular_velocity.z"][-1]
    rolling = 9.81 * sine * 5.0 / 7.0 * 0.4 / RADIUS
    sliding = friction * MASS * 9.81 * cosine * RADIUS / (0.4 * MASS * RADIUS**2) * 0.4
    assert abs(spin) == pytest.approx(rolling if share else sliding, rel=1e-2)
    assert result["slope.normal_force"][-1] == pytest.approx(MASS * 9.81 * cosine, rel=1e-3)


@pytest.mark.parametrize("formulation", ["dca", "dca-alm"])
def test_contact_with_a_body_that_moves_keeps_momentum(formulation: str) -> None:
    """A ball meets a plate that floats and turns: linear and angular momentum of both stay, energy is lost."""
    plate = RigidBody(name="plate", mass=2.0, inertia=(0.1, 0.15, 0.2), points={"top": (0.1, 0.05, 0.02)})
    contact = PlaneContact(
        name="touch",
        sphere="ball.origin",
        plane="plate.top",
        normal=(0.1, 1.0, -0.2),
        radius=RADIUS,
        stiffness=2e4,
        damping=0.1,
        friction=0.4,
        creep_speed=0.01,
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(plate, ball()),
        joints=(
            Free(name="a", parent="ground.O", child="plate.origin", angular_velocity=(0.3, -0.5, 1.0)),
            Free(
                name="b",
                parent="ground.O",
                child="ball.origin",
                displacement=(0.15, 0.2, 0.0),
                velocity=(0.4, -1.5, 0.2),
                angular_velocity=(1.0, 2.0, -3.0),
            ),
        ),
        forces=(contact,),
    )
    model = CoupledModel(name="plate", systems={"mechanism": mechanism})
    result = model.simulation(formulation=formulation, step=1e-4, compiled=True).run(0.15)
    assert np.max(result["touch.penetration"]) > 1e-3

    def momentum(row: int) -> np.ndarray:
        linear, angular = np.zeros(3), np.zeros(3)
        for body, inertia in ((plate, np.array(plate.inertia)), (ball(), np.array(ball().inertia))):
            place = np.array([result[f"{body.name}.centre.{axis}.position"][row] for axis in "xyz"])
            step = result.time[1]
            before, behind = (
                np.array([result[f"{body.name}.centre.{axis}.position"][row + side] for axis in "xyz"])
                for side in (-1, 1)
            )
            speed = (behind - before) / (2.0 * step)
            w, *vector = (result[f"{body.name}.quaternion.{part}"][row] for part in "wxyz")
            spin = np.array([result[f"{body.name}.angular_velocity.{axis}"][row] for axis in "xyz"])
            x, y, z = vector
            skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            turn = np.eye(3) + 2.0 * w * skew + 2.0 * skew @ skew
            linear += body.mass * speed
            angular += turn @ (inertia * (turn.T @ spin)) + body.mass * np.cross(place, speed)
        return np.concatenate([linear, angular])

    np.testing.assert_allclose(momentum(-2), momentum(1), atol=2e-4)
    total = result["energy.kinetic"] + result["energy.potential"]
    assert total[-1] < 0.95 * total[0]
    assert np.max(np.abs(result["energy.drift"])) < 1e-3 * total[0]


def test_wrong_data_are_refused_in_words() -> None:
    with pytest.raises(DataError, match=r"exponent is 0.5"):
        PlaneContact(name="touch", sphere="a.p", plane="b.p", stiffness=1.0, exponent=0.5)
    with pytest.raises(DataError, match="must not be the zero vector"):
        PlaneContact(name="touch", sphere="a.p", plane="b.p", stiffness=1.0, normal=(0.0, 0.0, 0.0))


def test_derivatives_before_and_after_a_contact() -> None:
    """Of steps of rodas5p, which take second derivatives: in flight the height, then energy, are those of the start."""
    tolerances: Any = {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    found = falling(0.2, damping=0.0).sensitivities(
        ["ball.displacement_start"], ["ball.displacement", "energy.*"], stop=0.3, solver="rodas5p", **tolerances
    )
    flying = found.time < 0.19
    np.testing.assert_allclose(found.derivative("ball.displacement", "ball.displacement_start")[flying], 1.0)
    kinds = [found.derivative(f"energy.{kind}", "ball.displacement_start") for kind in ("kinetic", "potential")]
    np.testing.assert_allclose(kinds[0] + kinds[1], MASS * 9.81, rtol=1e-3)
