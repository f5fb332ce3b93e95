"""Mechanisms at rest: closed forms, and what is said and written of them."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from itertools import product
from math import asin, cos, pi, radians, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rest_machines import GRAVITY, alone, lever

from mbsfmu import (
    Beam,
    CoupledModel,
    Equilibrium,
    Free,
    InputError,
    JointDrive,
    JointSpringDamper,
    JointStop,
    Mechanism,
    PlaneContact,
    Prismatic,
    Revolute,
    RigidBody,
    SimulationError,
    Spherical,
    SpringDamper,
)
from mbsfmu.cli.equilibrium import command


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


def test_page_works_as_it_is_written() -> None:
    """The page's boom is held by what its statics say: the pressure of the supply, by the lever of its cylinder."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "equilibrium.md").read_text(encoding="utf-8")
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
    page = (Path(__file__).parents[2] / "docs" / "guides" / "equilibrium.md").read_text(encoding="utf-8")
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
