"""Machines at rest: closed forms, statics of their own, and runs that stay where they begin."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from functools import cache
from itertools import product
from math import asin, cos, pi, radians, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from excavator import excavator

from hydraulics import (
    Accumulator,
    CheckValve,
    Circuit,
    Cylinder,
    Hose,
    Oil,
    PressureSource,
    SingleActingCylinder,
    Throttle,
    balanced,
)
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    DataError,
    Equilibrium,
    Free,
    InputError,
    JointDrive,
    JointSpringDamper,
    JointStop,
    LinearSignal,
    Mechanism,
    PidController,
    PlaneContact,
    Prismatic,
    Revolute,
    RigidBody,
    SampledPidController,
    SimulationError,
    Spherical,
    SpringDamper,
    model_equilibrium,
)
from mbsfmu.cli.equilibrium import command
from mbsfmu.formulations.coupled_system import CoupledSystem

GRAVITY, ATMOSPHERE = 9.81, 101325.0
TORN = Oil(bulk_modulus=1.5e9, density=870.0, air_content=0.0)
OIL = Oil(bulk_modulus=1.5e9, density=870.0)


def lever(angle: float = 0.4, *forces: object, **fields: object) -> Mechanism:
    """A beam of 2 m and 10 kg that hangs on a pin at its start."""
    return Mechanism(
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="beam", length=2.0, mass=10.0),),
        joints=(Revolute(name="hinge", parent="ground.pin", child="beam.start", angle=angle),),
        forces=forces,
        **fields,
    )


def alone(mechanism: Mechanism) -> CoupledModel:
    """A model of a mechanism alone."""
    return CoupledModel(name="machine", systems={"machine": mechanism})


def lift(circuit: Circuit, mass: float = 1000.0, **fields: object) -> CoupledModel:
    """A mass that a cylinder of a circuit lifts."""
    mechanism = Mechanism(
        ground={"foot": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="load", mass=mass, inertia=(10.0, 10.0, 10.0)),),
        joints=(
            Prismatic(name="guide", parent="ground.foot", child="load.origin", axis=(0.0, 1.0, 0.0), displacement=1.4),
        ),
        forces=(Actuator(name="jack", start="ground.foot", end="load.origin"),),
    )
    return CoupledModel(
        name="lift",
        systems={"machine": mechanism, "circuit": circuit},
        connections=[
            ("circuit.jack.force", "machine.jack.force"),
            ("machine.jack.length", "circuit.jack.length"),
            ("machine.jack.velocity", "circuit.jack.velocity"),
        ],
        **fields,
    )


JACK = Cylinder(
    name="jack",
    piston="a",
    rod="b",
    piston_diameter=0.1,
    rod_diameter=0.06,
    stroke=1.0,
    retracted_length=1.0,
    bulk_modulus=2e10,
)
PLUNGER = SingleActingCylinder(
    name="jack", piston="a", piston_diameter=0.1, stroke=1.0, retracted_length=1.0, bulk_modulus=2e10
)
HOSES = tuple(Hose(name=f"hose_{node}", node=node, volume=1e-3, bulk_modulus=1e9) for node in "ab")
AREA = pi / 4.0 * 0.1**2
RING = pi / 4.0 * (0.1**2 - 0.06**2)


@pytest.mark.parametrize("tilt", [0.0, radians(30.0)])
def test_pendulum_comes_to_hang_along_gravity(tilt: float) -> None:
    """Wherever it begins, out to the side too; it swings about there with √(m g l / J)."""
    down = (GRAVITY * sin(tilt), -GRAVITY * cos(tilt), 0.0)
    found = alone(lever(0.0, gravity=down)).equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(-pi / 2.0 + tilt, abs=1e-9)
    assert found.stable
    assert np.abs(found.eigenvalues.imag) == pytest.approx(sqrt(10.0 * GRAVITY / (10.0 * 4.0 / 3.0)), rel=1e-9)


@pytest.mark.parametrize("angle", [0.02, -0.05, 3.1])
def test_search_makes_no_turns(angle: float) -> None:
    """Next to the horizontal the slope is nearly nothing: a whole step would go round several times."""
    found = alone(lever(angle)).equilibrium()
    assert abs(found["machine.beam.angle"] - angle) == pytest.approx(pi / 2.0, abs=0.1)


def test_nearest_equilibrium_may_be_unstable() -> None:
    """A pendulum that nearly stands is found standing, and told unstable by the rate at which it falls."""
    found = alone(lever(radians(85.0))).equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(pi / 2.0, abs=1e-9)
    assert not found.stable
    assert np.max(found.eigenvalues.real) == pytest.approx(sqrt(0.75 * GRAVITY), rel=1e-9)
    assert "unstable: a motion grows with 2.71 1/s" in repr(found)


def test_stable_rest_before_an_unstable_one_that_is_far() -> None:
    """A pendulum just above its stop lies down on it: m g l cos φ = k (φ₀ − φ), by a bisection of its own."""
    stop = JointStop(name="stop", joint="hinge", lower=0.1, stiffness=1e5)
    found = alone(lever(0.3, stop)).equilibrium()
    low, high = 0.0, 0.1
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if 1e5 * (0.1 - middle) > 10.0 * GRAVITY * cos(middle) else (low, middle)
    assert found["machine.beam.angle"] == pytest.approx(low, abs=1e-9)
    assert found.stable


def test_stable_rest_beyond_an_unstable_one_on_the_way() -> None:
    """Newton's iteration stands the pendulum up, 0.8 rad away; let go, it comes to hang, 2.3 rad away."""
    found = alone(lever(0.77)).equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(-pi / 2.0, abs=1e-9)
    assert found.stable


