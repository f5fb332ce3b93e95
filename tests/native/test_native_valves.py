"""Every kind of valve in one native FMU: the same as in Python, and as the compiled run, to round-off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer import Importer
from valves import all_valves

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.exporting.fmu_export import export

STEP = 2e-3
COMMANDS = {
    "section.command": (0.6, -0.8, 0.02),
    "bypass.command": (0.0, 0.7, -0.7),
    "late.command": (-0.5, 0.5, 1.5),
    "bleed.command": (0.0, 0.5, 1.0),
}


def model() -> CoupledModel:
    return CoupledModel(name="valves", systems={"circuit": all_valves()}, step=5e-4)


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = export(model(), tmp_path_factory.mktemp("valves"), layout="monolithic", solver="trapezoidal")
    return path


def test_unit_does_what_python_does(unit: Path, tmp_path: Path) -> None:
    importer = Importer(unit, tmp_path / "unpacked")
    slave = importer.running()
    simulation = model().simulation(compiled=False, solver="trapezoidal")
    simulation.initialize()
    names = [name for name in importer.reference if name in {each.name for each in simulation.continuous}]
    assert len(names) > 20
    found, expected = [], []
    for index in range(90):
        for name, values in COMMANDS.items():
            simulation.set(name, values[index // 30])
            importer.set(slave, name, values[index // 30])
        if index == 60:
            simulation.set("late_relief.setting", 8e6)
            importer.set(slave, "late_relief.setting", 8e6)
        simulation.step(index * STEP, STEP)
        slave.doStep(index * STEP, STEP)
        expected.append([simulation.get(name) for name in names])
        found.append([importer.get(slave, name) for name in names])
    scale = np.max(np.abs(expected), axis=0)
    assert np.all(np.isfinite(expected))
    np.testing.assert_array_less(np.max(np.abs(np.subtract(found, expected)), axis=0), 1e-9 * scale + 1e-30)
    at_rest = [name for name, width in zip(names, np.ptp(expected, axis=0), strict=True) if width == 0.0]
    assert at_rest == ["hydraulic_energy.delivered", "hydraulic_energy.start"], at_rest  # there is no actuator
    slave.freeInstance()


def test_unit_is_valid(unit: Path) -> None:
    assert mbsfmu.validate(unit) == []
