"""What every kind of component takes in, delivers and loses at one moment, from its law written out with branches.

Oil that is all but incompressible, whose flows arrive as they leave, loses Q Δp over a drop, and nothing beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, exp, pi, sqrt, tanh
from typing import Any

import numpy as np
import pytest
from documented import documented_components
from test_any_circuit import mounted
from valves import CHECK, COUNTERBALANCE, EDGE, REDUCED, RELIEF, lift, orifice, rated

from hydraulics import (
    Accumulator,
    AnnularGap,
    Capillary,
    CheckValve,
    CircuitEnergies,
    CircuitEquations,
    CompensatedPump,
    Component,
    CounterbalanceValve,
    Cylinder,
    DirectionalValve,
    FlowSensor,
    FlowSource,
    Hose,
    InertialMotor,
    Line,
    LineEnd,
    LoadSensingPump,
    Motor,
    Oil,
    PilotCheckValve,
    PressureInput,
    PressureSensor,
    PressureSource,
    ProportionalValve,
    Pump,
    ReducingValve,
    ReliefValve,
    ShuttleValve,
    SingleActingCylinder,
    Tank,
    Throttle,
    TransmissionLine,
    VariableOrifice,
    VariablePump,
    Volume,
    closed_centre,
)

OIL = Oil(bulk_modulus=1e16, density=850.0, air_content=0.0, conserves="volume")
AIR = 101325.0
Moment = dict[str, float]
"""Pressures by ports, states and inputs by their names."""
Law = Callable[[Moment], tuple[float, float, float]]
"""What a component takes from outside, gives to what it moves with, and loses, in W."""


def passage(flow: Callable[[Moment], float], origin: str = "inlet", target: str = "outlet") -> Law:
    return lambda at: (0.0, 0.0, flow(at) * (at[origin] - at[target]))


def nothing(at: Moment) -> tuple[float, float, float]:
    return 0.0, 0.0, 0.0


def check_flow(acting: Callable[[Moment], float]) -> Callable[[Moment], float]:
    opening = rated(1e-3, 3e5)
    return lambda at: orifice(opening * lift(acting(at), 5e4, 3e5), at["inlet"] - at["outlet"])


def sharp(area: float, drop: float) -> float:
    return orifice(0.7 * area * sqrt(2.0 / 850.0), drop, 2e5)


def shuttle(at: Moment) -> tuple[float, float, float]:
    share, opening = lift(at["a"] - at["b"], -2e4, 2e4), rated(1e-4, 1e6)
    drops = at["a"] - at["outlet"], at["b"] - at["outlet"]
    shares = share, 1.0 - share
    return 0.0, 0.0, sum(orifice(opening * each, d) * d for each, d in zip(shares, drops, strict=True))


def counterbalance(at: Moment) -> tuple[float, float, float]:
    acting = at["load"] + 4.0 * at["pilot"] - 5.0 * at["valve"]
    drop = at["load"] - at["valve"]
    poppet = orifice(rated(1e-3, 2e6) * lift(acting, 2.5e7, 3e7), drop)
    return 0.0, 0.0, poppet * drop + orifice(rated(1e-3, 5e5) * lift(-drop, 5e4, 5e5), -drop) * -drop


def proportional(at: Moment) -> tuple[float, float, float]:
    """Each edge alone, and what goes into the load-sensing line, which a fiftieth of an edge's opening joins whole."""
    command, lost = min(max(at["command"], -1.0), 1.0), 0.0
    for work, way in (("a", command), ("b", -command)):
        for origin, target, turned in (("supply", work, way), (work, "tank", -way)):
            share, drop = max(turned - 0.05, 0.0) / 0.95, at[origin] - at[target]
            lost += orifice(share * rated(1e-3, 5e5, 2e5), drop, 2e5) * drop
            if origin == "supply" and (above := at[work] - at["load_sense"]) > 0.0:
                lost += orifice(min(share / 0.02, 1.0) * rated(2e-5, 5e5, 2e5), above, 2e5) * above
    return 0.0, 0.0, lost


def directional(at: Moment) -> tuple[float, float, float]:
    spool = at["spool"]
    ways = (("supply", "a"), ("b", "tank")) if spool > 0.0 else (("supply", "b"), ("a", "tank"))
    drops = [at[origin] - at[target] for origin, target in ways]
    return 0.0, 0.0, sum(orifice(2e-8 * abs(spool), each, 2e5) * each for each in drops)


