"""Native and Python units at times that are counted, added up, off by round-off, late, or impossible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from communication import VARIANTS, Times, counted, largest_change
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import FMU2Slave
from importer import Importer
from native_fmus import Exported

import mbsfmu
from mbsfmu import CoupledModel, StepSignal

STEP = 1e-3
NAMES = {
    "four-bar": ("boom.angle", "boom.angular_velocity", "cylinder.length", "cylinder.force", "valve.spool"),
    "quick-return": ("crank.angle", "ram.angular_velocity", "cylinder.length", "cylinder.force", "valve.spool"),
}
Native = Callable[..., Exported]


def stepped(importer: Importer, names: tuple[str, ...], times: np.ndarray) -> np.ndarray:
    slave = started(importer, float(times[0]))
    references = [importer.reference[name] for name in names]
    rows = []
    for time in times.tolist():
        slave.doStep(time, STEP)
        rows.append(slave.getReal(references))
    return np.array(rows)


def started(importer: Importer, start: float, stop: float | None = None) -> FMU2Slave:
    slave = importer.instance()
    slave.setupExperiment(startTime=start, stopTime=stop)
    slave.enterInitializationMode()
    slave.exitInitializationMode()
    return slave


def opening_late(start: float) -> CoupledModel:
    data = mbsfmu.models.four_bar().to_dict()
    signal = StepSignal(times=(start + 0.05,), values=(10.0,))
    return CoupledModel.from_dict({**data, "signals": {"circuit.valve.command": signal.to_dict()}})


@pytest.mark.parametrize("name", NAMES)
def test_round_off_of_times_changes_nothing_in_native_units(native: Native, tmp_path: Path, name: str) -> None:
    """Over the jump at 1 s, which an importer that adds up misses by 7e-16 s."""
    importer = Importer(native(name, "double-step").path, tmp_path)
    names = (*NAMES[name], "valve.command")
    reference = stepped(importer, names, counted(0.0, STEP, 1100))
    for variant in VARIANTS.values():
        again = stepped(importer, names, variant(0.0, STEP, 1100))
        assert largest_change((reference, again)) < 1e-9


def test_round_off_of_times_changes_nothing_in_adaptive_units(native: Native, tmp_path: Path) -> None:
    importer = Importer(native("four-bar", "dca", "rk45").path, tmp_path)
    reference = stepped(importer, NAMES["four-bar"], counted(0.0, STEP, 1050))
    for variant in VARIANTS.values():
        again = stepped(importer, NAMES["four-bar"], variant(0.0, STEP, 1050))
        assert largest_change((reference, again)) < 1e-9


@pytest.mark.parametrize("backend", ["native", "python"])
def test_units_begin_at_the_date_of_today_and_end_there(tmp_path: Path, backend: str) -> None:
    """At 1.7e9 s, neighbouring times are 2.4e-7 s apart: the step is told apart, and so is the stop time."""
    names, late = NAMES["four-bar"], 1.7e9
    path = mbsfmu.export(opening_late(late), tmp_path / "late", layout="monolithic", backend=backend)[0]
    found = stepped(Importer(path, tmp_path / "unpacked"), names, counted(late, STEP, 120))
    simulation = opening_late(0.0).simulation()
    result = simulation.run(0.12)
    assert largest_change((np.column_stack([result[name][1:] for name in names]), found)) < 3e-5
    importer = Importer(path, tmp_path / "again")
    slave = started(importer, late, late + 2e-3)
    for time in counted(late, STEP, 2).tolist():
        slave.doStep(time, STEP)
    with pytest.raises(FMICallException):
        slave.doStep(late + 2e-3, STEP)
    assert "after the stop time of 1700000000" in importer.messages[-1][1]


@pytest.mark.parametrize("backend", ["native", "python"])
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45"])
def test_units_refuse_steps_that_cannot_be_made(tmp_path: Path, backend: str, solver: str) -> None:
    options = {"solver": solver, "formulation": "dca"}
    path = mbsfmu.export(opening_late(0.0), tmp_path, layout="monolithic", backend=backend, **options)[0]
    importer = Importer(path, tmp_path / "unpacked")
    for start, step, reason in (
        (0.0, 1e300, "the step of 1e+300 s is 1e+303 times the internal step of 0.001 s"),
        (1e15, STEP, "the step of 0.001 s is lost in the resolution of time at t = 1e+15 s"),
        (0.0, -STEP, "the step is -0.001 s; it must be positive"),
    ):
        slave = started(importer, start)
        with pytest.raises(FMICallException):
            slave.doStep(start, step)
        assert reason in importer.messages[-1][1]


@pytest.mark.parametrize("times", [counted, *VARIANTS.values()], ids=["counted", *VARIANTS])
def test_importers_that_add_up_reach_the_stop_time(native: Native, tmp_path: Path, times: Times) -> None:
    importer = Importer(native("four-bar", "double-step").path, tmp_path)
    slave = started(importer, 0.0, 0.1)
    for time in times(0.0, STEP, 100).tolist():
        slave.doStep(time, STEP)


def test_saved_states_keep_which_events_have_passed(native: Native, tmp_path: Path) -> None:
    """Saved where the jump is a little ahead by the clock, but was reached: the restored unit is past it too."""
    importer = Importer(native("four-bar", "double-step").path, tmp_path)
    slave = started(importer, 0.0)
    times = VARIANTS["early"](0.0, STEP, 1003)
    for time in times[:1000].tolist():
        slave.doStep(time, STEP)
    saved = slave.getFMUstate()
    values = [importer.everything(slave)]
    for time in times[1000:].tolist():
        slave.doStep(time, STEP)
    values.append(importer.everything(slave))
    slave.setFMUstate(saved)
    assert importer.everything(slave) == values[0]
    assert importer.get(slave, "next_event") == 2.5
    for time in times[1000:].tolist():
        slave.doStep(time, STEP)
    assert importer.everything(slave) == values[1]
    slave.freeFMUstate(saved)
