"""Factors of small matrices against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from mbsfmu.equations.linear import null_space, pivots


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_pivots_make_the_determinant(size: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(size, size))
    before = matrix.copy()
    found, sign = pivots(matrix)
    assert sign * np.prod(found) == pytest.approx(np.linalg.det(matrix), rel=1e-10)
    np.testing.assert_array_equal(matrix, before)


def test_a_matrix_without_full_rank_has_a_pivot_of_zero() -> None:
    assert np.min(pivots(np.array([[1.0, 2.0], [2.0, 4.0]]))[0]) == 0.0


def test_what_a_matrix_takes_to_nothing() -> None:
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(4, 3)) @ generator.normal(size=(3, 6))
    free = null_space(matrix, 1e-9)
    assert free.shape == (6, 3)
    np.testing.assert_allclose(matrix @ free, 0.0, atol=1e-13)
    np.testing.assert_allclose(free.T @ free, np.eye(3), atol=1e-13)
