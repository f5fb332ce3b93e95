"""Reused iteration matrices: when they are refreshed, what they save."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from one_equation import STEP, Scalar

from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.integration.implicit import Jacobian, Method, NewtonSolution, solve
from mbsfmu.models import built_in, four_bar
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.iteration import Limits, ReusedJacobian

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
LIMITS = Limits(np.array([1e-6]), np.ones(1))


def solved(problem: Scalar, inverse: float | None, refresh_cost: float = 1e9, step: float = STEP) -> NewtonSolution:
    kept = None if inverse is None else ReusedJacobian(np.array([inverse]), step, 0.0, 1, 10.0)
    method = Method(Jacobian.EXACT, 10, refresh_cost)
    return solve(lambda: cast(StepProblem, problem), problem.step, LIMITS, method, kept, 0.0)


@pytest.mark.parametrize(("inverse", "why"), [(0.5, "slow"), (3.0, "farther each time"), (-1.0, "away"), (1e30, "far")])
def test_jacobians_that_do_not_serve_are_refreshed(inverse: float, why: str) -> None:
    """Whatever a new one costs, and also where the first increment leads to where there is no residual."""
    problem = Scalar(1.0, np.array([0.3]))
    found = solved(problem, inverse)
    root = np.roots([1.0, 0.0, 1.0, -0.5])
    assert found.unknowns[0] == pytest.approx(root[np.isreal(root)].real[0], abs=1e-9), why
    assert 1 <= found.iteration_matrices <= 2
    assert found.kept is not None
    assert found.kept.numbers[0] != inverse


@pytest.mark.parametrize(("refresh_cost", "iteration_matrices"), [(0.5, 1), (1e3, 0)])
def test_a_jacobian_is_refreshed_where_that_costs_less(refresh_cost: float, iteration_matrices: int) -> None:
    """Errors that shrink by 0.25 come from 0.4 to 1e-13 in 21 evaluations."""
    found = solved(Scalar(0.0, np.array([0.9])), 0.75, refresh_cost)
    assert found.iteration_matrices == iteration_matrices
    assert found.unknowns[0] == pytest.approx(0.5, abs=1e-9)


def test_a_jacobian_of_another_step_is_not_used() -> None:
    found = solved(Scalar(0.0, np.array([0.9])), 0.999, step=1.1 * STEP)
    assert found.iteration_matrices == 1


def test_one_is_due_where_steps_get_dearer_than_they_were() -> None:
    """The average over its steps, itself included, is least then."""
    kept: ReusedJacobian | None = ReusedJacobian(np.ones(1), STEP, 0.0, 1, 20.0)
    for spent in (2.0, 3.0, 4.0):
        assert kept is not None
        kept = kept.used(spent, 0.1)
    assert kept is not None
    assert kept.spent / kept.steps == pytest.approx((20.0 + 2.0 + 3.0 + 4.0) / 4.0)
    assert kept.used(7.0, 0.1) is not None
    assert kept.used(8.0, 0.1) is None


def moved(formulation: str, model: str = "four-bar", **options: object) -> Simulation:
    simulation = built_in(model).simulation(formulation=formulation, step=STEP, **options)  # pyright: ignore
    simulation.initialize()
    if model.startswith("four-bar"):
        simulation.set("valve.command", 8.0)
    return simulation


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_steps_are_those_of_newton_with_a_jacobian_each_time(formulation: str) -> None:
    """By a plain Newton iteration of 8 increments, each with its own iteration matrix, on the same step."""
    simulation, other = (moved(formulation, compiled=False, newton_tolerance=1e-10) for _ in range(2))
    for index in range(40):
        simulation.step(index * STEP, STEP)
    formulated, state = other.formulation, other._started()
    other.functions.inputs[:] = simulation.functions.inputs
    state = formulated.consistent(state)
    for _ in range(40):
        problem = formulated.problem(state, STEP)
        unknowns = problem.guess.copy()
        for _ in range(8):
            residual = problem.residual(unknowns).copy()
            unknowns -= np.linalg.solve(problem.jacobian(), residual)
        problem.land(unknowns)
        state = formulated.made_consistent(problem.finish())
    assert simulation.statistics.iteration_matrices < 20, "iteration matrices are kept"
    found = simulation._started()
    np.testing.assert_allclose(found.coordinates, state.coordinates, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.states, state.states, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("formulation", "model"), [("hdca", "four-bar"), ("dca", "four-bar")])
def test_a_restored_run_goes_on_to_the_last_bit(formulation: str, model: str, compiled: bool) -> None:
    """The iteration matrix is old where the state is saved; another run begins with the saved bytes."""
    simulation, other = (moved(formulation, model, compiled=compiled) for _ in range(2))
    simulation.step(0.0, 30 * STEP)
    state = simulation._started()
    assert state.iteration_matrix_use[2] > 3.0, "the iteration matrix has served for several steps"
    saved = simulation.save()
    simulation.step(30 * STEP, 30 * STEP)
    other.restore(saved)
    other.step(30 * STEP, 30 * STEP)
    assert other.save() == simulation.save()
    forgetful = moved(formulation, model, compiled=compiled)
    forgetful.restore(saved)
    forgetful.run_loop.state = forgetful._started().forgetful
    forgetful.step(30 * STEP, 30 * STEP)
    assert forgetful.save() != simulation.save(), "without its iteration matrix it would not"


def test_a_valve_that_slams_costs_jacobians_and_no_halvings() -> None:
    """From closed to wide open and back: flow and its derivative change by orders of magnitude within a step."""
    simulation = four_bar(circuit="friction").simulation(compiled=False, step=STEP)
    simulation.set("valve.time_constant", 1e-4)
    simulation.initialize()
    for index in range(60):
        simulation.set("valve.command", 10.0 if index // 10 % 2 else -10.0)
        simulation.step(index * STEP, STEP)
    assert simulation.statistics.failures == 0
    assert simulation.statistics.iteration_matrices > 6
