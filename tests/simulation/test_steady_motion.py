"""What does not vary has no error that is a share of its range: machines that turn, roll and fall steadily."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import cos, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from importer import Importer

import mbsfmu
from mbsfmu import (
    CoupledModel,
    Free,
    Gear,
    JointActuator,
    Mechanism,
    PointSensor,
    Prismatic,
    Revolute,
    RigidBody,
    SineSignal,
    Spherical,
    Universal,
)
from mbsfmu.integration.error_measure import ErrorMeasure

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
INERTIA = (0.1, 0.2, 0.2)
GROUND = {"O": (0.0, 0.0, 0.0), "E": (1.0, 0.0, 0.0)}


def model(bodies: Any, joints: Any, gravity: Any = (0.0, 0.0, -9.81), **options: Any) -> CoupledModel:
    mechanism = Mechanism(ground=GROUND, bodies=bodies, joints=joints, gravity=gravity, **options)
    return CoupledModel(name="steady", systems={"m": mechanism})


def shaft(speed: float = 30.0, offset: float = 0.0) -> CoupledModel:
    """A rotor about the vertical, its centre of mass beside the axis or not."""
    rotor = RigidBody(name="rotor", mass=2.0, inertia=(1.0, 1.0, 2.0), centre=(offset, 0.0, 0.0))
    hinge = Revolute(name="hinge", parent="ground.O", child="rotor.origin", angular_velocity=speed)
    return model((rotor,), (hinge,))


def cardan_joints() -> CoupledModel:
    """Three shafts in line with two universal joints between."""
    names = ("first", "middle", "last")
    shafts = [RigidBody(name=n, mass=1.0, inertia=INERTIA, points={"end": (1.0, 0.0, 0.0)}) for n in names]
    axes: dict[str, Any] = {"axis": (0.0, 1.0, 0.0), "second_axis": (0.0, 0.0, 1.0)}
    joints = (
        Revolute(name="in", parent="ground.O", child="first.origin", axis=(1.0, 0.0, 0.0), angular_velocity=30.0),
        Universal(name="u1", parent="first.end", child="middle.origin", **axes),
        Universal(name="u2", parent="middle.end", child="last.origin", **axes),
    )
    return model(shafts, joints, gravity=(0.0, 0.0, 0.0))


def inclined_shaft(angle: float = 0.4) -> CoupledModel:
    """The same with the middle shaft inclined, between parallel ones: in and out turn alike, and ends stay on axes."""
    names = ("first", "middle", "last")
    shafts = [RigidBody(name=n, mass=1.0, inertia=INERTIA, points={"end": (1.0, 0.0, 0.0)}) for n in names]
    x, y, z = np.eye(3).tolist()
    joints = (
        Revolute(name="in", parent="ground.O", child="first.origin", axis=tuple(x), angular_velocity=30.0),
        Universal(name="u1", parent="first.end", child="middle.origin", axis=tuple(y), second_axis=tuple(z),
                  angles=(0.0, angle)),
        Universal(name="u2", parent="middle.end", child="last.origin", axis=tuple(z), second_axis=tuple(y),
                  angles=(-angle, 0.0)),
        Revolute(name="out", parent="ground.far", child="last.origin", axis=tuple(x), cut=True),
    )  # fmt: skip
    far = (1.0 + cos(angle), sin(angle), 0.0)
    mechanism = Mechanism(ground={**GROUND, "far": far}, bodies=shafts, joints=joints, gravity=(0.0, 0.0, 0.0))
    return CoupledModel(name="inclined", systems={"m": mechanism})


def gears() -> CoupledModel:
    wheels = [RigidBody(name=name, mass=1.0, inertia=INERTIA) for name in ("a", "b")]
    joints = (
        Revolute(name="pinion", parent="ground.O", child="a.origin", angular_velocity=20.0),
        Revolute(name="wheel", parent="ground.E", child="b.origin", angular_velocity=-10.0),
    )
    return model(wheels, joints, constraints=(Gear(name="mesh", driving="pinion", driven="wheel", ratio=-2.0),))


def conical() -> CoupledModel:
    """A pendulum of 1 m that circles at 0.5 rad from the vertical: ω² = g / (l cos θ)."""
    bob = RigidBody(name="bob", mass=1.0, inertia=(0.01, 0.01, 0.01), centre=(sin(0.5), 0.0, -cos(0.5)))
    around = (0.0, 0.0, sqrt(9.81 / cos(0.5)))
    return model((bob,), (Spherical(name="ball", parent="ground.O", child="bob.origin", angular_velocity=around),))


def free(gravity: float = 0.0) -> CoupledModel:
    """A body that turns about a principal axis, held at a point away from its centre of mass, and may fall."""
    body = RigidBody(
        name="body", mass=2.0, inertia=(1.0, 2.0, 3.0), centre=(0.1, -0.2, 0.3), points={"here": (0.4, 0.1, -0.2)}
    )
    spin = {"velocity": (0.3, 0.0, 0.0), "angular_velocity": (0.0, 5.0, 0.0)}
    joint = Free(name="free", parent="ground.O", child="body.here", **spin)  # type: ignore[arg-type]
    return model((body,), (joint,), gravity=(0.0, 0.0, -gravity))


MACHINES: dict[str, Callable[[], CoupledModel]] = {
    "shaft": shaft,
    "fast shaft": lambda: shaft(300.0),
    "shaft out of balance": lambda: shaft(offset=0.1),
    "cardan joints": cardan_joints,
    "gears": gears,
    "conical pendulum": conical,
    "free body": free,
    "falling body": lambda: free(9.81),
}
KEPT = {"shaft": ("rotor.angular_velocity", 30.0), "cardan joints": ("first.angular_velocity", 30.0)}


@pytest.mark.parametrize("options", [{"solver": "trapezoidal", "step": 1e-3}, {"check_error": True}], ids=str)
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_steady_motion_is_no_cause_for_a_warning(
    machine: str, formulation: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = MACHINES[machine]().simulation(formulation=formulation, **options).run(1.0)
    assert "of its range" not in caplog.text
    assert result.error.share is not None
    assert result.error.share < 0.01
    if machine in KEPT:
        name, speed = KEPT[machine]
        np.testing.assert_allclose(result[name], speed, rtol=1e-10)
        assert result.error.share < 1e-3


@pytest.mark.parametrize("machine", ["conical pendulum", "fast shaft", "cardan joints"])
@pytest.mark.parametrize("formulation", ["hdca", "dca-alm"])
def test_python_and_c_judge_alike(machine: str, formulation: str) -> None:
    """Numbers that are nothing but round-off differ, but not by what they are held against."""
    shares = [
        MACHINES[machine]()
        .simulation(formulation=formulation, solver="trapezoidal", step=1e-2, compiled=compiled)
        .run(1.0)
        .error.share
        for compiled in (True, False)
    ]
    assert None not in shares
    assert shares[0] == pytest.approx(shares[1], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("compiled", [True, False])
def test_ends_of_shafts_that_stay_on_axes_are_held_against_what_turns(*, compiled: bool) -> None:
    """Their accelerations are 1e-5 m/s² of round-off, where points at the lever arm of the loop have 900 m/s²."""
    options: dict[str, Any] = {"formulation": "dca-alm", "solver": "trapezoidal", "step": 1e-3}
    simulation = inclined_shaft().simulation(**options, compiled=compiled)
    result = simulation.run(2.0 if compiled else 0.3)
    assert result.error.share is not None
    record = simulation.solver.error_record
    assert record is not None
    errors, lowest, highest, *_ = np.split(simulation.run_loop.present.error_record, record._ends)
    index = record.measure.names.index("middle.absolute.z.acceleration")
    assert errors[index] > 1e-6
    assert errors[index] > 0.5 * (highest - lowest)[index]
    assert record.measure.shares(errors, lowest, highest)[index] < 1e-7
    if compiled:
        assert simulation.get("solver.error") == pytest.approx(
            record.share(simulation.run_loop.present, 1e-3), rel=1e-9
        )
        assert result.error.share < 5e-3


def test_a_ripple_of_a_ten_thousandth_is_told_where_steps_lose_it(caplog: pytest.LogCaptureFixture) -> None:
    """1000 m/s with a ripple of 0.1 m/s: steps of a radian and a half keep x / tan x of it, x = 0.75, and say so."""
    body = RigidBody(name="body", mass=1.0, inertia=INERTIA)
    slide = Prismatic(name="slide", parent="ground.O", child="body.origin", velocity=1000.0)
    mechanism = Mechanism(
        ground=GROUND, bodies=(body,), joints=(slide,), forces=(JointActuator(name="motor", joint="slide"),)
    )
    push = SineSignal(amplitude=0.5, frequency=10.0 / (2.0 * np.pi))
    rippled = CoupledModel(name="rippled", systems={"m": mechanism}, signals={"m.motor.force": push})
    result = rippled.simulation(solver="trapezoidal", step=0.15).run(15.0, output_step=0.15)
    lost = 1.0 - 0.75 / np.tan(0.75)
    exact = 1000.0 + 0.05 * (1.0 - np.cos(10.0 * result.time))
    assert np.abs(result["body.velocity"] - exact).max() == pytest.approx(0.1 * lost, rel=0.05)
    assert result.error.share is not None
    assert lost / 3.0 < result.error.share < 3.0 * lost
    assert "of its range" in caplog.text


def test_a_component_that_should_be_zero_is_held_against_its_vector() -> None:
    sensors = (PointSensor(name="P", point="rotor.origin", measures=("velocity",)),)
    mechanism = shaft().systems["m"].model_copy(update={"sensors": sensors})
    measure = ErrorMeasure(CoupledModel(name="x", systems={"m": mechanism}).simulation().functions.system)
    errors, lowest, highest = np.zeros((3, len(measure.names)))
    across, along = measure.names.index("P.velocity.z"), measure.names.index("P.velocity.x")
    lowest[along], highest[along] = 9.0, 11.0
    errors[across] = 1e-3
    assert measure.worst(errors, lowest, highest) == (pytest.approx(1e-3 / 11.0), "P.velocity.z")
    lowest[across], errors[across] = -1.0, 1.0  # it varies, and by more than a thousandth of the vector
    assert measure.worst(errors, lowest, highest) == (pytest.approx(1.0), "P.velocity.z")
    lowest[across], errors[across] = 0.0, 11.0
    assert measure.worst(errors, lowest, highest) == (pytest.approx(1.0), "P.velocity.z")


def test_an_angular_acceleration_of_zero_is_held_against_the_square_of_its_speed() -> None:
    measure = ErrorMeasure(shaft().simulation().functions.system)
    errors, lowest, highest = np.zeros((3, len(measure.names)))
    speed, acceleration = (measure.names.index(f"rotor.angular_{each}") for each in ("velocity", "acceleration"))
    lowest[speed] = highest[speed] = 30.0
    errors[acceleration] = 0.09
    assert measure.worst(errors, lowest, highest) == (pytest.approx(1e-4), "rotor.angular_acceleration")
    errors[acceleration], highest[acceleration] = 0.5, 2.0  # more than a thousandth of 900 rad/s²: it varies
    assert measure.worst(errors, lowest, highest) == (pytest.approx(0.25), "rotor.angular_acceleration")


@pytest.mark.parametrize(
    ("machine", "formulation"),
    [
        *((conical, formulation) for formulation in ("double-step", "hdca", "dca-alm")),
        (free, "hdca"),
        (shaft, "hdca"),
        (lambda: shaft(offset=0.1), "dca-alm"),
        (cardan_joints, "double-step"),
        (inclined_shaft, "dca-alm"),
        (inclined_shaft, "dca"),
    ],
)
def test_a_unit_judges_as_in_process_and_warns_of_nothing(
    machine: Callable[[], CoupledModel], formulation: str, tmp_path: Path
) -> None:
    """By what is in C; but for dca, which opens the loop of the inclined shaft, and warns of that by a position."""
    options: dict[str, Any] = {"formulation": formulation, "solver": "trapezoidal", "step": 1e-3}
    (path,) = mbsfmu.export(machine(), tmp_path, layout="monolithic", **options)
    importer = Importer(path, tmp_path / "unpacked")
    slave, simulation = importer.running(), machine().simulation(**options)
    simulation.initialize()
    for index in range(100):
        slave.doStep(0.01 * index, 0.01)
        simulation.step(0.01 * index, 0.01)
        assert importer.get(slave, "solver.error") == pytest.approx(simulation.get("solver.error"), rel=1e-6)
    opens = formulation == "dca"
    assert (simulation.get("solver.error") > 0.01) == opens
    slave.terminate()
    slave.freeInstance()
    told = [message for _, message in importer.messages if "of its range" in message]
    assert ["position" in message for message in told] == [True] * opens
