"""Runs in process in compiled code against the same in the interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counts import assert_alike
from mechanisms import slider_crank

import mbsfmu
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.native.compiled import CompiledRunner
from mbsfmu.simulation.simulation import Simulation

WEAK_LOOP = Path(__file__).parents[1] / "machines" / "weak-loop.json"


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca", "hdca"])
@pytest.mark.parametrize("name", ["four-bar", "pendulum-2"])
def test_compiled_run_is_the_same(name: str, formulation: str) -> None:
    model = mbsfmu.models.built_in(name)
    compiled = model.simulation(formulation=formulation, solver="trapezoidal")
    interpreted = model.simulation(formulation=formulation, solver="trapezoidal", compiled=False)
    assert isinstance(compiled.runner, CompiledRunner)
    fast, slow = compiled.run(1.2), interpreted.run(1.2)
    reactions = [variable.name for variable in compiled.functions.system.reactions]
    for signal in fast:
        if not signal.startswith(("constraint.", "energy.drift", "hydraulic_energy.drift")):
            # Reactions that must vanish are sums of others that do not.
            alike = reactions if signal in reactions else [signal]
            tolerance = 2e-9 * max(np.max(np.abs(slow[name])) for name in alike)
            np.testing.assert_allclose(fast[signal], slow[signal], atol=tolerance, err_msg=signal)
    if formulation in ("double-step", "dca"):
        assert compiled.statistics == interpreted.statistics
    else:  # the last increments of some steps are round-off
        assert_alike(compiled.statistics, interpreted.statistics)


@pytest.mark.parametrize("solver", ["trapezoidal", "generalized-alpha"])
def test_jacobians_are_reused_and_refreshed_alike(solver: str) -> None:
    """Where a valve slams, with steps of several lengths: each refresh of an iteration matrix shows in the counts."""
    counted = []
    for compiled in (True, False):
        simulation = mbsfmu.models.four_bar("friction").simulation(step=1e-3, solver=solver, compiled=compiled)
        simulation.set("valve.time_constant", 1e-4)
        simulation.initialize()
        time = 0.0
        for index in range(90):
            simulation.set("valve.command", 10.0 if index // 10 % 2 else -10.0)
            length = (2e-3, 1e-3, 1e-3, 4e-4)[index // 3 % 4]
            simulation.step(time, length)
            time += length
        counted.append(simulation.statistics)
    assert counted[0] == counted[1]


@pytest.mark.parametrize("restart", [True, False])
def test_momenta_start_anew_alike(restart: bool) -> None:
    """In a run of 2 s, after which the impulses in momenta that never start anew outweigh them."""
    momenta = []
    for compiled in (True, False):
        simulation = mbsfmu.models.built_in("loop-4").simulation(
            formulation="hdca", restart_momenta=restart, step=5e-3, compiled=compiled
        )
        simulation.initialize()
        assert isinstance(simulation.runner, CompiledRunner) == compiled
        ends = []
        for index in range(20):
            simulation.step(index * 0.1, 0.1)
            assert simulation.run_loop.state is not None
            ends.append(simulation.run_loop.state.momenta)
        momenta.append(np.array(ends))
    np.testing.assert_allclose(momenta[0], momenta[1], atol=1e-8 * np.max(np.abs(momenta[1])))
    assert (np.max(np.abs(momenta[0][-1])) > 25.0) == (not restart)


def forced(step: float, compiled: bool) -> Simulation:
    """A slider-crank whose slider is forced to be independent, running into a dead centre."""
    simulation = slider_crank().simulation(step=step, compiled=compiled)
    simulation.initialize()
    assert simulation.run_loop.state is not None
    names = [variable.name for variable in simulation.functions.system.coordinates]
    partition = Partition.of([names.index("slider.displacement")], 3)
    simulation.run_loop.state = replace(simulation.run_loop.state, partition=partition)
    return simulation


@pytest.mark.parametrize("step", [1e-3, 0.075])
def test_changes_of_coordinates_and_halved_steps_are_the_same(step: float) -> None:
    """At 1 ms the choice changes in time; at 75 ms a step leaps over the dead centre, fails and is halved."""
    runs = [forced(step, compiled) for compiled in (True, False)]
    for simulation in runs:
        simulation.step(0.0, 0.6)
    assert runs[0].statistics == runs[1].statistics
    assert runs[0].statistics.repartitions >= 1
    assert (runs[0].statistics.retries > 0) == (step > 0.01)
    assert runs[0].independent == runs[1].independent
    assert runs[0].get("crank.angle") == pytest.approx(runs[1].get("crank.angle"), rel=1e-9)


def test_switch_leaves_it_to_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert not isinstance(mbsfmu.models.pendulum(1).simulation().runner, CompiledRunner)
    monkeypatch.delenv(SWITCH)
    assert isinstance(mbsfmu.models.pendulum(1).simulation().runner, CompiledRunner)
    assert not isinstance(mbsfmu.models.pendulum(1).simulation(solver="dop853").runner, CompiledRunner)


def test_projections_of_penalty_are_stiffened_for_weak_loops_alike() -> None:
    """Where the step's factor leaves a weak loop open, the interpreter raises it for the projection, and C as much."""
    model = mbsfmu.CoupledModel.model_validate_json(WEAK_LOOP.read_text(encoding="utf-8"))
    options: dict[str, Any] = {"formulation": "penalty", "solver": "trapezoidal", "step": 1e-3}
    compiled, interpreted = (model.simulation(compiled=each, **options).run(0.01) for each in (True, False))
    joints = [name for name in interpreted if name.startswith(("b0.", "b2.", "b3.")) and "acceleration" not in name]
    for name in (name for name in joints if "force" not in name and "moment" not in name):
        np.testing.assert_allclose(compiled[name], interpreted[name], rtol=1e-11, atol=1e-12, err_msg=name)
