"""Machines whose rest is known by hand: arms on drives, loads on plungers, a crane, a spring behind limits.

Tests take single ones, `benchmarks/rests.py` random ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, sin
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from hydraulics.flow import Edges
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    DeadZone,
    Gain,
    JointDrive,
    JointSpringDamper,
    Limiter,
    Mechanism,
    PidController,
    Prismatic,
    Revolute,
    RigidBody,
    SampledPidController,
)

GRAVITY, BAR = 9.81, 1e5
OIL = Oil(bulk_modulus=1.5e9, density=870.0, air_content=0.0)
BORE = 0.1
"""Diameter of the plungers in m."""


def cylinder(name: str = "jack") -> list[tuple[str, str]]:
    """Return the connections of a cylinder."""
    return [
        (f"circuit.{name}.force", f"machine.{name}.force"),
        (f"machine.{name}.length", f"circuit.{name}.length"),
        (f"machine.{name}.velocity", f"circuit.{name}.velocity"),
    ]


def spool(name: str, edges: Edges, a: str, **fields: Any) -> ProportionalValve:
    """Return a valve through which 60 l/min flow at 10 bar, between pump and tank."""
    given = {"rated_flow": 1e-3, "rated_drop": 10.0 * BAR, "time_constant": 0.02, **fields}
    return ProportionalValve(name=name, supply="P", tank="T", a=a, edges=edges, **given)


# -- one beam -----------------------------------------------------------------------------------------------


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


# -- arms on drives -----------------------------------------------------------------------------------------


def chain(
    angles: Sequence[float] | NDArray[np.float64],
    lengths: Sequence[float] | NDArray[np.float64],
    masses: Sequence[float] | NDArray[np.float64],
    gravity: tuple[float, float, float] = (0.0, -GRAVITY, 0.0),
) -> Mechanism:
    """Return beams end to end on driven hinges."""
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


def torques(
    angles: ArrayLike, lengths: ArrayLike, masses: ArrayLike, gravity: Sequence[float] = (0.0, -GRAVITY, 0.0)
) -> NDArray[np.float64]:
    """Return the torques that hold such a chain: moments of the weights further out about each hinge."""
    ways, weights = np.cumsum(angles), np.asarray(masses)
    steps = np.asarray(lengths)[:, None] * np.column_stack([np.cos(ways), np.sin(ways)])
    hinges = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
    held = np.zeros(len(weights))
    for inner in range(len(weights)):
        for outer in range(inner, len(weights)):
            x, y = 0.5 * (hinges[outer] + hinges[outer + 1]) - hinges[inner]
            held[inner] -= weights[outer] * (x * gravity[1] - y * gravity[0])
    return held


def pid(limit: float, *, sampled: bool = False, **fields: Any) -> PidController | SampledPidController:
    """Return a controller of an angle by a torque that has limits."""
    kind = SampledPidController if sampled else PidController
    given = {"proportional": 100.0, "integral": 50.0, "derivative": 20.0, "minimum": -limit, "maximum": limit, **fields}
    if sampled:
        given["sample_time"] = 0.01
    return kind(measured_unit="rad", command_unit="N.m", **given)


def controlled(mechanism: Mechanism, controllers: Sequence[Any], **fields: Any) -> CoupledModel:
    """Return such a chain with a controller for each drive."""
    connections = []
    for k in range(len(controllers)):
        connections += [(f"machine.b{k}.angle", f"c{k}.measured"), (f"c{k}.command", f"machine.m{k}.torque")]
    systems = {"machine": mechanism, **{f"c{k}": each for k, each in enumerate(controllers)}}
    return CoupledModel(name="arm", systems=systems, connections=connections, **fields)


# -- loads on plungers --------------------------------------------------------------------------------------


def loads(masses: Mapping[str, float]) -> Mechanism:
    """Return masses in kg side by side, each 1.4 m above its foot; what is about one ends with its key."""
    return Mechanism(
        ground={f"foot{key}": (float(place), 0.0, 0.0) for place, key in enumerate(masses)},
        bodies=tuple(RigidBody(name=f"load{key}", mass=mass, inertia=(1.0, 1.0, 1.0)) for key, mass in masses.items()),
        joints=tuple(
            Prismatic(
                name=f"guide{key}",
                parent=f"ground.foot{key}",
                child=f"load{key}.origin",
                axis=(0.0, 1.0, 0.0),
                displacement=1.4,
            )
            for key in masses
        ),
        forces=tuple(Actuator(name=f"jack{key}", start=f"ground.foot{key}", end=f"load{key}.origin") for key in masses),
    )


def leaking_plunger(key: str, leak: float) -> tuple[SingleActingCylinder, Throttle]:
    """Return the plunger of a load, and a drain of a diameter in m that leads past it."""
    return (
        SingleActingCylinder(
            name=f"jack{key}",
            piston=f"a{key}",
            piston_diameter=BORE,
            stroke=1.0,
            retracted_length=1.0,
            bulk_modulus=2e10,
        ),
        Throttle(name=f"drain{key}", inlet=f"a{key}", outlet="T", orifice_diameter=leak, discharge_coefficient=0.7),
    )


def line(node: str, volume: float = 1e-3) -> Hose:
    """Return the hose at a node; volume in m³."""
    return Hose(name=f"line_{node}", node=node, volume=volume, bulk_modulus=1e9)


def table(components: Sequence[Any], pressures: Mapping[str, float], start: Mapping[str, float]) -> CoupledModel:
    """Return a mass of 1 t on the leaking plunger of a circuit."""
    circuit = Circuit(
        oil=OIL,
        components=(Tank(name="tank", node="T"), *leaking_plunger("", 1e-3), *map(line, pressures), *components),
        initial_pressures=pressures,
    )
    systems = {"machine": loads({"": 1000.0}), "circuit": circuit}
    return CoupledModel(name="table", systems=systems, connections=cylinder(), start=start)


def plungers(
    masses: Sequence[float], leaks: Sequence[float], overlaps: Sequence[float], setting: float | None
) -> CoupledModel:
    """Return loads on plungers that leak, each behind a spool.

    Parameters
    ----------
    masses, leaks, overlaps
        Of each: its load in kg, the diameter of its drain in m, the overlap of its spool.
    setting
        At which pressure in Pa counterbalance valves between spools and plungers open; None for none of them.
    """
    components: list[Any] = [PressureSource(name="pump", node="P", pressure=60.0 * BAR), Tank(name="tank", node="T")]
    pressures: dict[str, float] = {}
    for key, (leak, overlap) in enumerate(zip(leaks, overlaps, strict=True)):
        load, valve = f"a{key}", f"a{key}" if setting is None else f"v{key}"
        components += [spool(f"valve{key}", three_way(overlap), valve), *leaking_plunger(str(key), leak), line(load)]
        pressures |= {load: 5.0 * BAR, valve: 5.0 * BAR}
        if setting is not None:
            holding = CounterbalanceValve(
                name=f"hold{key}",
                load=load,
                valve=valve,
                pilot=valve,
                rated_flow=1e-3,
                rated_drop=20.0 * BAR,
                check_flow=1e-3,
                setting=setting,
                override=30.0 * BAR,
                pilot_ratio=4.0,
            )
            components += [holding, line(valve, 5e-4)]
    circuit = Circuit(oil=OIL, components=components, initial_pressures=pressures)
    machine = loads({str(key): mass for key, mass in enumerate(masses)})
    connections = [each for key in range(len(masses)) for each in cylinder(f"jack{key}")]
    return CoupledModel(name="plungers", systems={"machine": machine, "circuit": circuit}, connections=connections)


# -- a crane ------------------------------------------------------------------------------------------------


def crane(
    begin: float, *, mass: float = 200.0, overlap: float = 0.05, leakage: float = 1e-12, unit: float = 1.0
) -> CoupledModel:
    """Return a boom on a cylinder that leaks, behind a spool with overlap, with a controller that integrates.

    Parameters
    ----------
    begin
        Angle at which it starts in rad.
    mass, overlap, leakage
        Of the boom in kg, of the spool, of the cylinder in m³/(s Pa).
    unit
        What the controller measures of an angle of 1 rad.
    """
    mechanism = Mechanism(
        ground={"pin": (0.0, 1.0, 0.0), "foot": (0.5, 0.0, 0.0)},
        bodies=(Beam(name="boom", length=3.0, mass=mass, points={"eye": (0.8, 0.0, 0.0)}),),
        joints=(Revolute(name="pin", parent="ground.pin", child="boom.start", angle=begin),),
        forces=(Actuator(name="jack", start="ground.foot", end="boom.eye"),),
    )
    jack = Cylinder(
        name="jack",
        piston="a",
        rod="b",
        piston_diameter=0.08,
        rod_diameter=0.05,
        stroke=1.2,
        retracted_length=0.8,
        bulk_modulus=2e10,
        leakage=leakage,
    )
    pump, valve = PressureSource(name="pump", node="P", pressure=200.0 * BAR), closed_centre(overlap)
    circuit = Circuit(
        oil=OIL,
        components=(pump, Tank(name="tank", node="T"), spool("valve", valve, "a", b="b"), jack, line("a"), line("b")),
        initial_pressures={"a": 60.0 * BAR, "b": 5.0 * BAR},
    )
    systems = {
        "machine": mechanism,
        "circuit": circuit,
        "scale": Gain(gain=unit, input_unit="rad"),
        "pid": PidController(proportional=6.0 / unit, integral=3.0 / unit, minimum=-1.0, maximum=1.0),
    }
    connections = [*cylinder(), ("machine.boom.angle", "scale.input"), ("scale.output", "pid.measured")]
    connections += [("pid.command", "circuit.valve.command")]
    return CoupledModel(name="crane", systems=systems, connections=connections)


def thrust_of_crane(angle: float, mass: float = 200.0) -> float:
    """Return the force in N by which its cylinder holds the boom: the moment of its weight by the cylinder's lever."""
    along = np.array([0.8 * cos(angle) - 0.5, 1.0 + 0.8 * sin(angle)])
    lever = (0.8 * cos(angle) * along[1] - 0.8 * sin(angle) * along[0]) / np.linalg.norm(along)
    return float(mass * GRAVITY * 1.5 * cos(angle) / lever)


# -- a spring behind limits ---------------------------------------------------------------------------------


def turned_spring(zone: float, stiffness: float, gain: float) -> CoupledModel:
    """Return a spring that is turned by what of a command is within ± 1 and beyond a dead zone."""
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
    return CoupledModel(name="turned_spring", systems=systems, connections=links)
