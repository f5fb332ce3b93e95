"""An excavator of the 20 t class, with its hydraulics and its controllers, digging, lifting, slewing and dumping.

Run `mbsfmu simulate examples/excavator.py:excavator`, or this file.

Bores, rods, strokes, lengths of boom and stick, pump flow, pressures, engine power, swing speed and torque are those of
the specification sheet of the Komatsu PC200-8 hydraulic excavator. Where pins sit, masses, centres, inertias, valves
and lines are not in such sheets: they are chosen so that strokes and working range are met.
"""

from math import pi, radians

from excavator_looks import LOOKS, SCENERY

from hydraulics import (
    CheckValve,
    Circuit,
    Component,
    CounterbalanceValve,
    Cylinder,
    Hose,
    LoadSensingPump,
    Motor,
    Oil,
    ProportionalValve,
    ReliefValve,
    Tank,
    Throttle,
    balanced,
    catalogue_displacement,
    closed_centre,
    float_centre,
)
from mbsfmu import (
    Actuator,
    AppliedForce,
    CoupledModel,
    JointDrive,
    LinearSignal,
    Mechanism,
    PidController,
    RestToRestSignal,
    Revolute,
    RigidBody,
)

LITRES_PER_MINUTE, BAR = 1.0 / 60e3, 1e5

# -- the machine --------------------------------------------------------------------------------------------

MACHINE = Mechanism(
    ground={"slew": (0.0, 0.0, 0.0)},
    bodies=(
        # x forwards, y up; each body's frame is at the pin that it turns about, x towards the next one.
        RigidBody(
            name="house",
            mass=9500.0,
            inertia=(9000.0, 22000.0, 20000.0),
            centre=(-1.0, 1.5, 0.0),
            points={"boom": (0.10, 1.90, 0.0), "boom_cylinder": (0.62, 1.28, 0.0)},
            shapes=LOOKS["house"],
        ),
        RigidBody(
            name="boom",
            mass=1700.0,
            inertia=(250.0, 4800.0, 4900.0),
            centre=(2.6, 0.45, 0.0),
            length=5.7,
            points={"cylinder": (2.40, 0.62, 0.0), "stick_cylinder": (3.05, 1.00, 0.0), "stick": (5.7, 0.0, 0.0)},
            shapes=LOOKS["boom"],
        ),
        RigidBody(
            name="stick",
            mass=850.0,
            inertia=(60.0, 750.0, 780.0),
            centre=(1.0, 0.20, 0.0),
            length=2.925,
            points={
                "cylinder": (-0.75, 0.45, 0.0),
                "bucket_cylinder": (0.35, 0.45, 0.0),
                "rocker": (2.495, 0.03, 0.0),
                "bucket": (2.925, 0.0, 0.0),
            },
            shapes=LOOKS["stick"],
        ),
        RigidBody(
            name="bucket",
            mass=700.0,
            inertia=(150.0, 190.0, 190.0),
            centre=(0.70, 0.10, 0.0),
            points={"link": (-0.132, 0.461, 0.0), "load": (0.70, 0.10, 0.0), "teeth": (1.45, 0.0, 0.0)},
            shapes=LOOKS["bucket"],
        ),
        RigidBody(
            name="rocker",
            mass=40.0,
            inertia=(0.5, 1.5, 1.5),
            centre=(0.30, 0.0, 0.0),
            points={"end": (0.60, 0.0, 0.0)},
            shapes=LOOKS["rocker"],
        ),
        RigidBody(
            name="link",
            mass=60.0,
            inertia=(0.8, 2.4, 2.4),
            centre=(0.31, 0.0, 0.0),
            points={"end": (0.62, 0.0, 0.0)},
            shapes=LOOKS["link"],
        ),
    ),
    joints=(
        Revolute(name="slew", parent="ground.slew", child="house.origin", axis=(0.0, 1.0, 0.0)),
        Revolute(name="boom", parent="house.boom", child="boom.origin", angle=radians(10.0)),
        Revolute(name="stick", parent="boom.stick", child="stick.origin", angle=radians(-60.0)),
        Revolute(name="rocker", parent="stick.rocker", child="rocker.origin", angle=radians(120.0)),
        Revolute(name="bucket", parent="stick.bucket", child="bucket.origin", angle=radians(-2.1)),
        Revolute(name="knee", parent="rocker.end", child="link.origin", angle=radians(-127.8)),
        Revolute(name="eye", parent="bucket.link", child="link.end", cut=True),
    ),
    forces=(
        Actuator(name="boom_cylinder", start="house.boom_cylinder", end="boom.cylinder"),
        Actuator(name="stick_cylinder", start="boom.stick_cylinder", end="stick.cylinder"),
        Actuator(name="bucket_cylinder", start="stick.bucket_cylinder", end="rocker.end"),
        JointDrive(name="slew_drive", joint="slew"),
        AppliedForce(name="soil", point="bucket.teeth"),
        AppliedForce(name="payload", point="bucket.load"),
    ),
    scenery=SCENERY,
)

