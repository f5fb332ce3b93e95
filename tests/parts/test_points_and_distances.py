"""A distance, a point on a line and on a plane: closed forms in every formulation, in the tree and as loops."""

from __future__ import annotations

from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest

from mbsfmu import CoupledModel, DataError, Mechanism
from mbsfmu.equations.constraints import Separation
from mbsfmu.model import RigidBody
from mbsfmu.parts import Distance, Free, PointOnLine, PointOnPlane, Revolute
from mbsfmu.systems.checks import _check_rates

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
G, LENGTH, TILT, SLOPE = 9.81, 0.8, 0.6, 0.4
TIME = 0.4
HIGH = sqrt(G / (LENGTH * cos(TILT)))
"""Angular velocity of a conical pendulum."""

BALL: dict[str, Any] = {"mass": 2.0, "inertia": (0.01, 0.02, 0.03)}
OUT = LENGTH * sin(TILT)


def machine(*joints: Any, **body: Any) -> Mechanism:
    """A ball on joints."""
    ball = RigidBody(name="ball", **{**BALL, **body})
    return Mechanism(gravity=(0.0, 0.0, -G), ground={"O": (0.0, 0.0, 0.0)}, bodies=(ball,), joints=joints)


def falling(**start: Any) -> Free:
    """A joint that holds nothing."""
    return Free(name="fall", parent="ground.O", child="ball.centre", **start)


ENDS = {"parent": "ground.O", "child": "ball.centre"}
DOWN = (cos(SLOPE), 0.0, -sin(SLOPE))
ACROSS = (0.0, 1.0, 0.0)
NORMAL = (sin(SLOPE), 0.0, cos(SLOPE))
CASES = {
    "conical pendulum on a distance": (
        machine(
            falling(displacement=(OUT, 0.0, -LENGTH * cos(TILT)), velocity=(0.0, HIGH * OUT, 0.0)),
            Distance(name="rod", **ENDS, length=LENGTH),
        ),
        (OUT * cos(HIGH * TIME), OUT * sin(HIGH * TIME), -LENGTH * cos(TILT)),
    ),
    "bead on a line": (
        machine(PointOnLine(name="wire", **ENDS, axis=DOWN, angular_velocity=(0.3, 0.2, 0.1))),
        tuple(0.5 * G * sin(SLOPE) * TIME**2 * each for each in DOWN),
    ),
    "bead on a line that closes a loop": (
        machine(falling(angular_velocity=(0.3, 0.2, 0.1)), PointOnLine(name="wire", **ENDS, axis=DOWN, cut=True)),
        tuple(0.5 * G * sin(SLOPE) * TIME**2 * each for each in DOWN),
    ),
    "point on a plane": (
        machine(
            PointOnPlane(name="slope", **ENDS, axis=NORMAL, direction=ACROSS, velocities=(0.5, 0.0))
        ),
        (0.5 * G * sin(SLOPE) * TIME**2 * DOWN[0], 0.5 * TIME, 0.5 * G * sin(SLOPE) * TIME**2 * DOWN[2]),
    ),
    "point on a plane that closes a loop": (
        machine(
            falling(velocity=(0.0, 0.5, 0.0)),
            PointOnPlane(name="slope", **ENDS, axis=NORMAL, direction=ACROSS, cut=True),
        ),
        (0.5 * G * sin(SLOPE) * TIME**2 * DOWN[0], 0.5 * TIME, 0.5 * G * sin(SLOPE) * TIME**2 * DOWN[2]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("case", CASES)
def test_it_moves_as_its_closed_form(case: str, formulation: str) -> None:
    mechanism, expected = CASES[case]
    simulation = CoupledModel(name="m", systems={"m": mechanism}).simulation(formulation=formulation, step=1e-3)
    result = simulation.run(TIME)
    found = [result[f"ball.centre.{axis}.position"][-1] for axis in "xyz"]
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_force_of_a_rod_is_its_tension(formulation: str) -> None:
    """m g / cos θ of a conical pendulum, towards the ground's point, and no moment."""
    mechanism, _ = CASES["conical pendulum on a distance"]
    simulation = CoupledModel(name="m", systems={"m": mechanism}).simulation(formulation=formulation, compiled=False)
    simulation.initialize()
    force = [simulation.get(f"rod.force.{axis}") for axis in "xyz"]
    tension = BALL["mass"] * G / cos(TILT)
    np.testing.assert_allclose(force, tension * np.array([-sin(TILT), 0.0, cos(TILT)]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose([simulation.get(f"rod.moment.{axis}") for axis in "xyz"], 0.0, atol=1e-6)


def four_bar(*coupler: Any, bodies: tuple[RigidBody, ...] = ()) -> Mechanism:
    """Two pendulums side by side, which a coupler holds at a distance."""
    arms = tuple(
        RigidBody(
            name=name,
            mass=1.0 + place,
            inertia=(0.1, 0.1, 0.1),
            centre=(0.0, 0.0, -0.5),
            points={"end": (0.0, 0.0, -1.0)},
        )
        for place, name in enumerate(("left", "right"))
    )
    hinges = tuple(
        Revolute(name=name, parent=f"ground.{name}", child=f"{name}.origin", axis=(0.0, 1.0, 0.0), angular_velocity=1.0)
        for name in ("left", "right")
    )
    ground = {"left": (0.0, 0.0, 0.0), "right": (1.0, 0.0, 0.0)}
    return Mechanism(
        gravity=(0.0, 0.0, -G), ground=ground, bodies=(*arms, *bodies), joints=(*hinges, *coupler)
    )  # fmt: skip


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_coupler_without_mass_is_a_distance(formulation: str) -> None:
    """A parallelogram of arms turns as one pendulum of their inertias; so it does with a body without mass."""
    rod = RigidBody(name="rod", mass=0.0, inertia=(0.0, 0.0, 0.0), points={"far": (1.0, 0.0, 0.0)})
    body = (
        Revolute(name="near", parent="left.end", child="rod.origin", axis=(0.0, 1.0, 0.0)),
        Revolute(name="far", parent="rod.far", child="right.end", axis=(0.0, 1.0, 0.0), cut=True),
    )
    machines = (
        four_bar(Distance(name="rod", parent="left.end", child="right.end", length=1.0)),
        four_bar(*body, bodies=(rod,)),
    )
    inertia, weight = 0.2 + 1.0 * 0.25 + 2.0 * 0.25, 3.0 * G * 0.5
    largest = 2.0 * np.arcsin(sqrt(0.5 * inertia / (2.0 * weight)))  # of J ω² / 2 = m g c (1 − cos φ)
    for mechanism in machines:
        simulation = CoupledModel(name="m", systems={"m": mechanism}).simulation(formulation=formulation, step=1e-3)
        angles = simulation.run(pi / 2)["left.angle"]
        assert np.max(np.abs(angles)) == pytest.approx(largest, rel=1e-4)


def test_wrenches_of_a_distance_and_their_rates_are_derivatives() -> None:
    _check_rates("a distance", Separation(0.7))


def test_what_a_distance_cannot_hold_is_refused() -> None:
    with pytest.raises(DataError, match=r"body 'ball' is not attached to the ground: .* and distances do not count"):
        machine(Distance(name="rod", **ENDS, length=1.0))
    with pytest.raises(DataError, match=r"length is 0\.0; it must be greater than 0"):
        Distance(name="rod", **ENDS, length=0.0)
