"""Friction and stops in joints against closed forms and an integration of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mbsfmu import CoupledModel, DataError, Force, Mechanism, Prismatic, Revolute, RigidBody
from mbsfmu.parts import JointDrive, JointFriction, JointStop

MASS = 2.0


def sliding(*forces: Force, velocity: float = 0.0, place: float = 0.0, **fields: Any) -> CoupledModel:
    """A mass on a slide."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="mass", mass=MASS, inertia=(0.1, 0.1, 0.1)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="mass.origin", velocity=velocity, displacement=place),),
        forces=forces,
    )
    return CoupledModel(name="sliding", systems={"mechanism": mechanism}, **fields)


# -- friction -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("viscous", [0.0, 3.0])
def test_friction_brings_a_mass_to_rest_as_in_closed_form(viscous: float) -> None:
    """m v̇ = −C − d v while it slides; then it stays where it is, and all it had is lost."""
    coulomb, start = 4.0, 1.5
    rub = JointFriction(name="rub", joint="rail", coulomb_load=coulomb, damping=viscous, smoothing_velocity=1e-4)
    result = sliding(rub, velocity=start).simulation(compiled=False, solver="rodas5p", relative_tolerance=1e-7).run(1.2)
    if viscous:
        time = MASS / viscous * np.log(1.0 + viscous * start / coulomb)
        decay = np.exp(-viscous * result.time / MASS)
        speed = (start + coulomb / viscous) * decay - coulomb / viscous
        way = MASS / viscous * (start - coulomb * time / MASS)
    else:
        time, speed, way = MASS * start / coulomb, start - coulomb * result.time / MASS, MASS * start**2 / 2.0 / coulomb
    sliding_on = result.time < time - 2e-3
    np.testing.assert_allclose(result["mass.velocity"][sliding_on], speed[sliding_on], atol=2e-5)
    assert result["mass.displacement"][-1] == pytest.approx(way, rel=1e-4)
    assert abs(result["mass.velocity"][-1]) < 1e-6
    assert result["energy.dissipated"][-1] == pytest.approx(0.5 * MASS * start**2, rel=1e-4)


def test_joint_that_sticks_creeps_at_a_share_of_the_smoothing_velocity() -> None:
    """F = C tanh(v/v_0); and beyond C it goes."""
    rub = JointFriction(name="rub", joint="rail", coulomb_load=4.0, smoothing_velocity=1e-3)
    simulation = sliding(rub, JointDrive(name="push", joint="rail")).simulation(compiled=False)
    simulation.set("push.force", 3.0)
    result = simulation.run(0.5)
    assert result["mass.velocity"][-1] == pytest.approx(1e-3 * np.arctanh(0.75), rel=1e-6)
    assert result["rub.load"][-1] == pytest.approx(-3.0, rel=1e-6)
    simulation.set("push.force", 5.0)
    result = simulation.run(0.5)
    assert result["mass.velocity"][-1] == pytest.approx(0.5 / MASS, rel=2e-2)


@pytest.mark.parametrize("velocity", [-0.4, 0.02, 0.1, 0.5])
def test_friction_falls_from_its_static_value(velocity: float) -> None:
    """C + (S − C) exp(−(v/v_S)²) + d v, far beyond the rate in which it builds up."""
    rub = JointFriction(
        name="rub",
        joint="rail",
        coulomb_load=4.0,
        static_load=7.0,
        stribeck_rate=0.1,
        smoothing_velocity=1e-3,
        damping=2.0,
    )
    found = sliding(rub, velocity=velocity).simulation(compiled=False).get("rub.load")
    expected = 4.0 + 3.0 * np.exp(-((velocity / 0.1) ** 2)) + 2.0 * abs(velocity)
    assert found == pytest.approx(-np.sign(velocity) * expected, rel=1e-12)


def test_friction_in_a_hinge_is_a_torque() -> None:
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="wheel", mass=1.0, inertia=(0.3, 0.3, 0.5)),),
        joints=(Revolute(name="axle", parent="ground.O", child="wheel.origin", angular_velocity=4.0),),
        forces=(JointFriction(name="rub", joint="axle", coulomb_load=0.6),),
    )
    simulation = CoupledModel(name="wheel", systems={"mechanism": mechanism}).simulation(compiled=False)
    assert {each.name: each.unit for each in simulation.variables}["rub.load"] == "N.m"
    result = simulation.run(1.0)
    assert result["wheel.angular_velocity"][-1] == pytest.approx(4.0 - 0.6 / 0.5, rel=1e-6)