def afloat(*forces: object, centre: Any = (0.0, 0.0, 0.0), points: Any = (), **fields: object) -> CoupledModel:
    """A body whose six coordinates nothing but forces hold."""
    body = RigidBody(name="top", mass=20.0, inertia=(3.0, 3.0, 3.0), centre=centre, points=dict(points))
    joint = Free(name="free", parent="ground.floor", child="top.origin", **fields.pop("joint", {}))
    ground = {"floor": (0.0, 0.0, 0.0)}
    return alone(Mechanism(ground=ground, bodies=(body,), joints=(joint,), forces=forces, **fields))


def test_what_turns_freely_is_not_turned() -> None:
    """A rod on a ball joint and a spring, both on its axis: no load turns it about that, but Newton's steps would.

    It comes from one place to the other by as much as its axis does.
    """
    angles = (0.0, 0.5, 0.5)
    tether = SpringDamper(name="tether", start="ground.side", end="rod.tip", stiffness=50.0, free_length=0.5)
    rod = RigidBody(
        name="rod", mass=2.0, inertia=(1.0, 1.0, 1.0), centre=(1.0, 0.0, 0.0), points={"tip": (1.5, 0.0, 0.0)}
    )
    ball = Spherical(name="ball", parent="ground.pin", child="rod.origin", angles=angles)
    ground = {"pin": (0.0, 0.0, 0.0), "side": (2.0, 1.0, 0.0)}
    found = alone(Mechanism(ground=ground, bodies=(rod,), joints=(ball,), forces=(tether,))).equilibrium()
    begin, end = (cardan(*each) for each in (angles, [found[f"machine.rod.cardan_angle.{axis}"] for axis in "xyz"]))
    tip, side = 1.5 * end[:, 0], np.array([2.0, 1.0, 0.0])
    pull = 50.0 * (1.0 - 0.5 / np.linalg.norm(side - tip)) * (side - tip)
    weight = np.array([0.0, -2.0 * GRAVITY, 0.0])
    assert np.cross(tip, pull) + np.cross(end[:, 0], weight) == pytest.approx(np.zeros(3), abs=1e-7)
    turned = np.arccos(0.5 * (np.trace(begin.T @ end) - 1.0))
    assert turned == pytest.approx(np.arccos(begin[:, 0] @ end[:, 0]), abs=0.02)


def cardan(first: float, second: float, third: float) -> np.ndarray:
    """Return the rotation by successive angles about x, y and z of the turned frame."""
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cos(first), -sin(first)], [0.0, sin(first), cos(first)]])
    about_y = np.array([[cos(second), 0.0, sin(second)], [0.0, 1.0, 0.0], [-sin(second), 0.0, cos(second)]])
    about_z = np.array([[cos(third), -sin(third), 0.0], [sin(third), cos(third), 0.0], [0.0, 0.0, 1.0]])
    return about_x @ about_y @ about_z


FEET = {f"foot_{index}": (x, 0.0, z) for index, (x, z) in enumerate(product((1.0, -1.0), repeat=2))}


def table(**joint: object) -> CoupledModel:
    """Four feet on a plane, with the weight to one side."""
    contacts = (
        PlaneContact(name=foot, sphere=f"top.{foot}", plane="ground.floor", stiffness=1e6, exponent=1.0, friction=0.3)
        for foot in FEET
    )
    return afloat(*contacts, centre=(0.1, 0.0, 0.01), points=FEET, joint=joint)


def test_table_stays_where_it_stands() -> None:
    """N = k (a + b x + c z) with three sums for a, b and c; its place and yaw, which nothing decides, do not move."""
    found = table(displacement=(0.0, -1e-3, 0.0)).equilibrium()
    feet = np.array([(1.0, x, z) for x, _, z in FEET.values()])
    expected = feet @ np.linalg.solve(feet.T @ feet, 20.0 * GRAVITY * np.array([1.0, 0.1, 0.01]))
    assert [found[f"machine.{foot}.normal_force"] for foot in FEET] == pytest.approx(expected.tolist(), rel=1e-6)
    open_ones = {f"machine.top.{each}" for each in ("displacement.x", "displacement.z", "cardan_angle.y")}
    assert open_ones <= set(found.kept)
    assert [found[each] for each in sorted(open_ones)] == pytest.approx([0.0] * 3, abs=1e-6)
    assert found.stable


