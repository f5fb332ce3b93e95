"""What units tell of a run in their log, as runs in process do."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from cranks import parallel_cranks
from exchange import Host
from importer import Importer
from scipy.integrate import solve_ivp
from stops import ENERGY, stop

from mbsfmu.exporting.fmu_export import export
from mbsfmu.models import pendulum

WARNING = 1


@pytest.fixture(scope="module")
def cranks(tmp_path_factory: pytest.TempPathFactory) -> Importer:
    """Return the unit of two parallel cranks."""
    folder = tmp_path_factory.mktemp("cranks")
    model = parallel_cranks(0.9, speed=6.0, count=2)
    (path,) = export(model, folder, layout="monolithic", formulation="double-step")
    return Importer(path, folder / "unpacked")


def warnings(importer: Importer) -> list[str]:
    """Messages are formats of printf, where a percent sign is written twice."""
    return [message.replace("%%", "%") for status, message in importer.messages if status == WARNING]


@pytest.mark.parametrize("step", [1e-3, 0.05])
def test_change_points_are_told_once(cranks: Importer, caplog: pytest.LogCaptureFixture, step: float) -> None:
    """Also where the unit goes back and passes again."""
    cranks.messages.clear()
    slave = cranks.running()
    saved = slave.getFMUstate()
    for _ in range(2):
        slave.setFMUstate(saved)
        for index in range(round(0.3 / step)):
            slave.doStep(index * step, step)
    slave.freeFMUstate(saved)
    with caplog.at_level(logging.WARNING):
        parallel_cranks(0.9, speed=6.0, count=2).simulation(compiled=False).run(0.3, output_step=step)
    (expected,) = (record.getMessage() for record in caplog.records if "change point" in record.getMessage())
    assert warnings(cranks) == [expected]


def test_start_values_that_do_not_close_the_loop_are_told(cranks: Importer, caplog: pytest.LogCaptureFixture) -> None:
    """Cranks that are set apart from each other, their angles and velocities."""
    cranks.messages.clear()
    given = {"crank_1.angle_start": -0.5, "crank_1.angular_velocity_start": 5.0}
    given |= {"crank_0.angle_start": -0.6, "crank_0.angular_velocity_start": 4.0}
    cranks.running(**given)
    simulation = parallel_cranks(0.9, speed=6.0, count=2).simulation(compiled=False)
    for name, value in given.items():
        simulation.set(name, value)
    with caplog.at_level(logging.WARNING):
        simulation.initialize()
    expected = [record.getMessage() for record in caplog.records if " starts at " in record.getMessage()]
    assert len(expected) == 2
    assert "do not close the loops" in expected[0]
    assert warnings(cranks) == expected


@pytest.fixture(scope="module")
def stopping(tmp_path_factory: pytest.TempPathFactory) -> Importer:
    """Return the unit of a mass that hits a stop, beside a flywheel with a thousand times the energy."""
    folder = tmp_path_factory.mktemp("stop")
    (path,) = export(stop(spin=SPIN), folder, layout="monolithic", solver="trapezoidal")
    return Importer(path, folder / "unpacked")


COARSE = 1e-3
SPIN = (2.0 * 1000.0 * ENERGY / 10.0) ** 0.5


@pytest.mark.parametrize("reads", [True, False])
def test_energy_that_drifts_is_told_once(stopping: Importer, caplog: pytest.LogCaptureFixture, reads: bool) -> None:
    """Also where the unit goes back; a restored and a reset one say what a simulation in process says."""
    slave = stopping.running()
    simulation = stop(spin=SPIN).simulation(compiled=False, solver="trapezoidal")
    for _ in range(2):
        stopping.messages.clear()
        caplog.clear()
        saved = slave.getFMUstate()
        simulation.initialize()
        for _ in range(2):
            slave.setFMUstate(saved)
            for index in range(8):
                slave.doStep(index * COARSE, COARSE)
                if reads:
                    stopping.get(slave, "energy.kinetic")
        for index in range(8):
            simulation.step(index * COARSE, COARSE)
        expected = [each.getMessage() for each in caplog.records if "is not resolved" in each.getMessage()]
        assert len(expected) == 1
        assert warnings(stopping) == expected
        slave.freeFMUstate(saved)
        slave.terminate()  # which tells the error of the run, too
        drifting = [each for each in warnings(stopping) if "is not resolved" in each]
        assert drifting == expected
        slave.reset()
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        slave.exitInitializationMode()


@pytest.mark.parametrize("saves", [False, True])
def test_hosts_that_never_say_that_steps_stay_hear_of_it_unless_they_can_go_back(
    stopping: Importer, saves: bool
) -> None:
    """Many leave `noSetFMUStatePriorToCurrentPoint` false throughout; without a saved state nothing can be set back."""
    stopping.messages.clear()
    slave = stopping.running()
    saved = slave.getFMUstate() if saves else None
    for index in range(8):
        slave.doStep(index * COARSE, COARSE, 0)
    assert sum("is not resolved" in each for each in warnings(stopping)) == (0 if saves else 1)
    if saved is not None:
        slave.freeFMUstate(saved)
    slave.terminate()
    assert sum("is not resolved" in each for each in warnings(stopping)) == 1


def test_units_whose_steps_are_fine_say_nothing_of_energy(stopping: Importer) -> None:
    stopping.messages.clear()
    slave = stopping.running(**{"solver.step": 2e-6})
    for index in range(4):
        slave.doStep(index * COARSE, COARSE)
    slave.terminate()
    assert warnings(stopping) == []


def test_at_the_end_units_look_at_energy_that_nobody_read(stopping: Importer) -> None:
    """The first point of the run is the last before the mass comes to the stop, and the next one the end."""
    stopping.messages.clear()
    slave = stopping.running()
    slave.doStep(0.0, 20 * COARSE)
    slave.terminate()
    assert sum("is not resolved" in each for each in warnings(stopping)) == 1


@pytest.mark.parametrize(("step", "told"), [(0.4, False), (0.8, True)])
def test_in_model_exchange_energy_is_exchanged_from_the_start_on(tmp_path: Path, step: float, told: bool) -> None:
    """A single step of Runge and Kutta's method from rest; what the beam has by then, it was given in it."""
    (path,) = export(pendulum(1), tmp_path, layout="monolithic", kind="me", formulation="double-step")
    host = Host(path, tmp_path / "unpacked")
    host.unit.fmi2SetDebugLogging(host.unit.component, 1, 0, None)
    host.begin()
    begin = host.point
    found = solve_ivp(host.flow, (0.0, step), begin, "RK23", max_step=step, first_step=step, rtol=1.0, atol=1.0)
    assert len(found.t) == 2
    host.go(step, found.y[:, -1])
    host.complete()
    drift, *energies = np.abs(host.get("energy.drift", "energy.kinetic", "energy.potential"))
    assert (drift > 0.05 * max(energies)) == told
    assert len(host.messages) == told
    assert all(f"{max(energies):.3g} J exchanged" in message for message in host.messages)
