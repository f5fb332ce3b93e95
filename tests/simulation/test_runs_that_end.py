"""Runs that cannot go on end, and say why: equations that jump, loads on angles that are not defined."""

from __future__ import annotations

from collections.abc import Iterable
from math import pi
from typing import Literal

import numpy as np
import pytest

from mbsfmu import CoupledModel, JointSpringDamper, Mechanism, Prismatic, RigidBody, SimulationError, Spherical
from mbsfmu.model.force import Force, ForceContext, JointLoad
from mbsfmu.model.joint import Joint
from mbsfmu.model.reference_types import JointReference
from mbsfmu.modelling import Array
from mbsfmu.models import four_bar

TOLD = "the angle hinge.cardan_angle.z that spring acts along is not defined"


class Brake(Force):
    """A force of 1 GN against any motion."""

    type: Literal["brake-of-runs-that-end"] = "brake-of-runs-that-end"
    joint: JointReference

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Load the joint."""
        return (JointLoad("joint", -1e9 * np.sign(now.joint("joint").rate)),)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the loss in W."""
        return 1e9 * np.abs(now.joint("joint").rate)


def machine(joint: Joint, force: Force) -> CoupledModel:
    """Return a body of 1 kg without gravity at a joint with the ground."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(joint,),
        forces=(force,),
    )
    return CoupledModel(name="machine", systems={"mechanism": mechanism})


def turning(stiffness: float, angle: float = 0.0) -> CoupledModel:
    """A ball that turns at 1 rad/s about y, after it was turned about x by an angle."""
    hinge = Spherical(
        name="hinge", parent="ground.O", child="body.origin", angles=(angle, 0.0, 0.0), angular_velocity=(0.0, 1.0, 0.0)
    )
    return machine(hinge, JointSpringDamper(name="spring", joint="hinge.cardan_angle.z", stiffness=stiffness))


@pytest.mark.parametrize("solver", ["dop853", "rk45"])
def test_steps_that_hardly_move_on_end(solver: str) -> None:
    slide = Prismatic(name="slide", parent="ground.O", child="body.origin", velocity=1.0)
    simulation = machine(slide, Brake(name="brake", joint="slide")).simulation(
        formulation="dca", solver=solver, compiled=False
    )
    with pytest.raises(SimulationError, match=rf"{solver} fails at t = "):
        simulation.run(1.0)


@pytest.mark.parametrize(("solver", "formulation"), [("trapezoidal", "double-step"), ("rk45", "dca-alm")])
def test_passing_where_an_angle_is_not_defined_is_told(
    solver: str, formulation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The second angle is the time times 1 rad/s: 90 degrees are reached at π/2 s, and come near 0.01 s before."""
    simulation = turning(1e-9).simulation(formulation=formulation, solver=solver, step=5e-3, compiled=False)
    simulation.run(1.55)
    assert TOLD not in caplog.text
    simulation.run(1.6)
    (sentence,) = [each.getMessage() for each in caplog.records if TOLD in each.getMessage()]
    assert float(sentence.removeprefix("at t = ").partition(" ")[0]) == pytest.approx(0.5 * pi - 0.0075, abs=5e-3)


def test_angles_in_other_places_are_defined(caplog: pytest.LogCaptureFixture) -> None:
    """Turned about x first, the ball turns about another axis of the ground, and the second angle is less."""
    turning(1e-9, 0.3).simulation(step=5e-3, compiled=False).run(1.6)
    assert TOLD not in caplog.text


def test_a_run_that_ends_there_says_why() -> None:
    model = turning(10.0)
    with pytest.raises(SimulationError, match=TOLD):
        model.simulation(solver="rodas5p", compiled=False).run(1.7)


@pytest.mark.parametrize(("solver", "compiled"), [("rodas5p", False), ("rodas5p", True), ("rk45", True)])
def test_loops_that_round_off_keeps_open_end_a_run_soon(solver: str, compiled: bool) -> None:
    """An angle of 10⁶ rad has digits down to 1e-10 rad: whether loops close is chance, whatever the step."""
    simulation = four_bar().simulation(solver=solver, compiled=compiled)
    simulation.set("link.angle_start", 1e6)
    simulation.initialize(0.0)
    simulation.set("valve.command", -1.0)

    def go() -> None:
        for step in range(100):
            simulation.step(step * 1e-3, 1e-3)

    sentence = r"again and again, however short .*: the loops cannot be closed: .* have no more digits; start within"
    with pytest.raises(SimulationError, match=sentence):
        go()
    assert simulation.statistics.retries < 2_000