def test_rest_where_angles_end_is_told() -> None:
    """With the second angle at π/2 the first and the third turn about one axis."""
    hanging = Mechanism(
        gravity=(0.0, 0.0, -GRAVITY),
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="bob", mass=2.0, inertia=(1.0, 1.0, 1.0), centre=(1.0, 0.0, 0.0)),),
        joints=(Spherical(name="ball", parent="ground.pin", child="bob.origin", angles=(0.0, 1.1, 0.0)),),
    )
    with pytest.raises(
        SimulationError, match=r"at rest bob\.\S+x and bob\.\S+z can change without inertia.*orientation"
    ):
        alone(hanging).equilibrium()


@pytest.mark.parametrize("gravity", [(1.0, -9.0, 0.0), (1.0, -9.0, 3.0)])
def test_loads_that_are_missing_in_several_directions(gravity: tuple[float, float, float]) -> None:
    """Each is m g of its own direction."""
    with pytest.raises(SimulationError) as told:
        afloat(gravity=gravity).equilibrium()
    found = re.findall(r"([\d.]+) N are missing at machine\.top\.displacement\.(\w)", str(told.value))
    expected = {axis: 20.0 * abs(each) for axis, each in zip("xyz", gravity, strict=True) if each}
    assert {axis: float(load) for load, axis in found} == pytest.approx(expected)


def test_load_that_is_missing_at_a_loop() -> None:
    """At the coordinate that moves most alone: what the weights do per rad of it, m g dy/dφ."""
    lean = asin(0.3 * sin(1.0))
    bars = {"crank": 0.3, "rod": 1.0}
    loop = Mechanism(
        ground={"pin": (0.0, 0.0, 0.0), "rail": (0.0, 0.0, 0.0)},
        bodies=(
            *(Beam(name=name, length=length, mass=10.0 * length) for name, length in bars.items()),
            RigidBody(name="slider", mass=2.0, inertia=(1.0, 1.0, 1.0)),
        ),
        joints=(
            Revolute(name="main", parent="ground.pin", child="crank.start", angle=1.0),
            Revolute(name="knee", parent="crank.end", child="rod.start", angle=-1.0 - lean),
            Prismatic(
                name="guide",
                parent="ground.rail",
                child="slider.origin",
                axis=(1.0, 0.0, 0.0),
                displacement=0.3 * cos(1.0) + cos(lean),
            ),
            Revolute(name="wrist", parent="rod.end", child="slider.origin", cut=True),
        ),
    )
    with pytest.raises(SimulationError) as told:
        alone(loop).equilibrium("position")
    load = re.search(r"point ([\d.]+) N\.m are missing at machine\.rod\.angle, [^;]*$", str(told.value))
    # both centres of gravity stand at half the height of the knee; the angle of the rod counts from the crank
    per_crank = 13.0 * GRAVITY * 0.5 * 0.3 * cos(1.0)
    rod_per_crank = -0.3 * cos(1.0) / cos(lean) - 1.0
    assert load is not None
    assert float(load[1]) == pytest.approx(abs(per_crank / rod_per_crank), rel=1e-3)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_held_has_to_be_a_number(value: float) -> None:
    """So has the guess of what is to be found."""
    model = alone(lever(0.4, JointDrive(name="drive", joint="hinge")))
    with pytest.raises(InputError, match=f"'machine.beam.angle' is to be held at {value}; it must be a finite number"):
        model.equilibrium({"machine.beam.angle": value})
    with pytest.raises(InputError, match=f"'machine.drive.torque' is to be found from {value}; it must be a finite"):
        model.equilibrium("position", {"machine.drive.torque": value})


def test_lever_and_spring() -> None:
    """m g l cos φ = −k φ, by a bisection of its own."""
    spring = JointSpringDamper(name="spring", joint="hinge", stiffness=200.0)
    low, high = -1.0, 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if 10.0 * GRAVITY * cos(middle) + 200.0 * middle < 0.0 else (low, middle)
    found = alone(lever(0.4, spring)).equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(low, abs=1e-9)
    assert found.unbalanced_load < 1e-7


def test_torque_that_holds_a_position() -> None:
    """M = m g l cos φ; held by an angle that is given, or by that of the start."""
    model = alone(lever(0.4, JointDrive(name="drive", joint="hinge")))
    given = model.equilibrium({"machine.beam.angle": 0.7}, ["machine.drive.torque"])
    assert given.found == {"machine.drive.torque": pytest.approx(10.0 * GRAVITY * cos(0.7), rel=1e-12)}
    kept = model.equilibrium("position", ["machine.drive.torque"])
    assert kept["machine.drive.torque"] == pytest.approx(10.0 * GRAVITY * cos(0.4), rel=1e-12)
    assert "machine.drive.torque = 90.3561 N.m" in repr(kept)
    # A parameter that a position needs.
    spring = JointSpringDamper(name="spring", joint="hinge", stiffness=2000.0)
    set_up = alone(lever(-0.4, spring)).equilibrium("position", ["machine.spring.stiffness"])
    assert set_up["machine.spring.stiffness"] == pytest.approx(10.0 * GRAVITY * cos(0.4) / 0.4, rel=1e-9)
    assert set_up.model.start == {"machine.spring.stiffness": set_up["machine.spring.stiffness"]}