def line(at: Moment) -> tuple[float, float, float]:
    area = pi / 4.0 * 0.02**2
    speed = at["flow"] / area
    reynolds = 850.0 * abs(speed) * 0.02 / 0.04
    friction = max(64.0 / reynolds, 0.3164 / reynolds**0.25)
    return 0.0, 0.0, at["flow"] * copysign(friction * 5.0 / 0.02 * 850.0 * speed**2 / 2.0, speed)


def accumulator(at: Moment) -> tuple[float, float, float]:
    drop = at["node"] - 9e6 * (4e-3 / (4e-3 - at["oil_volume"])) ** 1.3
    return 0.0, 0.0, sharp(pi / 4.0 * 0.03**2, drop) * drop


LOSSES: dict[str, Any] = {
    "leakage": 2e-12,
    "viscous_friction": 0.02,
    "pressure_friction": 0.05,
    "coulomb_friction": 1.5,
    "smoothing_velocity": 0.7,
    "gear_ratio": 3.0,
    "drain": "D",
    "drain_leakage": 3e-12,
    "displacement": 2e-5,
}


def machine(at: Moment, first: str, second: str, speed: float, share: float = 1.0) -> tuple[float, float]:
    """Return the torque on the shaft and what is lost, of a machine with `LOSSES`."""
    own, drop = 3.0 * speed, at[first] - at[second]
    friction = 0.02 * own + (0.05 * 2e-5 * abs(drop) + 1.5) * tanh(own / 0.7)
    leaked = 2e-12 * drop**2 + sum(3e-12 * (at[port] - at["drain"]) ** 2 for port in (first, second))
    return 3.0 * (share * 2e-5 * drop - friction), leaked + friction * own


def driven(at: Moment) -> tuple[float, float, float]:
    """A pump at a speed: the shaft brings in what its torque takes."""
    torque, lost = machine(at, "inlet", "outlet", 150.0, at.get("swash", 1.0))
    return -torque * 150.0, 0.0, lost


def turned(at: Moment) -> tuple[float, float, float]:
    torque, lost = machine(at, "a", "b", at["angular_velocity"])
    return 0.0, torque * at["angular_velocity"], lost


def loaded(at: Moment) -> tuple[float, float, float]:
    return -at["load"] * at["angular_velocity"], 0.0, machine(at, "a", "b", at["angular_velocity"])[1]


FRICTION: dict[str, Any] = {
    "viscous_friction": 300.0,
    "coulomb_friction": 100.0,
    "static_friction": 150.0,
    "stribeck_velocity": 0.02,
    "smoothing_velocity": 0.003,
}
CYLINDER: dict[str, Any] = {
    **FRICTION,
    "name": "part",
    "piston": "A",
    "piston_diameter": 0.06,
    "stroke": 0.4,
    "retracted_length": 0.5,
    "bulk_modulus": 1e16,
    "cushion_length": 0.05,
    "cushion_orifice_diameter": 4e-3,
}
DISC, RING = pi / 4.0 * 0.06**2, pi / 4.0 * (0.06**2 - 0.03**2)


def cylinder(at: Moment) -> tuple[float, float, float]:
    """Pressures, spring and atmosphere push, less seals; stops push and their dampers lose; cushions brake."""
    speed, extended = at["velocity"], at["length"] - 0.5
    seals = 300.0 * speed + (100.0 + 50.0 * exp(-((speed / 0.02) ** 2))) * tanh(speed / 0.003)
    force, lost = at["piston"] * DISC - seals, seals * speed
    if "rod" in at:
        force, leaked = force - at["rod"] * RING, 1e-12 * (at["piston"] - at["rod"]) ** 2
        lost += leaked
    else:
        force -= AIR * DISC + 400.0 + 5e3 * extended
    for side, area, room in ((1.0, DISC, extended), (-1.0, RING if "rod" in at else None, 0.4 - extended)):
        away = side * speed
        if room < 0.0:
            push = 1e8 * -room * max(1.0 - 10.0 * away, 0.0)
            force += side * push
            lost += (1e8 * -room - push) * away
        if area is not None and away < 0.0:
            closed = min(max(1.0 - room / 0.05, 0.0), 1.0)
            rise = (closed * area * away / (0.61 * pi / 4.0 * 4e-3**2)) ** 2 * 850.0 / 2.0
            force += side * area * rise
            lost -= area * rise * away
    return 0.0, force * speed, lost


