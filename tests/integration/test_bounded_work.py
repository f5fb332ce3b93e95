"""A limited number of iterations bounds the work of a step; how far from converged that leaves it is told as it is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from importer import Importer
from scipy.integrate import solve_ivp

import mbsfmu
from mbsfmu import InputError
from mbsfmu.base.errors import SimulationError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.solver import StepWork
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.workspace import Floats

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
FOUR_BAR = mbsfmu.models.four_bar("frictionless")
LEFT = ("solver.unconverged", "solver.unconverged_max")

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


# -- errors over iterations ---------------------------------------------------------------------------------


def swung(iterations: int | None, step: float) -> tuple[Result, Floats]:
    """A run of a link that falls from the horizontal, and its angle by SciPy."""
    result = mbsfmu.models.pendulum(1).simulation(compiled=False, iterations=iterations, step=step).run(2.0)
    gravity = mbsfmu.models.pendulum(1).simulation(compiled=False).get("gravity.y")

    def rates(_: float, state: Floats) -> Floats:
        return np.array([state[1], gravity * 0.5 * np.cos(state[0]) / 1.25])

    solved = solve_ivp(rates, (0.0, 2.0), [0.0, 0.0], "DOP853", result.time, rtol=1e-12, atol=1e-13)
    return result, solved.y[0]


def test_error_falls_with_iterations_to_that_of_the_rule() -> None:
    """One Newton iteration of its own iteration matrix keeps the rule's order; the second leaves nothing to see."""
    errors = {}
    for iterations in (1, 2, None):
        for step in (0.02, 0.01):
            result, expected = swung(iterations, step)
            errors[iterations, step] = float(np.max(np.abs(result["link_1.angle"] - expected)))
    for step in (0.02, 0.01):
        assert abs(errors[1, step] - errors[None, step]) < 0.05 * errors[None, step]
        assert abs(errors[2, step] - errors[None, step]) < 1e-6 * errors[None, step]
    assert np.log2(errors[1, 0.02] / errors[1, 0.01]) == pytest.approx(2.0, abs=0.1)


def test_farness_is_that_of_the_solution() -> None:
    """The first step with one iteration, against the same step solved to the end: in tolerances of its unknowns."""
    first = {}
    for iterations in (1, 2, None):
        simulation = mbsfmu.models.pendulum(1).simulation(compiled=False, iterations=iterations, step=0.4)
        simulation.initialize()
        simulation.step(0.0, 0.4)
        first[iterations] = simulation
    off = abs(first[1].get("link_1.angle") - first[None].get("link_1.angle")) / 1e-7
    assert off > 10.0
    assert first[1].get(LEFT[0]) == pytest.approx(off, rel=2e-3)
    assert first[2].get(LEFT[0]) < 1e-3
    assert LEFT[0] not in {variable.name for variable in first[None].variables}


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_farness_is_that_of_an_evaluation_of_its_own(formulation: str) -> None:
    """The residual behind the one increment, by NumPy with the iteration matrix at the guess, as the valve opens."""
    simulation = FOUR_BAR.simulation(formulation=formulation, compiled=False, iterations=1, step=2e-3)
    simulation.initialize()
    simulation.step(0.0, 1.0)
    simulation.step(1.0, 0.01)
    state = simulation.run_loop.present
    solver = simulation.solver
    assert isinstance(solver, ImplicitSolver)
    before = state.unconverged
    simulation.functions.parameters[:] = simulation.run_loop.parameters
    simulation.functions.inputs[:] = simulation.run_loop.inputs.over(1.011)(1.012)
    problem = simulation.formulation.problem(state, 2e-3)
    guess = problem.guess.copy()
    residual = problem.residual(guess).copy()
    iteration_matrix = np.array(problem.jacobian())
    unknowns = guess - np.linalg.solve(iteration_matrix, residual)
    judged = len(guess) - simulation.formulation.step_multipliers
    left = np.linalg.solve(iteration_matrix, problem.residual(unknowns))[:judged]
    limits = simulation.formulation.limits(judged)
    tolerances = limits.shares * np.maximum(limits.nominal, np.abs(unknowns[:judged]))
    farness = float(np.max(np.abs(left) / tolerances))
    simulation.step(1.01, 2e-3)
    assert farness > 1.0
    assert simulation.get(LEFT[0]) == pytest.approx(farness, rel=1e-4)
    assert simulation.get(LEFT[1]) == pytest.approx(max(before[1], farness), rel=1e-4)


