"""Benchmark problems with hydraulics: the crane of Chrono's demonstration, and Exudyn's arm."""

from __future__ import annotations

from math import cos, pi, sqrt

import numpy as np
from field_case import Expected, FieldCase, integrated

from hydraulics import (
    Circuit,
    Cylinder,
    DirectionalValve,
    FlowSource,
    Hose,
    Oil,
    PressureSensor,
    PressureSource,
    ProportionalValve,
    Tank,
    Volume,
    catalogue_coefficient,
    closed_centre,
)
from mbsfmu import (
    Actuator,
    CoupledModel,
    Gain,
    Limiter,
    LinearSignal,
    Mechanism,
    PointSensor,
    Revolute,
    RigidBody,
    SineSignal,
    Spherical,
    SpringDamper,
    Sum,
)
from mbsfmu.tracing.workspace import Floats

PUMP, TANK = 7.6e6, 1e5
PISTON, ROD = 0.08, 0.035
CHAMBER = 0.221
OIL, HOSE, WALLS = 1.5e9, 1.5e8, 3.15e10
HOSES = 3.14e-5, 7.85e-5
SPOOL = 1.0 / (2.0 * pi * 35.0)
SEALS = 1e5
FLOW = catalogue_coefficient(12.0 / 60e3, 35e5, 10.0)
LAMINAR = 2e5
START = 4.4e6, 3.3e6
COMMAND = (0.0, 0.5, 2.0, 7.0, 9.0, 10.0), (0.0, 0.0, 0.6, 0.6, -1.0, 0.0)
CRANE, BALL = 500.0, 100.0
ROPE = 0.3
GRAVITY = 9.8
FOOT = 0.5 * sqrt(3.0)
"""Data of demo_MBS_hydraulic_crane of Project Chrono, and of its ChHydraulicActuator2: the circuit of Rahikainen,
González, Naya, Sopanen, Mikkola, Multibody Syst. Dyn. 50 (2020) without a throttle."""


def crane() -> CoupledModel:
    """A boom on a hydraulic cylinder, from whose end a ball hangs: Chrono's demonstration."""
    one = (1.0, 1.0, 1.0)
    bodies = (
        RigidBody(name="crane", mass=CRANE, inertia=one, centre=(0.5, 0.0, 0.0), points={"tip": (1.0, 0.0, 0.0)}),
        RigidBody(name="ball", mass=BALL, inertia=one, centre=(0.0, 0.0, -ROPE), points={"low": (0.0, 0.0, -ROPE)}),
    )
    joints = (
        Revolute(name="foot", parent="ground.O", child="crane.origin", axis=(0.0, -1.0, 0.0), angle=pi / 6),
        Spherical(name="hook", parent="crane.tip", child="ball.origin", angles=(0.0, pi / 6, 0.0)),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -GRAVITY),
        ground={"O": (0.0, 0.0, 0.0), "A": (FOOT, 0.0, 0.0)},
        bodies=bodies,
        joints=joints,
        forces=(Actuator(name="ram", start="ground.A", end="crane.centre"),),
        sensors=(PointSensor(name="low", point="ball.low", measures=("position",)),),
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=OIL, density=850.0, air_content=0.0, conserves="volume"),
        components=(
            PressureSource(name="pump", node="P", pressure=PUMP),
            Tank(name="tank", node="T", pressure=TANK),
            DirectionalValve(
                name="valve", supply="P", tank="T", a="A", b="B", flow_coefficient=FLOW, time_constant=SPOOL
            ),
            Hose(name="hose_a", node="A", volume=HOSES[0], bulk_modulus=HOSE),
            Hose(name="hose_b", node="B", volume=HOSES[1], bulk_modulus=HOSE),
            Cylinder(
                name="cylinder",
                piston="A",
                rod="B",
                piston_diameter=PISTON,
                rod_diameter=ROD,
                stroke=2.0 * CHAMBER,
                retracted_length=0.5 - CHAMBER,
                bulk_modulus=WALLS,
                viscous_friction=SEALS,
            ),
        ),
        initial_pressures={"A": START[0], "B": START[1]},
    )
    return CoupledModel(
        name="crane",
        systems={"m": mechanism, "c": circuit},
        connections=(
            ("c.cylinder.force", "m.ram.force"),
            ("m.ram.length", "c.cylinder.length"),
            ("m.ram.velocity", "c.cylinder.velocity"),
        ),
        signals={"c.valve.command": LinearSignal(times=COMMAND[0], values=COMMAND[1])},
    )


