"""Rosenbrock methods in native FMUs: the same steps as in Python, to round-off, with saved states to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer import Importer
from native_fmus import model_of
from oscillator_in_closed_form import oscillator

import mbsfmu
from mbsfmu import CoupledModel, LinearSignal
from mbsfmu.exporting.fmu_export import export


def ramped() -> CoupledModel:
    """The four-bar with a command that rises at once and falls: at rest round-off decides how long first steps are."""
    model = mbsfmu.models.four_bar()
    signal = LinearSignal(times=(0.0, 0.71, 0.9), values=(0.0, 8.0, -2.0))
    return model.model_copy(update={"signals": dict.fromkeys(model.signals, signal)})


def pushed() -> CoupledModel:
    """The damped oscillator with a force that rises and falls: accelerations depend on time, works on velocities."""
    signal = LinearSignal(times=(0.0, 0.3, 0.71, 0.9), values=(0.0, 40.0, -30.0, 0.0))
    return oscillator(driven=False).model_copy(update={"signals": {"mechanism.motor.force": signal}})


CASES = {
    "oscillator": (pushed, "double-step", "rodas5p", 0.9),
    "oscillator that is struck": (oscillator, "dca", "rodas5p", 0.9),
    "four-bar": (ramped, "double-step", "rodas5p", 0.9),
    "ball-pendulum": (lambda: model_of("ball-pendulum"), "hdca", "rodas4", 0.6),
    "oscillator in absolute coordinates": (pushed, "dca-alm", "rodas5p", 0.6),
    "loop-4": (lambda: model_of("loop-4"), "dca", "rodas5p", 0.6),
}

ROUNDED = (".force.", ".moment.", "constraint.", "energy.drift")
"""Of what is round-off, or the difference of large numbers."""


@pytest.mark.parametrize("case", CASES)
def test_unit_makes_the_steps_of_python(case: str, tmp_path: Path) -> None:
    model, formulation, solver, stop = CASES[case]
    options = {"formulation": formulation, "solver": solver, "relative_tolerance": 1e-5, "absolute_tolerance": 1e-5}
    (path,) = export(model(), tmp_path, layout="monolithic", **options)
    importer = Importer(path, tmp_path / "unpacked")
    simulation = model().simulation(compiled=False, **options)
    names = [name for name in importer.reference if not any(word in name for word in ROUNDED)]
    slave, other = importer.running(), importer.instance()
    # Every third communication step is short: it must not shorten those behind it.
    times = np.cumsum([0.0, *np.tile((0.06, 0.085, 0.005), round(stop / 0.15))])
    simulation.initialize()
    found, expected = [], []
    state, after = None, None
    for index, (begin, step) in enumerate(zip(times[:-1], np.diff(times), strict=True)):
        slave.doStep(begin, step)
        simulation.step(begin, step)
        found.append([importer.get(slave, name) for name in names])
        expected.append([simulation.get(name) for name in names])
        if index == 6:
            state = slave.serializeFMUstate(slave.getFMUstate())
        if index == 7:
            after = importer.everything(slave)
    scales = np.maximum(np.max(np.abs(expected), axis=0), 1e-3)
    np.testing.assert_allclose(np.array(found) / scales, np.array(expected) / scales, rtol=0.0, atol=1e-9)
    other.setupExperiment(startTime=0.0)
    other.enterInitializationMode()
    other.exitInitializationMode()
    other.setFMUstate(other.deSerializeFMUstate(state))
    other.doStep(times[7], times[8] - times[7])
    assert importer.everything(other) == after
    assert not importer.messages