def test_what_cannot_be_held_is_named() -> None:
    """Load, coordinate and amount; an actuator without effect; a cylinder that would have to pull; a driven input."""
    with pytest.raises(
        SimulationError, match=r"90\.36 N\.m are missing at machine\.beam\.angle, whose acceleration would be -6\.78"
    ):
        alone(lever()).equilibrium("position")
    free = Mechanism(
        ground={"rail": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="box", mass=2.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="fall", parent="ground.rail", child="box.origin", axis=(0.0, 1.0, 0.0)),),
    )
    with pytest.raises(SimulationError, match=r"19\.62 N are missing at machine\.box\.displacement.* -9\.81 m/s2"):
        alone(free).equilibrium()
    wrong = alone(lever(0.4, Actuator(name="prop", start="ground.pin", end="beam.end")))
    with pytest.raises(
        SimulationError, match=r"are missing at machine\.beam\.angle.*machine\.prop\.force has no effect there"
    ):
        wrong.equilibrium("position", ["machine.prop.force"])
    with pytest.raises(
        InputError, match=r"there is no 'machine\.beam\.angel' to be held; did you mean 'machine\.beam\.angle'"
    ):
        wrong.equilibrium(["machine.beam.angel"])
    driven = lift(Circuit(oil=OIL, components=(JACK, *HOSES), initial_pressures={"a": 2e6, "b": 1e6}))
    with pytest.raises(InputError, match=r"there is no 'machine\.jack\.force' to be found that nothing drives"):
        driven.equilibrium("position", ["machine.jack.force"])
    with pytest.raises(InputError, match="the horizon is -1 s; it must be positive"):
        driven.equilibrium(horizon=-1.0)


def test_pressures_that_hold_a_cylinder() -> None:
    """F = p₁ A₁ − p₂ A₂: a locked cylinder is open along a line of pressures, of which the nearest point is taken."""
    model = lift(Circuit(oil=TORN, components=(JACK, *HOSES), initial_pressures={"a": 2e6, "b": 1e6}))
    found = model.equilibrium("position")
    a, b = found["circuit.a.pressure"], found["circuit.b.pressure"]
    assert a * AREA - b * RING == pytest.approx(1000.0 * GRAVITY, rel=1e-9)
    assert found.kept == ("circuit.a.pressure", "circuit.b.pressure")
    off = 1000.0 * GRAVITY - (2e6 * AREA - 1e6 * RING)
    assert (a - 2e6, b - 1e6) == pytest.approx(
        tuple(off / (AREA**2 + RING**2) * each for each in (AREA, -RING)), rel=1e-2
    )
    # With one of them held, the other one follows.
    fixed = model.equilibrium({"machine.load.displacement": None, "circuit.b.pressure": 1.5e6})
    assert fixed["circuit.a.pressure"] == pytest.approx((1000.0 * GRAVITY + 1.5e6 * RING) / AREA, rel=1e-9)
    # The load hangs, and the piston's side is held: the other side would have to push harder than oil does.
    with pytest.raises(
        SimulationError, match=r"it would rest with circuit\.b\.pressure = -\S+ Pa, which must be above"
    ):
        model.equilibrium({"machine.load.displacement": None, "circuit.a.pressure": 1e6})


def test_supply_that_holds_a_load() -> None:
    """The pressure of a source, asked for: all of the circuit comes to it."""
    components = (
        PressureSource(name="supply", node="S", pressure=5e6),
        Throttle(name="gate", inlet="S", outlet="a", orifice_diameter=2e-3, discharge_coefficient=0.7),
        PLUNGER,
        HOSES[0],
    )
    model = lift(Circuit(oil=OIL, components=components, initial_pressures={"a": 1e6}))
    found = model.equilibrium("position", ["circuit.supply.pressure"])
    assert found["circuit.supply.pressure"] == pytest.approx(ATMOSPHERE + 1000.0 * GRAVITY / AREA, rel=1e-9)
    assert found["circuit.a.pressure"] == pytest.approx(found["circuit.supply.pressure"], rel=1e-12)
    assert found.kept == ()
    result = found.model.simulation(compiled=False).run(0.05)
    assert np.ptp(result["load.displacement"]) < 1e-12


def test_accumulator_carries_a_load() -> None:
    """The gas' law at the load's pressure; and the plunger sinks as far as the oil that stays the same lets it."""
    gas = Accumulator(name="gas", node="a", volume=5e-3, precharge_pressure=8e5, inlet_diameter=5e-3)
    model = lift(Circuit(oil=OIL, components=(PLUNGER, HOSES[0], gas), initial_pressures={"a": 1e6}))
    found = model.equilibrium()
    pressure = ATMOSPHERE + 1000.0 * GRAVITY / AREA
    assert found["circuit.a.pressure"] == pytest.approx(pressure, rel=1e-9)
    assert found["circuit.gas.oil_volume"] == pytest.approx(5e-3 * (1.0 - (8e5 / pressure) ** (1.0 / 1.3)), rel=1e-9)
    assert found.model.start["circuit.a.initial_pressure"] == pytest.approx(pressure, rel=1e-9)
    result = found.model.simulation(compiled=False).run(0.05)
    assert np.ptp(result["gas.oil_volume"]) < 1e-12