def orifice(drop: float) -> float:
    """Return the root of a pressure drop with its sign, linear where flow is laminar."""
    return float(drop / sqrt(max(abs(drop), LAMINAR)))


def crane_motion(times: Floats) -> Expected:
    """The angles of boom and rope in their plane, spool and two pressures, by Chrono's equations and Radau IIA."""
    piston = 0.25 * pi * PISTON**2
    areas = np.array([piston, piston - 0.25 * pi * ROD**2])

    def rates(time: float, y: Floats) -> list[float]:
        boom, rope, boom_rate, rope_rate, spool, *pressures = y.tolist()
        length = sqrt(1.0 - FOOT * cos(boom))  # of the cylinder, 0.5 m at 30°
        lever = 0.5 * FOOT * np.sin(boom) / length
        velocity = lever * boom_rate
        supply = spool > 0.0
        flows = (
            FLOW * spool * orifice(PUMP - pressures[0] if supply else pressures[0] - TANK),
            FLOW * spool * orifice(pressures[1] - TANK if supply else PUMP - pressures[1]),
        )
        slopes = []
        for sign, area, hose, pressure_flow in zip((1.0, -1.0), areas, HOSES, flows, strict=True):
            chamber = area * (CHAMBER + sign * (length - 0.5))
            compliance = (hose + chamber) / OIL + chamber / WALLS + hose / HOSE
            slopes.append(sign * (pressure_flow - area * velocity) / compliance)
        force = pressures[0] * areas[0] - pressures[1] * areas[1] - SEALS * velocity
        turn = rope - boom
        mass = np.array(
            [
                [1.0 + 0.25 * CRANE + BALL, BALL * ROPE * np.sin(turn)],
                [BALL * ROPE * np.sin(turn), 1.0 + BALL * ROPE**2],
            ]
        )
        load = [
            force * lever - (0.5 * CRANE + BALL) * GRAVITY * cos(boom) - BALL * ROPE * cos(turn) * rope_rate**2,
            -BALL * ROPE * GRAVITY * np.sin(rope) + BALL * ROPE * cos(turn) * boom_rate**2,
        ]
        accelerations = np.linalg.solve(mass, load).tolist()
        command = float(np.interp(time, *COMMAND))
        return [boom_rate, rope_rate, *accelerations, (command - spool) / SPOOL, *slopes]

    y = integrated(rates, [pi / 6, 0.0, 0.0, 0.0, 0.0, *START], times, "Radau")
    return {
        "crane.angle": y[0],
        "low.position.x": np.cos(y[0]) + ROPE * np.sin(y[1]),
        "A.pressure": y[5],
        "B.pressure": y[6],
    }


ARM_MASS = 120.0
AREA, ARM_VOLUME, ARM_OIL = 0.01, 1.0, 1e11
ARM_PRESSURE, ARM_START, ARM_FLOW, ARM_DAMPING = 2e7, 2e6, 2e-5, 2e5
ARM_LENGTH = 0.25 * sqrt(2.0)
"""Data of hydraulicActuatorSimpleTest of Exudyn; its chambers keep their volume of 1 m³."""

EXUDYN = {"arm.angle": 0.0245836, "A.pressure": 6416127.54, "B.pressure": 2984560.01}
"""At 0.4 s, by Exudyn 1.13.6 in steps of 2 and 1 µs, extrapolated, because it holds its valve for a step. In steps of
1 ms it gives the 7.130440021870293 that its test suite expects."""


