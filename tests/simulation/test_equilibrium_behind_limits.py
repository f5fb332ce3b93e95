"""Rest that lies behind limits, dead zones, overlaps and shut valves; what is at fault where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin, sqrt
from typing import Any

import casadi as ca
import numpy as np
import pytest

from hydraulics import (
    CheckValve,
    Circuit,
    CounterbalanceValve,
    Cylinder,
    Hose,
    Oil,
    PressureSource,
    ProportionalValve,
    SingleActingCylinder,
    Tank,
    Throttle,
    closed_centre,
    three_way,
)
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    DeadZone,
    Gain,
    Integrator,
    JointDrive,
    JointSpringDamper,
    Limiter,
    Mechanism,
    PidController,
    Prismatic,
    Revolute,
    RigidBody,
    SampledPidController,
    SimulationError,
)
from mbsfmu.formulations.leaks import leaking

GRAVITY, BAR = 9.81, 1e5
OIL = Oil(bulk_modulus=1.5e9, density=870.0, air_content=0.0)


def chain(angles: Any, lengths: Any, masses: Any, gravity: Any = (0.0, -GRAVITY, 0.0)) -> Mechanism:
    """Beams end to end on driven hinges."""
    every = range(len(lengths))
    return Mechanism(
        gravity=gravity,
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=tuple(Beam(name=f"b{k}", length=lengths[k], mass=masses[k]) for k in every),
        joints=tuple(
            Revolute(
                name=f"j{k}", parent=f"b{k - 1}.end" if k else "ground.pin", child=f"b{k}.start", angle=float(angles[k])
            )
            for k in every
        ),
        forces=tuple(JointDrive(name=f"m{k}", joint=f"j{k}") for k in every),
    )


def torques(angles: Any, lengths: Any, masses: Any, gravity: Any) -> np.ndarray:
    """Return the torques that hold such a chain: moments of the weights further out about each hinge."""
    ways = np.cumsum(angles)
    steps = np.array(lengths)[:, None] * np.column_stack([np.cos(ways), np.sin(ways)])
    hinges = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
    held = np.zeros(len(lengths))
    for inner in range(len(lengths)):
        for outer in range(inner, len(lengths)):
            x, y = 0.5 * (hinges[outer] + hinges[outer + 1]) - hinges[inner]
            held[inner] -= masses[outer] * (x * gravity[1] - y * gravity[0])
    return held


def controlled(mechanism: Mechanism, controllers: list[Any], **fields: Any) -> CoupledModel:
    """A controller for each drive of such a chain."""
    connections = []
    for k in range(len(controllers)):
        connections += [(f"machine.b{k}.angle", f"c{k}.measured"), (f"c{k}.command", f"machine.m{k}.torque")]
    systems = {"machine": mechanism, **{f"c{k}": each for k, each in enumerate(controllers)}}
    return CoupledModel(name="arm", systems=systems, connections=connections, **fields)


def pid(limit: float, *, sampled: bool = False, **fields: Any) -> PidController | SampledPidController:
    kind = SampledPidController if sampled else PidController
    given = {"proportional": 100.0, "integral": 50.0, "derivative": 20.0, "minimum": -limit, "maximum": limit, **fields}
    if sampled:
        given["sample_time"] = 0.01
    return kind(measured_unit="rad", command_unit="N.m", **given)


@pytest.mark.parametrize("limit", [100.0, 20.0])
@pytest.mark.parametrize("sampled", [False, True])
def test_command_that_the_guess_leaves_at_its_limit(limit: float, sampled: bool) -> None:
    """M = m g l cos φ from a setpoint that is 1.2 rad away: beyond its limits a command does not answer."""
    model = controlled(chain([0.3], [1.0], [10.0]), [pid(limit, sampled=sampled)])
    found = model.equilibrium({"machine.b0.angle": 1.2}, ["c0.setpoint"])
    assert found["c0.setpoint"] == pytest.approx(1.2, rel=1e-9)
    assert found["c0.command"] == pytest.approx(10.0 * GRAVITY * 0.5 * cos(1.2), rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_setpoints_of_arms_whose_rest_is_known(seed: int) -> None:
    """Random arms, tilted, with limits just above what statics say: the pose is chosen, then its controllers."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    lengths, masses = random.uniform(0.3, 2.0, count), 10.0 ** random.uniform(0.0, 3.0, count)
    tilt, pose = random.uniform(-pi, pi), random.uniform(-pi, pi, count)
    gravity = (GRAVITY * sin(tilt), -GRAVITY * cos(tilt), 0.0)
    needed = torques(pose, lengths, masses, gravity)
    gains = np.max(np.abs(needed)) * 10.0 ** random.uniform(0.0, 1.5, count)
    controllers = [
        pid(1.05 * abs(needed[k]) + 1e-3 * gains[k], proportional=gains[k], integral=0.0, derivative=0.0)
        for k in range(count)
    ]
    model = controlled(chain(pose + random.normal(0.0, 1.0, count), lengths, masses, gravity), controllers)
    held = {f"machine.b{k}.angle": float(pose[k]) for k in range(count)}
    found = model.equilibrium(held, [f"c{k}.setpoint" for k in range(count)])
    for k in range(count):
        assert found[f"c{k}.setpoint"] == pytest.approx(pose[k] + needed[k] / gains[k], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("guess", [0.0, -3.0])
def test_command_behind_a_limit_and_a_dead_zone(guess: float) -> None:
    """Of u, what is beyond 0.2 turns a spring: k φ = g (u − 0.2)."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="wheel", mass=1.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Revolute(name="hinge", parent="ground.pin", child="wheel.origin"),),
        forces=(JointDrive(name="drive", joint="hinge"), JointSpringDamper(name="bar", joint="hinge", stiffness=50.0)),
    )
    model = CoupledModel(
        name="behind",
        systems={
            "machine": mechanism,
            "limit": Limiter(minimum=-1.0, maximum=1.0),
            "zone": DeadZone(start=-0.2, end=0.2),
            "gain": Gain(gain=80.0, output_unit="N.m"),
        },
        connections=[
            ("limit.output", "zone.input"),
            ("zone.output", "gain.input"),
            ("gain.output", "machine.drive.torque"),
        ],
    )
    found = model.equilibrium({"machine.wheel.angle": 0.5}, {"limit.input": guess})
    assert found["limit.input"] == pytest.approx(0.2 + 50.0 * 0.5 / 80.0, rel=1e-9)


def table(components: tuple[Any, ...], pressures: dict[str, float], start: dict[str, float]) -> CoupledModel:
    """A mass of 1 t on the cylinder of a circuit."""
    mechanism = Mechanism(
        ground={"foot": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="load", mass=1000.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(
            Prismatic(name="guide", parent="ground.foot", child="load.origin", axis=(0.0, 1.0, 0.0), displacement=1.4),
        ),
        forces=(Actuator(name="jack", start="ground.foot", end="load.origin"),),
    )
    plunger = SingleActingCylinder(
        name="jack", piston="a", piston_diameter=0.1, stroke=1.0, retracted_length=1.0, bulk_modulus=2e10
    )
    drain = Throttle(name="drain", inlet="a", outlet="T", orifice_diameter=1e-3, discharge_coefficient=0.7)
    hoses = tuple(Hose(name=f"line_{node}", node=node, volume=1e-3, bulk_modulus=1e9) for node in pressures)
    circuit = Circuit(
        oil=OIL,
        components=(Tank(name="tank", node="T"), plunger, drain, *hoses, *components),
        initial_pressures=pressures,
    )
    connections = [
        ("circuit.jack.force", "machine.jack.force"),
        ("machine.jack.length", "circuit.jack.length"),
        ("machine.jack.velocity", "circuit.jack.velocity"),
    ]
    systems = {"machine": mechanism, "circuit": circuit}
    return CoupledModel(name="table", systems=systems, connections=connections, start=start)


AREA = pi / 4.0 * 0.1**2
ABSOLUTE = 1000.0 * GRAVITY / AREA + 101325.0
"""What carries the mass, in Pa."""
DRAINED = 0.7 * pi / 4.0 * 1e-3**2 * sqrt(2.0 * (ABSOLUTE - BAR) / 870.0)
"""What flows through the drain then, in m³/s."""


@pytest.mark.parametrize("guess", [0.0, -0.3])
def test_spool_that_begins_in_its_overlap(guess: float) -> None:
    """Oil for the drain comes through an edge that is open in proportion beyond 10 %: Q = Q_r x √(Δp / Δp_r)."""
    valve = ProportionalValve(
        name="valve",
        supply="P",
        tank="T",
        a="a",
        b="b",
        edges=closed_centre(0.1),
        rated_flow=1e-3,
        rated_drop=10.0 * BAR,
        time_constant=0.02,
    )
    bleed = Throttle(name="bleed", inlet="b", outlet="T", orifice_diameter=2e-3, discharge_coefficient=0.7)
    parts = (PressureSource(name="pump", node="P", pressure=60.0 * BAR), valve, bleed)
    model = table(parts, {"a": 5.0 * BAR, "b": 2.0 * BAR}, {"circuit.valve.command": guess})
    found = model.equilibrium({"machine.load.displacement": 1.4}, ["circuit.valve.command"])
    opening = DRAINED / 1e-3 / sqrt((60.0 * BAR - ABSOLUTE) / (10.0 * BAR))
    assert found["circuit.valve.command"] == pytest.approx(0.1 + 0.9 * opening, rel=1e-3)
    assert found["circuit.a.pressure"] == pytest.approx(ABSOLUTE, rel=1e-9)


def plungers(leaks: Sequence[float]) -> CoupledModel:
    """Masses of 1 t on plungers that leak, each behind a counterbalance valve and a spool with an overlap of 5 %."""
    each = range(len(leaks))
    mechanism = Mechanism(
        ground={f"foot{k}": (float(k), 0.0, 0.0) for k in each},
        bodies=tuple(RigidBody(name=f"load{k}", mass=1000.0, inertia=(1.0, 1.0, 1.0)) for k in each),
        joints=tuple(
            Prismatic(
                name=f"guide{k}",
                parent=f"ground.foot{k}",
                child=f"load{k}.origin",
                axis=(0.0, 1.0, 0.0),
                displacement=1.4,
            )
            for k in each
        ),
        forces=tuple(Actuator(name=f"jack{k}", start=f"ground.foot{k}", end=f"load{k}.origin") for k in each),
    )
    components = [PressureSource(name="pump", node="P", pressure=60.0 * BAR), Tank(name="tank", node="T")]
    connections = []
    for k, diameter in enumerate(leaks):
        components += [
            ProportionalValve(
                name=f"valve{k}",
                supply="P",
                tank="T",
                a=f"v{k}",
                edges=three_way(0.05),
                rated_flow=1e-3,
                rated_drop=10.0 * BAR,
                time_constant=0.02,
            ),
            Throttle(name=f"drain{k}", inlet=f"a{k}", outlet="T", orifice_diameter=diameter, discharge_coefficient=0.7),
            SingleActingCylinder(
                name=f"jack{k}",
                piston=f"a{k}",
                piston_diameter=0.1,
                stroke=1.0,
                retracted_length=1.0,
                bulk_modulus=2e10,
            ),
            CounterbalanceValve(
                name=f"hold{k}",
                load=f"a{k}",
                valve=f"v{k}",
                pilot=f"v{k}",
                rated_flow=1e-3,
                rated_drop=20.0 * BAR,
                check_flow=1e-3,
                setting=40.0 * BAR,
                override=30.0 * BAR,
                pilot_ratio=4.0,
            ),
            Hose(name=f"line{k}", node=f"a{k}", volume=1e-3, bulk_modulus=1e9),
            Hose(name=f"short_line{k}", node=f"v{k}", volume=5e-4, bulk_modulus=1e9),
        ]
        connections += [
            (f"circuit.jack{k}.force", f"machine.jack{k}.force"),
            (f"machine.jack{k}.length", f"circuit.jack{k}.length"),
            (f"machine.jack{k}.velocity", f"circuit.jack{k}.velocity"),
        ]
    circuit = Circuit(
        oil=OIL, components=components, initial_pressures={f"{n}{k}": 5.0 * BAR for k in each for n in "av"}
    )
    return CoupledModel(name="plungers", systems={"machine": mechanism, "circuit": circuit}, connections=connections)


@pytest.mark.parametrize("guess", [0.0, 1.0])
def test_valves_that_are_open_by_what_leaks(guess: float) -> None:
    """Two commands at once, 0.5 and 2 % beyond the overlap: Q = Q_r x √(Δp / Δp_r), whatever is guessed."""
    diameters = (0.65e-3, 1.3e-3)
    asked = [f"circuit.valve{k}.command" for k in range(2)]
    found = plungers(diameters).equilibrium("position", dict.fromkeys(asked, guess))
    for k, diameter in enumerate(diameters):
        drained = DRAINED * (diameter / 1e-3) ** 2
        opening = drained / 1e-3 / sqrt((60.0 * BAR - found[f"circuit.v{k}.pressure"]) / (10.0 * BAR))
        assert found[asked[k]] == pytest.approx(0.05 + 0.95 * opening, rel=1e-3)
        assert found[f"circuit.a{k}.pressure"] == pytest.approx(ABSOLUTE, rel=1e-9)


def test_check_valve_that_begins_shut() -> None:
    """The source has to be above the load before any of it counts; what flows is what the drain takes."""
    check = CheckValve(
        name="check", inlet="P", outlet="a", rated_flow=1e-4, cracking_pressure=1.0 * BAR, full_pressure=5.0 * BAR
    )
    pump = PressureSource(name="pump", node="P", pressure=2.0 * BAR)
    found = table((pump, check), {"a": 30.0 * BAR}, {}).equilibrium(
        {"machine.load.displacement": 1.4}, ["circuit.pump.pressure"]
    )
    assert found["circuit.pump.pressure"] - ABSOLUTE > 1.0 * BAR
    assert found["circuit.check.flow"] == pytest.approx(DRAINED, rel=1e-3)


def crane(angle: float, **fields: Any) -> CoupledModel:
    """A boom on a cylinder with leakage, behind a valve with overlap and a controller that integrates."""
    mechanism = Mechanism(
        ground={"pin": (0.0, 1.0, 0.0), "foot": (0.5, 0.0, 0.0)},
        bodies=(Beam(name="boom", length=3.0, mass=200.0, points={"eye": (0.8, 0.0, 0.0)}),),
        joints=(Revolute(name="pin", parent="ground.pin", child="boom.start", angle=angle),),
        forces=(Actuator(name="jack", start="ground.foot", end="boom.eye"),),
    )
    circuit = Circuit(
        oil=OIL,
        components=(
            PressureSource(name="pump", node="P", pressure=200.0 * BAR),
            Tank(name="tank", node="T"),
            ProportionalValve(
                name="valve",
                supply="P",
                tank="T",
                a="a",
                b="b",
                edges=closed_centre(0.05),
                rated_flow=1e-3,
                rated_drop=10.0 * BAR,
                time_constant=0.02,
            ),
            Cylinder(
                name="jack",
                piston="a",
                rod="b",
                piston_diameter=0.08,
                rod_diameter=0.05,
                stroke=1.0,
                retracted_length=0.8,
                bulk_modulus=2e10,
                leakage=1e-12,
            ),
            *(Hose(name=f"line_{node}", node=node, volume=1e-3, bulk_modulus=1e9) for node in "ab"),
        ),
        initial_pressures={"a": 60.0 * BAR, "b": 5.0 * BAR},
    )
    controller = PidController(
        proportional=6.0, integral=3.0, minimum=-1.0, maximum=1.0, measured_unit="rad", command_unit="1"
    )
    return CoupledModel(
        name="crane",
        systems={"machine": mechanism, "circuit": circuit, "controller": controller},
        connections=[
            ("circuit.jack.force", "machine.jack.force"),
            ("machine.jack.length", "circuit.jack.length"),
            ("machine.jack.velocity", "circuit.jack.velocity"),
            ("machine.boom.angle", "controller.measured"),
            ("controller.command", "circuit.valve.command"),
        ],
        **fields,
    )


@pytest.mark.parametrize(("begin", "angle"), [(0.3, 0.9), (0.7, 0.53)])
def test_setpoint_of_a_crane_far_from_the_guess(begin: float, angle: float) -> None:
    """The integral part leaves no error; the force by the lever of the cylinder."""
    found = crane(begin).equilibrium({"machine.boom.angle": angle}, ["controller.setpoint"])
    assert found["controller.setpoint"] == pytest.approx(angle, rel=1e-9)
    along = np.array([0.8 * cos(angle) - 0.5, 1.0 + 0.8 * sin(angle)])
    arm = (0.8 * cos(angle) * along[1] - 0.8 * sin(angle) * along[0]) / np.linalg.norm(along)
    assert found["circuit.jack.force"] == pytest.approx(200.0 * GRAVITY * 1.5 * cos(angle) / arm, rel=1e-8)


# -- what is at fault where there is none -------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "angle"), [(100.0, 0.3), (100.0, 1.2), (20.0, 1.2)])
def test_integral_part_that_creeps_is_at_fault(limit: float, angle: float) -> None:
    """The drive could carry the load; the setpoint is elsewhere: İ = k_i (0 − φ), though it ends at its limit."""
    model = controlled(chain([0.3], [1.0], [10.0]), [pid(limit)])
    with pytest.raises(SimulationError) as told:
        model.equilibrium({"machine.b0.angle": angle})
    assert str(told.value).endswith(f"at the nearest point c0.integral_part would change by {-50.0 * angle:.3g} N.m/s")


def test_integral_part_that_creeps_at_instants_is_at_fault() -> None:
    """The same of a computer: by h k_i (0 − φ) each time."""
    model = controlled(chain([0.3], [1.0], [10.0]), [pid(100.0, sampled=True)])
    with pytest.raises(SimulationError, match=r"c0\.integral_part would change by -0\.3 N\.m with each update"):
        model.equilibrium({"machine.b0.angle": 0.6})


def test_load_beyond_a_limit_is_at_fault() -> None:
    """M = m g l cos φ less the limit is missing, whatever the guess leaves the controller at."""
    model = controlled(chain([-0.8], [1.0], [10.0]), [pid(20.0)])
    missing = 10.0 * GRAVITY * 0.5 * cos(0.3) - 20.0
    with pytest.raises(SimulationError) as told:
        model.equilibrium({"machine.b0.angle": 0.3}, ["c0.setpoint"])
    assert f"{missing:.4g} N.m are missing at machine.b0.angle" in str(told.value)
    assert "integral_part" not in str(told.value)


def test_integrator_that_is_fed_is_at_fault() -> None:
    """It could hold the load, and runs on by what it is fed."""
    systems = {
        "machine": chain([0.3], [1.0], [10.0]),
        "feed": Gain(gain=1.0, offset=2.0),
        "sum": Integrator(input_unit="1", output_unit="N.m"),
    }
    connections = [("feed.output", "sum.input"), ("sum.output", "machine.m0.torque")]
    model = CoupledModel(name="fed", systems=systems, connections=connections)
    with pytest.raises(SimulationError, match=r"at the nearest point sum\.value would change by 2 N\.m/s$"):
        model.equilibrium("position")


def test_leakage_is_at_fault_where_nothing_feeds_it() -> None:
    """Pressures carry the mass, and the drain lets it sink: ṗ = −Q / C, not a load that would be missing."""
    model = table((), {"a": 5.0 * BAR}, {})
    with pytest.raises(SimulationError, match=r"at the nearest point circuit\.a\.\S+ would change by -\S+ Pa/s$"):
        model.equilibrium("position")


@pytest.mark.parametrize(("limit", "angle", "find"), [(20.0, 0.3, ["c0.setpoint"]), (100.0, 0.3, [])])
def test_another_guess_is_suggested_where_there_is_something_to_guess(
    limit: float, angle: float, find: list[str]
) -> None:
    """Nothing claims that there is no rest; with nothing to be found there is no guess to give."""
    model = controlled(chain([-0.8], [1.0], [10.0]), [pid(limit)])
    with pytest.raises(SimulationError, match="no equilibrium is found from this guess; at the nearest") as told:
        model.equilibrium({"machine.b0.angle": angle}, find)
    suggested = "does not show that there is none" in str(told.value)
    assert suggested is bool(find)
    assert ("find={'c0.setpoint': …} or --find c0.setpoint=…" in str(told.value)) is bool(find)


# -- saturations that leak ----------------------------------------------------------------------------------


def test_leaking_lets_a_share_through() -> None:
    """max, min and a dead zone of them, against NumPy; without a share nothing changes."""
    x, share = ca.SX.sym("x"), ca.SX.sym("share")
    value = ca.vertcat(ca.fmax(x, 1.0), x - ca.fmin(ca.fmax(x, -2.0), 2.0), ca.sin(x))
    function = ca.Function("leaking", [x, share], [leaking(value, share)])

    def cut(sign: float, one: float, other: float, leak: float) -> float:
        return 0.5 * (one + other + sign * (1.0 - leak) * abs(one - other))

    for at in (-3.0, 0.5, 4.0):
        for leak in (0.0, 0.2, 1.0):
            inner = cut(-1.0, cut(1.0, at, -2.0, leak), 2.0, leak)
            expected = [cut(1.0, at, 1.0, leak), at - inner, sin(at)]
            assert function(at, leak).full().ravel() == pytest.approx(expected, rel=1e-14)
    assert leaking(ca.sin(x), share) is None
