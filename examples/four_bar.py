"""The four-bar: three beams and the ground form a loop, a cylinder pushes the rocker.

Run `mbsfmu simulate examples/four_bar.py:four_bar`, or this file: what does a run cost, how exact is it?
"""

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
from mbsfmu import Actuator, Beam, CoupledModel, Mechanism, Revolute, StepSignal, along


def four_bar() -> CoupledModel:
    """Return the hydraulically actuated four-bar of Jaiswal et al., Multibody System Dynamics 2021, fig. 4."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "E": (0.0, -1.0, 0.0), "G": (0.0, -2.0, 0.0)},
        bodies=(
            Beam(name="boom", length=9.0, mass=225.0, points={"C": along(1.0 / 3.0)}),
            Beam(name="link", length=sqrt(2.0), mass=35.0),
            Beam(name="rocker", length=2.0, mass=50.0),
        ),
        joints=(
            # Each angle is relative to the parent: the boom lies along x, from C the link goes back and down,
            # and the rocker, turned by -135° - 45° = -180°, points along -x.
            Revolute(name="O", parent="ground.O", child="boom.start"),
            Revolute(name="C", parent="boom.C", child="link.start", angle=radians(-135.0)),
            Revolute(name="D", parent="link.end", child="rocker.start", angle=radians(-45.0)),
            # Three bodies have three coordinates; the fourth joint closes the loop. Marking it as cut says so, and
            # makes the angles above, which the drawing gives, the coordinates.
            Revolute(name="E", parent="ground.E", child="rocker.end", cut=True),
        ),
        forces=(Actuator(name="cylinder", start="ground.G", end="rocker.centre"),),
    )
    circuit = Circuit(
        # By volume as in the paper; a machine of your own leaves that out, and its flows conserve mass.
        oil=Oil(bulk_modulus=1500e6, density=850.0, conserves="volume"),
        components=(
            PressureSource(name="pump", node="P", pressure=7.6e6),
            Tank(name="tank", node="T", pressure=0.1e6),
            DirectionalValve(
                name="valve",
                supply="P",
                tank="T",
                a="V1",
                b="V3",
                flow_coefficient=catalogue_coefficient(4e-4, 35e5, 10.0),  # 24 l/min at 35 bar and 10 V
                time_constant=1.0 / (2.0 * pi * 35.0),  # a bandwidth of 35 Hz
            ),
            # A node's pressure needs oil that can be compressed: each has a hose.
            Hose(name="hose_1", node="V1", volume=3.14e-5, bulk_modulus=150e6),
            Throttle(name="throttle", inlet="V1", outlet="V2", orifice_diameter=6e-3, discharge_coefficient=0.8),
            Hose(name="hose_2", node="V2", volume=7.85e-5, bulk_modulus=150e6),
            Cylinder(
                name="cylinder",
                piston="V2",
                rod="V3",
                piston_diameter=0.080,
                rod_diameter=0.035,
                stroke=0.9,
                retracted_length=0.9,
                bulk_modulus=31500e6,
                viscous_friction=196e3,  # not printed in the paper; with it the work of the cylinder is the published
            ),
            Hose(name="hose_3", node="V3", volume=4.71e-5, bulk_modulus=150e6),
        ),
        # The piston's side starts at the pressure that holds the mechanism still.
        initial_pressures={"V3": 3.5e6, "V2": balanced("cylinder"), "V1": balanced("cylinder")},
    )
    return CoupledModel(
        name="four-bar",
        description="hydraulically actuated four-bar mechanism",
        systems={"mechanism": mechanism, "circuit": circuit},
        connections=(
            ("circuit.cylinder.force", "mechanism.cylinder.force"),
            ("mechanism.cylinder.length", "circuit.cylinder.length"),
            ("mechanism.cylinder.velocity", "circuit.cylinder.velocity"),
            ("mechanism.cylinder.static_force", "circuit.cylinder.initial_load"),
        ),
        signals={"circuit.valve.command": StepSignal(times=(1.0, 2.5, 5.0, 8.0), values=(10.0, 0.0, -10.0, 0.0))},
    )


if __name__ == "__main__":
    result = four_bar().simulation(step=1e-3).run(2.0)  # a step means equal ones
    print(f"the cylinder moves by {result['cylinder.length'][-1] - result['cylinder.length'][0]:.4f} m")
    print(
        f"energy drift at most {result.largest('energy.drift'):.3g} J of {result.largest('energy.work'):.3g} J of work"
    )
    print(f"{result.statistics.newton_mean:.2f} Newton iterations a step")
