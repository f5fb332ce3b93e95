"""Errors that runs in lanes estimate: those by far smaller steps, machine by machine, and those of single runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driven_crank import driven_crank
from mechanisms import floating
from oscillator_in_closed_form import oscillator

from mbsfmu import CoupledModel, StepSignal
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.models import built_in

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
STEP = 4e-3
FINE = 20
"""How many times smaller the steps are whose errors are neglected."""
CASES: dict[str, tuple[CoupledModel, dict[str, Any], float]] = {
    "tree": (built_in("pendulum-3"), {"parameters": {"link_1.mass": np.array([0.5, 1.0, 4.0])}}, 1.0),
    "loop": (
        CoupledModel(
            name="crank",
            systems={
                "mechanism": driven_crank()
                .systems["mechanism"]
                .model_copy(update={"constraints": (), "gravity": (0.0, -9.81, 0.0)})
            },
        ),
        {"parameters": {"rod.mass": np.array([1.0, 3.0, 0.4])}, "starts": {"crank.angular_velocity": 6.0}},
        1.0,
    ),
    "events": (
        oscillator(),
        {
            "inputs": {
                "motor.force": [
                    StepSignal(times=(time,), values=(force,), initial=0.0)
                    for time, force in ((0.1004, 30.0), (0.2, 5.0), (0.3003, 80.0))
                ]
            },
            "starts": {"slider.displacement": np.array([0.0, 0.1, 0.02]), "slider.velocity": 0.0},
        },
        0.8,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_estimates_are_the_differences_to_smaller_steps(case: str) -> None:
    model, given, stop = CASES[case]
    ensemble = model.ensemble(**given, step=STEP, errors=True)
    coarse = ensemble.run(stop, output_step=STEP, outputs=["*"])
    fine = model.ensemble(**given, step=STEP / FINE).run(stop, output_step=STEP, outputs=["*"])
    for machine, estimate in enumerate(coarse.errors):
        name = estimate.variable
        assert name is not None
        assert estimate.share is not None
        difference = np.max(np.abs(coarse[name][machine] - fine[name][machine]))
        assert estimate.share == pytest.approx(difference / np.ptp(coarse[name][machine]), rel=0.25), name
    assert len({estimate.share for estimate in coarse.errors}) == 3
    silent = model.ensemble(**given, step=STEP, errors=False).run(stop, output_step=STEP, outputs=["*"])
    np.testing.assert_array_equal(coarse.values_by_column, silent.values_by_column)
    assert {estimate.share for estimate in silent.errors} == {None}


def test_estimates_are_those_of_single_runs() -> None:
    """Also where a step is halved for a machine alone, and where estimates are warned of."""
    model = built_in("four-bar")
    speeds, masses = [0.0, 30.0, 0.0], [225.0, 225.0, 300.0]
    varied = {"boom.angular_velocity_start": speeds, "boom.mass": masses}
    result = model.ensemble(varied, step=1e-3, errors=True).run(1.5)
    assert result.scalar_steps[1] > 0
    for machine, (speed, mass) in enumerate(zip(speeds, masses, strict=True)):
        simulation = model.simulation(formulation="double-step", solver="trapezoidal", step=1e-3)
        simulation.set("boom.angular_velocity_start", speed)
        simulation.set("boom.mass", mass)
        single = simulation.run(1.5).error
        estimate = result.errors[machine]
        assert (estimate.variable, estimate.note) == (single.variable, single.note)
        assert estimate.share == (None if single.share is None else pytest.approx(single.share, rel=1e-2))
        told = single.warning(simulation.solver.more_accurate)
        assert bool(told) == any(told and each.endswith(told) for each in result.warnings.get(machine, ()))


def test_estimates_go_on_where_references_change() -> None:
    """In the machine whose body comes near gimbal lock, as in its single run, and as a tight run has it.

    It turns about all axes: about one alone, Newton's iteration leaves the rates about the others, and their errors.
    """
    model, velocity, stop = floating(), (0.3, 1.5, 0.4), 2.0
    starts = {f"body.angular_velocity_start.{axis}": speed for axis, speed in zip("xyz", velocity, strict=True)}
    spun = {name: [0.0, speed] for name, speed in starts.items()}
    result = model.ensemble(spun, step=1e-3, errors=True).run(stop, output_step=0.01)
    tight: dict[str, Any] = {"solver": "dop853", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
    alone = [model.simulation(step=1e-3, solver="trapezoidal"), model.simulation(**tight)]
    for simulation in alone:
        for name, speed in starts.items():
            simulation.set(name, speed)
    single, exact = (simulation.run(stop, output_step=0.01) for simulation in alone)
    assert np.abs(np.diff(single["body.cardan_angle.y"])).max() > 0.5
    assert result.errors[1].share == pytest.approx(single.error.share, rel=1e-2)
    name = result.errors[1].variable
    assert name is not None
    assert name == single.error.variable
    true = np.max(np.abs(result[name][1] - exact[name])) / np.ptp(exact[name])
    assert result.errors[1].share == pytest.approx(true, rel=0.25)