ENDS: dict[str, Any] = {"name": "part", "inlet": "A", "outlet": "B"}
PORTS: dict[str, Any] = {"name": "part", "supply": "P", "tank": "T", "a": "A", "b": "B"}
PUMP: dict[str, Any] = {**ENDS, **LOSSES, "speed": 150.0}
SWASH: dict[str, Any] = {**PUMP, "time_constant": 0.03}
CUT_OFF: dict[str, Any] = {"cut_off": 3e7, "cut_off_range": 1e6}
DELAYED: dict[str, Any] = {
    "diameter": 0.02,
    "length": 5.0,
    "wave_speed": 1000.0,
    "friction": "steady",
    "viscosity": 0.04,
    "initial_flow": 5e-4,
    "reaches": 7,
}
DELAYED_LOSS = 128.0 * 0.04 * 5.0 / (pi * 0.02**4) * 5e-4**2
"""Of the flow at the start, which is laminar and the same all along the line."""


def from_far_end(at: Moment) -> tuple[float, float, float]:
    """What p Q of the flow into the line takes from the circuit, with p = a + Z Q, as supplied."""
    resistance = 128.0 * 0.04 * 5.0 / 7.0 / (pi * 0.02**4)
    impedance = 850.0 * 1000.0 / (pi / 4.0 * 0.02**2) + 0.5 * resistance
    return -at["node"] * (at["node"] - at["characteristic"]) / impedance, 0.0, 0.0


LAWS: tuple[tuple[Component, Law], ...] = (
    (Hose(name="part", node="A", volume=1e-3, bulk_modulus=1e16), nothing),
    (Volume(name="part", node="A", volume=1e-3), nothing),
    (PressureSource(name="part", node="A", pressure=1e7), nothing),
    (Tank(name="part", node="A"), nothing),
    (PressureInput(name="part", node="A"), nothing),
    (PressureSensor(name="part", node="A"), nothing),
    (FlowSource(name="part", node="A"), lambda at: (at["node"] * at["flow"], 0.0, 0.0)),
    (FlowSensor(**ENDS, rated_flow=1e-3), passage(lambda at: 1e-3 * (at["inlet"] - at["outlet"]) / 1e4)),
    (CheckValve(**ENDS, **CHECK), passage(check_flow(lambda at: at["inlet"] - at["outlet"]))),
    (
        PilotCheckValve(**ENDS, pilot="C", pilot_ratio=3.0, **CHECK),
        passage(check_flow(lambda at: at["inlet"] - at["outlet"] + 3.0 * max(at["pilot"] - at["inlet"], 0.0))),
    ),
    (ShuttleValve(name="part", a="A", b="B", outlet="C", rated_flow=1e-4, rated_drop=1e6), shuttle),
    (
        ReliefValve(**ENDS, **RELIEF),
        passage(
            lambda at: orifice(
                rated(1.5e-3, 2.15e7) * lift(at["inlet"] - at["outlet"], 2e7, 2.15e7), at["inlet"] - at["outlet"]
            )
        ),
    ),
    (
        ReducingValve(**ENDS, drain="C", **REDUCED),
        passage(
            lambda at: orifice(
                rated(1e-3, 1e6) * lift(at["drain"] - at["outlet"], -5e6, -4e6), at["inlet"] - at["outlet"]
            )
        ),
    ),
    (CounterbalanceValve(name="part", load="A", valve="B", pilot="C", **COUNTERBALANCE), counterbalance),
    (ProportionalValve(**PORTS, edges=closed_centre(0.05), load_sense="C", **EDGE), proportional),
    (DirectionalValve(**PORTS, flow_coefficient=2e-8, time_constant=0.01), directional),
    (
        Throttle(**ENDS, orifice_diameter=2e-3, discharge_coefficient=0.7),
        passage(lambda at: sharp(pi / 4.0 * 2e-3**2, at["inlet"] - at["outlet"])),
    ),
    (
        VariableOrifice(**ENDS, area=2e-5, discharge_coefficient=0.7),
        passage(lambda at: sharp(2e-5 * min(max(at["command"], 0.0), 1.0), at["inlet"] - at["outlet"])),
    ),
    (
        Capillary(**ENDS, diameter=8e-4, length=0.05, viscosity=0.04),
        passage(lambda at: pi * 8e-4**4 / (128.0 * 0.04 * 0.05) * (at["inlet"] - at["outlet"])),
    ),
    (
        AnnularGap(**ENDS, diameter=0.02, length=0.03, viscosity=0.04, clearance=1e-5),
        passage(lambda at: pi * 0.02 * 1e-5**3 / (12.0 * 0.04 * 0.03) * (at["inlet"] - at["outlet"])),
    ),
    (Line(**ENDS, diameter=0.02, length=5.0, viscosity=0.04), line),
    (TransmissionLine(**ENDS, **DELAYED), lambda _: (0.0, 0.0, DELAYED_LOSS)),
    (LineEnd(name="part", node="A", **DELAYED), from_far_end),
    (
        Accumulator(name="part", node="A", volume=4e-3, precharge_pressure=9e6, inlet_diameter=0.03),
        accumulator,
    ),
    (Pump(**PUMP), driven),
    (VariablePump(**SWASH), driven),
    (CompensatedPump(**SWASH, **CUT_OFF), driven),
    (LoadSensingPump(**SWASH, **CUT_OFF, load_sense="C", margin=2e6, margin_range=4e5), driven),
    (Motor(name="part", a="A", b="B", **LOSSES), turned),
    (InertialMotor(name="part", a="A", b="B", inertia=0.4, **LOSSES), loaded),
    (Cylinder(**CYLINDER, rod="B", rod_diameter=0.03, leakage=1e-12), cylinder),
    (SingleActingCylinder(**CYLINDER, spring_stiffness=5e3, spring_preload=400.0), cylinder),
)
RANGES: dict[str, tuple[float, float]] = {
    "velocity": (-0.4, 0.4),
    "oil_volume": (1e-4, 3e-3),
    "spool": (-10.0, 10.0),
    "swash": (-1.0, 1.0),
    "flow": (-2e-3, 2e-3),
    "angular_velocity": (-100.0, 100.0),
    "load": (-50.0, 50.0),
}
"""Of states and inputs; commands go beyond what they saturate at."""
LENGTHS = ((0.499, 0.5), (0.5, 0.56), (0.55, 0.85), (0.84, 0.9), (0.9, 0.901))
"""Pressing an end stop in, over the cushions, and between these."""


