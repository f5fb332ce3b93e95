"""Motion without kinetic energy is refused before a run; what has none but cannot move so goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mbsfmu
from mbsfmu.formulations.formulation import FORMULATIONS
from mbsfmu.model import Beam, Mechanism, RigidBody
from mbsfmu.modelling import DataError
from mbsfmu.parts import Fixed, Free, Prismatic, Revolute, Spherical, Universal

GROUND = {"O": (0.0, 0.0, 0.0), "P": (1.5, -0.5, 0.0), "Q": (1.1, 0.0, 0.0)}


def rod(name: str = "rod", **fields: Any) -> Beam:
    return Beam(name=name, length=1.0, mass=2.0, **fields)


def stick() -> RigidBody:
    return RigidBody(name="stick", mass=1.0, inertia=(0.1, 0.1, 0.0), centre=(0.0, 0.0, 0.5))


def model(bodies: Any, *joints: Any) -> mbsfmu.CoupledModel:
    mechanism = Mechanism(ground=GROUND, bodies=bodies, joints=joints)
    return mbsfmu.CoupledModel(name="machine", systems={"mechanism": mechanism})


def joint(kind: Any, name: str, parent: str, child: str, **fields: Any) -> Any:
    return kind(name=name, parent=parent, child=child, **fields)


REFUSED = {
    "rod on a ball joint": (
        model((rod(),), joint(Spherical, "A", "ground.O", "rod.start", angular_velocity=(0.0, 1.9, 0.0))),
        ("'rod'", "its direction (1, 0, 0)", "joint 'A'"),
    ),
    "rod that floats": (model((rod(),), joint(Free, "A", "ground.O", "rod.start")), ("'rod'", "(1, 0, 0)", "'A'")),
    "rod that turns about its axis": (
        model((rod(),), joint(Revolute, "A", "ground.O", "rod.start", axis=(1, 0, 0))),
        ("'rod'", "(1, 0, 0)", "'A'"),
    ),
    "rigid rod along its z axis": (
        model((stick(),), joint(Spherical, "A", "ground.O", "stick.origin", angles=(0.3, 0.2, 0.0))),
        ("'stick'", "(0, 0, 1)", "'A'"),
    ),
    "second of two rods": (
        model(
            (rod(), rod("outer")),
            joint(Revolute, "A", "ground.O", "rod.start", angle=0.3),
            joint(Spherical, "B", "rod.end", "outer.start", angles=(0.0, 0.4, 0.2)),
        ),
        ("'outer'", "(1, 0, 0)", "'B'"),
    ),
    "two rods that turn about their common axis": (
        model(
            (rod(), rod("outer")),
            joint(Revolute, "A", "ground.O", "rod.start", axis=(1, 0, 0)),
            joint(Fixed, "B", "rod.end", "outer.start"),
        ),
        ("(1, 0, 0)", "joint 'A'"),
    ),
    "rod between two ball joints of a loop": (
        model(
            (rod(), rod("coupler"), rod("rocker")),
            joint(Revolute, "A", "ground.O", "rod.start"),
            joint(Spherical, "B", "rod.end", "coupler.start", angles=(0.0, 0.1, 0.0)),
            joint(Revolute, "C", "ground.P", "rocker.start", angle=1.6),
            joint(Spherical, "D", "coupler.end", "rocker.end", cut=True),
        ),
        ("'coupler'", "(1, 0, 0)", "'B'"),
    ),
}


@pytest.mark.parametrize("formulation", FORMULATIONS.names())
@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_every_formulation(name: str, formulation: str) -> None:
    refused, words = REFUSED[name]
    with pytest.raises(DataError) as caught:
        refused.simulation(formulation=formulation, compiled=False)
    for word in (*words, "no inertia about", "nothing governs that motion"):
        assert word in str(caught.value)


def test_refused_as_units_are_made(tmp_path: Any) -> None:
    with pytest.raises(DataError, match="no inertia about"):
        mbsfmu.export(REFUSED["rod on a ball joint"][0], tmp_path, backend="python")
    assert list(tmp_path.iterdir()) == []


SWING = {
    # Angular accelerations about the hinge from rest: torque over moment about it.
    "rod on a hinge across it": (
        model((rod(),), joint(Revolute, "A", "ground.O", "rod.start")),
        "rod.angular_acceleration",
        -9.81 * 0.5 / (1.0 / 3.0),
    ),
    "rod on a cross": (
        model((rod(),), joint(Universal, "A", "ground.O", "rod.start", angles=(0.2, 0.0))),
        "rod.angular_acceleration_1",
        -9.81 * 0.5 * np.cos(0.2) / (1.0 / 3.0),
    ),
    "rod that turns about its axis with a wheel at its end": (
        model(
            (rod(), RigidBody(name="wheel", mass=1.0, inertia=(0.2, 0.1, 0.1), points={"rim": (0, 0, -0.4)})),
            joint(Revolute, "A", "ground.O", "rod.start", axis=(1, 0, 0)),
            joint(Fixed, "B", "rod.end", "wheel.rim"),
        ),
        "rod.angular_acceleration",
        9.81 * 0.4 / (0.2 + 0.4**2),
    ),
    "rod on a slide": (
        model((rod(),), joint(Prismatic, "A", "ground.O", "rod.start", axis=(0, 1, 0))),
        "rod.acceleration",
        -9.81,
    ),
}


@pytest.mark.parametrize("formulation", FORMULATIONS.names())
@pytest.mark.parametrize("name", SWING)
def test_slender_bodies_that_cannot_turn_so_move_by_their_closed_form(name: str, formulation: str) -> None:
    machine, acceleration, expected = SWING[name]
    simulation = machine.simulation(formulation=formulation, compiled=False)
    assert simulation.get(acceleration) == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("formulation", ["double-step", "dca", "dca-alm"])
def test_a_loop_may_hold_the_rod(formulation: str) -> None:
    """A four-bar whose coupler hangs on a ball joint, but is kept in the plane by the hinge at its other end."""
    accelerations = []
    for kind, start in ((Spherical, {"angles": (0.0, 0.0, -1.2)}), (Revolute, {"angle": -1.2})):
        four_bar = model(
            (rod(), rod("coupler"), rod("rocker")),
            joint(Revolute, "A", "ground.O", "rod.start", angle=1.2),
            joint(kind, "B", "rod.end", "coupler.start", **start),
            joint(Revolute, "C", "ground.Q", "rocker.start", angle=1.4),
            joint(Revolute, "D", "coupler.end", "rocker.end", cut=True),
        )
        simulation = four_bar.simulation(formulation=formulation, compiled=False)
        accelerations.append(simulation.get("rod.angular_acceleration"))
    assert accelerations[0] == pytest.approx(accelerations[1], rel=1e-5)
    assert abs(accelerations[1]) > 0.1


def test_a_rod_with_a_moment_about_its_axis_is_taken() -> None:
    spinning = model(
        (rod(axial_inertia=1e-4),), joint(Spherical, "A", "ground.O", "rod.start", angular_velocity=(3.0, 0.0, 0.0))
    )
    simulation = spinning.simulation(compiled=False)
    simulation.initialize()
    assert simulation.get("rod.angular_velocity.x") == pytest.approx(3.0)