def arm() -> CoupledModel:
    """An arm on a cylinder with two chambers of constant volume, whose length a valve controls: Exudyn's test model."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "H": (0.0, -0.25, 0.0)},
        bodies=(
            RigidBody(
                name="arm",
                mass=ARM_MASS,
                inertia=(ARM_MASS / 12.0,) * 3,
                centre=(0.5, 0.0, 0.0),
                points={"rod": (0.25, 0.0, 0.0)},
            ),
        ),
        joints=(Revolute(name="foot", parent="ground.O", child="arm.origin"),),
        forces=(
            Actuator(name="ram", start="ground.H", end="arm.rod"),
            SpringDamper(name="seals", start="ground.H", end="arm.rod", stiffness=0.0, damping=ARM_DAMPING),
        ),
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=ARM_OIL, density=850.0, air_content=0.0, conserves="volume"),
        components=(
            PressureSource(name="pump", node="P", pressure=ARM_PRESSURE),
            Tank(name="tank", node="T", pressure=0.0),
            ProportionalValve(
                name="valve",
                supply="P",
                tank="T",
                a="A",
                b="B",
                edges=closed_centre(),
                rated_flow=ARM_FLOW * sqrt(1e5),
                rated_drop=1e5,
                laminar_pressure=1e3,
            ),
            *(Volume(name=f"chamber_{node}", node=node, volume=ARM_VOLUME) for node in "AB"),
            *(FlowSource(name=f"piston_{node}", node=node) for node in "AB"),
            *(PressureSensor(name=f"gauge_{node}", node=node) for node in "AB"),
        ),
        initial_pressures={"A": ARM_START, "B": ARM_START},
    )
    blocks = {
        "push": Gain(gain=AREA, input_unit="Pa", output_unit="N"),
        "pull": Gain(gain=AREA, input_unit="Pa", output_unit="N"),
        "force": Sum(unit="N", signs="+-"),
        "out_of_A": Gain(gain=-AREA, input_unit="m/s", output_unit="m3/s"),
        "into_B": Gain(gain=AREA, input_unit="m/s", output_unit="m3/s"),
        "target": Limiter(unit="m", minimum=0.0, maximum=0.1),
        "error": Sum(unit="m", signs="+-"),
        "controller": Gain(gain=2.0, offset=2.0 * ARM_LENGTH, input_unit="m"),
    }
    connections = (
        ("c.gauge_A.pressure", "push.input"),
        ("c.gauge_B.pressure", "pull.input"),
        ("push.output", "force.input_1"),
        ("pull.output", "force.input_2"),
        ("force.output", "m.ram.force"),
        ("m.ram.velocity", "out_of_A.input"),
        ("m.ram.velocity", "into_B.input"),
        ("out_of_A.output", "c.piston_A.flow"),
        ("into_B.output", "c.piston_B.flow"),
        ("target.output", "error.input_1"),
        ("m.ram.length", "error.input_2"),
        ("error.output", "controller.input"),
        ("controller.output", "c.valve.command"),
    )
    wave = SineSignal(amplitude=0.1, frequency=0.5, phase=-0.5 * pi, offset=0.05)
    return CoupledModel(
        name="arm",
        systems={"m": mechanism, "c": circuit, **blocks},
        connections=connections,
        signals={"target.input": wave},
    )


def arm_motion(times: Floats) -> Expected:
    """The angle of the arm and two pressures, by Exudyn's equations and Radau IIA."""

    def rates(time: float, y: Floats) -> list[float]:
        angle, speed, *pressures = y.tolist()
        length = ARM_LENGTH * sqrt(1.0 + np.sin(angle))
        lever = 0.25**2 * cos(angle) / length
        velocity = lever * speed
        target = min(max(0.5, 1.0 - cos(pi * time)), 1.5) - 0.5
        opening = 2.0 * (0.1 * target + ARM_LENGTH - length)
        if opening >= 0.0:
            flows = sqrt(ARM_PRESSURE - pressures[0]), -sqrt(pressures[1])
        else:
            flows = sqrt(pressures[0]), -sqrt(ARM_PRESSURE - pressures[1])
        slopes = [
            ARM_OIL / ARM_VOLUME * (ARM_FLOW * opening * flow - way * AREA * velocity)
            for flow, way in zip(flows, (1.0, -1.0), strict=True)
        ]
        force = AREA * (pressures[0] - pressures[1]) - ARM_DAMPING * velocity
        torque = force * lever - 0.5 * ARM_MASS * 9.81 * cos(angle)
        return [speed, torque / (ARM_MASS / 3.0), *slopes]

    y = integrated(rates, [0.0, 0.0, ARM_START, ARM_START], times, "Radau")
    return {"arm.angle": y[0], "A.pressure": y[2], "B.pressure": y[3]}


def hydraulic_cases() -> tuple[FieldCase, ...]:
    """Return them."""
    return (
        FieldCase("crane of Chrono", "its equations by SciPy", crane, crane_motion, 10.0),
        FieldCase("arm of Exudyn", "its equations by SciPy, its own result", arm, arm_motion, 0.4),
    )
