"""A log crane: a slewing motor with brake valves, two booms on counterbalance valves, and a grapple that swings.

Run `mbsfmu simulate examples/log_crane.py:log_crane`, or this file. Numbers are those of a truck crane of 100 kN m,
chosen for this example.
"""

from math import pi, radians

from hydraulics import (
    CheckValve,
    Circuit,
    CompensatedPump,
    Component,
    CounterbalanceValve,
    Cylinder,
    Hose,
    Motor,
    Oil,
    ProportionalValve,
    ReliefValve,
    Tank,
    balanced,
    catalogue_displacement,
    closed_centre,
    float_centre,
)
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    JointDrive,
    JointSpringDamper,
    LinearSignal,
    Mechanism,
    Revolute,
    RigidBody,
    Universal,
    along,
)

LITRES_PER_MINUTE, BAR = 1.0 / 60e3, 1e5

CRANE = Mechanism(
    ground={"slew": (0.0, 0.0, 0.0)},
    bodies=(
        RigidBody(
            name="column",
            mass=600.0,
            inertia=(150.0, 40.0, 150.0),
            centre=(0.0, 1.0, 0.0),
            points={"head": (0.0, 2.2, 0.0), "lift": (0.25, 0.7, 0.0)},
        ),
        Beam(name="boom", length=3.6, mass=420.0, points={"lift": along(0.28), "fold": along(0.45)}),
        RigidBody(
            name="jib",
            mass=330.0,
            inertia=(5.0, 350.0, 350.0),
            centre=(1.5, 0.0, 0.0),
            points={"fold": (0.45, -0.25, 0.0), "tip": (3.4, 0.0, 0.0)},
        ),
        RigidBody(name="grapple", mass=1100.0, inertia=(400.0, 150.0, 400.0), centre=(0.0, -1.1, 0.0)),
    ),
    joints=(
        Revolute(name="slew", parent="ground.slew", child="column.origin", axis=(0.0, 1.0, 0.0)),
        Revolute(name="head", parent="column.head", child="boom.start", angle=radians(35.0)),
        Revolute(name="elbow", parent="boom.end", child="jib.origin", angle=radians(-60.0)),
        # It hangs plumb at the start, whatever the jib's angle.
        Universal(
            name="swivel",
            parent="jib.tip",
            child="grapple.origin",
            axis=(0.0, 0.0, 1.0),
            second_axis=(1.0, 0.0, 0.0),
            angles=(radians(25.0), 0.0),
        ),
    ),
    forces=(
        Actuator(name="lift", start="column.lift", end="boom.lift"),
        Actuator(name="fold", start="boom.fold", end="jib.fold"),
        JointDrive(name="slew_drive", joint="slew"),
        JointSpringDamper(name="swing_1", joint="swivel.angle_1", damping=250.0),
        JointSpringDamper(name="swing_2", joint="swivel.angle_2", damping=250.0),
    ),
)


def line(node: str, volume: float, setting: float) -> tuple[Component, ...]:
    """Return a line with its relief valve and a check valve that lets oil in from the tank."""
    return (
        Hose(name=f"{node}_line", node=node, volume=volume, bulk_modulus=5e8),
        ReliefValve(
            name=f"{node}_relief",
            inlet=node,
            outlet="T",
            rated_flow=80.0 * LITRES_PER_MINUTE,
            setting=setting,
            override=12.0 * BAR,
            time_constant=5e-3,
        ),
        CheckValve(
            name=f"{node}_make_up",
            inlet="T",
            outlet=node,
            rated_flow=80.0 * LITRES_PER_MINUTE,
            cracking_pressure=0.05 * BAR,
            full_pressure=1.0 * BAR,
        ),
    )


def section(name: str, a: str, b: str, flow: float, **fields: object) -> ProportionalValve:
    """Return a pressure-compensated section of the valve block."""
    return ProportionalValve(
        name=name,
        supply="P",
        tank="T",
        a=a,
        b=b,
        rated_flow=flow * LITRES_PER_MINUTE,
        rated_drop=8.0 * BAR,
        time_constant=0.03,
        compensation=8.0 * BAR,
        load_check=True,
        **{"edges": float_centre(0.04, 0.03, b_share=0.7), **fields},
    )


def load_holding(name: str) -> CounterbalanceValve:
    """Return the counterbalance valve at a cylinder's piston."""
    return CounterbalanceValve(
        name=f"{name}_holding",
        load=f"{name}_a",
        valve=f"{name}_v",
        pilot=f"{name}_b",
        rated_flow=80.0 * LITRES_PER_MINUTE,
        rated_drop=10.0 * BAR,
        check_flow=80.0 * LITRES_PER_MINUTE,
        setting=230.0 * BAR,
        override=60.0 * BAR,
        pilot_ratio=2.5,
        time_constant=0.15,
    )


