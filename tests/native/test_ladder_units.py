"""Units whose code is kernel loops, of mechanisms that have loops."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from importer import Importer
from native_fmus import TIGHT, check_start_derivatives

import mbsfmu


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unit of a ladder of two loops."""
    options = {"formulation": "dca", "solver": "rk45", "relative_tolerance": TIGHT, "absolute_tolerance": TIGHT}
    folder = tmp_path_factory.mktemp("ladder")
    return mbsfmu.export(mbsfmu.models.ladder(2), folder, layout="monolithic", code="loops", **options)[0]


def test_a_unit_moves_as_straight_code_does(ladder: Path) -> None:
    found = fmpy.simulate_fmu(str(ladder), stop_time=0.5, step_size=0.05, output_interval=0.05)
    simulation = mbsfmu.models.ladder(2).simulation(
        formulation="dca", solver="rk45", relative_tolerance=TIGHT, absolute_tolerance=TIGHT, code="straight"
    )
    expected = simulation.run(stop=0.5, output_step=0.05)
    names = [name for name in found.dtype.names if name in list(expected)]
    assert "right_2.angular_velocity" in names
    for name in names:
        scale = 1.0 + np.max(np.abs(expected[name]))
        np.testing.assert_allclose(found[name], expected[name], atol=1e-8 * scale, err_msg=name)


def test_derivatives_of_its_start_match_differences(ladder: Path, tmp_path: Path) -> None:
    check_start_derivatives(Importer(ladder, tmp_path / "unpacked"), {"rung_1.length": 1.1, "left_2.length": 0.93})


def test_implicit_steps_are_those_of_straight_code_and_repeat_from_saved_states(tmp_path: Path) -> None:
    options = {"formulation": "dca", "solver": "trapezoidal", "step": 2e-3}
    path = mbsfmu.export(mbsfmu.models.ladder(2), tmp_path, layout="monolithic", code="loops", **options)[0]
    run = mbsfmu.models.ladder(2).simulation(code="straight", compiled=False, **options).run(stop=0.1)
    unit = Importer(path, tmp_path / "unpacked")
    slave, other = unit.running(), unit.running(**{"rung_1.mass": 1.5})
    for step in range(10):
        slave.doStep(1e-2 * step, 1e-2)
    for name in ("left_2.angle", "right_2.angular_velocity", "energy.kinetic"):
        assert unit.get(slave, name) == pytest.approx(run[name][-1], rel=1e-8), name
    kept = slave.serializeFMUstate(slave.getFMUstate())
    slave.doStep(0.1, 0.02)
    other.doStep(0.0, 0.3)
    other.setFMUstate(other.deSerializeFMUstate(kept))
    other.doStep(0.1, 0.02)
    assert unit.everything(slave) == unit.everything(other)
