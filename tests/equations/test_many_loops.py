"""Algebra of the start of mechanisms with many loops, which only touch their neighbours: as dense algebra has it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from mbsfmu.equations.linear import Floats, independent_rows, pivot_columns, shortest_of_any_rank
from mbsfmu.initialization.closing_loops import OwnStarts, close_loops, onto_velocity_constraints
from mbsfmu.model import Mechanism
from mbsfmu.models import ladder
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import starts

LOOPS = 90


def banded(overlap: int) -> Floats:
    """Two equations of each loop in its own unknowns and some of the next loop's, and rows of zeros between."""
    random = np.random.default_rng(8)
    matrix = np.zeros((3 * LOOPS, 3 * LOOPS + overlap))
    for loop in range(LOOPS):
        matrix[3 * loop : 3 * loop + 2, 3 * loop : 3 * loop + 3 + overlap] = random.normal(size=(2, 3 + overlap))
    return matrix


@pytest.mark.parametrize("overlap", [1, 4])
def test_pivots_are_those_of_dense_factors(overlap: int) -> None:
    matrix, rank = banded(overlap), 2 * LOOPS
    lengths, order = pivot_columns(matrix, rank)
    triangle, expected = scipy.linalg.qr(matrix, mode="r", pivoting=True)
    np.testing.assert_array_equal(order, expected[:rank])
    np.testing.assert_allclose(lengths, np.abs(np.diagonal(triangle))[:rank], rtol=1e-10)
    assert np.max(pivot_columns(matrix)[0][rank:]) < 1e-12


@pytest.mark.parametrize("rows", [0, 2])
def test_columns_of_zeros_have_no_length_and_come_as_they_stand(rows: int) -> None:
    lengths, order = pivot_columns(np.zeros((rows, 3)))
    np.testing.assert_array_equal(lengths, np.zeros(rows))
    np.testing.assert_array_equal(order, range(rows))


def test_shortest_solutions_are_those_of_dense_algebra() -> None:
    matrix = banded(2)
    rows = matrix[matrix.any(axis=1)]
    right = np.random.default_rng(9).normal(size=len(rows))
    factors = independent_rows(rows)
    assert factors is not None
    np.testing.assert_allclose(factors.shortest(right), np.linalg.lstsq(rows, right)[0], atol=1e-10)


@pytest.mark.parametrize("apart", [0.0, 1e-6])
def test_rows_that_nearly_follow_from_others_are_left_to_dense_algebra(apart: float) -> None:
    matrix = banded(2)
    rows = matrix[matrix.any(axis=1)]
    rows[40] = rows[41] + rows[43] + apart * rows[40]
    assert independent_rows(rows) is None


@pytest.mark.parametrize("contradiction", [0.0, 0.1])
def test_shortest_solutions_where_rows_follow_from_others(contradiction: float) -> None:
    """Every loop has one equation more, which is a sum of its two, as dense algebra has it."""
    matrix, random = banded(2), np.random.default_rng(10)
    matrix[2::3] = matrix[0::3] + 0.5 * matrix[1::3]
    right = matrix @ random.normal(size=matrix.shape[1]) + contradiction * random.normal(size=len(matrix))
    found = shortest_of_any_rank(matrix, right)
    assert found is not None
    np.testing.assert_allclose(found, np.linalg.lstsq(matrix, right)[0], atol=1e-9)


def test_equations_that_are_hardly_independent_are_left_to_dense_algebra() -> None:
    """Of a chain of second differences, whose least singular value is 1/5000 of the largest, iteration takes long."""
    size = 220
    matrix = np.diag(np.full(size, 2.0)) - np.eye(size, k=1) - np.eye(size, k=-1)
    assert shortest_of_any_rank(matrix @ matrix, np.ones(size)) is None


def test_a_long_ladder_is_closed_with_what_is_given_kept() -> None:
    mechanism = ladder(LOOPS).systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    functions = SystemFunctions(MechanismSystem(mechanism))
    functions.parameters[:] = starts(functions.system.parameters)
    open_by = 0.02 * np.random.default_rng(2).normal(size=len(functions.coordinates))
    guess, given = functions.start()[0] + open_by, np.where(np.arange(len(open_by)) == 0, 0.3, 0.0)
    coordinates = close_loops(functions, guess, OwnStarts.of(guess)).values
    functions.coordinates[:] = coordinates
    gap, jacobian, _ = functions.all_closure()
    assert np.max(np.abs(gap)) < 1e-9
    rates = onto_velocity_constraints(functions, coordinates, given, OwnStarts.of(given)).values
    np.testing.assert_allclose(jacobian @ rates, 0.0, atol=1e-12)
    assert rates[0] == 0.3
