"""Parameters that are changed while a unit runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from importer import Importer

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.exporting.fmu_export import BACKENDS

STEP = 1e-2


def importer_of(path: Path, folder: Path) -> Importer:
    return Importer(path, folder / "unpacked")


def test_pump_that_is_changed_before_the_valve_opens_was_always_so(
    four_bar_fmus: dict[str, Path], tmp_path: Path
) -> None:
    """Until 1 s the valve is closed and nothing feels the pump: the run is that of a model with the other pump."""
    importer = importer_of(four_bar_fmus["four-bar"], tmp_path)
    slave = importer.running()
    for index in range(120):
        if index == 50:
            importer.set(slave, "pump.pressure", 9.0e6)
        slave.doStep(index * STEP, STEP)
    data = mbsfmu.models.four_bar().to_dict()
    pump = next(each for each in data["systems"]["circuit"]["components"] if each["name"] == "pump")
    pump["pressure"] = 9.0e6
    changed, unchanged = (
        CoupledModel.from_dict(data).simulation().run(1.2),
        mbsfmu.models.four_bar().simulation().run(1.2),
    )
    for name in ("cylinder.length", "cylinder.force", "boom.angle"):
        effect = abs(changed[name][-1] - unchanged[name][-1])
        assert effect > 0.0
        assert importer.get(slave, name) == pytest.approx(changed[name][-1], abs=1e-6 * effect)


def test_friction_that_is_changed_acts_at_once(four_bar_fmus: dict[str, Path], tmp_path: Path) -> None:
    """Force lost to viscous friction is its coefficient times the velocity; pressures do not jump."""
    importer = importer_of(four_bar_fmus["circuit"], tmp_path)
    slave = importer.running()
    importer.set(slave, "cylinder.velocity", 0.1)
    slave.doStep(0.0, 1e-4)
    names = ("cylinder.force", "cylinder.pressure_piston", "cylinder.pressure_rod")
    before = np.array([importer.get(slave, name) for name in names])
    importer.set(slave, "cylinder.viscous_friction", importer.get(slave, "cylinder.viscous_friction") + 5000.0)
    after = np.array([importer.get(slave, name) for name in names])
    np.testing.assert_allclose(after - before, [-500.0, 0.0, 0.0], atol=1e-6)


def test_changed_friction_accelerates_at_once(four_bar_fmus: dict[str, Path], tmp_path: Path) -> None:
    """In the whole, accelerations jump with it: they are those of a state that is found anew from the same motion."""
    importer = importer_of(four_bar_fmus["four-bar"], tmp_path)
    slave = importer.running(**{"valve.command": 10.0})
    for index in range(20):
        slave.doStep(index * STEP, STEP)
    velocity = importer.get(slave, "cylinder.velocity")
    force, accelerating = importer.get(slave, "cylinder.force"), importer.get(slave, "boom.angular_acceleration")
    assert abs(velocity) > 1e-3
    state = slave.getFMUstate()
    slopes = []
    for more in (1e3, 2e3):
        importer.set(slave, "cylinder.viscous_friction", 196e3 + more)
        assert importer.get(slave, "cylinder.force") - force == pytest.approx(-more * velocity, rel=1e-6)
        slopes.append(importer.get(slave, "boom.angular_acceleration") - accelerating)
        slave.setFMUstate(state)
    assert slopes[1] == pytest.approx(2.0 * slopes[0], rel=1e-6)
    assert abs(slopes[0]) > 0.0
    slave.freeFMUstate(state)


@cache
def end_pressure() -> float:
    """Of the four-bar's rod chamber, in Pa, by steps that are short."""
    return float(mbsfmu.models.four_bar().simulation(step=2e-5).run(1.05)["cylinder.pressure_rod"][-1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_internal_step_may_be_changed_while_stepping(backend: str, tmp_path: Path) -> None:
    """A quarter of the step leaves a sixteenth of the error: the rule is of second order."""
    model = mbsfmu.models.four_bar()
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", backend=backend, solver="trapezoidal")
    importer = importer_of(path, tmp_path)
    errors = []
    expected = end_pressure()
    for step in (1e-3, 2.5e-4):
        slave = importer.running()
        for index in range(105):
            if index == 99:
                importer.set(slave, "solver.step", step)
            slave.doStep(index * STEP, STEP)
        errors.append(abs(importer.get(slave, "cylinder.pressure_rod") - expected))
    assert errors[1] < 0.15 * errors[0]
