"""The traced functions are the NumPy functions, and their derivatives are derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu
from mbsfmu.formulations.dca_alm import DcaAlm
from mbsfmu.formulations.penalty import Penalty
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LoopsInUse, System, starts
from mbsfmu.tracing.symbols import expression, symbolic_array

MODELS = ("four-bar", "quick-return", "pendulum-3", "double-pentagon")


def randomized(system: System, seed: int) -> SystemFunctions:
    random = np.random.default_rng(seed)
    functions = SystemFunctions(system)
    functions.parameters[:] = starts(system.parameters)
    for array in (functions.coordinates, functions.velocities, functions.accelerations, functions.integrals):
        array[:] = random.normal(size=array.shape)
    functions.states[:] = [random.uniform(0.5, 2.0) * (each.nominal or 1.0) for each in system.states]
    functions.inputs[:] = random.normal(size=functions.inputs.shape)
    functions.multipliers[:] = random.normal(size=functions.multipliers.shape)
    return functions


@pytest.mark.parametrize(
    ("name", "absolute"), [*((name, False) for name in MODELS), ("quick-return", True), ("pendulum-3", True)]
)
def test_values_agree_to_round_off(name: str, absolute: bool) -> None:
    system = mbsfmu.models.built_in(name).system(absolute=absolute)
    for seed in range(3):
        functions = randomized(system, seed)
        equations = functions.traced("equations", [functions.expressions.residual, functions.expressions.rates])
        instant = functions.numeric_instant()
        for traced, direct in (
            (equations()[0], system.residual(instant)),
            (equations()[1], system.rates(instant)),
            (functions.all_closure()[0], system.closure(instant)),
            (functions.outputs()[0], system.evaluate_outputs(instant)),
            (functions.integral_rates()[0], system.integral_rates(instant)),
        ):
            scale = np.max(np.abs(direct), initial=1.0)
            np.testing.assert_allclose(traced, direct.astype(float), rtol=1e-12, atol=1e-13 * scale)


@pytest.mark.parametrize("name", ["four-bar", "double-pentagon"])
def test_divide_and_conquer_agrees_to_round_off(name: str) -> None:
    system = mbsfmu.models.built_in(name).system()
    functions = randomized(system, 1)
    functions.momenta[:] = np.random.default_rng(2).normal(size=functions.momenta.shape)
    given, instant, rows = functions.expressions, functions.numeric_instant(), functions.rows
    expressions = [*given.forward_dynamics(10.0), *given.impulsive_velocities(3.0), given.initial_momenta]
    traced = functions.traced("divide_and_conquer", [*expressions, given.momentum_rates])()
    direct = [
        *system.forward_dynamics(instant, LoopsInUse(rows), 10.0),
        *system.impulsive_velocities(instant, LoopsInUse(rows), 3.0),
    ]
    direct += [
        system.initial_momenta(instant),
        system.momentum_rates(instant, LoopsInUse(rows, multipliers=functions.multipliers)),
    ]
    for ours, expected in zip(traced, direct, strict=True):
        np.testing.assert_allclose(ours, expected.astype(float), rtol=0.0, atol=1e-9 * np.max(np.abs(expected)))


def test_corrections_agree_to_round_off() -> None:
    system = mbsfmu.models.built_in("five-bar").system(absolute=True)
    functions = randomized(system, 1)
    given, instant = functions.expressions, functions.numeric_instant()
    symbol, violation = functions.add_part("given_violation", len(functions.rows))
    violation[:] = np.random.default_rng(3).normal(size=violation.shape)
    found = given.corrections(1e6).solve(symbolic_array(symbol))
    traced = functions.traced("corrections", [given.free_accelerations, *map(expression, found)])()
    corrections = system.corrections(instant, LoopsInUse(functions.rows), 1e6)
    corrections = corrections.with_numbers(corrections.numbers())
    direct = [system.free_accelerations(instant), *corrections.solve(violation)]
    for ours, expected in zip(traced, direct, strict=True):
        np.testing.assert_allclose(ours, expected.astype(float), rtol=0.0, atol=1e-9 * np.max(np.abs(expected)))


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        ("pendulum-3", "dca-alm"),
        *((name, formulation) for name in MODELS for formulation in ("double-step", "penalty")),
        *((name, formulation) for name in ("pendulum-3", "four-bar") for formulation in ("dca", "hdca")),
    ],
)
def test_jacobians_are_derivatives(name: str, formulation: str) -> None:
    """The Jacobian of a step against central differences of its residual, away from rest."""
    simulation = mbsfmu.models.built_in(name).simulation(formulation=formulation)
    simulation.initialize()
    if any(variable.name == "valve.command" for variable in simulation.variables):
        simulation.set("valve.command", 3.0)  # a shut valve has a kink
    for index in range(50):
        simulation.step(index * 1e-3, 1e-3)
    state = simulation.run_loop.state
    assert state is not None
    chosen = simulation.formulation
    problem = chosen.problem(state, 0.02)
    unknowns = problem.guess.copy()
    problem.residual(unknowns)
    iteration_matrix = problem.jacobian().copy()
    if isinstance(chosen, (Penalty, DcaAlm)):  # −1/α beside Φ_z is no derivative, but how λ follows Φ
        rows = range(len(unknowns) - len(simulation.functions.closure()[0]), len(unknowns))
        iteration_matrix[rows, rows] += 1.0 / chosen.equations.penalty
    for column, value in enumerate(unknowns):
        step = 1e-6 * max(abs(value), 1.0)
        ahead, behind = unknowns.copy(), unknowns.copy()
        ahead[column] += step
        behind[column] -= step
        difference = (problem.residual(ahead).copy() - problem.residual(behind)) / (2 * step)
        scale = np.max(np.abs(iteration_matrix[:, column]))
        # As if the last digits of the unknowns differed: what grows as the step of the difference shrinks.
        round_off = 1e-14 * (np.abs(iteration_matrix) @ np.abs(unknowns)) / step
        np.testing.assert_array_less(
            np.abs(iteration_matrix[:, column] - difference), 2e-7 * scale + 1e-6 * np.abs(difference) + round_off
        )
