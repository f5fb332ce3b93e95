"""Joints eliminated one after the other against all equations at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import mbsfmu
from mbsfmu import InputError
from mbsfmu.divide_and_conquer.binary_tree import BinaryTree, Link
from mbsfmu.divide_and_conquer.level_assembly import DivideAndConquer, LevelEquations
from mbsfmu.divide_and_conquer.sequential import Hung, SequentialAssembly
from mbsfmu.equations.sections import sections
from mbsfmu.tracing.workspace import RecordedFunction

PARENTS = (-1, 0, 1, 0, 3, 3, -1, 2, 6)
COUNTS = (5, 3, 5, 0, 6, 2, 5, 4, 1)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_it_solves_all_equations_of_a_tree(count: int) -> None:
    random = np.random.default_rng(4)
    bodies = len(PARENTS)
    roots = random.normal(size=(bodies, 6, 6))
    inverse = roots @ np.swapaxes(roots, 1, 2) + np.eye(6)
    ends = np.cumsum((0, *COUNTS))
    rows = [tuple(range(first, last)) for first, last in pairwise(ends.tolist())]
    wrenches = random.normal(size=(2, ends[-1], 6))
    wrenches[0, [row for body, own in enumerate(rows) if PARENTS[body] < 0 for row in own]] = 0.0
    free, bias = random.normal(size=(bodies, 6)), random.normal(size=ends[-1])
    tree = [Hung(parent, own) for parent, own in zip(PARENTS, rows, strict=True)]
    assembly = SequentialAssembly(tree, sections(PARENTS, count))
    moved, multipliers = assembly.factorize(inverse, LevelEquations(wrenches)).solve(free, bias)
    jacobian = np.zeros((ends[-1], 6 * bodies))
    for body, own in enumerate(rows):
        for row in own:
            jacobian[row, 6 * body : 6 * body + 6] += wrenches[1, row]
            if PARENTS[body] >= 0:
                jacobian[row, 6 * PARENTS[body] : 6 * PARENTS[body] + 6] += wrenches[0, row]
    spread = np.zeros((6 * bodies, 6 * bodies))
    for body in range(bodies):
        spread[6 * body : 6 * body + 6, 6 * body : 6 * body + 6] = inverse[body]
    expected = np.linalg.solve(jacobian @ spread @ jacobian.T, -jacobian @ free.ravel() - bias)
    np.testing.assert_allclose(multipliers, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(moved.ravel(), free.ravel() + spread @ jacobian.T @ expected, rtol=1e-8, atol=1e-9)
    links = [Link((parent, body), own) for body, (parent, own) in enumerate(zip(PARENTS, rows, strict=True))]
    balanced = (
        DivideAndConquer(BinaryTree(bodies, links)).factorize(inverse, LevelEquations(wrenches)).solve(free, bias)
    )
    np.testing.assert_allclose(moved, balanced[0], rtol=1e-8, atol=1e-9)


def test_one_after_the_other_is_the_default_and_costs_less_in_sections_too() -> None:
    options = {"formulation": "dca", "solver": "rk45", "code": "loops"}
    model = mbsfmu.models.pendulum(24)

    def operations(**chosen: object) -> int:
        function = model.simulation(**options, **chosen).formulation.explicit  # pyright: ignore
        assert isinstance(function, RecordedFunction)
        return function.operations

    balanced = operations(assembly="balanced")
    alone = operations()
    assert alone == operations(assembly="sequential") < 0.4 * balanced
    assert operations(unit_threads=2) < 0.8 * balanced
    assert operations(unit_threads=2, assembly="balanced") == balanced


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            "pendulum-2",
            "for kernel loops only; the code of pendulum-2 is unrolled, the quicker one of 2 coordinates",
        ),
        ("ladder-40", "can be sequential for trees alone; ladder-40 has loops"),
    ],
)
def test_where_it_changes_nothing_it_is_refused(model: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        mbsfmu.models.built_in(model).simulation(formulation="dca", solver="rk45", assembly="sequential")
