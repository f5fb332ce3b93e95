"""The two hydraulically actuated mechanisms of [Jaiswal2021, sect. 5].

Table 1 of the paper, the parameters of the circuit, is not printed in its text; they are those that the same
authors published for this circuit in Rahikainen, González, Naya, Sopanen, Mikkola, Multibody System Dynamics
50 (2020). Which hose volume belongs to which hose is our choice.
"""

from __future__ import annotations

from math import pi, radians, sqrt

from hydraulics import (
    Circuit,
    Cylinder,
    DirectionalValve,
    Hose,
    Oil,
    PressureSource,
    Tank,
    Throttle,
    balanced,
    catalogue_coefficient,
)
from mbsfmu.coupled import CoupledModel
from mbsfmu.model import Actuator, Beam, Cuboid, Mechanism, Prismatic, Revolute, along
from mbsfmu.signals import StepSignal

HOSE_MODULUS = 150e6


def circuit() -> Circuit:
    """Return the circuit of both mechanisms: pump, valve, throttle, cylinder, three volumes."""
    return Circuit(
        oil=Oil(bulk_modulus=1500e6, density=850.0),
        components=(
            PressureSource(name="pump", node="P", pressure=7.6e6),
            Tank(name="tank", node="T", pressure=0.1e6),
            DirectionalValve(
                name="valve",
                supply="P",
                tank="T",
                a="V1",
                b="V3",
                # 24 l/min at a pressure drop of 35 bar and 10 V; bandwidth 35 Hz
                flow_coefficient=catalogue_coefficient(4e-4, 35e5, 10.0),
                time_constant=1.0 / (2.0 * pi * 35.0),
            ),
            Hose(name="hose_1", node="V1", volume=3.14e-5, bulk_modulus=HOSE_MODULUS),
            Throttle(name="throttle", inlet="V1", outlet="V2", orifice_diameter=6e-3, discharge_coefficient=0.8),
            Hose(name="hose_2", node="V2", volume=7.85e-5, bulk_modulus=HOSE_MODULUS),
            Cylinder(
                name="cylinder",
                piston="V2",
                rod="V3",
                piston_diameter=0.080,
                rod_diameter=0.035,
                stroke=0.9,
                retracted_length=0.9,
                bulk_modulus=31500e6,
            ),
            Hose(name="hose_3", node="V3", volume=4.71e-5, bulk_modulus=HOSE_MODULUS),
        ),
        initial_pressures={"V3": 3.5e6, "V2": balanced("cylinder"), "V1": balanced("cylinder")},
    )


def _actuated(name: str, description: str, mechanism: Mechanism, command: StepSignal) -> CoupledModel:
    return CoupledModel(
        name=name,
        description=description,
        systems={"mechanism": mechanism, "circuit": circuit()},
        connections=(
            ("circuit.cylinder.force", "mechanism.cylinder.force"),
            ("mechanism.cylinder.length", "circuit.cylinder.length"),
            ("mechanism.cylinder.velocity", "circuit.cylinder.velocity"),
            ("mechanism.cylinder.static_force", "circuit.cylinder.initial_load"),
        ),
        signals={"circuit.valve.command": command},
        stop_time=10.0,
        step=1e-3,
    )


def four_bar() -> CoupledModel:
    """Return the hydraulically actuated four-bar mechanism [Jaiswal2021, fig. 4]."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "E": (0.0, -1.0, 0.0), "G": (0.0, -2.0, 0.0)},
        bodies=(
            Beam(name="boom", length=9.0, mass=225.0, points={"C": along(1.0 / 3.0)}),
            Beam(name="link", length=sqrt(2.0), mass=35.0),
            Beam(name="rocker", length=2.0, mass=50.0),
        ),
        joints=(
            Revolute(name="O", parent="ground.O", child="boom.start"),
            Revolute(name="C", parent="boom.C", child="link.start", angle=radians(-135.0)),
            Revolute(name="D", parent="link.end", child="rocker.start", angle=radians(-45.0)),
            Revolute(name="E", parent="ground.E", child="rocker.end", cut=True),
        ),
        forces=(Actuator(name="cylinder", start="ground.G", end="rocker.centre"),),
    )
    command = StepSignal(times=(1.0, 2.5, 5.0, 8.0), values=(10.0, 0.0, -10.0, 0.0))
    return _actuated("four-bar", "hydraulically actuated four-bar mechanism", mechanism, command)


def quick_return() -> CoupledModel:
    """Return the hydraulically actuated quick-return mechanism [Jaiswal2021, fig. 5].

    The published start angles are rounded; assembly closes the loops from there.
    """
    mechanism = Mechanism(
        ground={
            "O": (0.0, 0.0, 0.0),
            "J": (0.0, 5.0, 0.0),
            "K": (0.0, 3.0, 0.0),
            "Q": (-0.96, 3.0, 0.0),
        },
        bodies=(
            Beam(name="lever", length=5.0, mass=25.0),
            Beam(name="link", length=1.2, mass=12.0),
            Cuboid(name="ram", length=0.3, mass=3.0),
            Beam(name="crank", length=1.0, mass=100.0),
            Cuboid(name="block", length=0.3, mass=30.0),
        ),
        joints=(
            Revolute(name="O", parent="ground.O", child="lever.start", angle=radians(76.22)),
            Revolute(name="H", parent="lever.end", child="link.start", angle=radians(96.89)),
            Revolute(name="I", parent="link.end", child="ram.centre", angle=radians(6.89)),
            Revolute(name="K", parent="ground.K", child="crank.start", angle=radians(30.59)),
            Revolute(name="L", parent="crank.end", child="block.centre", angle=radians(45.63)),
            Prismatic(name="J", parent="ground.J", child="ram.centre", cut=True),
            Prismatic(name="M", parent="lever.start", child="block.centre", cut=True),
        ),
        forces=(Actuator(name="cylinder", start="ground.Q", end="crank.centre"),),
    )
    command = StepSignal(times=(1.0, 4.0, 6.5, 8.0), values=(-10.0, 0.0, 10.0, 0.0))
    return _actuated("quick-return", "hydraulically actuated quick-return mechanism", mechanism, command)
