"""Derivatives of motion that linear equations define, against central differences of the assembly's own rates."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
from driven_crank import driven_crank
from looping import Feeling
from mechanisms import slider_crank
from oscillator_in_closed_form import oscillator

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.stepping.stages import nonzero
from mbsfmu.tracing.solved_equations import solution_operations, solved
from mbsfmu.tracing.workspace import Floats


def feeling() -> CoupledModel:
    """A slider whose motor feels its acceleration."""
    lines = (("mechanism.slider.acceleration", "feeling.acceleration"), ("feeling.force", "mechanism.motor.force"))
    systems = {"mechanism": oscillator(driven=False).systems["mechanism"], "feeling": Feeling()}
    return CoupledModel(name="felt", systems=systems, connections=lines)


def two_machines() -> CoupledModel:
    """Two that have nothing to do with each other."""
    first, second = slider_crank(), mbsfmu.models.built_in("pendulum-3")
    (one,), (other,) = first.systems.values(), second.systems.values()
    return CoupledModel(name="two", systems={"one": one, "other": other})


CASES: dict[str, Callable[[], CoupledModel]] = {
    "felt": feeling,
    "driven": driven_crank,
    "redundant": lambda: mbsfmu.models.built_in("slewing-four-bar"),
    "two": two_machines,
}


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
@pytest.mark.parametrize("case", list(CASES))
def test_slopes_are_those_of_the_rates(case: str, formulation: str) -> None:
    """Where loops are open, too: they drift, and impulses and constraint forces belong to where they are."""
    simulation = CASES[case]().simulation(formulation=formulation, compiled=False)
    simulation.run(0.02, output_step=0.02)
    flow, functions = simulation.formulation, simulation.functions
    assert isinstance(flow, FirstOrderFormulation)
    parts = [functions.coordinates, getattr(functions, flow.moving), functions.states]
    random = np.random.default_rng(3)
    for part in parts[:2]:
        part[:] = part + 0.01 * random.standard_normal(part.shape)
    found, columns = flow.slope()[0].copy(), []
    for part in parts:
        for index, value in enumerate(part.tolist()):
            increment = 1e-6 * max(abs(value), 1.0)
            sides = []
            for sign in (1.0, -1.0):
                part[index] = value + sign * increment
                sides.append(flow.explicit()[0][flow.chained :].copy())
            part[index] = value
            columns.append((sides[0] - sides[1]) / (2.0 * increment))
    expected: Floats = np.stack(columns, axis=1)
    sizes = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 0.1)
    np.testing.assert_allclose(found / sizes, expected / sizes, rtol=0.0, atol=2e-6)


def test_unknowns_apart_are_solved_for_apart() -> None:
    """Of a matrix of two blocks: what is zero in the solution is known to be, and the rest is NumPy's."""
    random = np.random.default_rng(5)
    matrix, right = ca.SX(5, 5), ca.SX(5, 4)
    expected = np.zeros((5, 4), dtype=bool)
    for block, columns in (([0, 2, 4], [0, 1]), ([1, 3], [1, 3])):
        matrix[block, block] = ca.SX.sym("a", len(block), len(block))
        right[block, columns] = ca.SX.sym("b", len(block), len(columns))
        expected[np.ix_(block, columns)] = True
    solution = solved(matrix, right)
    np.testing.assert_array_equal(nonzero(solution.sparsity()), expected)
    symbols = ca.symvar(ca.veccat(matrix, right))
    function = ca.Function("all", [ca.vertcat(*symbols)], [matrix, right, solution])
    assert solution_operations(function) == round(2 / 3 * (3**3 + 2**3) + 2 * (3**2 * 2 + 2**2 * 2))
    numbers, sides, found = (np.array(each) for each in function(random.standard_normal(len(symbols))))
    np.testing.assert_allclose(found, np.linalg.solve(numbers, sides), rtol=0.0, atol=1e-12)


def test_what_is_singular_has_no_solution() -> None:
    matrix, right = ca.SX.sym("matrix", 2, 2), ca.SX.sym("right", 2)
    function = ca.Function("solution", [matrix, right], [solved(matrix, right)])
    assert np.isnan(np.array(function(np.zeros((2, 2)), np.ones(2)))).all()