@pytest.mark.parametrize("other", [1e6, 2e6])
def test_two_plungers_balance_as_a_manometer_does(other: float) -> None:
    """F₁ / A₁ = F₂ / A₂ over a line: the force that holds the other side; how high they stand is open.

    Their oil stays in them: what it is pressed together by, as its air is, is what the plungers sink by.
    """
    small = PLUNGER.model_copy(update={"name": "other", "piston": "b", "piston_diameter": 0.05})
    joined = Throttle(name="line", inlet="a", outlet="b", orifice_diameter=5e-3, discharge_coefficient=0.7)
    circuit = Circuit(oil=OIL, components=(PLUNGER, small, joined, *HOSES), initial_pressures={"a": 1e6, "b": other})
    mechanism = Mechanism(
        ground={"one": (0.0, 0.0, 0.0), "two": (1.0, 0.0, 0.0)},
        bodies=tuple(
            RigidBody(name=name, mass=mass, inertia=(1.0, 1.0, 1.0)) for name, mass in (("big", 800.0), ("light", 50.0))
        ),
        joints=(
            Prismatic(name="left", parent="ground.one", child="big.origin", axis=(0.0, 1.0, 0.0), displacement=1.5),
            Prismatic(name="right", parent="ground.two", child="light.origin", axis=(0.0, 1.0, 0.0), displacement=1.5),
        ),
        forces=(
            Actuator(name="jack", start="ground.one", end="big.origin"),
            Actuator(name="other", start="ground.two", end="light.origin"),
            JointDrive(name="hand", joint="right"),
        ),
    )
    connections = []
    for name in ("jack", "other"):
        connections += [
            (f"circuit.{name}.force", f"machine.{name}.force"),
            (f"machine.{name}.length", f"circuit.{name}.length"),
            (f"machine.{name}.velocity", f"circuit.{name}.velocity"),
        ]
    model = CoupledModel(name="press", systems={"machine": mechanism, "circuit": circuit}, connections=connections)
    found = model.equilibrium(find=["machine.hand.force"])
    assert found["machine.hand.force"] == pytest.approx(50.0 * GRAVITY - 800.0 * GRAVITY / 4.0, rel=1e-9)
    assert set(found.kept) == {"machine.big.displacement", "machine.light.displacement"}
    pressure = ATMOSPHERE + 800.0 * GRAVITY / AREA
    pressed = 0.0
    for begin, area in ((1e6, AREA), (other, AREA / 4.0)):
        rise, air = pressure - begin, 0.005 * ATMOSPHERE * (1.0 / begin - 1.0 / pressure)
        pressed += 1e-3 * (rise / 1.5e9 + rise / 1e9 + air) + 0.5 * area * (rise / 1.5e9 + rise / 2e10 + air)
    sunk = [1.5 - found[f"machine.{each}.displacement"] for each in ("big", "light")]
    assert sunk[0] * AREA + sunk[1] * AREA / 4.0 == pytest.approx(pressed, rel=3e-2)  # of long steps


def test_closed_valves_keep_what_the_guess_has() -> None:
    """Behind check valves that are shut pressures stay as they were given; the message says which."""
    check = CheckValve(name="check", inlet="S", outlet="b", rated_flow=1e-3, cracking_pressure=1e5, full_pressure=2e5)
    components = (PressureSource(name="supply", node="S", pressure=1e6), check, HOSES[1])
    model = CoupledModel(
        name="trap", systems={"circuit": Circuit(oil=OIL, components=components, initial_pressures={"b": 3e6})}
    )
    found = model.equilibrium()
    assert found["circuit.b.pressure"] == pytest.approx(3e6, rel=1e-12)
    assert found.kept == ("circuit.b.compression",)


@pytest.mark.parametrize("sampled", [False, True])
def test_controllers_come_to_rest(sampled: bool) -> None:
    """An integral part carries the load, the error is nothing, and a run stays put."""
    kind = SampledPidController if sampled else PidController
    own = {"sample_time": 0.01} if sampled else {}
    model = CoupledModel(
        name="servo",
        systems={
            "machine": lever(0.4, JointDrive(name="drive", joint="hinge")),
            "pid": kind(
                measured_unit="rad", command_unit="N.m", proportional=400.0, integral=200.0, derivative=60.0, **own
            ),
        },
        connections=[("machine.beam.angle", "pid.measured"), ("pid.command", "machine.drive.torque")],
        signals={"pid.setpoint": LinearSignal(times=(100.0, 101.0), values=(0.6, 0.0))},
    )
    found = model.equilibrium()
    assert found["machine.beam.angle"] == pytest.approx(0.6, abs=1e-9)
    assert found["pid.integral_part"] == pytest.approx(10.0 * GRAVITY * cos(0.6), rel=1e-9)
    assert found.stable is (None if sampled else True)
    assert ("is not known: pid is sampled" in found.stability) is sampled
    result = found.model.simulation(compiled=False, step=5e-3).run(0.5)
    assert np.ptp(result["beam.angle"]) < 1e-9
    with pytest.raises(InputError, match=r"'pid\.setpoint' follows a signal; take it out of the signals"):
        model.equilibrium("position", ["pid.setpoint"])


