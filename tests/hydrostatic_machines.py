"""Machines of pumps, motors and cylinders that tests share."""

from __future__ import annotations

from hydraulics import (
    CheckValve,
    Circuit,
    CompensatedPump,
    Cylinder,
    Hose,
    InertialMotor,
    LoadSensingPump,
    Motor,
    Oil,
    Pump,
    SingleActingCylinder,
    Tank,
    Throttle,
    VariablePump,
    balanced,
    catalogue_displacement,
)
from hydraulics.component import Component
from mbsfmu import (
    Actuator,
    Beam,
    CoupledModel,
    Cuboid,
    JointActuator,
    LinearSignal,
    Mechanism,
    Prismatic,
    Revolute,
    RigidBody,
    StepSignal,
)

OIL = Oil(bulk_modulus=1500e6, density=850.0)
GEAR, MOTOR = 60.0, catalogue_displacement(90e-6)


def hose(node: str, volume: float = 1e-3) -> Hose:
    return Hose(name=f"line_{node}", node=node, volume=volume, bulk_modulus=8e8)


def throttle(name: str, inlet: str, outlet: str, diameter: float) -> Throttle:
    return Throttle(name=name, inlet=inlet, outlet=outlet, orifice_diameter=diameter, discharge_coefficient=0.7)


def slewing_drive() -> tuple[Component, ...]:
    """A closed circuit: pump that swings both ways, motor, and check valves that make up what its case loses."""
    weak = {"rated_flow": 1e-3, "cracking_pressure": 0.0, "full_pressure": 2e4}
    checks = (CheckValve(name=f"make_up_{node}", inlet="T", outlet=node, **weak) for node in "AB")
    pump = VariablePump(
        name="swing",
        inlet="A",
        outlet="B",
        displacement=catalogue_displacement(40e-6),
        speed=190.0,
        time_constant=0.05,
        minimum_swash=-1.0,
        leakage=1e-12,
        drain="T",
        drain_leakage=5e-13,
    )
    motor = Motor(
        name="motor",
        a="B",
        b="A",
        displacement=MOTOR,
        gear_ratio=GEAR,
        drain="T",
        drain_leakage=2e-12,
        viscous_friction=0.02,
        pressure_friction=0.06,
    )
    return (Tank(name="tank", node="T", pressure=2e5), pump, motor, hose("A"), hose("B"), *checks)


SLEWING = (
    ("circuit.motor.torque", "mechanism.slewing.torque"),
    ("mechanism.slewing.angular_velocity", "circuit.motor.angular_velocity"),
)
SWING = LinearSignal(times=(0.0, 0.1, 0.4, 0.5), values=(0.0, 0.0, 1.0, -0.5))
HOUSE = RigidBody(name="house", mass=8e3, inertia=(2e3, 2e3, 3e3))
TURN = Revolute(name="turn", parent="ground.O", child="house.origin", axis=(0.0, 0.0, 1.0))


def slewer() -> CoupledModel:
    """A house on a hydrostatic drive."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -9.81),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(HOUSE,),
        joints=(TURN,),
        forces=(JointActuator(name="slewing", joint="turn"),),
    )
    circuit = Circuit(oil=OIL, components=slewing_drive(), initial_pressures={"A": 10e5, "B": 10e5})
    return CoupledModel(
        name="slewer",
        systems={"mechanism": mechanism, "circuit": circuit},
        connections=SLEWING,
        signals={"circuit.swing.command": SWING},
        stop_time=1.2,
    )


def _boom_and_table() -> Mechanism:
    """A house with a boom on a cylinder, and a table on a plunger beside it."""
    return Mechanism(
        gravity=(0.0, 0.0, -9.81),
        ground={"O": (0.0, 0.0, 0.0), "P": (20.0, 0.0, 0.0)},
        bodies=(
            HOUSE.model_copy(update={"points": {"foot": (0.5, 0.0, 0.0), "base": (0.9, 0.0, -0.6)}}),
            Beam(name="boom", length=4.0, mass=600.0, points={"eye": (1.2, 0.0, 0.0)}),
            Cuboid(name="table", length=0.2, mass=900.0),
        ),
        joints=(
            TURN,
            Revolute(name="luff", parent="house.foot", child="boom.start", axis=(0.0, -1.0, 0.0), angle=0.3),
            Prismatic(name="rise", parent="ground.P", child="table.centre", axis=(0.0, 0.0, 1.0), displacement=0.7),
        ),
        forces=(
            JointActuator(name="slewing", joint="turn"),
            Actuator(name="ram", start="house.base", end="boom.eye"),
            Actuator(name="jack", start="ground.P", end="table.centre"),
        ),
    )


def _four_pumps() -> Circuit:
    """A closed circuit that slews, and pumps for a cylinder with cushions and leakage, a plunger and a fan."""
    bore = {"stroke": 1.2, "retracted_length": 0.9, "bulk_modulus": 3e10, "viscous_friction": 2e3}
    main = {"displacement": catalogue_displacement(60e-6), "speed": 190.0, "time_constant": 0.04, "inlet": "T"}
    cut_off = {"cut_off": 250e5, "cut_off_range": 10e5}
    components = (
        *slewing_drive(),
        LoadSensingPump(
            name="main",
            outlet="P",
            load_sense="C",
            **main,
            **cut_off,
            margin=20e5,
            margin_range=4e5,
            maximum_torque=120.0,
        ),
        hose("P"),
        throttle("lift", "P", "C", 3.2e-3),
        Cylinder(
            name="ram",
            piston="C",
            rod="D",
            piston_diameter=0.08,
            rod_diameter=0.05,
            leakage=1e-12,
            cushion_length=0.9,
            cushion_orifice_diameter=2e-3,
            **bore,
        ),
        hose("C", 5e-4),
        hose("D", 5e-4),
        throttle("back", "D", "T", 5e-3),
        CompensatedPump(name="press", outlet="E", **main, **cut_off),
        hose("E"),
        throttle("raise", "E", "F", 1.5e-3),
        SingleActingCylinder(name="jack", piston="F", piston_diameter=0.06, **{**bore, "retracted_length": 0.5}),
        hose("F"),
        Pump(
            name="cooler", inlet="T", outlet="G", displacement=catalogue_displacement(20e-6), speed=190.0, leakage=1e-12
        ),
        hose("G"),
        InertialMotor(
            name="fan", a="G", b="T", displacement=catalogue_displacement(25e-6), inertia=0.3, viscous_friction=0.05
        ),
    )
    rest = dict.fromkeys("ABPEG", 1000000.0)
    return Circuit(
        oil=OIL,
        components=components,
        initial_pressures={**rest, "C": balanced("ram"), "D": 5e5, "F": balanced("jack")},
    )


def loader() -> CoupledModel:
    """A house with a boom on a cylinder with cushions and leakage, a plunger, a fan, and four pumps."""
    lines = [
        line
        for name in ("ram", "jack")
        for line in (
            (f"circuit.{name}.force", f"mechanism.{name}.force"),
            (f"mechanism.{name}.length", f"circuit.{name}.length"),
            (f"mechanism.{name}.velocity", f"circuit.{name}.velocity"),
            (f"mechanism.{name}.static_force", f"circuit.{name}.initial_load"),
        )
    ]
    return CoupledModel(
        name="loader",
        systems={"mechanism": _boom_and_table(), "circuit": _four_pumps()},
        connections=(*SLEWING, *lines),
        signals={
            "circuit.swing.command": SWING,
            "circuit.fan.load": StepSignal(times=(0.0, 0.3), values=(2.0, 12.0)),
        },
        stop_time=0.6,
    )