# -- its hydraulics -----------------------------------------------------------------------------------------


def port(node: str, volume: float, pressure: float) -> tuple[Component, ...]:
    """Return what is at a consumer's port: a line, a relief valve, and a check valve that lets oil in from the tank."""
    return (
        Hose(name=f"{node}_line", node=node, volume=volume, bulk_modulus=6e8),
        ReliefValve(
            name=f"{node}_relief",
            inlet=node,
            outlet="T",
            rated_flow=250.0 * LITRES_PER_MINUTE,
            setting=pressure,
            override=15.0 * BAR,
            time_constant=5e-3,
        ),
        CheckValve(
            name=f"{node}_make_up",
            inlet="T",
            outlet=node,
            rated_flow=200.0 * LITRES_PER_MINUTE,
            cracking_pressure=0.05 * BAR,
            full_pressure=1.5 * BAR,
        ),
    )


def section(name: str, a: str, b: str, flow: float, **fields: object) -> ProportionalValve:
    """Return a section of the valve block: load-sensing, pressure-compensated, with a load check and 5 % of overlap."""
    fields = {"edges": closed_centre(0.05, b_share=0.8), **fields}
    return ProportionalValve(
        name=name,
        supply="P",
        tank="T",
        a=a,
        b=b,
        load_sense="LS",
        sensing_flow=4e-5,
        rated_flow=flow * LITRES_PER_MINUTE,
        rated_drop=10.0 * BAR,
        time_constant=0.02,
        compensation=10.0 * BAR,
        load_check=True,
        **fields,
    )


def cylinder(name: str, bore: float, rod: float, stroke: float, retracted: float) -> Cylinder:
    """Return a cylinder between the nodes `name_a` and `name_b`, with seals, leakage and cushions."""
    return Cylinder(
        name=f"{name}_cylinder",
        piston=f"{name}_a",
        rod=f"{name}_b",
        piston_diameter=bore,
        rod_diameter=rod,
        stroke=stroke,
        retracted_length=retracted,
        bulk_modulus=2e10,
        leakage=2e-14,
        viscous_friction=2e4,
        coulomb_friction=1500.0,
        static_friction=2000.0,
        smoothing_velocity=5e-3,
        cushion_length=0.06,
        cushion_orifice_diameter=8e-3,
    )


