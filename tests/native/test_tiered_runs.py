"""Runs that go over from code that is soon compiled to optimized code: nothing of them changes where they do."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cranks import parallel_cranks

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.compiling import compiler, kept
from mbsfmu.native import compiled
from mbsfmu.native.c_sources import StepSources
from mbsfmu.native.compiled import CompiledRunner, Spent, TieredRunner
from mbsfmu.simulation.run_loop import Recording, RunLoop
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation


@pytest.fixture
def tiers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let every model begin in code that is not optimized, and be optimized from its first step on."""
    monkeypatch.delenv(compiler.OPTIMIZATION)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    monkeypatch.setattr(compiled, "_LARGE", 0.0)
    monkeypatch.setattr(compiled, "_PATIENCE", 0.0)
    monkeypatch.setattr(compiled, "_LOOK_EVERY", 1e-3)
    monkeypatch.setattr(compiled, "LOOP", dict.fromkeys(compiled.LOOP, "-O0"))  # soon made as well


class Watched(TieredRunner):
    """Goes over where it has been asked often enough; notes how often the optimized code makes a run or a step."""

    def __init__(self, of: TieredRunner, asks: int) -> None:
        super().__init__(of._runner, of._optimized, 0.0, Spent())
        self._made = Future()
        self._make(self._made)
        self.asks, self.asked, self.runs = asks, 0, 0

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        super().run(run_loop, recording)
        self.runs += self._is_last

    def _goes_over(self) -> bool:
        self.asked += 1
        return self.asked > self.asks and super()._goes_over()


def tiered(model: str | CoupledModel, asks: int = 3, **options: Any) -> tuple[Simulation, Watched]:
    model = mbsfmu.models.built_in(model) if isinstance(model, str) else model
    simulation = model.simulation(**options)
    assert isinstance(simulation.runner, TieredRunner)
    runner = Watched(simulation.runner, asks)
    simulation.runner = runner
    return simulation, runner


def plain(name: str, **options: Any) -> Simulation:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(compiler.OPTIMIZATION, "0")
        simulation = mbsfmu.models.built_in(name).simulation(**options)
    assert isinstance(simulation.runner, CompiledRunner)
    return simulation


def assert_same(one: Result, other: Result) -> None:
    for name in other.names:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert one.statistics == other.statistics


@pytest.mark.usefixtures("tiers")
@pytest.mark.parametrize(
    ("name", "formulation", "solver"),
    [("four-bar", "double-step", "trapezoidal"), ("pendulum-2", "dca", "rodas5p"), ("pendulum-2", "hdca", "rk45")],
)
def test_a_run_that_goes_over_is_one_that_does_not(name: str, formulation: str, solver: str) -> None:
    options: dict[str, Any] = {"formulation": formulation, "solver": solver}
    stop = 50.0
    simulation, runner = tiered(name, asks=1, **options)
    shares: list[float] = []
    went = simulation.run(stop, output_step=0.01, progress=shares.append)
    assert runner.runs == 1
    assert shares == sorted(shares)
    optimized = plain(name, **options).run(stop, output_step=0.01)
    assert_same(went, optimized)
    assert went.wall_seconds > went.interim_seconds > 0.0 == optimized.interim_seconds
    assert simulation.run(stop, output_step=0.01).interim_seconds == 0.0, "the next run is optimized from its start"


@pytest.mark.usefixtures("tiers")
def test_time_of_recorded_runs_counts_for_what_is_optimized() -> None:
    """They are made in another thread than the one that asks for them."""
    simulation, runner = tiered("four-bar", asks=10**9, formulation="double-step", solver="trapezoidal")
    begin = time.process_time()
    simulation.run(10.0, output_step=0.01)
    used = time.process_time() - begin
    assert 0.5 * used < runner._spent.seconds < used


@pytest.mark.usefixtures("tiers")
def test_optimized_code_has_the_tolerance_that_was_set_before_it_was_made() -> None:
    options: dict[str, Any] = {"formulation": "dca", "solver": "rodas5p"}
    simulation = mbsfmu.models.built_in("pendulum-2").simulation(**options)
    assert isinstance(simulation.runner, TieredRunner)
    simulation.set_tolerance(1e-5)
    simulation.runner = simulation.runner._optimized()
    stays = plain("pendulum-2", **options)
    stays.set_tolerance(1e-5)
    assert_same(simulation.run(1.0), stays.run(1.0))


