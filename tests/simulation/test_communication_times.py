"""Steps in process at times that are counted, added up, off by round-off, late, or impossible."""

from __future__ import annotations

import numpy as np
import pytest
from communication import VARIANTS, Times, counted, largest_change

import mbsfmu
from mbsfmu import CoupledModel, InputError, LinearSignal, StepSignal
from mbsfmu.simulation.simulation import Simulation

STEP = 1e-3
NAMES = {
    "four-bar": ("boom.angle", "boom.angular_velocity", "cylinder.length", "cylinder.force", "valve.spool"),
    "quick-return": ("crank.angle", "ram.angular_velocity", "cylinder.length", "cylinder.force", "valve.spool"),
}


def driven(name: str, signal: StepSignal | LinearSignal) -> CoupledModel:
    data = mbsfmu.models.built_in(name).to_dict()
    return CoupledModel.from_dict({**data, "signals": {"circuit.valve.command": signal.to_dict()}})


def jumping(name: str, start: float = 0.0) -> CoupledModel:
    """Return a model whose valve opens after 0.1 s, which an importer that adds up misses by 7e-17 s, and closes."""
    return driven(name, StepSignal(times=(start + 0.1, start + 0.15), values=(10.0, 0.0)))


def stepped(simulation: Simulation, names: tuple[str, ...], times: np.ndarray) -> np.ndarray:
    simulation.initialize(float(times[0]))
    rows = []
    for time in times.tolist():
        simulation.step(time, STEP)
        rows.append([simulation.get(name) for name in names])
    return np.array(rows)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45"])
def test_round_off_of_times_changes_nothing(name: str, variant: str, solver: str) -> None:
    tight = {"relative_tolerance": 1e-11, "absolute_tolerance": 1e-11}
    options = {"solver": solver, **({} if solver == "trapezoidal" else tight)}
    count = 200 if solver == "trapezoidal" else 115
    simulation = jumping(name).simulation(**options)
    runs, steps = [], []
    for times in (counted, VARIANTS[variant]):
        runs.append(stepped(simulation, (*NAMES[name], "valve.command"), times(0.0, STEP, count)))
        steps.append(simulation.statistics.steps)
    assert np.ptp(runs[0][:, 0]) > 1e-5
    assert largest_change((runs[0], runs[1])) < 1e-9
    assert steps[0] == steps[1] or solver != "trapezoidal"  # no tiny one up to the jump


@pytest.mark.parametrize("times", [counted, VARIANTS["added up"]], ids=["counted", "added up"])
@pytest.mark.parametrize("solver", ["trapezoidal", "rk45", "adams"])
def test_a_run_may_begin_at_the_date_of_today(times: Times, solver: str) -> None:
    """At 1.7e9 s, neighbouring times are 2.4e-7 s apart: results are those of a run from zero at the times reached."""
    late = 1.7e9
    tight = {"relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    options = {"solver": solver, "formulation": "dca", **({} if solver == "trapezoidal" else tight)}
    names = NAMES["four-bar"]
    reached = times(late, STEP, 200)
    found = stepped(jumping("four-bar", late).simulation(**options), names, reached)
    ends = np.append(reached[1:], reached[-1] + STEP) - late
    reference = jumping("four-bar").simulation(**options).run(0.3, output_step=1e-4)
    expected = np.column_stack([np.interp(ends, reference.time, reference[name]) for name in names])
    assert largest_change((expected, found)) < 3e-3  # an importer that adds up meets the jump up to half a step late
    if times is counted:
        again = stepped(jumping("four-bar").simulation(**options), names, times(0.0, STEP, 200))
        assert largest_change((again, found)) < 3e-5


def test_a_jump_is_seen_from_the_right_at_its_time() -> None:
    """Explicit methods evaluate at both ends of a step; with either side of the jump wrong they lose their order."""
    model = jumping("four-bar")
    ends = {}
    for step in (2e-3, 1e-3, 2.5e-4):
        simulation = model.simulation(solver="rk4", formulation="dca", step=step)
        ends[step] = simulation.run(0.14)["valve.spool"][-1]
    assert abs(ends[1e-3] - ends[2.5e-4]) < 1.5e-1 * abs(ends[2e-3] - ends[2.5e-4])  # 1/16 for order four, 1/2 for one


@pytest.mark.parametrize("share", [1e-3, 1e-5, 2e-6])
def test_an_event_just_off_the_grid_does_no_harm(share: float) -> None:
    """A tiny step up to the jump, and what it changes is what the jump's delay changes."""
    names = NAMES["quick-return"]
    times = counted(0.0, STEP, 160)
    on_grid = stepped(jumping("quick-return").simulation(), names, times)
    off_grid = stepped(jumping("quick-return", share * STEP).simulation(), names, times)
    beyond = slice(102, 150)
    changes = np.max(np.abs(on_grid - off_grid)[beyond], axis=0) / np.ptp(on_grid, axis=0)
    assert np.all(changes < 0.2 * share + 1e-7)


def test_events_of_ramps_are_met_like_jumps() -> None:
    ramp = LinearSignal(times=(0.05, 0.1, 0.15), values=(0.0, 8.0, 2.0))
    simulation = driven("four-bar", ramp).simulation(step=STEP)
    for variant in VARIANTS.values():
        runs = [stepped(simulation, NAMES["four-bar"], times(0.0, STEP, 180)) for times in (counted, variant)]
        assert largest_change((runs[0], runs[1])) < 1e-9


def test_steps_that_cannot_be_made_leave_the_simulation_where_it_is() -> None:
    simulation = jumping("four-bar").simulation()
    simulation.initialize(1e15)
    with pytest.raises(InputError, match=r"lost in the resolution of time at t = 1e\+15 s"):
        simulation.step(1e15, STEP)
    simulation.initialize(0.0)
    with pytest.raises(InputError, match=r"1e\+303 times the internal step of 0.001 s"):
        simulation.step(0.0, 1e300)
    with pytest.raises(InputError, match=r"the step begins at t = 0.002 s, but the simulation is at 0 s"):
        simulation.step(2e-3, STEP)
    simulation.step(0.0, STEP)
    assert simulation.time == STEP


@pytest.mark.parametrize(
    ("options", "call", "sentence"),
    [
        ({"step": 1e-3}, {"stop": 1e-10}, "the step of 0.001 s is longer than the run from 0 s to 1e-10 s"),
        ({"step": 2.0}, {"stop": 1.0}, "the step of 2 s is longer than the run"),
        ({}, {"stop": 1.0, "output_step": 2.0}, "the step of 2 s is longer than the run"),
        ({"step": 1e-10}, {"stop": 10.0}, "the run of 10 s is 1e+11 times the internal step of 1e-10 s"),
        ({}, {"stop": 10.0, "output_step": 1e-10}, "has 1e+11 steps"),
        ({}, {"stop": 0.0}, "the stop time is 0 s; it must be positive"),
        ({}, {"stop": np.inf}, "the stop time is inf s; it must be positive"),
    ],
)
def test_runs_that_cannot_be_made_are_refused(options: dict[str, float], call: dict[str, float], sentence: str) -> None:
    simulation = jumping("four-bar").simulation(**options)
    with pytest.raises(InputError) as caught:
        simulation.run(**call)
    assert sentence in str(caught.value)


def test_a_solver_that_chooses_its_steps_runs_for_any_time() -> None:
    simulation = jumping("four-bar").simulation(solver="rk45", formulation="dca")
    assert simulation.run(1e-10).time.tolist() == [0.0, 1e-10]
