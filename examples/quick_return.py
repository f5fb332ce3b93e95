"""The quick-return mechanism: two loops with slides, driven by a cylinder, and its co-simulation.

Run `mbsfmu simulate examples/quick_return.py:quick_return`, or this file, with a folder for the FMUs if they are to
stay: what does it cost to couple the mechanism and its circuit at communication points only?
"""

import sys
import tempfile
from math import pi, radians

import mbsfmu
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
from mbsfmu import Actuator, Beam, CoupledModel, Cuboid, Mechanism, Prismatic, Revolute, StepSignal


def quick_return() -> CoupledModel:
    """Return the quick-return mechanism of Jaiswal et al., Multibody System Dynamics 2021, fig. 5."""
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "J": (0.0, 5.0, 0.0), "K": (0.0, 3.0, 0.0), "Q": (-0.96, 3.0, 0.0)},
        bodies=(
            Beam(name="lever", length=5.0, mass=25.0),
            Beam(name="link", length=1.2, mass=12.0),
            Cuboid(name="ram", length=0.3, mass=3.0),
            Beam(name="crank", length=1.0, mass=100.0),
            Cuboid(name="block", length=0.3, mass=30.0),
        ),
        joints=(
            # The paper's angles, each relative to the parent. They are rounded: assembly closes the loops from there.
            Revolute(name="O", parent="ground.O", child="lever.start", angle=radians(76.22)),
            Revolute(name="H", parent="lever.end", child="link.start", angle=radians(96.89)),
            Revolute(name="I", parent="link.end", child="ram.centre", angle=radians(6.89)),
            Revolute(name="K", parent="ground.K", child="crank.start", angle=radians(30.59)),
            Revolute(name="L", parent="crank.end", child="block.centre", angle=radians(45.63)),
            # The ram slides on the ground, the block on the lever. Cutting the slides leaves two chains of hinges.
            # By the paper's angles the ram stands on its head: 76.22° + 96.89° + 6.89° = 180°.
            Prismatic(name="J", parent="ground.J", child="ram.centre", orientation=(0.0, 0.0, pi), cut=True),
            Prismatic(name="M", parent="lever.start", child="block.centre", cut=True),
        ),
        forces=(Actuator(name="cylinder", start="ground.Q", end="crank.centre"),),
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
        name="quick-return",
        description="hydraulically actuated quick-return mechanism",
        systems={"mechanism": mechanism, "circuit": circuit},
        # What crosses here crosses between the FMUs too; the last pair only at the start.
        connections=(
            ("circuit.cylinder.force", "mechanism.cylinder.force"),
            ("mechanism.cylinder.length", "circuit.cylinder.length"),
            ("mechanism.cylinder.velocity", "circuit.cylinder.velocity"),
            ("mechanism.cylinder.static_force", "circuit.cylinder.initial_load"),
        ),
        signals={"circuit.valve.command": StepSignal(times=(1.0, 4.0, 6.5, 8.0), values=(-10.0, 0.0, 10.0, 0.0))},
    )


if __name__ == "__main__":
    # The valve opens at 1 s. Most of the time goes into deriving the equations, for each unit anew.
    model = quick_return()
    monolithic = model.simulation(step=1e-3).run(1.2)
    with tempfile.TemporaryDirectory() as temporary:
        folder = sys.argv[1] if len(sys.argv) > 1 else temporary
        *units, package = mbsfmu.export(model, folder, layout="separate", backend="python", force=True)
        coupled = mbsfmu.cosimulate(package, algorithm="gauss-seidel", extrapolation="linear", step=1e-3, stop=1.2)
    print(f"coupled: {', '.join(unit.name for unit in units)}")
    for name, unit in (("cylinder.length", "m"), ("cylinder.force", "N")):
        print(f"{name} differs by at most {max(abs(coupled[name] - monolithic[name])):.3g} {unit}")
    print(f"energy that the coupling adds or takes: {coupled.energy_residual_max:.3g} J")
