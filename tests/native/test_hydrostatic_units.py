"""Pumps, motors and cylinders in native FMUs: as in Python to round-off, and coupled near the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hydrostatic_machines import GEAR, loader, slewer
from importer import Importer

import mbsfmu
from mbsfmu.simulation.run_result import Result


def test_unit_of_all_pumps_motors_and_cylinders_makes_the_steps_of_python(tmp_path: Path) -> None:
    model = loader()
    simulation = model.simulation(compiled=False, solver="trapezoidal")
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", solver="trapezoidal")
    importer = Importer(path, tmp_path / "unpacked")
    names = [name for name in importer.reference if name.endswith(("pressure", "swash", "torque", "flow", "velocity"))]
    slave = importer.running()
    simulation.initialize()
    found, expected = [], []
    for index in range(12):
        slave.doStep(0.05 * index, 0.05)
        simulation.step(0.05 * index, 0.05)
        found.append([importer.get(slave, name) for name in names])
        expected.append([simulation.get(name) for name in names])
    scales = np.maximum(np.max(np.abs(expected), axis=0), 1e-6)
    np.testing.assert_allclose(np.array(found) / scales, np.array(expected) / scales, rtol=0.0, atol=1e-8)
    assert simulation.get("ram.cushion_pressure") > 1e3
    assert simulation.get("house.angular_velocity") > 1e-3


@pytest.fixture(scope="module")
def turned() -> Result:
    return slewer().simulation().run()


def test_a_motor_that_runs_ahead_is_fed_by_its_check_valves(turned: Result) -> None:
    """Oil that the cases lose comes back from the tank: neither side falls far below it, and the house turns."""
    for node in "AB":
        assert np.min(turned[f"{node}.pressure"]) > 2e5 - 3e4
        assert np.max(turned[f"make_up_{node}.flow"]) > 1e-7
    speed = turned["house.angular_velocity"]
    assert np.max(speed) == pytest.approx(190.0 * 40.0 / 90.0 / GEAR, rel=0.1)
    assert speed[-1] < 0.0
    kinetic, power = 0.5 * 3e3 * speed**2, turned["motor.power"]
    work = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(turned.time) * (power[1:] + power[:-1]))])
    np.testing.assert_allclose(work, kinetic, atol=2e-3 * np.max(kinetic))


def test_coupled_units_of_machine_and_drive_come_near_the_whole(turned: Result, tmp_path: Path) -> None:
    """They meet in torque and angular velocity, as those of cylinders do in force and velocity."""
    package = mbsfmu.export(slewer(), tmp_path, layout="separate")[-1]
    apart = mbsfmu.cosimulate(package, algorithm="gauss-seidel", step=1e-3, stop=1.2)
    speed = np.interp(turned.time, apart.time, apart["mechanism.slewing.angular_velocity"])
    whole = turned["house.angular_velocity"]
    np.testing.assert_allclose(speed, whole, atol=0.02 * np.max(np.abs(whole)))
