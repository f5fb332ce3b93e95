"""Start, stop and step times that importers give: both backends refuse with the same words."""

from __future__ import annotations

from contextlib import suppress

import pytest
from fmpy.fmi1 import FMICallException
from importer import Importer

import mbsfmu
from mbsfmu.exporting.fmu_export import BACKENDS

NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module", params=BACKENDS)
def importer(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Importer:
    folder = tmp_path_factory.mktemp(f"experiment-{request.param}")
    (path,) = mbsfmu.export(mbsfmu.models.pendulum(1), folder, layout="monolithic", backend=request.param)
    return Importer(path, folder / "unpacked")


@pytest.mark.parametrize(
    ("start", "stop", "sentence"),
    [
        (NAN, None, "the start time is nan s; it must be a finite number"),
        (INF, 1.0, "the start time is inf s; it must be a finite number"),
        (0.0, NAN, "the stop time is nan s; it must not be before the start time, 0 s"),
        (2.0, 1.0, "the stop time is 1 s; it must not be before the start time, 2 s"),
    ],
)
def test_impossible_experiment_is_refused(importer: Importer, start: float, stop: float | None, sentence: str) -> None:
    slave = importer.instance()
    with suppress(FMICallException):
        slave.setupExperiment(startTime=start, stopTime=stop)
    assert importer.messages[-1][1] == sentence
    slave.setupExperiment(startTime=0.0, stopTime=1.0)  # another one may follow
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    slave.doStep(0.0, 0.1)


@pytest.mark.parametrize(
    ("time", "step", "sentence"),
    [
        (0.0, INF, "the step is inf s; it must be positive and finite"),
        (0.0, NAN, "the step is nan s; it must be positive and finite"),
        (NAN, 0.1, "the step begins at t = nan s; it must be a finite number"),
        (INF, 0.1, "the step begins at t = inf s; it must be a finite number"),
    ],
)
def test_impossible_step_is_refused(importer: Importer, time: float, step: float, sentence: str) -> None:
    slave = importer.running()
    with pytest.raises(FMICallException):
        slave.doStep(time, step)
    assert importer.messages[-1][1] == sentence
    slave.doStep(0.0, 0.1)


@pytest.mark.parametrize("value", [1e51, -1e300])
def test_number_beyond_all_bounds_is_refused(importer: Importer, value: float) -> None:
    slave = importer.instance()
    with suppress(FMICallException):
        importer.set(slave, "gravity.y", value)
    sentence = f"gravity.y = {value:g} m/s2 is refused: its magnitude must be at most 1e+50"
    assert importer.messages[-1][1] == sentence
