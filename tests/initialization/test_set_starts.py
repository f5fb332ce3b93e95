"""Start values that were set stay, and those of the model follow: in process and in an FMU."""

from __future__ import annotations

import logging
from math import pi
from pathlib import Path

import pytest
from cranks import parallel_cranks
from importer import Importer

from mbsfmu import Simulation, export

BEGIN, SPEED = 0.9, 6.0
ANGLE, RATE = 0.5, 2.0
"""Set: of the cranks from the vertical, in rad and rad/s; the model has 0.9 and 6."""
PLACES = {"crank_0": ANGLE - 0.5 * pi, "crank_1": ANGLE - 0.5 * pi, "coupler": 0.5 * pi - ANGLE}
RATES = {"crank_0": RATE, "crank_1": RATE, "coupler": -RATE}


def cranks() -> Simulation:
    return parallel_cranks(BEGIN, speed=SPEED, count=2).simulation(compiled=False)


@pytest.mark.parametrize("joint", PLACES)
def test_any_joint_of_a_parallelogram_takes_the_others_along(joint: str, caplog: pytest.LogCaptureFixture) -> None:
    """The cranks are parallel and the coupler stays level; nothing is told, as nothing that was set has changed."""
    simulation = cranks()
    with caplog.at_level(logging.WARNING):
        simulation.set(f"{joint}.angle_start", PLACES[joint])
        simulation.set(f"{joint}.angular_velocity_start", RATES[joint])
        simulation.initialize()
    for name, place in PLACES.items():
        assert simulation.get(f"{name}.angle") == pytest.approx(place, abs=1e-9)
        assert simulation.get(f"{name}.angular_velocity") == pytest.approx(RATES[name], abs=1e-9)
    assert not caplog.records


def test_an_fmu_starts_where_it_is_set(tmp_path: Path) -> None:
    (path,) = export(parallel_cranks(BEGIN, speed=SPEED, count=2), tmp_path, layout="monolithic")
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.running(
        **{"coupler.angle_start": PLACES["coupler"], "coupler.angular_velocity_start": RATES["coupler"]}
    )
    for name, place in PLACES.items():
        assert importer.get(slave, f"{name}.angle") == pytest.approx(place, abs=1e-9)
        assert importer.get(slave, f"{name}.angular_velocity") == pytest.approx(RATES[name], abs=1e-9)
    assert not importer.messages


@pytest.mark.parametrize("joint", PLACES)
def test_an_fmu_differentiates_by_what_would_be_set(tmp_path: Path, joint: str) -> None:
    """Cranks turn alike and the coupler against them, whichever start value changes: also where none was set yet."""
    (path,) = export(parallel_cranks(BEGIN, speed=SPEED, count=2), tmp_path, layout="monolithic")
    importer = Importer(path, tmp_path / "unpacked")
    slave = importer.instance()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    signs = {"crank_0": 1.0, "crank_1": 1.0, "coupler": -1.0}
    unknown = [importer.reference[f"{name}.angle"] for name in PLACES]
    found = slave.getDirectionalDerivative(unknown, [importer.reference[f"{joint}.angle_start"]], [1.0])
    assert list(found) == pytest.approx([signs[joint] * signs[name] for name in PLACES], abs=1e-9)