def scissors() -> CoupledModel:
    """A parallelogram of three cranks, with redundant loops, under oblique gravity, on a cylinder that is locked."""
    names = ("left", "middle", "right")
    mechanism = Mechanism(
        gravity=(1.0, -9.81, 2.0),
        ground={**{name: (1.0 * index, 0.0, 0.0) for index, name in enumerate(names)}, "foot": (-1.0, 0.0, 0.0)},
        bodies=(
            *(Beam(name=name, length=1.0, mass=20.0) for name in names),
            RigidBody(
                name="deck",
                mass=200.0,
                inertia=(5.0, 20.0, 20.0),
                centre=(1.3, 0.1, 0.0),
                points={name: (1.0 * index, 0.0, 0.0) for index, name in enumerate(names)},
            ),
        ),
        joints=(
            *(Revolute(name=name, parent=f"ground.{name}", child=f"{name}.start", angle=1.1) for name in names),
            Revolute(name="top_left", parent="left.end", child="deck.left", angle=-1.1),
            Revolute(name="top_middle", parent="middle.end", child="deck.middle", cut=True),
            Revolute(name="top_right", parent="right.end", child="deck.right", cut=True),
        ),
        forces=(Actuator(name="jack", start="ground.foot", end="left.end"),),
    )
    circuit = Circuit(
        oil=OIL,
        components=(JACK.model_copy(update={"viscous_friction": 2e3}), *HOSES),
        initial_pressures={"a": balanced("jack"), "b": 1e6},
    )
    return CoupledModel(
        name="scissors",
        systems={"machine": mechanism, "circuit": circuit},
        connections=[
            ("circuit.jack.force", "machine.jack.force"),
            ("machine.jack.length", "circuit.jack.length"),
            ("machine.jack.velocity", "circuit.jack.velocity"),
            ("machine.jack.static_force", "circuit.jack.initial_load"),
        ],
    )


@cache
def resting_scissors() -> Equilibrium[CoupledModel]:
    """The same where it rests, found once."""
    return scissors().equilibrium()


@pytest.mark.parametrize("formulation", ["dca", "hdca", "dca-alm", "double-step", "penalty"])
def test_ten_seconds_from_an_equilibrium_stay_put(formulation: str) -> None:
    """Redundant loops, gravity across them, a locked cylinder; by virtual work F ds/dφ = weights times heights."""
    rest = resting_scissors()
    angle = rest["machine.left.angle"]
    length = sqrt((1.0 + cos(angle)) ** 2 + sin(angle) ** 2)
    work = (200.0 + 60.0 / 2.0) * (9.81 * cos(angle) + 1.0 * sin(angle))
    assert rest["circuit.jack.force"] * (-sin(angle) / length) == pytest.approx(work, rel=1e-9)
    result = rest.model.simulation(formulation=formulation, step=0.02, compiled=False).run(10.0, output_step=0.5)
    assert np.ptp(result["left.angle"]) < 1e-8
    assert np.ptp(result["a.pressure"]) < 1e-5 * np.mean(result["a.pressure"])


