"""Numbers of mechanisms and controllers that are hardly meant are told; those of sound machines are not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import pi
from typing import Any

import pytest

from hydraulics import Capillary, Circuit, Hose, Oil, Tank
from mbsfmu import (
    Actuator,
    CoupledModel,
    Fixed,
    JointStop,
    Mechanism,
    PidController,
    RestToRestSignal,
    Revolute,
    RigidBody,
)
from mbsfmu.model.machine import model_remarks
from mbsfmu.system_model.model_overview import overview


def boom(angle: float = -0.4, mass: float = 100.0, inertia: float = 5.0, **changes: Any) -> CoupledModel:
    """A boom on a cylinder that a controller turns, with a load at its end."""
    own = changes.pop("own", 200.0)
    mechanism = Mechanism(
        ground={"pin": (0.0, 0.0, 0.0), "foot": (0.0, -1.0, 0.0)},
        bodies=[
            RigidBody(
                name="boom",
                mass=300.0,
                inertia=(1.0, own, own),
                points={"end": (2.0, 0.0, 0.0)},
            ),
            RigidBody(name="load", mass=mass, inertia=(inertia, inertia, inertia)),
        ],
        joints=[
            Revolute(name="hinge", parent="ground.pin", child="boom.origin", angle=angle),
            Fixed(name="weld", parent="boom.end", child="load.origin"),
        ],
        forces=[*changes.pop("forces", [Actuator(name="lift", start="ground.foot", end="boom.end")])],
    )
    pid = PidController(proportional=1e4, minimum=-1e5, maximum=1e5, measured_unit="rad", command_unit="N")
    return CoupledModel(
        name="crane",
        systems={"m": mechanism, "pid": pid},
        connections=[("m.boom.angle", "pid.measured")],
        **changes,
    )


def setpoint(*values: float) -> dict[str, Any]:
    times = tuple(float(time) for time in range(len(values)))
    return {"signals": {"pid.setpoint": RestToRestSignal(times=times, values=values)}}


STOP = JointStop(name="stop", joint="hinge", lower=-90.0, upper=1.5, stiffness=1e6)


@pytest.mark.parametrize(
    ("make", "beginning", "number"),
    [
        (lambda: boom(-25.0), "m: revolute 'hinge': the angle at the start is -25 rad", "-0.436332 rad"),
        (
            lambda: boom(7.0),
            "m: revolute 'hinge': the angle at the start is 7 rad (401.07 deg), 1.11 turns",
            "0.122173 rad",
        ),
        (lambda: boom(**setpoint(-0.4, 35.0)), "pid: a set point of m.boom.angle is 35 rad", "0.610865 rad"),
        (lambda: boom(forces=[], **setpoint(-25.0, -25.0)), "pid: a set point of m.boom.angle is -25 rad", "rad"),
        (lambda: boom(forces=[STOP]), "m: joint-stop 'stop': lower is -90 rad", "-1.5708 rad"),
        (lambda: boom(start={"m.boom.angle_start": 45.0}), "m: revolute 'hinge': the angle at the start is 45 rad", ""),
        (lambda: boom(start={"pid.setpoint": 30.0}), "pid: a set point of m.boom.angle is 30 rad", ""),
        (
            lambda: boom(mass=3.0, inertia=400.0),
            "m: body 'load' has 3 kg and a moment of inertia of 400 kg m2",
            "11.5 m",
        ),
        (lambda: boom(start={"m.load.mass": 1e-3}), "m: body 'load' has 0.001 kg", "70.7 m"),
        (lambda: boom(own=2e8), "m: body 'boom' has 300 kg and a moment of inertia of 2e+08 kg m2", "816 m"),
    ],
)
def test_numbers_in_other_units_are_told(make: Callable[[], CoupledModel], beginning: str, number: str) -> None:
    """Degrees for radians, kg mm² for kg m²; the right angle is said, and the radius √(J/m)."""
    (sentence,) = model_remarks(make())
    assert sentence.startswith(beginning)
    assert number in sentence
    assert "implausible" in sentence


@pytest.mark.parametrize(
    "make",
    [
        boom,
        lambda: boom(-pi),
        lambda: boom(**setpoint(-0.4, 0.6)),
        lambda: boom(forces=[], **setpoint(-0.4, 50.0)),  # a winch may turn as often as it wants
        lambda: boom(forces=[STOP.model_copy(update={"lower": -3.0 * pi})]),  # as a steering wheel
        lambda: boom(own=2e5),  # with a motor behind a gear
    ],
)
def test_sound_machines_are_left_alone(make: Callable[[], CoupledModel]) -> None:
    assert not list(model_remarks(make()))


def test_the_check_of_a_model_and_its_runs_say_it(caplog: pytest.LogCaptureFixture) -> None:
    """In the overview, in a run, and of values that are set before one or given to machines of an ensemble."""
    hardly = "the angle at the start is -25 rad"
    assert any(hardly in each for each in overview(boom(-25.0))["remarks"])
    with caplog.at_level(logging.WARNING, logger="mbsfmu"):
        simulation = boom(start={"pid.setpoint": 0.0}).simulation(compiled=False)
        simulation.set("m.boom.angle_start", -25.0)
        simulation.run(2e-3)
    assert len([each for each in caplog.messages if hardly in each]) == 1
    machines = boom(start={"pid.setpoint": 0.0}).ensemble({"m.load.mass": [100.0, 1e-3, 50.0]}, step=1e-3)
    warned = machines.run(2e-3).warnings
    assert {number for number, told in warned.items() if any("body 'load' has 0.001 kg" in each for each in told)} == {
        1
    }


def test_a_hose_of_a_cubic_metre_is_told() -> None:
    parts = [
        Tank(name="tank", node="T"),
        Capillary(name="leak", inlet="A", outlet="T", diameter=1e-3, length=1.0, viscosity=0.04),
    ]
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=[*parts, Hose(name="hose", node="A", volume=1.0, bulk_modulus=1e9)],
        initial_pressures={"A": 1e5},
    )
    (sentence,) = model_remarks(CoupledModel(name="alone", systems={"c": circuit}))
    assert sentence == "c: hose 'hose': volume is 1 m3, more than 0.5 m3, which is implausible; numbers are in SI units"
