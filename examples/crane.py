"""A model of one's own: a crane boom lifted by a cylinder, with a swinging load.

Run `mbsfmu simulate examples/crane.py:crane`, or this file.
"""

from math import radians

from hydraulics import Circuit, Cylinder, DirectionalValve, Hose, Oil, PressureSource, Tank, balanced
from mbsfmu import Actuator, Beam, CoupledModel, JointSpringDamper, Mechanism, Revolute, StepSignal, along


def crane() -> CoupledModel:
    """Return the crane: two degrees of freedom, no loop, a circuit without throttle."""
    mechanism = Mechanism(
        ground={"pivot": (0.0, 1.5, 0.0), "foot": (0.5, 0.0, 0.0)},
        bodies=(
            Beam(name="boom", length=4.0, mass=300.0, points={"lug": along(0.4)}),
            Beam(name="load", length=1.5, mass=200.0),
        ),
        joints=(
            Revolute(name="pivot", parent="ground.pivot", child="boom.start", angle=radians(20.0)),
            Revolute(name="hook", parent="boom.end", child="load.start", angle=radians(-110.0)),
        ),
        forces=(
            Actuator(name="lift", start="ground.foot", end="boom.lug"),
            JointSpringDamper(name="hook_friction", joint="hook", damping=40.0),
        ),
    )
    hydraulics = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(
            PressureSource(name="pump", node="P", pressure=18e6),
            Tank(name="tank", node="T"),
            DirectionalValve(
                name="valve", supply="P", tank="T", a="A", b="B", flow_coefficient=1e-8, time_constant=0.01
            ),
            Hose(name="hose_a", node="A", volume=1e-4, bulk_modulus=3e8),
            Hose(name="hose_b", node="B", volume=1e-4, bulk_modulus=3e8),
            Cylinder(
                name="lift",
                piston="A",
                rod="B",
                piston_diameter=0.08,
                rod_diameter=0.045,
                stroke=1.2,
                retracted_length=1.4,
                bulk_modulus=2e10,
                viscous_friction=2000.0,
            ),
        ),
        initial_pressures={"B": 2e6, "A": balanced("lift")},
    )
    return CoupledModel(
        name="crane",
        description="crane with a swinging load",
        systems={"mechanism": mechanism, "circuit": hydraulics},
        connections=(
            ("circuit.lift.force", "mechanism.lift.force"),
            ("mechanism.lift.length", "circuit.lift.length"),
            ("mechanism.lift.velocity", "circuit.lift.velocity"),
            ("mechanism.lift.static_force", "circuit.lift.initial_load"),
        ),
        signals={"circuit.valve.command": StepSignal(times=(0.5, 2.0), values=(6.0, 0.0))},
        stop_time=5.0,
    )


if __name__ == "__main__":
    result = crane().simulation(formulation="double-step").run()
    print(f"the boom rises by {result['boom.angle'][-1] - result['boom.angle'][0]:.3f} rad")
    print(f"largest energy drift {result.largest('energy.drift'):.3g} J")
