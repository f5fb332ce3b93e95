"""Native FMUs with explicit solvers: steps that cannot be made, steps that are too long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fmpy
import numpy as np
import pytest
from importer import Importer
from native_fmus import Exported, model_of
from oscillator_in_closed_form import displacement, oscillator
from rssr import LEAPING, LEAPING_EQUALLY, LEAPING_STEP, rssr

import mbsfmu
from mbsfmu.integration.explicit import INACCURATE
from mbsfmu.models import slewing_four_bar


def test_stages_beyond_dead_centres_and_other_assemblies_shorten_the_step(tmp_path: Path) -> None:
    """At a tolerance at which the unit leaps over dead centres, it stays near the run at a tight one."""
    model, stop = rssr(LEAPING), 1.5
    tight = {"solver": "dop853", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10, "step": 0.05}
    expected = model.simulation(**tight).run(stop)
    loose = {"solver": "rk45", "relative_tolerance": 1e-5, "absolute_tolerance": 1e-5}
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", **loose)
    found = fmpy.simulate_fmu(str(path), stop_time=stop, step_size=0.05, output_interval=0.05)
    for name in ("crank.angle", "rocker.angle"):
        np.testing.assert_allclose(found[name], expected[name], atol=0.05)


def test_step_into_another_assembly_is_halved(tmp_path: Path) -> None:
    """Equal steps do not shorten by an error: what Newton's iteration finds far away must be seen by itself."""
    model, stop = rssr(LEAPING_EQUALLY), 1.5
    tight = {"solver": "dop853", "relative_tolerance": 1e-8, "absolute_tolerance": 1e-8, "step": LEAPING_STEP}
    expected = model.simulation(compiled=False, **tight).run(stop)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", solver="rk4", step=LEAPING_STEP)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    for index in range(round(stop / LEAPING_STEP)):
        slave.doStep(LEAPING_STEP * index, LEAPING_STEP)
        for name in ("crank.angle", "rocker.angle"):
            assert importer.get(slave, name) == pytest.approx(expected[name][index + 1], abs=0.05)
    slave.freeInstance()


def test_steps_that_are_too_long_are_told(tmp_path: Path) -> None:
    """Through the logger of the FMI, once, where in process it is told too; and only there."""
    model = oscillator(driven=False)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", solver="rk4", step=0.3)
    importer = Importer(path, tmp_path / "unpacked")
    for step, warned in ((0.3, 1), (0.15, 0), (0.01, 0)):
        importer.messages.clear()
        slave = importer.running(**{"solver.step": step})
        for index in range(5):
            slave.doStep(0.3 * index, 0.3)
        found = [message for status, message in importer.messages if status == 1 and "is inaccurate" in message]
        assert len(found) == warned
        off = abs(importer.get(slave, "slider.displacement") - displacement(np.array([1.5]), driven=False)[0])
        assert (off > 0.01 * 0.3) == bool(warned)  # a hundredth of the range is told
        if warned:
            estimate = float(found[0].partition("estimated at ")[2].split()[0])
            assert INACCURATE < estimate < 100 * off / 0.3
        slave.freeInstance()


def test_error_of_a_unit_follows_its_tolerance(tmp_path: Path) -> None:
    """As in process: local errors at the tolerance add up to about it, over jumps off the grid."""
    for tolerance in (1e-5, 1e-7):
        options = {"solver": "rk45", "relative_tolerance": tolerance, "absolute_tolerance": tolerance}
        (path,) = mbsfmu.export(oscillator(), tmp_path / f"{tolerance:g}", layout="monolithic", **options)
        for step in (0.25, 1.5):
            found = fmpy.simulate_fmu(str(path), stop_time=1.5, step_size=step, output_interval=step)
            error = np.max(np.abs(found["slider.displacement"] - displacement(found["time"])))
            assert 0.02 * tolerance < error < 3.0 * tolerance


def test_steps_are_halved_more_than_twice(native: Callable[..., Exported], tmp_path: Path) -> None:
    """A step of a quarter second over the opening of the valve takes eighths, in a unit as in the interpreter."""
    unit, step, stop = native("four-bar", "double-step"), 0.25, 1.5
    simulation = model_of("four-bar").simulation(compiled=False, step=step)
    expected = simulation.run(stop)
    assert simulation.statistics.retries >= 3
    importer = Importer(unit.path, tmp_path / "unpacked")
    slave = importer.running(**{"solver.step": step})
    for index in range(6):
        slave.doStep(step * index, step)
        found = importer.get(slave, "cylinder.length")
        assert found == pytest.approx(expected["cylinder.length"][index + 1], rel=1e-9)
    slave.freeInstance()


@pytest.mark.parametrize("projections", [True, False])
def test_reactions_of_redundant_joints(projections: bool, tmp_path: Path) -> None:
    """In absolute coordinates steps end beside the constraints, where redundant ones would hold against each other."""
    model, stop = slewing_four_bar(speed=4.0), 0.5
    tight = {"solver": "dop853", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10, "step": 0.1}
    expected = model.simulation(compiled=False, **tight).run(stop)
    tolerance = 1e-6 if projections else 1e-8  # motion itself is less exact where positions drift
    options = {"formulation": "dca-alm", "solver": "rk45", "projections": projections, "relative_tolerance": tolerance}
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", **options)
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running()
    for index in range(5):
        slave.doStep(0.1 * index, 0.1)
        for kind in ("force", "moment"):
            parts = [f"{joint}.{kind}.{axis}" for joint in ("slewing", *"ABCD") for axis in "xyz"]
            scale = max(np.max(np.abs(expected[part])) for part in parts)
            for part in parts:
                assert importer.get(slave, part) == pytest.approx(expected[part][index + 1], abs=3e-3 * scale)
    slave.freeInstance()
