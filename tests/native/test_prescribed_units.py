"""Units with prescribed motion: native and Python against runs in process, derivatives against closed forms."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from driven_crank import driven_crank, in_closed_form
from fmpy.fmi2 import FMU2Slave

from mbsfmu import export

PUSH = 0.3, 8.0
"""Amplitude in rad and angular frequency in rad/s of what the FMUs are driven by."""
OUTPUTS = ["crank.angle", "crank.angular_velocity", "slider.displacement", "motor.torque"]


def driven(times: np.ndarray) -> np.ndarray:
    amplitude, omega = PUSH
    sine, cosine = np.sin(omega * times), np.cos(omega * times)
    motion = 0.5 + amplitude * sine, amplitude * omega * cosine, -amplitude * omega**2 * sine
    names = ["time", "motor.position", "motor.velocity", "motor.acceleration"]
    return np.array(list(zip(times, *motion, strict=True)), dtype=[(name, "f8") for name in names])


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(driven_crank(None), tmp_path_factory.mktemp("crank"), formulation="double-step")[0]


def in_process(times: np.ndarray) -> np.ndarray:
    simulation = driven_crank(None).simulation(formulation="double-step", compiled=False)
    signals, rows = driven(times), []
    for index, time in enumerate(times):
        for name in signals.dtype.names[1:]:
            simulation.set(name, float(signals[name][index]))
        if index == 0:
            simulation.initialize()
        rows.append([simulation.get(name) for name in OUTPUTS])
        if index < len(times) - 1:
            simulation.step(float(time), 0.01)
    return np.array(rows)


def test_units_are_as_in_process(unit: Path, tmp_path: Path) -> None:
    """Set at communication points, the motion runs on between them: exact but for what is left of the third order."""
    times = np.linspace(0.0, 0.2, 21)
    expected = in_process(times)
    python = export(driven_crank(None), tmp_path, formulation="double-step", backend="python")[0]
    for path in (unit, python):
        found = stepped(path, times)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    left = PUSH[0] * PUSH[1] ** 3 * 0.01**3 / 6.0
    np.testing.assert_allclose(expected[:, 0], driven(times)["motor.position"], rtol=0, atol=1.1 * left)


def stepped(path: Path, times: np.ndarray) -> np.ndarray:
    description = fmpy.read_model_description(path)
    references = {each.name: each.valueReference for each in description.modelVariables}
    folder = fmpy.extract(path)
    slave = FMU2Slave(
        guid=description.guid, unzipDirectory=folder, modelIdentifier=description.coSimulation.modelIdentifier
    )
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    signals, rows = driven(times), []
    for index, time in enumerate(times):
        names = signals.dtype.names[1:]
        slave.setReal([references[name] for name in names], [float(signals[name][index]) for name in names])
        if index == 0:
            slave.exitInitializationMode()
        rows.append(slave.getReal([references[name] for name in OUTPUTS]))
        if index < len(times) - 1:
            slave.doStep(currentCommunicationPoint=float(time), communicationStepSize=0.01)
    slave.terminate()
    slave.freeInstance()
    return np.array(rows)


def test_derivatives_of_a_unit(unit: Path) -> None:
    """By the prescribed acceleration and at the start by position: those of the closed form of the crank."""
    description = fmpy.read_model_description(unit)
    references = {each.name: each.valueReference for each in description.modelVariables}
    folder = fmpy.extract(unit)
    slave = FMU2Slave(
        guid=description.guid, unzipDirectory=folder, modelIdentifier=description.coSimulation.modelIdentifier
    )
    slave.instantiate()
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()

    def derivative(unknown: str, known: str) -> float:
        return slave.getDirectionalDerivative([references[unknown]], [references[known]], [1.0])[0]

    small = 1e-6
    places = [in_closed_form(np.array([each]))["slider.displacement"][0] for each in (-small, small)]
    slope = (places[1] - places[0]) / (2.0 * small) / 6.0
    assert derivative("slider.displacement", "motor.position") == pytest.approx(slope, abs=1e-8)
    assert derivative("slider.velocity", "motor.velocity") == pytest.approx(slope, abs=1e-8)
    slave.exitInitializationMode()
    assert derivative("slider.acceleration", "motor.acceleration") == pytest.approx(slope, abs=1e-8)
    assert derivative("slider.displacement", "motor.position") == 0.0


def test_explicit_steps_close_loops_where_inputs_are_at_each_stage() -> None:
    """Work on the crank is what kinetic energy changes by, also where loops move from stage to stage."""
    result = driven_crank().simulation(formulation="double-step", solver="rk4", step=2e-3).run(0.5)
    assert result.largest("energy.drift") < 1e-6 * np.abs(result["energy.work"]).max()