@pytest.mark.usefixtures("tiers")
@pytest.mark.parametrize("solver", ["trapezoidal", "rodas5p"])
def test_steps_go_over_between_two_of_them(solver: str) -> None:
    """Reused iteration matrices, and steps that have gone past the requested time, continue unchanged."""
    options: dict[str, Any] = {"solver": solver, "step": 1e-3}
    went, runner = tiered("four-bar", asks=19, **options)
    stays = plain("four-bar", **options)
    for simulation in (went, stays):
        simulation.set("valve.time_constant", 1e-4)
        simulation.initialize()
    for index in range(60):
        for simulation in (went, stays):
            simulation.set("valve.command", 10.0 if index // 10 % 2 else -10.0)
            simulation.step(index * 1e-3, 1e-3)
        np.testing.assert_array_equal(went.run_loop.readings(), stays.run_loop.readings())
    assert runner.runs == 41
    assert went.statistics == stays.statistics


@pytest.mark.usefixtures("tiers")
def test_what_a_run_has_to_say_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The bars of a parallelogram come into one line again and again, in what is run twice as well."""
    simulation, runner = tiered(parallel_cranks(0.9, speed=6.0, count=2), asks=20)
    with caplog.at_level(logging.WARNING):
        simulation.run(100.0, output_step=0.1)
    assert runner.runs == 1
    (warned,) = [record.getMessage() for record in caplog.records if "change point" in record.getMessage()]
    assert warned.startswith("parallel-cranks: at t = ")


@pytest.mark.usefixtures("tiers")
def test_a_compiler_that_fails_on_the_way_leaves_a_run_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kept, "_told", set())
    monkeypatch.setattr(compiled, "LOOP", {**compiled.LOOP, "lacking.c": "-O1"})
    simulation, _ = tiered("pendulum-2")
    result = simulation.run(50.0, output_step=1e-2)
    assert "not optimized" in caplog.text
    assert result.time[-1] == 50.0


@pytest.mark.usefixtures("tiers")
def test_the_next_process_traces_nothing_before_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    mbsfmu.models.built_in("pendulum-2").simulation()
    monkeypatch.setattr(StepSources, "of", lambda _: pytest.fail("equations are traced once more"))
    simulation, runner = tiered("pendulum-2")
    simulation.run(50.0, output_step=1e-2)
    assert runner.runs == 1
    assert isinstance(mbsfmu.models.built_in("pendulum-2").simulation().runner, CompiledRunner)


@pytest.mark.usefixtures("tiers")
def test_processes_that_run_a_model_for_a_short_time_each_come_to_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each of them would begin to optimize it, and none would come to the end of that."""
    monkeypatch.setattr(compiled, "_PATIENCE", 1e-7)  # some 0.3 ms, which is less than a run takes
    monkeypatch.setattr(TieredRunner, "_make", lambda self, made: None)  # as where the process ends before it is done
    simulation = mbsfmu.models.built_in("pendulum-2").simulation()
    assert isinstance(simulation.runner, TieredRunner)
    simulation.run(10.0)
    assert isinstance(mbsfmu.models.built_in("pendulum-2").simulation().runner, CompiledRunner)


def test_no_compiler_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(compiled, "has_compiler", lambda: False)
    monkeypatch.setattr(kept, "_told", set())
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    assert not isinstance(mbsfmu.models.pendulum(1).simulation().runner, CompiledRunner)
    assert "there is no C compiler: CasADi's interpreter makes the steps" in caplog.text


_LEAVES = """
import threading, time
from pathlib import Path
from mbsfmu.compiling.compilation import Compilation
compiler = "touch {folder}/began; sleep 30; touch late"
made = Compilation(("sh", "-c", compiler), {{"part.c": ""}}, {{"part.c": "-O2"}}, ".so")
threading.Thread(target=made.library, daemon=True).start()
while not Path("{folder}/began").exists():
    time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
def test_compilers_beside_a_process_end_with_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _LEAVES.format(folder=str(tmp_path))], check=True, timeout=20)
    left = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert f"touch {tmp_path}/began" not in left


@pytest.mark.usefixtures("tiers")
def test_the_monolithic_run_of_a_comparison_is_not_dearer_for_code_that_is_not_optimized_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What coupling saves is told by the cost of steps, of FMUs that are optimized and of this run."""
    monkeypatch.setattr(compiled, "_PATIENCE", 1e9)
    seen: list[Simulation] = []
    made = CoupledModel.simulation

    def noted(model: CoupledModel, **options: Any) -> Simulation:
        seen.append(made(model, **options))
        return seen[-1]

    monkeypatch.setattr(CoupledModel, "simulation", noted)
    mbsfmu.compare(mbsfmu.models.four_bar(), steps=[1e-2], algorithms=["jacobi"], stop=0.02, accuracy=0.5, workers=1)
    assert isinstance(seen[0].runner, CompiledRunner)
