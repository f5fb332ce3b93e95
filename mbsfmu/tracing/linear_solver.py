"""Solutions of linear equations as called functions, whose code is a loop."""

from __future__ import annotations

import math
from functools import cache

import casadi as ca
import numpy as np

NAME = "solve_linear"
"""Prefix of the function names, followed by the numbers of unknowns and right-hand sides."""


def solved(matrix: ca.SX, right: ca.SX) -> ca.SX:
    """Return the solution of linear equations without derivatives; structural zeros are preserved.

    Independent blocks of unknowns are solved separately.

    Parameters
    ----------
    matrix
        Shape (n, n), not singular.
    right
        Shape (n, k).
    """
    matrix, right = ca.sparsify(matrix), ca.sparsify(right)
    solution = ca.SX(*right.shape)
    for block in _blocks(matrix.sparsity()):
        own = right[block, :]
        columns = sorted(set(own.sparsity().get_triplet()[1]))
        if columns:
            solution[block, columns] = _solved(matrix[block, block], own[:, columns])
    return solution


def solution_operations(function: ca.Function) -> int:
    """Return the operations of the solutions in a function, each size counted once."""
    count = 0.0
    for each in function.find_functions():
        if each.name().startswith(NAME):
            unknowns, elements = math.isqrt(each.numel_in(0)), each.numel_in(1)
            count += 2.0 / 3.0 * unknowns**3 + 2.0 * unknowns * elements
    return round(count)


def _solved(matrix: ca.SX, right: ca.SX) -> ca.SX:
    if matrix.shape == (1, 1):
        return right / matrix
    function = _solver(*right.shape)
    given = [ca.vec(ca.densify(matrix)), ca.vec(ca.densify(right))]
    (found,) = function.call(given, False, True)
    return ca.reshape(found, *right.shape)


@cache
def _solver(unknowns: int, columns: int) -> ca.Function:
    """Return the function of a matrix and right-hand sides, column by column; NaN for singular matrices."""
    matrix, right = ca.MX.sym("matrix", unknowns**2), ca.MX.sym("right", unknowns * columns)
    found = ca.solve(ca.reshape(matrix, unknowns, unknowns), ca.reshape(right, unknowns, columns), "symbolicqr")
    return ca.Function(f"{NAME}_{unknowns}_{columns}", [matrix, right], [ca.vec(found)], {"never_inline": True})


def _blocks(sparsity: ca.Sparsity) -> list[list[int]]:
    """Return the independent blocks of unknowns."""
    count = sparsity.shape[0]
    block = np.arange(count)
    for row, column in zip(*sparsity.get_triplet(), strict=True):
        if block[row] != block[column]:
            block[block == block[column]] = block[row]
    return [np.flatnonzero(block == each).tolist() for each in np.unique(block)]