def test_refused_search_derives_its_equations_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where pressures balance an actuator at the start; numbers for these are for what has been found."""
    derived: list[str] = []
    derive = model_equilibrium.coupled_system

    def counted(model: Any, *, absolute: bool) -> CoupledSystem:
        derived.append(model.name)
        return derive(model, absolute=absolute)

    monkeypatch.setattr(model_equilibrium, "coupled_system", counted)
    with pytest.raises(SimulationError, match=r"machine\.jack\.length is \S+ m where 3 m was to be held"):
        scissors().equilibrium({"machine.jack.length": 3.0})
    assert derived == ["scissors"]


def test_model_that_starts_at_rest_goes_everywhere() -> None:
    """Its start is data: JSON, units, other starts of it; wrong ones are refused."""
    rest = resting_scissors().model
    again = CoupledModel.from_dict(json.loads(json.dumps(rest.to_dict())))
    assert again == rest
    assert again.systems["circuit"].initial_pressures["a"] > 0.0  # a number now
    alone_ = again.simulation_of("circuit")
    assert alone_.get("a.pressure") == pytest.approx(again.simulation(compiled=False).get("a.pressure"), rel=1e-12)
    fields = {name: getattr(rest, name) for name in CoupledModel.model_fields}
    for start, sentence in (
        (
            {"circuit.a.initial_presure": 1.0},
            "start: there is no 'a.initial_presure' in 'circuit' that starts anywhere",
        ),
        ({"circus.a.initial_pressure": 1.0}, "start: 'circus.a.initial_pressure' is of no system 'circus'"),
        ({"circuit.a.initial_pressure": -1.0}, r"start: circuit.a.initial_pressure is -1 Pa; it must be at least 0"),
        ({"machine.jack.force": 1.0}, "start: 'machine.jack.force' is driven by a connection"),
    ):
        with pytest.raises(DataError, match=sentence):
            CoupledModel(**{**fields, "start": start})


def statics(point: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the forces of the excavator's cylinders, pushing, that its parts in a plane need, by Newton and Euler.

    Forces and moments of five bodies, with two components at each of six pins and three cylinders: 15 equations.
    """
    bodies = ("boom", "stick", "bucket", "rocker", "link")
    pins = (
        ("boom", None, "boom"),
        ("stick", "boom", "stick"),
        ("rocker", "stick", "rocker"),
        ("bucket", "stick", "bucket"),
        ("knee", "rocker", "link"),
        ("eye", "bucket", "link"),
    )
    cylinders = (
        ("boom_cylinder", None, "boom"),
        ("stick_cylinder", "boom", "stick"),
        ("bucket_cylinder", "stick", "rocker"),
    )
    masses = dict(zip(bodies, (1700.0, 850.0, 700.0, 40.0, 60.0), strict=True))
    matrix, right = np.zeros((15, 15)), np.zeros(15)
    for row, body in enumerate(bodies):
        right[3 * row + 1] = masses[body] * GRAVITY
        right[3 * row + 2] = masses[body] * GRAVITY * point[f"{body}_centre"][0]

    def acts(body: str | None, column: int, force: np.ndarray, at: np.ndarray) -> None:
        if body is not None:
            row = 3 * bodies.index(body)
            matrix[row : row + 2, column] += force
            matrix[row + 2, column] += at[0] * force[1] - at[1] * force[0]

    for index, (pin, inner, outer) in enumerate(pins):
        for axis in range(2):
            force = np.eye(2)[axis]
            acts(outer, 2 * index + axis, force, point[pin])
            acts(inner, 2 * index + axis, -force, point[pin])
    for index, (name, inner, outer) in enumerate(cylinders):
        start, end = point[f"{name}_start"], point[f"{name}_end"]
        along = (end - start) / np.linalg.norm(end - start)
        acts(outer, 12 + index, along, end)
        acts(inner, 12 + index, -along, start)
    solution = np.linalg.solve(matrix, right)
    return {name: float(solution[12 + index]) for index, (name, _, _) in enumerate(cylinders)}


@pytest.mark.parametrize(("hold", "horizon"), [("position", 10.0), ((), 10.0), ((), None)])
def test_excavator_at_rest_by_newton_and_euler(hold: str | tuple[()], horizon: float | None) -> None:
    """Its cylinders carry what statics of its parts say, held by closed valves, or for good by its controllers.

    For good, spools leave their overlap to feed what leaks over pistons: boom, stick and bucket are within 2° of the
    start.
    """
    model = excavator()
    found = model.equilibrium(hold, horizon=horizon)
    angle = {name: found[f"machine.{name}.angle"] for name in ("boom", "stick", "rocker", "bucket", "link")}

    def turned(by: float, vector: tuple[float, float]) -> np.ndarray:
        return np.array([[cos(by), -sin(by)], [sin(by), cos(by)]]) @ np.array(vector)

    boom, stick = angle["boom"], angle["boom"] + angle["stick"]
    rocker, bucket = stick + angle["rocker"], stick + angle["bucket"]
    link = rocker + angle["link"]
    point = {"boom": np.array([0.10, 1.90])}
    point["stick"] = point["boom"] + turned(boom, (5.7, 0.0))
    for name, place in (("rocker", (2.495, 0.03)), ("bucket", (2.925, 0.0)), ("bucket_cylinder_start", (0.35, 0.45))):
        point[name] = point["stick"] + turned(stick, place)
    point["knee"] = point["rocker"] + turned(rocker, (0.60, 0.0))
    point["eye"] = point["bucket"] + turned(bucket, (-0.132, 0.461))
    assert point["knee"] + turned(link, (0.62, 0.0)) == pytest.approx(point["eye"], abs=1e-9)
    point["boom_cylinder_start"], point["boom_cylinder_end"] = (
        np.array([0.62, 1.28]),
        point["boom"] + turned(boom, (2.40, 0.62)),
    )
    point["stick_cylinder_start"] = point["boom"] + turned(boom, (3.05, 1.00))
    point["stick_cylinder_end"] = point["stick"] + turned(stick, (-0.75, 0.45))
    point["bucket_cylinder_end"] = point["knee"]
    for name, place, by in (
        ("boom", (2.6, 0.45), boom),
        ("stick", (1.0, 0.20), stick),
        ("bucket", (0.70, 0.10), bucket),
        ("rocker", (0.30, 0.0), rocker),
    ):
        point[f"{name}_centre"] = point[name] + turned(by, place)
    point["link_centre"] = point["knee"] + turned(link, (0.31, 0.0))
    for name, force in statics(point).items():
        assert found[f"circuit.{name}.force"] == pytest.approx(force, rel=1e-8), name
        assert found[f"machine.{name}.velocity"] == 0.0
    assert abs(boom - radians(10.0)) < radians(2.0)
    assert abs(angle["stick"] - radians(-60.0)) < radians(2.0)
    if horizon is None:
        assert not found.moving
        for name, sign in (("boom", 1.0), ("stick", -1.0), ("bucket", -1.0)):
            beyond = sign * found[f"circuit.{name}_section.spool"] - 0.05
            assert 0.0 < beyond < 5e-3, name
            command = 6.0 * found[f"{name}_controller.error"]
            assert found[f"circuit.{name}_section.spool"] == pytest.approx(command, abs=1e-9)
    else:
        assert found.stable
        assert max(abs(rate) for rate in found.moving.values()) < 5e4  # Pa/s, by leakage over pistons


