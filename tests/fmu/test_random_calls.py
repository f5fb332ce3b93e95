"""Python units under random calls: nothing ends the process, and what is refused is in the log."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fmpy import fmi2
from fmpy.fmi1 import FMICallException
from importer import Importer

import mbsfmu

STEP = 1e-3
SCRIPT = Path(__file__).with_name("random_calls.py")


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random-calls")
    return mbsfmu.export(mbsfmu.models.pendulum(2), folder, layout="monolithic", backend="python")[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls_are_survived(unit: Path, seed: int, tmp_path: Path) -> None:
    """Half of the processes see nothing but right calls; in the others every third number or call is wrong."""
    command = [sys.executable, str(SCRIPT), str(unit), str(tmp_path), str(seed), "1500"]
    path = os.pathsep.join([str(SCRIPT.parents[1]), *filter(None, sys.path)])
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    assert run.returncode == 0, run.stderr[-2000:]
    assert not run.stderr
    counts = dict(line.split(": ") for line in run.stdout.splitlines())
    assert min(int(counts[each]) for each in ("step 0", "step 2", "get_real 0", "set_real 0")) > 20


@pytest.fixture
def importer(unit: Path, tmp_path: Path) -> Importer:
    return Importer(unit, tmp_path / "unpacked")


@pytest.mark.parametrize("reference", [10**6, 2**31, 2**32 - 1])
@pytest.mark.parametrize("kind", ["Integer", "Boolean", "String"])
def test_variable_that_is_not_there_is_named(importer: Importer, kind: str, reference: int) -> None:
    slave = importer.running()
    for access, words in ((slave.getReal, "Real"), (getattr(slave, f"get{kind}"), kind)):
        (value,) = access([reference])
        assert not value or math.isnan(value)
        assert importer.messages[-1] == (3, f"there is no {words} variable with value reference {reference}")
    slave.doStep(0.0, STEP)  # what was only read does no harm


@pytest.mark.parametrize(
    "call",
    [
        lambda slave: slave.setReal([10**6], [1.0]),
        lambda slave: slave.setInteger([0], [1]),
        lambda slave: slave.setBoolean([0], [1]),
        lambda slave: slave.setString([0], ["text"]),
    ],
)
def test_step_after_a_value_for_nothing_is_refused(importer: Importer, call: Callable[[fmi2.FMU2Slave], None]) -> None:
    slave = importer.running()
    call(slave)
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(0.0, STEP)
    assert "the step is refused: there is no " in importer.messages[-1][1]


def test_calls_at_the_wrong_time_are_told(importer: Importer) -> None:
    slave = importer.instance()
    with pytest.raises(FMICallException, match="discard"):
        slave.doStep(0.0, STEP)
    assert importer.messages[-1][1] == "a step needs an initialized unit that is not terminated"
    slave.exitInitializationMode()
    assert importer.messages[-1][1] == "initialization mode was not entered"
    slave.setupExperiment(startTime=0.0)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    slave.doStep(0.0, STEP)
    angle = importer.get(slave, "link_1.angle")
    slave.enterInitializationMode()
    assert importer.messages[-1][1] == "initialization mode is entered from the start only"
    slave.exitInitializationMode()
    assert importer.get(slave, "link_1.angle") == angle != 0.0
    slave.doStep(STEP, STEP)
