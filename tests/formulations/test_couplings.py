"""Linear couplings between joint coordinates, in every formulation, against closed forms and each other."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from coupled_trees import coupled_tree, wheel, wheels

from mbsfmu import (
    Constraint,
    CoupledModel,
    Cuboid,
    DataError,
    Differential,
    Gear,
    LinearCoupling,
    Mechanism,
    Mimic,
    Numbers,
    Prismatic,
    RackAndPinion,
    Revolute,
    RigidBody,
)
from mbsfmu.simulation.run_result import Result

FORMULATIONS = ("dca", "hdca", "dca-alm", "double-step", "penalty")


def run(model: CoupledModel, formulation: str, stop: float = 0.5, step: float = 5e-3) -> Result:
    return model.simulation(formulation=formulation, step=step, compiled=False).run(stop)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_gears_turn_with_the_reduced_inertia(formulation: str) -> None:
    """J = J₁ + J₂ / i²; the load of the driven wheel goes through the teeth, i times as large there."""
    gear = Gear(name="pair", driving="one_shaft", driven="two_shaft", ratio=-4.0)
    model = wheels({"one": 0.02, "two": 0.5}, gear, {"one": 1.0, "two": 0.8})
    acceleration = (1.0 - 0.8 / 4.0) / (0.02 + 0.5 / 16.0)
    result = run(model, formulation)
    np.testing.assert_allclose(result["one.angle"], 0.5 * acceleration * result.time**2, rtol=0, atol=1e-6)
    np.testing.assert_allclose(result["two.angle"], -result["one.angle"] / 4.0, rtol=0, atol=1e-9)
    driven = 0.5 * (-acceleration / 4.0) - 0.8
    np.testing.assert_allclose(result["pair.two_shaft.torque"][1:], driven, rtol=1e-6)
    np.testing.assert_allclose(result["pair.one_shaft.torque"][1:], driven / 4.0, rtol=1e-6)
    np.testing.assert_allclose(result["two_shaft.moment.z"][1:], driven + 0.8, rtol=1e-6)
    assert np.max(np.abs(result["energy.drift"])) < 1e-6 * np.max(result["energy.kinetic"])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_differential_shares_torque(formulation: str) -> None:
    """Lagrange: with q_c = s q₁ + (1 − s) q₂ the outer wheels get s and 1 − s of what drives the carrier."""
    share, inertias = 0.3, {"carrier": 0.4, "one": 0.1, "two": 0.25}
    axle = Differential(name="axle", carrier="carrier_shaft", one="one_shaft", other="two_shaft", share=share)
    model = wheels(inertias, axle, {"carrier": 2.0, "two": 0.5})
    shares = np.array([share, 1.0 - share])
    mass = np.diag([inertias["one"], inertias["two"]]) + inertias["carrier"] * np.outer(shares, shares)
    expected = np.linalg.solve(mass, 2.0 * shares + [0.0, 0.5])
    result = run(model, formulation)
    found = [result[f"{name}.angle"][-1] for name in ("one", "two")]
    np.testing.assert_allclose(found, 0.5 * expected * 0.5**2, rtol=1e-6)
    loads = [result[f"axle.{name}_shaft.torque"][-1] for name in ("carrier", "one", "two")]
    pushed = 2.0 - inertias["carrier"] * shares @ expected
    np.testing.assert_allclose(loads, [-pushed, *(shares * pushed)], rtol=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_any_linear_relation_turns_as_lagrange_has_it(formulation: str) -> None:
    """J q̈ = τ + aᵀ λ with a q = c, solved as one system; what it exerts is aᵀ λ."""
    names, factors, offset = ("one", "two", "three"), np.array([1.0, -2.0, 0.5]), 0.3
    inertias, torques = np.array([0.2, 0.5, 0.1]), np.array([1.0, 0.4, -0.2])
    relation = LinearCoupling(
        name="relation",
        joints=tuple(f"{name}_shaft" for name in names),
        factors_of_joints=tuple(factors.tolist()),
        offset=offset,
    )
    result = run(
        wheels(dict(zip(names, inertias, strict=True)), relation, dict(zip(names, torques, strict=True))), formulation
    )
    whole = np.block([[np.diag(inertias), -factors[:, np.newaxis]], [factors, np.zeros(1)]])
    *expected, multiplier = np.linalg.solve(whole, [*torques, 0.0])
    angles = np.array([result[f"{name}.angle"] for name in names])
    np.testing.assert_allclose(factors @ angles, offset, atol=1e-8)
    np.testing.assert_allclose(angles[:, -1] - angles[:, 0], 0.5 * np.array(expected) * 0.5**2, atol=1e-6)
    loads = [result[f"relation.{name}_shaft.torque"][-1] for name in names]
    np.testing.assert_allclose(loads, multiplier * factors, rtol=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_rack_falls_as_the_pinion_lets_it(formulation: str) -> None:
    """A rack of mass m on a pinion: m g = (m + J / r²) a; at 0.6 m where the pinion starts at zero."""
    mass, radius, inertia = 3.0, 0.08, 0.02
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(wheel("pinion", inertia), Cuboid(name="rack", length=0.5, mass=mass)),
        joints=(
            Revolute(name="shaft", parent="ground.O", child="pinion.hub"),
            Prismatic(name="guide", parent="ground.O", child="rack.centre", axis=(0.0, 1.0, 0.0), displacement=0.6),
        ),
        constraints=(RackAndPinion(name="teeth", pinion="shaft", rack="guide", radius=radius, offset=0.6),),
    )
    result = run(CoupledModel(name="rack", systems={"machine": mechanism}), formulation)
    acceleration = -9.81 * mass / (mass + inertia / radius**2)
    np.testing.assert_allclose(result["rack.displacement"], 0.6 + 0.5 * acceleration * result.time**2, atol=1e-6)
    np.testing.assert_allclose(result["teeth.guide.force"][1:], mass * (acceleration + 9.81), rtol=1e-6)
    np.testing.assert_allclose(result["teeth.shaft.torque"][1:], inertia * acceleration / radius, rtol=1e-6)


def test_formulations_agree_on_a_tree_in_space() -> None:
    """Branches that couplings join, with joints that are reversed: rates of change and loads where it starts."""
    model = CoupledModel(name="tree", systems={"machine": coupled_tree()})
    found = {}
    for formulation in FORMULATIONS:
        simulation = model.simulation(formulation=formulation, compiled=False)
        simulation.initialize()
        loads = ["three.joint_1.torque", "three.joint_2.force", "pair.joint_0.torque", "joint_4.moment.y"]
        moving = [f"body_{index}.angular_acceleration" for index in (0, 1, 3)]
        found[formulation] = np.array([simulation.get(name) for name in (*moving, "body_2.acceleration", *loads)])
    for formulation, values in found.items():
        np.testing.assert_allclose(values, found["dca"], rtol=1e-7, err_msg=formulation)


def test_data_are_what_they_were_after_json() -> None:
    mechanism = coupled_tree()
    assert Mechanism.from_dict(mechanism.to_dict()) == mechanism


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        (Gear(name="g", driving="A", driven="A", ratio=2.0), "gear 'g' names joint 'A' twice; it must be another one"),
        (Gear(name="g", driving="A", driven="Q", ratio=2.0), "gear 'g': there is no joint 'Q'; there are A, B"),
        (Mimic(name="A", joint="A", leader="B"), "the name 'A' is given to a joint and to a constraint; rename one"),
        (
            Mimic(name="one", joint="A", leader="B"),
            "the name 'one' is given to more than one body, force, constraint or sensor",
        ),
    ],
)
def test_couplings_that_name_what_is_not_there(constraint: Constraint, told: str) -> None:
    with pytest.raises(DataError, match=told):
        Mechanism(
            ground={"O": (0.0, 0.0, 0.0)},
            bodies=(wheel("one", 1.0), wheel("two", 1.0)),
            joints=(
                Revolute(name="A", parent="ground.O", child="one.hub"),
                Revolute(name="B", parent="ground.O", child="two.hub"),
            ),
            constraints=(constraint,),
        )


def test_numbers_that_couple_nothing() -> None:
    with pytest.raises(DataError, match=r"Gear 'g': ratio is 0\.0; it must not be zero"):
        Gear(name="g", driving="A", driven="B", ratio=0.0)
    with pytest.raises(DataError, match="there are 2 joints but 1 factors_of_joints; each joint has one"):
        LinearCoupling(name="g", joints=("A", "B"), factors_of_joints=(1.0,))


def test_class_without_factors() -> None:
    with pytest.raises(DataError, match="a constraint has a function factors"):

        class Nothing(Constraint):
            type: Literal["test-nothing"] = "test-nothing"

            def value(self, now: Numbers) -> float:
                return 1.0


@pytest.mark.parametrize("ratio", [0.01, 3.0, 30.0, -1000.0])
@pytest.mark.parametrize("given", [0, 1, 2])
def test_what_is_given_in_a_train_of_gears_stays(ratio: float, given: int) -> None:
    """Of angles in 1 : r : r² one is given, and so is its speed; the others turn up to 10⁶ times as much."""
    names = ("first", "second", "third")
    bodies = tuple(RigidBody(name=name, mass=1.0, inertia=(1.0, 1.0, 1.0)) for name in names)
    starts = [{"angle": 0.4, "angular_velocity": -0.2} if number == given else {} for number in range(3)]
    joints = tuple(
        Revolute(name=f"at_{name}", parent="ground.O", child=f"{name}.origin", **start)
        for name, start in zip(names, starts, strict=True)
    )
    gears = (
        Gear(name="slow", driving="at_second", driven="at_first", ratio=ratio),
        Gear(name="quick", driving="at_third", driven="at_second", ratio=ratio),
    )
    train = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints, constraints=gears)
    simulation = CoupledModel(name="train", systems={"train": train}).simulation(compiled=False)
    simulation.initialize()
    turned = ratio ** (np.arange(3.0) - given)
    np.testing.assert_allclose(simulation.run_loop.present.coordinates, 0.4 * turned, rtol=1e-12)
    np.testing.assert_allclose(simulation.run_loop.present.velocities, -0.2 * turned, rtol=1e-12)