def cylinder(name: str, bore: float, rod: float, stroke: float, retracted: float) -> Cylinder:
    """Return a cylinder between the nodes `name_a` and `name_b`."""
    return Cylinder(
        name=name,
        piston=f"{name}_a",
        rod=f"{name}_b",
        piston_diameter=bore,
        rod_diameter=rod,
        stroke=stroke,
        retracted_length=retracted,
        bulk_modulus=2e10,
        viscous_friction=1e4,
    )


HYDRAULICS = Circuit(
    oil=Oil(bulk_modulus=1.5e9, density=870.0),
    components=(
        CompensatedPump(
            name="pump",
            inlet="T",
            outlet="P",
            displacement=catalogue_displacement(60e-6),
            speed=150.0,
            time_constant=0.05,
            cut_off=230.0 * BAR,
            cut_off_range=15.0 * BAR,
            leakage=2e-12,
        ),
        Tank(name="tank", node="T", pressure=2.5 * BAR),
        Hose(name="supply", node="P", volume=2e-3, bulk_modulus=5e8),
        ReliefValve(
            name="relief",
            inlet="P",
            outlet="T",
            rated_flow=90.0 * LITRES_PER_MINUTE,
            setting=240.0 * BAR,
            override=12.0 * BAR,
            time_constant=5e-3,
        ),
        section("lift_section", "lift_v", "lift_b", 50.0),
        Hose(name="lift_v_line", node="lift_v", volume=1e-3, bulk_modulus=5e8),
        load_holding("lift"),
        *line("lift_a", 0.5e-3, 300.0 * BAR),
        *line("lift_b", 1e-3, 250.0 * BAR),
        cylinder("lift", 0.140, 0.080, 0.90, 1.55),
        section("fold_section", "fold_v", "fold_b", 40.0),
        Hose(name="fold_v_line", node="fold_v", volume=1e-3, bulk_modulus=5e8),
        load_holding("fold"),
        *line("fold_a", 0.5e-3, 300.0 * BAR),
        *line("fold_b", 1e-3, 250.0 * BAR),
        cylinder("fold", 0.125, 0.080, 0.95, 1.35),
        section("slew_section", "slew_a", "slew_b", 25.0, edges=closed_centre(0.03)),
        *line("slew_a", 1e-3, 140.0 * BAR),
        *line("slew_b", 1e-3, 140.0 * BAR),
        Motor(
            name="slew_motor",
            a="slew_a",
            b="slew_b",
            displacement=catalogue_displacement(50e-6),
            gear_ratio=120.0,
            leakage=2e-12,
            pressure_friction=0.08,
            viscous_friction=0.05,
            coulomb_friction=1.0,
        ),
    ),
    initial_pressures={
        "P": 220.0 * BAR,
        **{f"{name}_v": 2.5 * BAR for name in ("lift", "fold")},
        **{f"{name}_b": 2.5 * BAR for name in ("lift", "fold")},
        **{f"{name}_a": balanced(name) for name in ("lift", "fold")},
        "slew_a": 20.0 * BAR,
        "slew_b": 20.0 * BAR,
    },
)


def lever(*points: tuple[float, float]) -> LinearSignal:
    """Return how a lever is moved, between points of time and deflection."""
    times, values = zip(*points, strict=True)
    return LinearSignal(times=times, values=values)


def log_crane() -> CoupledModel:
    """Return the crane: it lifts and stretches, slews by some 70°, stops, and lets the log down."""
    connections = [
        ("circuit.slew_motor.torque", "crane.slew_drive.torque"),
        ("crane.column.angular_velocity", "circuit.slew_motor.angular_velocity"),
    ]
    for name in ("lift", "fold"):
        connections += [
            (f"circuit.{name}.force", f"crane.{name}.force"),
            (f"crane.{name}.length", f"circuit.{name}.length"),
            (f"crane.{name}.velocity", f"circuit.{name}.velocity"),
            (f"crane.{name}.static_force", f"circuit.{name}.initial_load"),
        ]
    return CoupledModel(
        name="log-crane",
        description="log crane with slewing motor and counterbalance valves",
        systems={"crane": CRANE, "circuit": HYDRAULICS},
        connections=connections,
        signals={
            "circuit.lift_section.command": lever(
                (0.5, 0.0), (1.0, 0.7), (3.0, 0.7), (3.5, 0.0), (9.0, 0.0), (9.5, -0.5), (11.5, -0.5), (12.0, 0.0)
            ),
            "circuit.fold_section.command": lever((1.5, 0.0), (2.0, 0.5), (3.5, 0.5), (4.0, 0.0)),
            "circuit.slew_section.command": lever((3.0, 0.0), (4.0, 0.6), (7.0, 0.6), (8.0, 0.0)),
        },
        stop_time=14.0,
    )


if __name__ == "__main__":
    result = log_crane().simulation(solver="rodas5p").run()
    print(f"the crane slews by {result['column.angle'][-1] * 180.0 / pi:.1f}°")
    print(f"the grapple swings by {max(abs(result['grapple.angle_2'])) * 180.0 / pi:.1f}° at most across the jib")