def test_every_kind_has_its_law_here() -> None:
    assert {each.type for each, _ in LAWS} == {each.type for each in documented_components()}


@pytest.mark.parametrize(("component", "law"), LAWS, ids=[each.type for each, _ in LAWS])
def test_a_component_takes_in_delivers_and_loses_what_its_law_says(component: Component, law: Law) -> None:
    equations = CircuitEquations(mounted(component, oil=OIL, walls=1e16))
    parameters = np.array([each.start for each in equations.parameters])
    random, energies, largest = np.random.default_rng(7), CircuitEnergies(equations), 0.0
    for _ in range(40):
        values = {each.name: pick(random, each.name) for each in (*equations.states, *equations.inputs)}
        states, inputs = ([values[each.name] for each in group] for group in (equations.states, equations.inputs))
        discrete = equations.initial_discrete(parameters)
        told = energies.powers(np.array(states), np.array(inputs), parameters, discrete)[:3]
        at = {name.partition(".")[2]: value for name, value in values.items()}
        at |= {port: values.get(f"{node}.pressure", 0.0) for port, node in component.ports().items()}
        expected = law(at)
        assert told == pytest.approx(expected, rel=1e-7, abs=1e-7 * (1.0 + max(map(abs, expected)))), at
        largest = max(largest, *map(abs, expected))
    assert largest > 1.0 or law is nothing


def pick(random: np.random.Generator, name: str) -> float:
    """Return a number for a state or an input: most lengths lie about ends, half of the commands at edges."""
    quantity = name.rpartition(".")[2]
    if quantity == "pressure":
        return random.uniform(1e5, 4e7)
    if quantity == "command" and random.random() < 0.5:
        return float(random.choice([-1.0, 1.0]) * random.uniform(0.04, 0.08))
    if quantity == "length":
        return random.uniform(*LENGTHS[random.integers(len(LENGTHS))])
    return random.uniform(*RANGES.get(quantity, (-1.3, 1.3)))
