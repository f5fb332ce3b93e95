"""What steps cost, and which costs are told apart, on clocks that are made up."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

import mbsfmu
from mbsfmu.comparison import Run
from mbsfmu.comparison.cost import LEAST, MOST, Repetitions, cheapest_runs, contenders, repeated_costs
from mbsfmu.comparison.run import CoupledFmus, Task, Timing, run_timed


class Machine:
    """A machine whose load changes from one run to the next; each costs its own share, with noise.

    Parameters
    ----------
    costs
        Of each step, in s per simulated second.
    noise
        Largest share by which a run is off.
    """

    def __init__(self, costs: dict[float, float], noise: float, seed: int = 1) -> None:
        self.costs, self.noise, self.random = costs, noise, Random(seed)
        self.now, self.made = 0.0, dict.fromkeys(costs, 0)

    def process_time(self) -> float:
        return self.now

    def run_timed(self, task: Task) -> tuple[None, Timing]:
        round_made = self.made[task.step]
        self.made[task.step] += 1
        load = 1.0 + 0.5 * Random(round_made).random()  # the same for all that run in turn
        cost = self.costs[task.step] * load * (1.0 + self.noise * self.random.uniform(-1.0, 1.0))
        self.now += cost
        return None, Timing(0.0, cost)


def repeat(machine: Machine, monkeypatch: pytest.MonkeyPatch, seconds: float = 1e3) -> list[Run]:
    monkeypatch.setattr("mbsfmu.comparison.cost.run_timed", machine.run_timed)
    monkeypatch.setattr("mbsfmu.comparison.cost.clock", machine)
    tasks = [Task(CoupledFmus(Path()), Path(), None, "jacobi", step, 1.0) for step in machine.costs]
    costs = repeated_costs(Repetitions(tasks, seconds))
    return [
        Run("jacobi", task.step, "ok", {"x": task.step}, None, 1, 0.0, costs=each)
        for task, each in zip(tasks, costs, strict=True)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_costs_are_told_apart_through_a_changing_load(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that changes by 50 % hides 20 % in each of the costs, but not in quotients of runs made in turn."""
    machine = Machine({1e-3: 1.2, 2e-3: 1.0, 4e-3: 1.0, 3e-3: 2.0}, noise=0.02, seed=seed)
    made = repeat(machine, monkeypatch)
    assert [run.step for run in cheapest_runs(made, 1.0)] == [2e-3, 4e-3]
    assert machine.made == {1e-3: LEAST, 2e-3: LEAST, 4e-3: LEAST, 3e-3: LEAST}, "resolved at once"
    assert sorted(made[0].costs)[-1] > 1.2 * sorted(made[0].costs)[0]


def test_what_is_not_resolved_is_repeated_and_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine({1e-3: 1.05, 2e-3: 1.0, 4e-3: 3.0}, noise=0.3)
    made = repeat(machine, monkeypatch)
    assert machine.made == {1e-3: MOST, 2e-3: MOST, 4e-3: LEAST}
    assert [run.step for run in cheapest_runs(made, 1.0)] == [1e-3, 2e-3]


@pytest.mark.parametrize(("seconds", "rounds"), [(0.5, 1), (10.0, 3), (14.0, 4)])
def test_time_is_bounded(seconds: float, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round costs 2.5 to 3.75 s; no other is begun where it would end too late."""
    machine = Machine({1e-3: 1.5, 2e-3: 1.0}, noise=0.0)
    repeat(machine, monkeypatch, seconds)
    assert machine.made == {1e-3: rounds, 2e-3: rounds}
    assert machine.now <= max(seconds, 3.75)


def test_far_dearer_runs_and_poor_ones_are_not_repeated() -> None:
    costs = {0.1: 1.0, 0.2: 2.9, 0.3: 3.1, 0.9: 0.5}
    made = [Run("jacobi", error, "ok", {"x": error}, None, 1, 0.0, costs=[cost]) for error, cost in costs.items()]
    assert [run.step for run in contenders(made, 0.5)] == [0.1, 0.2]
    assert contenders(made, 0.05) == []


def test_loading_and_the_first_step_are_no_part_of_stepping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a clock that counts its readings by time simulated: ten thousand for loading, two for each second."""
    package = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="separate", step=1e-3)[-1]
    readings = iter([0.0, 1e4, 1e4 + 5.0, 1e4 + 5.0 + 2.0 * 0.009])

    class Clock:
        process_time = staticmethod(lambda: next(readings))

    monkeypatch.setattr("mbsfmu.comparison.run.clock", Clock)
    result, found = run_timed(Task(CoupledFmus(package), Path(), None, "jacobi", 1e-3, 0.01))
    assert (found.loading, found.stepping) == (1e4 + 5.0, pytest.approx(2.0))
    assert result.time[-1] == pytest.approx(0.01)
    readings = iter([0.0, 1e4, 1e4 + 0.02])
    _, found = run_timed(Task(CoupledFmus(package), Path(), None, "jacobi", 0.01, 0.01))
    assert (found.loading, found.stepping) == (1e4, pytest.approx(2.0)), "the only step counts"


def test_nothing_is_cheapest_where_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The valve of the four-bar opens at 1 s. The monolithic run takes half a second by its clock."""
    readings = iter([10.0, 10.5])
    stopped = SimpleNamespace(process_time=lambda: next(readings))
    monkeypatch.setattr(sys.modules["mbsfmu.comparison.comparison_runs"], "clock", stopped)
    model = mbsfmu.models.four_bar()
    made = mbsfmu.compare(model, steps=[2e-3, 1e-3], algorithms=["jacobi", "gauss-seidel"], stop=0.1, workers=1)
    assert made.verdict.startswith("Nothing moves: no output of the monolithic run changes up to 0.1 s, ")
    assert made.reference["cost"] == pytest.approx(0.5 / 0.1)
    assert (made.cheapest, made.step_verdict) == ([], "")
    assert made.order == {"jacobi": None, "gauss-seidel": None}
    assert made.to_dict()["cheapest"] == []
    assert {len(run.costs) for run in made.runs} == {1}


def test_runs_that_may_be_the_cheapest_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are accurate enough, and no others; what the repetitions cost decides."""
    repeated = list[Task]()

    def found(repetitions: Repetitions) -> list[list[float]]:
        repeated.extend(repetitions.tasks)
        return [[1.0 + place, 1.0] for place in range(len(repetitions.tasks))]

    monkeypatch.setattr(sys.modules["mbsfmu.comparison.comparison_runs"], "repeated_costs", found)
    model = mbsfmu.models.four_bar("frictionless")
    algorithms = ["gauss-seidel", "gauss-seidel-linear"]
    made = mbsfmu.compare(model, steps=[2e-3, 1e-3], algorithms=algorithms, stop=1.02, accuracy=0.05, workers=1)
    good = {(run.algorithm, run.step) for run in made.runs if run.judged is not None and run.judged <= 0.05}
    assert 0 < len(good) < len(made.runs), "the accuracy parts them"
    assert {(task.algorithm, task.step) for task in repeated} <= good
    assert next(run.costs for run in made.runs if len(run.costs) > 1) == [1.0, 1.0]
    assert len([run for run in made.runs if len(run.costs) > 1]) == len(repeated) > 0
