"""Joints eliminated one after the other against all equations at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import mbsfmu
from mbsfmu import InputError
from mbsfmu.divide_and_conquer.assembly import DivideAndConquer, Hung, LevelEquations, SequentialAssembly
from mbsfmu.divide_and_conquer.binary_tree import BinaryTree, Link
from mbsfmu.tracing.workspace import RecordedFunction

PARENTS = (-1, 0, 1, 0, 3, 3, -1, 2, 6)
COUNTS = (5, 3, 5, 0, 6, 2, 5, 4, 1)


def random_tree(
    random: np.random.Generator, counts: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.int_], list[tuple[int, ...]], NDArray[np.float64]]:
    """A positive definite matrix of each body, ends and indices of the rows of joints, and their wrenches."""
    roots = random.normal(size=(len(PARENTS), 6, 6))
    matrices = roots @ np.swapaxes(roots, 1, 2) + np.eye(6)
    ends = np.cumsum((0, *counts))
    rows = [tuple(range(first, last)) for first, last in pairwise(ends.tolist())]
    wrenches = random.normal(size=(2, ends[-1], 6))
    wrenches[0, [row for body, own in enumerate(rows) if PARENTS[body] < 0 for row in own]] = 0.0
    return matrices, ends, rows, wrenches


def test_it_solves_all_equations_of_a_tree() -> None:
    random = np.random.default_rng(4)
    bodies = len(PARENTS)
    inverse, ends, rows, wrenches = random_tree(random, COUNTS)
    free, bias = random.normal(size=(bodies, 6)), random.normal(size=ends[-1])
    tree = [Hung(parent, own) for parent, own in zip(PARENTS, rows, strict=True)]
    assembly = SequentialAssembly(tree)
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


def test_it_takes_excess_inertias_away() -> None:
    """With J on body and direction, then without: the solution for the inertias without."""
    random = np.random.default_rng(5)
    bodies, widths = len(PARENTS), [min(count_of, 5) for count_of in COUNTS]
    inertias, ends, rows, wrenches = random_tree(random, widths)
    free, bias = random.normal(size=(bodies, 6)), random.normal(size=ends[-1])
    loads = (inertias @ free[:, :, np.newaxis])[:, :, 0]
    tree = [Hung(parent, own) for parent, own in zip(PARENTS, rows, strict=True)]
    expected = SequentialAssembly(tree).factorize(np.linalg.inv(inertias), LevelEquations(wrenches)).solve(free, bias)
    excessive, excess, directions = [0, 3, 4, 8], random.uniform(1.0, 5.0, size=4), random.normal(size=(4, 6))
    for body, value, each in zip(excessive, excess, directions, strict=True):
        inertias[body] += value * np.outer(each, each)
    inverse = np.linalg.inv(inertias)
    free = (inverse @ loads[:, :, np.newaxis])[:, :, 0]
    own = {body: (int(ends[-1]) + number,) for number, body in enumerate(excessive)}
    added = np.stack([np.sqrt(excess)[:, np.newaxis] * directions, np.zeros((4, 6))])
    equations = LevelEquations(np.concatenate([wrenches, added], axis=1))
    bias = np.concatenate([bias, np.zeros(4)])
    tree = [Hung(each.parent, each.rows, own.get(body, ())) for body, each in enumerate(tree)]
    links = [Link((each.parent, body), each.rows) for body, each in enumerate(tree)]
    links += [Link((body,), rows, excess=True) for body, rows in own.items()]
    for assembly in (SequentialAssembly(tree), DivideAndConquer(BinaryTree(bodies, links))):
        moved, multipliers = assembly.factorize(inverse, equations).solve(free, bias)
        np.testing.assert_allclose(moved, expected[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(multipliers[: ends[-1]], expected[1], rtol=1e-8, atol=1e-9)


def test_one_after_the_other_is_the_default_and_costs_less() -> None:
    options = {"formulation": "dca", "solver": "rk45", "code": "loops"}
    model = mbsfmu.models.pendulum(24)

    def operations(**chosen: object) -> int:
        function = model.simulation(**options, **chosen).formulation.explicit  # pyright: ignore
        assert isinstance(function, RecordedFunction)
        return function.operations

    balanced = operations(assembly="balanced")
    alone = operations()
    assert alone == operations(assembly="sequential") < 0.4 * balanced


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