def test_page_works_as_it_is_written() -> None:
    """The page's boom is held by what its statics say: the pressure of the supply, by the lever of its cylinder."""
    page = (Path(__file__).parents[2] / "docs" / "equilibrium.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert code is not None
    named: dict[str, Any] = {}
    exec(code[1].replace(".simulation()", ".simulation(compiled=False)").replace("run(1.0)", "run(0.05)"), named)
    rest, angle = named["rest"], radians(40.0)
    eye = np.array([0.8 * cos(angle), 1.0 + 0.8 * sin(angle)])
    along = eye - (0.5, 0.0)
    lever_arm = (0.8 * cos(angle) * along[1] - 0.8 * sin(angle) * along[0]) / np.linalg.norm(along)
    force = 200.0 * GRAVITY * 1.5 * cos(angle) / lever_arm
    pressure = (force + 1e5 * pi / 4.0 * (0.08**2 - 0.05**2)) / (pi / 4.0 * 0.08**2)
    assert rest["circuit.supply.pressure"] == pytest.approx(pressure, rel=1e-9)
    assert np.ptp(named["result"]["boom.angle"]) < 1e-10


def test_what_was_found_is_driven_later_as_the_page_says() -> None:
    """The lever rests until the torque grows at 0.1 s; the table has every field."""
    page = (Path(__file__).parents[2] / "docs" / "equilibrium.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    rest = alone(lever(0.4, JointDrive(name="drive", joint="hinge"))).equilibrium("position", ["machine.drive.torque"])
    named: dict[str, Any] = {"rest": rest}
    exec(code.replace("pid.setpoint", "machine.drive.torque"), named)
    result = named["driven"].simulation(compiled=False, step=1e-2).run(0.2)
    angle = result["beam.angle"]
    assert np.ptp(angle[result.time < 0.105]) < 1e-9 < np.ptp(angle)
    assert all(f"`{field.name}`" in page for field in fields(Equilibrium))


def test_command_writes_the_model_that_starts_there(tmp_path: Path) -> None:
    """Its numbers are those of Python, and the file is a model."""
    source, target, facts = (tmp_path / name for name in ("lever.json", "resting.json", "facts.json"))
    alone(lever(0.4, JointDrive(name="drive", joint="hinge"))).to_file(source)
    options = ["--hold", "machine.beam.angle=0.7", "--find", "machine.drive.torque=10", "-o", target, "--json", facts]
    done = CliRunner().invoke(command, [str(source), *map(str, options)])
    assert done.exit_code == 0, done.output
    assert "machine.drive.torque" in done.output
    torque = 10.0 * GRAVITY * cos(0.7)
    assert json.loads(facts.read_text())["found"] == {"machine.drive.torque": pytest.approx(torque)}
    start = CoupledModel.from_file(target).start
    assert start == {"machine.beam.angle_start": pytest.approx(0.7), "machine.drive.torque": pytest.approx(torque)}


def test_inputs_with_a_start_are_not_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """They keep the value they were given, and nobody is warned."""
    model = alone(lever(0.4, JointDrive(name="drive", joint="hinge")))
    held = model.equilibrium("position", ["machine.drive.torque"]).model
    result = held.simulation(compiled=False).run(0.02)
    assert result["drive.torque"][-1] == pytest.approx(10.0 * GRAVITY * cos(0.4), rel=1e-12)
    assert not caplog.records
    model.simulation(compiled=False).run(0.02)
    assert "nothing drives drive.torque" in caplog.text


@pytest.mark.parametrize("damping", [0.0, 2.0])
@pytest.mark.parametrize("stiffness", [0.0, 30.0])
def test_stability_is_not_claimed_where_motions_drift(damping: float, stiffness: float) -> None:
    """A bar that hangs in its centre of mass: K and D are what the spring in its joint has."""
    spring = JointSpringDamper(name="spring", joint="hinge", stiffness=stiffness, damping=damping)
    bar = RigidBody(name="bar", mass=3.0, inertia=(0.1, 0.5, 0.5), points={"middle": (0.0, 0.0, 0.0)})
    mechanism = Mechanism(
        ground={"wall": (0.2, 0.1, 0.0)},
        bodies=(bar,),
        joints=(Revolute(name="hinge", parent="ground.wall", child="bar.middle"),),
        forces=(spring,) if stiffness or damping else (),
    )
    found = CoupledModel(name="bar", systems={"m": mechanism}).equilibrium()
    assert found.stable is (True if stiffness or damping else None)
    assert "m.bar.angle" in found
    assert dict.fromkeys(found)["m.bar.angle"] is None
    assert ("they drift" in found.stability) is not bool(stiffness or damping)
    whirl = np.roots([0.5, damping, stiffness])
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(whirl), atol=1e-6)