HYDRAULICS = Circuit(
    oil=Oil(bulk_modulus=1.5e9, density=870.0),
    components=(
        # 439 l/min at 2000 rev/min, cut off at 34.8 MPa, and no more than 110 kW.
        LoadSensingPump(
            name="pump",
            inlet="T",
            outlet="P",
            load_sense="LS",
            displacement=catalogue_displacement(220e-6),
            speed=2000.0 * 2.0 * pi / 60.0,
            time_constant=0.05,
            cut_off=348.0 * BAR,
            cut_off_range=10.0 * BAR,
            margin=22.0 * BAR,
            margin_range=4.0 * BAR,
            maximum_torque=525.0,
            leakage=5e-12,
            pressure_friction=0.05,
        ),
        Tank(name="tank", node="T", pressure=3.0 * BAR),
        Hose(name="supply", node="P", volume=5e-3, bulk_modulus=6e8),
        ReliefValve(
            name="main_relief",
            inlet="P",
            outlet="T",
            rated_flow=400.0 * LITRES_PER_MINUTE,
            setting=350.0 * BAR,
            override=15.0 * BAR,
            time_constant=5e-3,
        ),
        Hose(name="sensing", node="LS", volume=5e-5, bulk_modulus=6e8),
        Throttle(name="bleed", inlet="LS", outlet="T", orifice_diameter=0.4e-3, discharge_coefficient=0.7),
        # Boom: two cylinders of 130 mm by 90 mm, here as one of their areas; a counterbalance valve holds the load.
        section("boom_section", "boom_v", "boom_b", 380.0, edges=float_centre(0.05, 0.03, b_share=0.6)),
        Hose(name="boom_v_line", node="boom_v", volume=2e-3, bulk_modulus=6e8),
        CounterbalanceValve(
            name="boom_holding",
            load="boom_a",
            valve="boom_v",
            pilot="boom_b",
            rated_flow=400.0 * LITRES_PER_MINUTE,
            rated_drop=15.0 * BAR,
            check_flow=400.0 * LITRES_PER_MINUTE,
            setting=220.0 * BAR,
            override=60.0 * BAR,
            pilot_ratio=3.0,
            time_constant=0.2,
        ),
        *port("boom_a", 2e-3, 373.0 * BAR),
        *port("boom_b", 2e-3, 373.0 * BAR),
        cylinder("boom", 2.0**0.5 * 0.130, 2.0**0.5 * 0.090, 1.334, 1.800),
        section("stick_section", "stick_a", "stick_b", 300.0),
        *port("stick_a", 3e-3, 373.0 * BAR),
        *port("stick_b", 3e-3, 373.0 * BAR),
        cylinder("stick", 0.135, 0.095, 1.490, 2.240),
        section("bucket_section", "bucket_a", "bucket_b", 250.0),
        *port("bucket_a", 3e-3, 373.0 * BAR),
        *port("bucket_b", 3e-3, 373.0 * BAR),
        cylinder("bucket", 0.115, 0.080, 1.120, 1.640),
        # Swing: 12.4 rev/min; 68 kN m at 28.9 MPa.
        section("slew_section", "slew_a", "slew_b", 220.0, edges=closed_centre(0.05)),
        *port("slew_a", 2e-3, 289.0 * BAR),
        *port("slew_b", 2e-3, 289.0 * BAR),
        Motor(
            name="slew_motor",
            a="slew_a",
            b="slew_b",
            displacement=catalogue_displacement(125e-6),
            gear_ratio=130.0,
            leakage=2e-12,
            pressure_friction=0.06,
            coulomb_friction=3.0,
            viscous_friction=0.05,
        ),
    ),
    initial_pressures={
        "P": 25.0 * BAR,
        "LS": 3.0 * BAR,
        "boom_v": 3.0 * BAR,
        "boom_b": 3.0 * BAR,
        "boom_a": balanced("boom_cylinder"),
        "stick_a": 30.0 * BAR,
        "stick_b": balanced("stick_cylinder"),
        "bucket_a": 30.0 * BAR,
        "bucket_b": balanced("bucket_cylinder"),
        "slew_a": 30.0 * BAR,
        "slew_b": 30.0 * BAR,
    },
)

# -- its controllers, and what the operator wants -----------------------------------------------------------


def controller(gain: float, unit: str) -> PidController:
    """Return the controller of a valve section."""
    return PidController(measured_unit=unit, proportional=gain, minimum=-1.0, maximum=1.0)