def test_worst_is_the_largest_until_then() -> None:
    result = FOUR_BAR.simulation(iterations=1, compiled=False).run(1.1)
    np.testing.assert_array_equal(result[LEFT[1]], np.maximum.accumulate(result[LEFT[0]]))
    assert result.summary()["unconverged_max"] == result[LEFT[1]][-1] > 1.0
    assert FOUR_BAR.simulation(compiled=False).run(0.01).summary()["unconverged_max"] is None


# -- bounds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
def test_steps_are_never_halved(compiled: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Steps of 20 ms do not converge without halving; limited they are all made, and it is said how well."""
    free = FOUR_BAR.simulation(compiled=compiled, step=0.02).run(3.0)
    assert free.statistics.retries > 0
    caplog.clear()
    limited = FOUR_BAR.simulation(compiled=compiled, step=0.02, iterations=2).run(3.0)
    statistics = limited.statistics
    assert (statistics.retries, statistics.steps, statistics.newton_max) == (0, 150, 2)
    assert statistics.iteration_matrices <= 2 * statistics.steps
    told = [record.message for record in caplog.records if "iterations do not solve the steps" in record.message]
    assert len(told) == 1
    said = re.search(r"at t = ([\d.]+) s one is left (\S+) tolerances", told[0])
    assert said
    row = round(float(said[1]) / 0.02)
    assert float(said[2]) == pytest.approx(limited[LEFT[0]][row], rel=0.05)


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca"])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_the_most_work_is_that_of_the_worst_step(
    formulation: str, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of the equations, of Jacobians and of their inverses, counted from outside, as the valve opens.

    Tolerances that no step meets make every step the worst.
    """
    simulation = FOUR_BAR.simulation(
        formulation=formulation, compiled=False, iterations=iterations, step=2e-3, newton_tolerance=1e-14
    )
    simulation.initialize()
    simulation.step(0.0, 1.0)
    calls = Counter[str]()

    class CountedInverse:
        def __init__(self, inverse: Any) -> None:
            self._inverse, self.numbers = inverse, inverse.numbers

        def times(self, values: Floats) -> Floats:
            calls["solutions"] += 1
            return self._inverse.times(values)

    class CountedProblem:
        def __init__(self, problem: Any) -> None:
            self._problem = problem

        def __getattr__(self, name: str) -> Any:
            return getattr(self._problem, name)

        def residual(self, unknowns: Floats) -> Floats:
            calls["residuals"] += 1
            return self._problem.residual(unknowns)

        def inverse(self) -> CountedInverse:
            calls["jacobians"] += 1
            return CountedInverse(self._problem.inverse())

    make = simulation.formulation.problem
    monkeypatch.setattr(simulation.formulation, "problem", lambda *given: CountedProblem(make(*given)))
    worst = Counter[str]()
    for index in range(10):
        calls.clear()
        simulation.step(1.0 + 2e-3 * index, 2e-3)
        worst |= calls
    assert simulation.solver.most_work == StepWork(**worst)


@pytest.mark.parametrize("formulation", ["double-step", "penalty"])
def test_differences_take_a_residual_for_each_unknown_and_one_more(formulation: str) -> None:
    """In place of the Jacobian: at a neighbour in each direction, and at the point again."""
    chosen = {"formulation": formulation, "jacobian": "forward-difference"}
    simulation = FOUR_BAR.simulation(**chosen, compiled=False, iterations=1, step=2e-3)
    simulation.initialize()
    simulation.step(0.0, 1.0)
    unknowns = len(simulation.formulation.problem(simulation.run_loop.present, 2e-3).guess)
    assert simulation.solver.most_work == StepWork(2 + unknowns + 1, 1, 2)


def test_only_limited_iterations_have_a_bound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The export says it, where the FMU makes the steps."""
    for options in ({}, {"solver": "rodas5p"}, {"solver": "rk4"}):
        assert FOUR_BAR.simulation(compiled=False, **options).solver.most_work is None
    caplog.set_level("INFO", "mbsfmu")
    chosen = {"layout": "monolithic", "backend": "python", "step": 2e-3, "force": True}
    mbsfmu.export(FOUR_BAR, tmp_path, **chosen)
    assert not [each for each in caplog.messages if "at most" in each]
    mbsfmu.export(FOUR_BAR, tmp_path, iterations=2, **chosen)
    (said,) = (each for each in caplog.messages if "at most" in each)
    assert said == (
        f"{FOUR_BAR.name}: a communication step of 0.002 s is one internal step, and one more for each discontinuity "
        "or update within it; each takes at most 3 residuals, 2 Jacobians and 4 linear solves"
    )


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
def test_a_step_that_cannot_be_made_fails_at_once(compiled: bool) -> None:
    """Two iterations come to a place at which the loop cannot be closed; a step of half the size can be made."""
    options = {"compiled": compiled, "step": 0.7}
    assert mbsfmu.models.loop_4().simulation(**options).run(1.4).statistics.retries > 0
    with pytest.raises(SimulationError, match=r"the step at t = 0\.7 s fails even with 0\.7 s: the loops cannot be"):
        mbsfmu.models.loop_4().simulation(iterations=2, **options).run(1.4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"solver": "rk45", "iterations": 2}, "iterations .* has no effect with the solver 'rk45'"),
        ({"iterations": 0}, "the number of iterations is 0; it must be an integer from 1 to 100"),
        ({"iterations": 1.5}, "the number of iterations is 1.5; it must be an integer"),
    ],
)
def test_refusals(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        FOUR_BAR.simulation(**options)


# -- compiled code and units --------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize(
    ("formulation", "iterations"),
    [("double-step", 1), ("penalty", 1), ("dca", 2), ("dca-alm", 1)],
)
def test_compiled_code_leaves_the_same(formulation: str, iterations: int) -> None:
    options = {"formulation": formulation, "iterations": iterations, "step": 2e-3}
    compiled = FOUR_BAR.simulation(**options).run(1.1)
    expected = FOUR_BAR.simulation(compiled=False, **options).run(1.1)
    for name in ("cylinder.force", "boom.angle"):
        scale = np.ptp(expected[name])
        np.testing.assert_allclose(compiled[name] / scale, expected[name] / scale, atol=1e-10)
    for name in LEFT:
        np.testing.assert_allclose(compiled[name], expected[name], rtol=1e-4, atol=1e-3)
    assert compiled.statistics.newton_total == expected.statistics.newton_total
    assert compiled.statistics.retries == 0


@needs_compiler
def test_units_say_how_far_they_are_from_converged(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The steps of the simulation in process; a saved state has what was left too, to the last bit."""
    folder = tmp_path_factory.mktemp("bounded")
    options = {"iterations": 1, "step": 2e-3}
    (path,) = mbsfmu.export(FOUR_BAR, folder, layout="monolithic", **options)
    importer = Importer(path, folder / "unpacked")
    slave = importer.running()
    simulation = FOUR_BAR.simulation(**options)
    simulation.initialize()
    rows, saved = [], b""
    for index in range(110):
        time = 0.01 * index
        if index == 104:
            saved = slave.serializeFMUstate(slave.getFMUstate())
        slave.doStep(time, 0.01)
        simulation.step(time, 0.01)
        rows.append([importer.get(slave, name) for name in LEFT])
        assert rows[-1] == pytest.approx([simulation.get(name) for name in LEFT], rel=1e-6, abs=1e-6)
    assert rows[-1][1] == max(row[1] for row in rows) > rows[-1][0] > 0.0
    other = importer.running()
    other.setFMUstate(other.deSerializeFMUstate(saved))
    assert [importer.get(other, name) for name in LEFT] == rows[103]
    for index in range(104, 110):
        other.doStep(0.01 * index, 0.01)
    assert importer.everything(other) == importer.everything(slave)
