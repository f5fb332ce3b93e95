"""The two hydraulically actuated mechanisms of [Jaiswal2021, sect. 5].

Table 1 of the paper, the parameters of the circuit, is not printed in its text. Missing values are from Rahikainen,
González, Naya, Sopanen, Mikkola, Multibody System Dynamics 50 (2020), where the same authors publish them for this
circuit; the assignment of hose volumes is our choice. With these alone the cylinder moves too far. The two published
works of the actuator determine one more parameter; `CIRCUITS` has the choices that reproduce both.
"""

from __future__ import annotations

from math import pi, radians, sqrt
from typing import NamedTuple

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
from hydraulics.fluid import Conserved
from mbsfmu.base.errors import InputError
from mbsfmu.io.signals import StepSignal
from mbsfmu.model import Beam, Cuboid, Mechanism, along
from mbsfmu.models.chains import ORIGIN
from mbsfmu.parts import Actuator, Prismatic, Revolute
from mbsfmu.system_model.coupled_model import CoupledModel

HOSE_MODULUS = 150e6


class CircuitAssumptions(NamedTuple):
    """Assumptions on the circuit that the paper does not state.

    Attributes
    ----------
    viscous_friction
        Of the cylinder's seals in N s/m.
    orifice_diameter
        Of the throttle in m.
    valve_flow
        Through an edge of the valve at a pressure drop of 35 bar and 10 V, in l/min.
    air_content
        Air in the oil, as for `Oil`.
    """

    viscous_friction: float = 196e3
    orifice_diameter: float = 6e-3
    valve_flow: float = 24.0
    air_content: float = 0.005


CIRCUITS = {
    "friction": CircuitAssumptions(),
    "throttle": CircuitAssumptions(viscous_friction=0.0, orifice_diameter=2.443e-3, air_content=0.0),
    "friction-and-valve": CircuitAssumptions(viscous_friction=50e3, valve_flow=19.0),
    "frictionless": CircuitAssumptions(viscous_friction=0.0, air_content=0.0),
}
"""Circuits by name. `friction`, `throttle` and `friction-and-valve` reproduce both published works within 0.12 %. The
first is the default: with it alone the largest drift occurs at the published time, and pressures stay far above vacuum.
`frictionless` has the parameters of 2020 unchanged, and moves about a third further. The two without friction have oil
without air, the paper's eq. 23; pressures of the four-bar fall below vacuum, unlike in real oil. They exist for
comparison with other programs.
"""


def actuation(name: str = "friction", air_content: float | None = None, conserves: Conserved = "volume") -> Circuit:
    """Return the circuit of both mechanisms: pump, valve, throttle, cylinder, three volumes.

    Parameters
    ----------
    name
        One of `CIRCUITS`.
    air_content
        Air in the oil; that of the named circuit by default, and with 0 the paper's eq. 23.
    conserves
        What flows conserve, as for `Oil`: volume in the paper's eq. 22, which reproduces the published works.

    Raises
    ------
    InputError
        When there is none of that name.
    """
    if name not in CIRCUITS:
        raise InputError(f"there is no circuit '{name}'; there are {', '.join(CIRCUITS)}")
    choice = CIRCUITS[name]
    return Circuit(
        oil=Oil(
            bulk_modulus=1500e6,
            density=850.0,
            air_content=choice.air_content if air_content is None else air_content,
            conserves=conserves,
        ),
        components=(
            PressureSource(name="pump", node="P", pressure=7.6e6),
            Tank(name="tank", node="T", pressure=0.1e6),
            DirectionalValve(
                name="valve",
                supply="P",
                tank="T",
                a="V1",
                b="V3",
                flow_coefficient=catalogue_coefficient(choice.valve_flow / 60e3, 35e5, 10.0),
                time_constant=1.0 / (2.0 * pi * 35.0),  # a bandwidth of 35 Hz
            ),
            Hose(name="hose_1", node="V1", volume=3.14e-5, bulk_modulus=HOSE_MODULUS),
            Throttle(
                name="throttle",
                inlet="V1",
                outlet="V2",
                orifice_diameter=choice.orifice_diameter,
                discharge_coefficient=0.8,
            ),
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
                viscous_friction=choice.viscous_friction,
            ),
            Hose(name="hose_3", node="V3", volume=4.71e-5, bulk_modulus=HOSE_MODULUS),
        ),
        initial_pressures={"V3": 3.5e6, "V2": balanced("cylinder"), "V1": balanced("cylinder")},
    )


def _actuated(name: str, mechanism: Mechanism, command: StepSignal, circuit: Circuit, suffix: str) -> CoupledModel:
    return CoupledModel(
        name=name + suffix,
        description=f"hydraulically actuated {name} mechanism",
        systems={"mechanism": mechanism, "circuit": circuit},
        connections=(
            ("circuit.cylinder.force", "mechanism.cylinder.force"),
            ("mechanism.cylinder.length", "circuit.cylinder.length"),
            ("mechanism.cylinder.velocity", "circuit.cylinder.velocity"),
            ("mechanism.cylinder.static_force", "circuit.cylinder.initial_load"),
        ),
        signals={"circuit.valve.command": command},
        stop_time=10.0,
        step=1e-3,
        **ORIGIN,
    )


def _suffix(circuit: str) -> str:
    """Return the suffix of a model's name after that of the mechanism."""
    return "" if circuit == "friction" else f"-{circuit}"


def four_bar(
    circuit: str = "friction", *, air_content: float | None = None, conserves: Conserved = "volume"
) -> CoupledModel:
    """Return the hydraulically actuated four-bar mechanism [Jaiswal2021, fig. 4].

    Its circuit and the errors are those of `actuation`.
    """
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
    return _actuated("four-bar", mechanism, command, actuation(circuit, air_content, conserves), _suffix(circuit))


def quick_return(
    circuit: str = "friction", *, air_content: float | None = None, conserves: Conserved = "volume"
) -> CoupledModel:
    """Return the hydraulically actuated quick-return mechanism [Jaiswal2021, fig. 5].

    The published start angles are rounded; assembly closes the loops from there. Its circuit and the errors are those
    of `actuation`.
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
            # By the published angles the ram stands on its head: 76.22° + 96.89° + 6.89° = 180°.
            Prismatic(name="J", parent="ground.J", child="ram.centre", orientation=(0.0, 0.0, pi), cut=True),
            Prismatic(name="M", parent="lever.start", child="block.centre", cut=True),
        ),
        forces=(Actuator(name="cylinder", start="ground.Q", end="crank.centre"),),
    )
    command = StepSignal(times=(1.0, 4.0, 6.5, 8.0), values=(-10.0, 0.0, 10.0, 0.0))
    return _actuated("quick-return", mechanism, command, actuation(circuit, air_content, conserves), _suffix(circuit))