def moves(*points: tuple[float, float]) -> RestToRestSignal:
    """Return a signal that rests at points of time and value, and moves smoothly between them."""
    times, values = zip(*points, strict=True)
    return RestToRestSignal(times=times, values=values)


# Lengths of cylinders in m, and the angle of the house: dig, lift, slew by 90°, dump, return.
CYCLE = {
    "boom_controller.setpoint": moves((0.5, 2.388), (4.5, 2.35), (5.0, 2.35), (8.0, 2.80), (15.0, 2.80), (19.5, 2.388)),
    "stick_controller.setpoint": moves(
        (0.5, 2.668), (5.0, 3.42), (11.0, 3.42), (13.5, 2.90), (16.0, 2.90), (19.0, 2.668)
    ),
    "bucket_controller.setpoint": moves(
        (1.0, 1.848), (5.5, 2.66), (11.5, 2.66), (14.0, 1.80), (16.0, 1.80), (18.0, 1.848)
    ),
    "slew_controller.setpoint": moves((6.5, 0.0), (11.5, pi / 2.0), (13.5, pi / 2.0), (18.5, 0.0)),
    # The soil resists the teeth outwards while they dig, and lies in the bucket until it is dumped.
    "machine.soil.force.x": LinearSignal(times=(1.0, 2.0, 4.0, 5.0), values=(0.0, 5e4, 5e4, 0.0)),
    "machine.soil.force.y": LinearSignal(times=(1.0, 2.0, 4.0, 5.0), values=(0.0, 1e4, 1e4, 0.0)),
    "machine.payload.force.y": LinearSignal(times=(3.0, 5.0, 12.0, 13.5), values=(0.0, -1.4e4, -1.4e4, 0.0)),
}


def excavator() -> CoupledModel:
    """Return the excavator: six bodies, four degrees of freedom, one loop, nine lines, four controllers."""
    connections = []
    for name in ("boom", "stick", "bucket"):
        own = f"{name}_cylinder"
        connections += [
            (f"circuit.{own}.force", f"machine.{own}.force"),
            (f"machine.{own}.length", f"circuit.{own}.length"),
            (f"machine.{own}.velocity", f"circuit.{own}.velocity"),
            (f"machine.{own}.static_force", f"circuit.{own}.initial_load"),
            (f"machine.{own}.length", f"{name}_controller.measured"),
            (f"{name}_controller.command", f"circuit.{name}_section.command"),
        ]
    connections += [
        ("circuit.slew_motor.torque", "machine.slew_drive.torque"),
        ("machine.house.angular_velocity", "circuit.slew_motor.angular_velocity"),
        ("machine.house.angle", "slew_controller.measured"),
        ("slew_controller.command", "circuit.slew_section.command"),
    ]
    controllers = {f"{name}_controller": controller(6.0, "m") for name in ("boom", "stick", "bucket")}
    return CoupledModel(
        name="excavator",
        description="excavator of the 20 t class: dig, lift, slew, dump, return",
        systems={"machine": MACHINE, "circuit": HYDRAULICS, **controllers, "slew_controller": controller(3.0, "rad")},
        connections=connections,
        signals=CYCLE,
        stop_time=20.0,
    )


def resting_excavator() -> CoupledModel:
    """Return the same that begins at rest: pressures carry the parts, valves and pump are where they settle.

    Pistons leak: what changes more slowly than in 10 s counts as standing.
    """
    return excavator().equilibrium("position", horizon=10.0).model


if __name__ == "__main__":
    result = excavator().simulation().run()
    bar = {name: result[f"{name}.pressure"].max() / BAR for name in ("P", "boom_a", "stick_a", "slew_a")}
    print(f"the bucket is dumped at a slew angle of {result['house.angle'].max() / pi * 180.0:.1f}°")
    print(f"largest pressures in bar: {', '.join(f'{name} {value:.0f}' for name, value in bar.items())}")
