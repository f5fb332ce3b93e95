"""Random machines whose rest is known by hand: of how many it is found from guesses that are far from it.

Run: python benchmarks/rests.py [COUNT OF EACH KIND | --quick]
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np

from hydraulics import (
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
    Equilibrium,
    Gain,
    JointDrive,
    JointSpringDamper,
    JointStop,
    Limiter,
    Mechanism,
    PidController,
    Prismatic,
    Revolute,
    RigidBody,
    SimulationError,
)

Random = np.random.Generator
Case = tuple[CoupledModel, Mapping[str, float], Mapping[str, float], Mapping[str, float]]
"""A model, what is held, guesses of what is to be found, and what is known of its rest."""
QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
COUNT = 1 if QUICK else int(sys.argv[1]) if len(sys.argv) > 1 else 20
GRAVITY, BAR, AIR = 9.81, 1e5, 101325.0
OIL = Oil(bulk_modulus=1.5e9, density=870.0, air_content=0.0)


def cylinder(name: str = "jack") -> list[tuple[str, str]]:
    """Return the connections of a cylinder."""
    return [
        (f"circuit.{name}.force", f"machine.{name}.force"),
        (f"machine.{name}.length", f"circuit.{name}.length"),
        (f"machine.{name}.velocity", f"circuit.{name}.velocity"),
    ]


def arm(random: Random) -> Case:
    """Return beams on drives with limited controllers; set points by the moments of the weights further out."""
    count = int(random.integers(1, 4))
    lengths, masses = random.uniform(0.3, 2.0, count), 10.0 ** random.uniform(0.0, 3.0, count)
    pose, away = random.uniform(-pi, pi, count), random.choice([-1.0, 1.0], count) * random.uniform(0.3, 1.0, count)
    ways = np.cumsum(pose)
    ends = np.concatenate([[0.0], np.cumsum(lengths * np.cos(ways))])
    needed = [
        sum(masses[k] * GRAVITY * (0.5 * (ends[k] + ends[k + 1]) - ends[j]) for k in range(j, count))
        for j in range(count)
    ]
    gains = np.max(np.abs(needed)) * 10.0 ** random.uniform(0.0, 1.5, count)
    each = range(count)
    mechanism = Mechanism(
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=tuple(Beam(name=f"b{k}", length=lengths[k], mass=masses[k]) for k in each),
        joints=tuple(
            Revolute(
                name=f"j{k}",
                parent=f"b{k - 1}.end" if k else "ground.pin",
                child=f"b{k}.start",
                angle=pose[k] + away[k],
            )
            for k in each
        ),
        forces=tuple(JointDrive(name=f"m{k}", joint=f"j{k}") for k in each),
    )
    limits = 1.05 * np.abs(needed) + 1e-3 * gains
    controllers = {
        f"c{k}": PidController(
            proportional=gains[k], minimum=-limits[k], maximum=limits[k], measured_unit="rad", command_unit="N.m"
        )
        for k in each
    }
    connections = [(f"machine.b{k}.angle", f"c{k}.measured") for k in each]
    connections += [(f"c{k}.command", f"machine.m{k}.torque") for k in each]
    model = CoupledModel(name="arm", systems={"machine": mechanism, **controllers}, connections=connections)
    known = {f"c{k}.setpoint": pose[k] + needed[k] / gains[k] for k in each}
    return model, {f"machine.b{k}.angle": pose[k] for k in each}, dict.fromkeys(known, 0.0), known


def boom(random: Random) -> Case:
    """Return a boom on a cylinder that leaks, behind a spool with overlap; a controller in any unit leaves no error."""
    begin, angle, unit = random.uniform(0.2, 1.0), random.uniform(0.2, 1.0), 10.0 ** random.uniform(-3.0, 3.0)
    mass = random.uniform(50.0, 400.0)
    mechanism = Mechanism(
        ground={"pin": (0.0, 1.0, 0.0), "foot": (0.5, 0.0, 0.0)},
        bodies=(Beam(name="boom", length=3.0, mass=mass, points={"eye": (0.8, 0.0, 0.0)}),),
        joints=(Revolute(name="pin", parent="ground.pin", child="boom.start", angle=begin),),
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
                edges=closed_centre(random.uniform(0.02, 0.1)),
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
                stroke=1.2,
                retracted_length=0.8,
                bulk_modulus=2e10,
                leakage=10.0 ** random.uniform(-13.0, -11.5),
            ),
            *(Hose(name=f"line_{node}", node=node, volume=1e-3, bulk_modulus=1e9) for node in "ab"),
        ),
        initial_pressures={"a": 60.0 * BAR, "b": 5.0 * BAR},
    )
    systems = {
        "machine": mechanism,
        "circuit": circuit,
        "scale": Gain(gain=unit, input_unit="rad"),
        "pid": PidController(proportional=6.0 / unit, integral=3.0 / unit, minimum=-1.0, maximum=1.0),
    }
    links = [*cylinder(), ("machine.boom.angle", "scale.input"), ("scale.output", "pid.measured")]
    links += [("pid.command", "circuit.valve.command")]
    along = np.array([0.8 * cos(angle) - 0.5, 1.0 + 0.8 * sin(angle)])
    lever = (0.8 * cos(angle) * along[1] - 0.8 * sin(angle) * along[0]) / np.linalg.norm(along)
    known = {"pid.setpoint": angle * unit, "circuit.jack.force": mass * GRAVITY * 1.5 * cos(angle) / lever}
    model = CoupledModel(name="boom", systems=systems, connections=links)
    return model, {"machine.boom.angle": angle}, {"pid.setpoint": 0.0}, known


def plungers(random: Random) -> Case:
    """Return plungers that leak, some behind counterbalance valves; commands behind overlaps feed the leaks."""
    each = range(int(random.integers(1, 4)))
    masses, overlaps = random.uniform(500.0, 2000.0, len(each)), random.uniform(0.02, 0.1, len(each))
    held = bool(random.integers(2))
    mechanism = Mechanism(
        ground={f"foot{k}": (float(k), 0.0, 0.0) for k in each},
        bodies=tuple(RigidBody(name=f"load{k}", mass=masses[k], inertia=(1.0, 1.0, 1.0)) for k in each),
        joints=tuple(
            Prismatic(
                name=f"j{k}", parent=f"ground.foot{k}", child=f"load{k}.origin", axis=(0.0, 1.0, 0.0), displacement=1.4
            )
            for k in each
        ),
        forces=tuple(Actuator(name=f"jack{k}", start=f"ground.foot{k}", end=f"load{k}.origin") for k in each),
    )
    components: list[Any] = [PressureSource(name="pump", node="P", pressure=60.0 * BAR), Tank(name="tank", node="T")]
    known, links = {}, []
    for k in each:
        spool = f"v{k}" if held else f"a{k}"
        hole, pressure = random.uniform(0.3e-3, 1.5e-3), masses[k] * GRAVITY / (pi / 4.0 * 0.1**2) + AIR
        components += [
            ProportionalValve(
                name=f"valve{k}",
                supply="P",
                tank="T",
                a=spool,
                edges=three_way(overlaps[k]),
                rated_flow=1e-3,
                rated_drop=10.0 * BAR,
                time_constant=0.02,
            ),
            Throttle(name=f"drain{k}", inlet=f"a{k}", outlet="T", orifice_diameter=hole, discharge_coefficient=0.7),
            SingleActingCylinder(
                name=f"jack{k}",
                piston=f"a{k}",
                piston_diameter=0.1,
                stroke=1.0,
                retracted_length=1.0,
                bulk_modulus=2e10,
            ),
            Hose(name=f"line{k}", node=f"a{k}", volume=1e-3, bulk_modulus=1e9),
        ]
        if held:
            components += [
                Hose(name=f"short{k}", node=spool, volume=5e-4, bulk_modulus=1e9),
                CounterbalanceValve(
                    name=f"hold{k}",
                    load=f"a{k}",
                    valve=spool,
                    pilot=spool,
                    rated_flow=1e-3,
                    rated_drop=20.0 * BAR,
                    check_flow=1e-3,
                    setting=50.0 * BAR,
                    override=30.0 * BAR,
                    pilot_ratio=4.0,
                ),
            ]
        known[f"circuit.a{k}.pressure"] = pressure
        if not held:
            flow = 0.7 * pi / 4.0 * hole**2 * sqrt(2.0 * (pressure - BAR) / OIL.density)
            opening = flow / 1e-3 / sqrt((60.0 * BAR - pressure) / (10.0 * BAR))
            known[f"circuit.valve{k}.command"] = overlaps[k] + (1.0 - overlaps[k]) * opening
        links += cylinder(f"jack{k}")
    nodes = [f"{letter}{k}" for k in each for letter in ("av" if held else "a")]
    circuit = Circuit(oil=OIL, components=components, initial_pressures=dict.fromkeys(nodes, 5.0 * BAR))
    model = CoupledModel(name="plungers", systems={"machine": mechanism, "circuit": circuit}, connections=links)
    guess = {f"circuit.valve{k}.command": float(random.uniform(-1.0, 1.0)) for k in each}
    return model, {f"machine.load{k}.displacement": 1.4 for k in each}, guess, known


def blocks(random: Random) -> Case:
    """Return a spring turned by what is within limits and beyond a dead zone: k φ = g (u − start of the zone)."""
    zone, stiffness, gain = random.uniform(0.05, 0.5), random.uniform(10.0, 100.0), random.uniform(50.0, 500.0)
    angle = random.uniform(0.05, 0.9) * gain * (1.0 - zone) / stiffness
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"pin": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="wheel", mass=1.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Revolute(name="hinge", parent="ground.pin", child="wheel.origin"),),
        forces=(
            JointDrive(name="drive", joint="hinge"),
            JointSpringDamper(name="bar", joint="hinge", stiffness=stiffness),
        ),
    )
    systems = {
        "machine": mechanism,
        "limit": Limiter(minimum=-1.0, maximum=1.0),
        "zone": DeadZone(start=-zone, end=zone),
        "gain": Gain(gain=gain, output_unit="N.m"),
    }
    links = [("limit.output", "zone.input"), ("zone.output", "gain.input"), ("gain.output", "machine.drive.torque")]
    model = CoupledModel(name="blocks", systems=systems, connections=links)
    known = {"limit.input": zone + stiffness * angle / gain}
    return model, {"machine.wheel.angle": angle}, {"limit.input": float(random.uniform(-3.0, 3.0))}, known


def stop(random: Random) -> Case:
    """Return a mass that falls on a stop of known stiffness, with nothing held."""
    mass, stiffness = 10.0 ** random.uniform(0.0, 4.0), 10.0 ** random.uniform(5.0, 8.0)
    mechanism = Mechanism(
        ground={"foot": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="load", mass=mass, inertia=(1.0, 1.0, 1.0)),),
        joints=(
            Prismatic(
                name="guide",
                parent="ground.foot",
                child="load.origin",
                axis=(0.0, 1.0, 0.0),
                displacement=random.uniform(0.3, 1.0),
            ),
        ),
        forces=(JointStop(name="floor", joint="guide", lower=0.0, stiffness=stiffness, damping=0.5),),
    )
    model = CoupledModel(name="stop", systems={"machine": mechanism}, connections=[])
    return model, {}, {}, {"machine.load.displacement": -mass * GRAVITY / stiffness}


def is_right(found: Equilibrium[CoupledModel], known: Mapping[str, float]) -> bool:
    """Tell whether what was found is what is known by hand."""
    return all(abs(found[name] - value) <= 2e-3 * abs(value) + 1e-7 for name, value in known.items())


def tried(make: Callable[[Random], Case], seed: int) -> str:
    """Return what comes of a machine: right, another one, or none."""
    model, held, asked, known = make(np.random.default_rng(seed))
    try:
        found = model.equilibrium(held, asked)
    except SimulationError:
        return "none"
    return "right" if is_right(found, known) else "another"


def main() -> None:
    """Print what comes of each kind."""
    logging.disable(logging.WARNING)
    print(f"{'kind':10} {'machines':>8} {'right':>6} {'another':>8} {'none':>5} {'s each':>7}")
    for make in (arm, boom, plungers, blocks, stop):
        begin = time.perf_counter()
        came = [tried(make, seed) for seed in range(COUNT)]
        counts = [came.count(each) for each in ("right", "another", "none")]
        spent = (time.perf_counter() - begin) / COUNT
        print(f"{make.__name__:10} {COUNT:8} {counts[0]:6} {counts[1]:8} {counts[2]:5} {spent:7.2f}", flush=True)


if __name__ == "__main__":
    main()
