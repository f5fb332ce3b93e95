"""A host that restarts its solver only where continuous states are told to have changed, as fmusim does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fmpy
import pytest
from fmpy import fmi2, fmi3
from fmpy.sundials import CVodeSolver
from native_fmus import Exported

from mbsfmu.compiling.compiler import Fmi

Exchanged = Callable[..., Exported]
STOP, GRID = 2.0, 0.01


def started(path: Path, folder: Path, fmi: Fmi) -> tuple[Any, dict[str, int], int]:
    """Return an instance in event mode, the references of its variables, and the number of its continuous states."""
    description = fmpy.read_model_description(str(path))
    unit = (fmi2.FMU2Model if fmi == 2 else fmi3.FMU3Model)(
        guid=description.guid,
        unzipDirectory=str(fmpy.extract(str(path), unzipdir=str(folder))),
        modelIdentifier=description.modelExchange.modelIdentifier,
        instanceName="host",
    )
    unit.instantiate()
    if fmi == 2:
        unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    return unit, {each.name: each.valueReference for each in description.modelVariables}, len(description.derivatives)


def end_of(unit: Any, fmi: Fmi, read: int, count: int, *, obeys: bool) -> float:
    """Integrate by CVode, and return a variable at the end.

    Parameters
    ----------
    unit
        The instance in event mode.
    fmi
        Its version.
    read, count
        The reference of the variable, and the number of continuous states.
    obeys
        Whether the solver starts anew where it is told; else never.
    """

    def updated() -> tuple[bool, float]:
        again = True
        while again:
            again, _, nominals, values, known, following = (
                unit.newDiscreteStates() if fmi == 2 else unit.updateDiscreteStates()
            )
        return bool(values or nominals), following if known else STOP

    _, event = updated()
    unit.enterContinuousTimeMode()
    solver = CVodeSolver(
        nx=count,
        nz=0,
        get_x=unit.getContinuousStates,
        set_x=unit.setContinuousStates,
        get_dx=unit.getDerivatives if fmi == 2 else unit.getContinuousStateDerivatives,
        get_z=lambda *_: None,
        get_nominals=unit.getNominalsOfContinuousStates,
        set_time=unit.setTime,
        input=SimpleNamespace(apply=lambda _: None),
        startTime=0.0,
        relativeTolerance=1e-7,
        maxNumSteps=100_000,
    )
    time, point = 0.0, 1
    while time < STOP:
        following = min(point * GRID, event, STOP)
        _, _, time = solver.step(time, following)
        unit.setTime(time)
        point += time >= point * GRID
        waits, _ = unit.completedIntegratorStep()
        if waits or time >= event:
            unit.enterEventMode()
            changed, event = updated()
            unit.enterContinuousTimeMode()
            if changed and obeys:
                solver.reset(time)
    return float((unit.getReal if fmi == 2 else unit.getFloat64)([read])[0])


@pytest.mark.parametrize("fmi", [2, 3])
def test_flag_after_events_is_enough(exchanged: Exchanged, tmp_path: Path, fmi: Fmi) -> None:
    """The boom moves as in a run of our own once the valve opens, and not where the solver never starts anew."""
    exported = exchanged("four-bar", "double-step", fmi)
    ends = {}
    for obeys in (True, False):
        unit, references, count = started(exported.path, tmp_path / str(obeys), fmi)
        ends[obeys] = end_of(unit, fmi, references["boom.angle"], count, obeys=obeys)
    simulation = exported.simulation
    simulation.initialize()
    simulation.step(0.0, STOP)
    assert ends[True] == pytest.approx(simulation.get("boom.angle"), abs=1e-5)
    assert abs(ends[True]) > 0.05
    assert abs(ends[False] - ends[True]) > 1e-3
