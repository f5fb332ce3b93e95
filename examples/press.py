"""A hydraulic press: an accumulator brings the slide down, a pump presses, a counterbalance valve holds it up.

Run `mbsfmu simulate examples/press.py:press`, or this file. Numbers are those of a press of 1 MN, chosen for this
example.
"""

from hydraulics import (
    Accumulator,
    CheckValve,
    Circuit,
    CompensatedPump,
    Component,
    CounterbalanceValve,
    Cylinder,
    Hose,
    Oil,
    ProportionalValve,
    ReliefValve,
    Tank,
    balanced,
    catalogue_displacement,
    closed_centre,
)
from mbsfmu import (
    Actuator,
    CoupledModel,
    JointStop,
    LinearSignal,
    Mechanism,
    PidController,
    Prismatic,
    RateLimiter,
    RigidBody,
)

LITRES_PER_MINUTE, BAR = 1.0 / 60e3, 1e5
TOP, WORKPIECE = 3.0, -0.25
"""Height of the cylinder's mount in m, and where the slide meets the workpiece, below where it starts."""


def machine() -> Mechanism:
    """Return the slide, its guide and the workpiece in the die."""
    return Mechanism(
        ground={"mount": (0.0, TOP, 0.0), "guide": (0.0, TOP - 1.4, 0.0)},
        bodies=(RigidBody(name="slide", mass=4000.0, inertia=(500.0, 500.0, 500.0)),),
        joints=(Prismatic(name="guide", parent="ground.guide", child="slide.origin", axis=(0.0, 1.0, 0.0)),),
        forces=(
            Actuator(name="cylinder", start="ground.mount", end="slide.origin"),
            JointStop(name="workpiece", joint="guide", lower=WORKPIECE, stiffness=4e8, damping=0.5),
        ),
    )


def supply() -> tuple[Component, ...]:
    """Return pump and relief valve, and behind a check valve the accumulator that the press draws from."""
    return (
        CompensatedPump(
            name="pump",
            inlet="T",
            outlet="S",
            displacement=catalogue_displacement(100e-6),
            speed=152.0,
            time_constant=0.05,
            cut_off=280.0 * BAR,
            cut_off_range=10.0 * BAR,
            leakage=2e-12,
        ),
        Tank(name="tank", node="T"),
        Hose(name="suction", node="S", volume=2e-3, bulk_modulus=8e8),
        ReliefValve(
            name="relief",
            inlet="P",
            outlet="T",
            rated_flow=150.0 * LITRES_PER_MINUTE,
            setting=300.0 * BAR,
            override=15.0 * BAR,
            time_constant=5e-3,
        ),
        CheckValve(
            name="check",
            inlet="S",
            outlet="P",
            rated_flow=200.0 * LITRES_PER_MINUTE,
            cracking_pressure=0.5 * BAR,
            full_pressure=3.0 * BAR,
        ),
        Hose(name="supply", node="P", volume=4e-3, bulk_modulus=8e8),
        Accumulator(
            name="accumulator",
            node="P",
            volume=60e-3,
            precharge_pressure=150.0 * BAR,
            polytropic_index=1.3,
            inlet_diameter=25e-3,
        ),
    )


def drive() -> tuple[Component, ...]:
    """Return the valve, and the cylinder behind a counterbalance valve."""
    return (
        ProportionalValve(
            name="valve",
            supply="P",
            tank="T",
            a="A",
            b="V",
            edges=closed_centre(0.02),
            rated_flow=350.0 * LITRES_PER_MINUTE,
            rated_drop=35.0 * BAR,
            natural_frequency=150.0,
            damping_ratio=0.8,
        ),
        Hose(name="line_a", node="A", volume=3e-3, bulk_modulus=8e8),
        Hose(name="line_v", node="V", volume=1e-3, bulk_modulus=8e8),
        Hose(name="line_b", node="B", volume=1e-3, bulk_modulus=8e8),
        # The slide's weight rests on the rod's side; pressure above the piston lets it down.
        CounterbalanceValve(
            name="holding",
            load="B",
            valve="V",
            pilot="A",
            rated_flow=200.0 * LITRES_PER_MINUTE,
            rated_drop=20.0 * BAR,
            check_flow=200.0 * LITRES_PER_MINUTE,
            setting=70.0 * BAR,
            override=20.0 * BAR,
            pilot_ratio=2.0,
            time_constant=0.03,
        ),
        Cylinder(
            name="cylinder",
            piston="A",
            rod="B",
            piston_diameter=0.240,
            rod_diameter=0.200,
            stroke=0.700,
            retracted_length=1.200,
            bulk_modulus=2e10,
            viscous_friction=1e4,
            coulomb_friction=3000.0,
            static_friction=4000.0,
            smoothing_velocity=2e-3,
        ),
    )


def circuit() -> Circuit:
    """Return the hydraulics at the pressures of the start."""
    return Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=870.0),
        components=(*supply(), *drive()),
        initial_pressures={
            "S": 250.0 * BAR,
            "P": 250.0 * BAR,
            "A": 10.0 * BAR,
            "V": 1.0 * BAR,
            "B": balanced("cylinder"),
        },
    )


def press() -> CoupledModel:
    """Return the press: a slide of 4 t, one cylinder, a workpiece as stiff as steel in the die."""
    return CoupledModel(
        name="press",
        description="hydraulic press with accumulator, compensated pump and counterbalance valve",
        systems={
            "machine": machine(),
            "circuit": circuit(),
            "limiter": RateLimiter(unit="m", rising=0.6, falling=0.6, response_time=0.02),
            "controller": PidController(measured_unit="m", proportional=-25.0, minimum=-1.0, maximum=1.0),
        },
        connections=(
            ("circuit.cylinder.force", "machine.cylinder.force"),
            ("machine.cylinder.length", "circuit.cylinder.length"),
            ("machine.cylinder.velocity", "circuit.cylinder.velocity"),
            ("machine.cylinder.static_force", "circuit.cylinder.initial_load"),
            ("limiter.output", "controller.setpoint"),
            ("machine.slide.displacement", "controller.measured"),
            ("controller.command", "circuit.valve.command"),
        ),
        # Down to below the workpiece's face, press, and up again.
        signals={"limiter.input": LinearSignal(times=(0.2, 0.21, 2.5, 2.51), values=(0.0, -0.30, -0.30, 0.0))},
        stop_time=4.0,
    )


if __name__ == "__main__":
    result = press().simulation(solver="rodas5p").run()
    print(f"the slide presses with {1e-3 * result['workpiece.load'].max():.0f} kN")
    print(f"the accumulator gives {1e3 * (result['oil_volume'][0] - result['oil_volume'].min()):.1f} l")