# -- stops --------------------------------------------------------------------------------------------------


def test_stop_without_damping_turns_a_mass_round_as_a_spring_does() -> None:
    """It is in for π √(m/k), goes v √(m/k) deep, and leaves as fast as it came."""
    stop = JointStop(name="stop", joint="rail", upper=0.3, stiffness=8e3)
    result = sliding(stop, velocity=1.2).simulation(compiled=False, step=1e-4).run(0.6)
    rate = np.sqrt(8e3 / MASS)
    assert np.max(result["mass.displacement"]) == pytest.approx(0.3 + 1.2 / rate, rel=1e-4)
    assert result["mass.velocity"][-1] == pytest.approx(-1.2, rel=2e-5)
    leaving = 0.3 / 1.2 + np.pi / rate
    assert result["mass.displacement"][-1] == pytest.approx(0.3 - 1.2 * (0.6 - leaving), abs=2e-5)
    assert np.max(np.abs(result["energy.drift"])) < 1e-4


@pytest.mark.parametrize("way", [-1.0, 1.0])
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45", "rodas5p"])
def test_stop_with_damping_returns_what_an_integration_of_its_own_does(solver: str, way: float) -> None:
    """m ẍ = −k x max(0, 1 + D ẋ) from first touch; the stop never pulls."""
    stiffness, damping, speed = 8e3, 0.5, 1.2
    fields = {"lower" if way < 0.0 else "upper": 0.3 * way}
    stop = JointStop(name="stop", joint="rail", stiffness=stiffness, damping=damping, **fields)
    result = sliding(stop, velocity=way * speed).simulation(compiled=False, solver=solver, **finely(solver)).run(0.5)

    def rates(_: float, state: np.ndarray) -> list[float]:
        push = stiffness * max(state[0], 0.0) * max(1.0 + damping * state[1], 0.0)
        return [state[1], -push / MASS]

    own = solve_ivp(rates, (0.0, 0.25), [0.0, speed], "DOP853", rtol=1e-10, atol=1e-12).y[1, -1]
    assert -0.9 * speed < own < -0.5 * speed
    assert result["mass.velocity"][-1] == pytest.approx(way * own, rel=2e-4)
    assert np.min(-way * result["stop.load"]) >= 0.0
    lost = 0.5 * MASS * (speed**2 - own**2)
    assert result["energy.dissipated"][-1] == pytest.approx(lost, rel=1e-3)
    assert np.max(np.abs(result["energy.drift"])) < 1e-3 * lost


@pytest.mark.parametrize(("velocity", "share"), [(0.0, 1.0), (0.1, 0.5), (0.5, 0.0)])
def test_stop_that_is_left_faster_than_it_follows_does_not_pull(velocity: float, share: float) -> None:
    stop = JointStop(name="stop", joint="rail", lower=0.01, stiffness=1e4, damping=5.0)
    simulation = sliding(stop, velocity=velocity).simulation(compiled=False)
    assert simulation.get("stop.load") == pytest.approx(100.0 * share, abs=1e-9)


def finely(solver: str) -> dict[str, float]:
    return {"step": 1e-4} if solver == "trapezoidal" else {"relative_tolerance": 1e-8}


def test_stops_on_both_sides_keep_a_mass_between_them() -> None:
    stop = JointStop(name="stop", joint="rail", lower=-0.1, upper=0.2, stiffness=1e5)
    result = sliding(stop, velocity=2.0).simulation(compiled=False, step=1e-4).run(1.0)
    deep = 2.0 * np.sqrt(MASS / 1e5)
    assert np.max(result["mass.displacement"]) == pytest.approx(0.2 + deep, rel=1e-3)
    assert np.min(result["mass.displacement"]) == pytest.approx(-0.1 - deep, rel=1e-3)


def test_wrong_data_are_refused_in_words() -> None:
    with pytest.raises(DataError, match="static_load is 1 and coulomb_load 2; what starts a motion must be no less"):
        JointFriction(name="rub", joint="rail", coulomb_load=2.0, static_load=1.0)
    with pytest.raises(DataError, match="it has neither lower nor upper; a stop needs a limit"):
        JointStop(name="stop", joint="rail", stiffness=1.0)
    with pytest.raises(DataError, match=r"lower is 1 and upper 0.5; lower must be less than upper"):
        JointStop(name="stop", joint="rail", lower=1.0, upper=0.5, stiffness=1.0)
