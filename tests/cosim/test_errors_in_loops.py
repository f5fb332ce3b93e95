"""Errors that an FMU estimates of itself grow without bound where only the other FMUs of a loop hold it where it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hydraulics
import mbsfmu


def luffer() -> mbsfmu.CoupledModel:
    """A boom that a cylinder and a controller hold, with a load that swings and rubs on its tip."""
    mechanism = mbsfmu.Mechanism(
        ground={"pin": (0.0, 1.5, 0.0), "foot": (0.8, 0.5, 0.0)},
        bodies=(
            mbsfmu.RigidBody(
                name="boom",
                mass=600.0,
                inertia=(20.0, 1800.0, 1800.0),
                centre=(3.0, 0.0, 0.0),
                points={"eye": (2.0, -0.2, 0.0), "tip": (6.0, 0.0, 0.0)},
            ),
            mbsfmu.RigidBody(name="load", mass=500.0, inertia=(20.0, 20.0, 20.0), centre=(0.0, -1.5, 0.0)),
        ),
        joints=(
            mbsfmu.Revolute(name="luff", parent="ground.pin", child="boom.origin"),
            mbsfmu.Revolute(name="swing", parent="boom.tip", child="load.origin"),
        ),
        forces=(
            mbsfmu.Actuator(name="ram", start="ground.foot", end="boom.eye"),
            mbsfmu.JointFriction(
                name="hook", joint="swing", coulomb_load=30.0, static_load=40.0, smoothing_velocity=1e-2
            ),
        ),
        sensors=(
            mbsfmu.JointSensor(name="encoder", joint="luff"),
            mbsfmu.PointSensor(name="seen", point="load.centre"),
        ),
    )
    circuit = hydraulics.Circuit(
        oil=hydraulics.Oil(bulk_modulus=1.4e9, density=860.0),
        components=(
            hydraulics.PressureSource(name="pump", node="P", pressure=200e5),
            hydraulics.Tank(name="tank", node="T"),
            hydraulics.DirectionalValve(
                name="valve",
                supply="P",
                tank="T",
                a="A",
                b="B",
                flow_coefficient=hydraulics.catalogue_coefficient(40 / 60e3, 35e5, 10.0),
                time_constant=0.02,
            ),
            hydraulics.Hose(name="hose_a", node="A", volume=1e-3, bulk_modulus=6e8),
            hydraulics.Hose(name="hose_b", node="B", volume=1e-3, bulk_modulus=6e8),
            hydraulics.Cylinder(
                name="ram",
                piston="A",
                rod="B",
                piston_diameter=0.10,
                rod_diameter=0.06,
                stroke=1.3,
                retracted_length=0.9,
                bulk_modulus=31.5e9,
                viscous_friction=4000.0,
            ),
        ),
        initial_pressures={"A": hydraulics.balanced("ram"), "B": 10e5},
    )
    controller = mbsfmu.PidController(
        proportional=60.0, integral=20.0, minimum=-10.0, maximum=10.0, measured_unit="rad", command_unit="V"
    )
    return mbsfmu.CoupledModel(
        name="luffer",
        systems={"mechanism": mechanism, "circuit": circuit, "controller": controller},
        connections=[
            ("circuit.ram.force", "mechanism.ram.force"),
            ("mechanism.ram.length", "circuit.ram.length"),
            ("mechanism.ram.velocity", "circuit.ram.velocity"),
            ("mechanism.ram.static_force", "circuit.ram.initial_load"),
            ("mechanism.encoder.coordinate", "controller.measured"),
            ("controller.command", "circuit.valve.command"),
        ],
        signals={"controller.setpoint": mbsfmu.LinearSignal(times=[0.0, 0.5, 3.5], values=[0.0, 0.0, 0.5])},
        stop_time=60.0,
    )


def test_an_estimate_that_grows_for_ever_ends_no_run(tmp_path: Path) -> None:
    """From 46 s on states were refused, as they said of themselves what no run can come to; the motion is right."""
    package = next(path for path in mbsfmu.export(luffer(), tmp_path, layout="separate") if path.suffix == ".ssp")
    with mbsfmu.Cosimulation(package, step=1e-3, stop=60.0) as run:
        while not run.done:
            run.save(tmp_path / "saved.zip")
            run.run(run.time + 0.5)
        whole = run.result()
    np.testing.assert_allclose(whole["mechanism.boom.angle"][-1], 0.5, atol=1e-4)  # where its controller brings it
    gone_on = mbsfmu.cosimulate(package, step=1e-3, stop=60.0, resume=tmp_path / "saved.zip")
    last = len(gone_on.time)
    np.testing.assert_array_equal(gone_on["mechanism.boom.angle"], whole["mechanism.boom.angle"][-last:])
