"""Elimination that passes over zeros: the order in which it keeps them, and the solutions of units, against NumPy's."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runtime_sources import INCLUDES

from mbsfmu.stepping.stages import PIVOT_SHARE, elimination_order, stage_pattern
from mbsfmu.tracing.workspace import Floats

SIZE = 30
Solve = Callable[[Floats, Floats, Floats], tuple[Floats, int, int]]


@pytest.fixture(scope="module")
def solve(tmp_path_factory: pytest.TempPathFactory) -> Solve:
    """The C of units, compiled for one size: the solution, rows exchanged, elements of the factors."""
    library = tmp_path_factory.mktemp("sparse") / "sparse.so"
    source = Path(__file__).parent / "sparse_alone.c"
    defined = [f"-DSOLVED={SIZE}", f"-DPIVOT_SHARE={PIVOT_SHARE}"]
    command = ["gcc", "-std=c99", "-O1", "-fPIC", "-shared", *defined, *INCLUDES]
    subprocess.run([*command, str(source), "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).solve

    def solved(matrix: Floats, scales: Floats, right: Floats) -> tuple[Floats, int, int]:
        columns, found, elements = np.asfortranarray(matrix).copy("K"), right.copy(), ctypes.c_int()
        given = (np.ascontiguousarray(scales).copy(), found)
        pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in (columns, *given)]
        exchanged = function(*pointers, ctypes.byref(elements))
        return found, exchanged, elements.value

    return solved


def sparse(seed: int) -> Floats:
    """Return a matrix with a tenth of its elements and a diagonal that is larger than most of these."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(SIZE, SIZE)) * (random.random((SIZE, SIZE)) < 0.1)
    matrix[np.diag_indices(SIZE)] = 3.0 + random.random(SIZE)
    return matrix


@pytest.mark.parametrize("seed", range(4))
def test_solutions_are_those_of_the_whole_matrix(solve: Solve, seed: int) -> None:
    """In the order found, along the diagonal, with no more elements than were foreseen."""
    matrix, right = sparse(seed), np.random.default_rng(seed + 100).normal(size=SIZE)
    order, filled = elimination_order(matrix != 0.0)
    assert sorted(order) == list(range(SIZE))
    found, exchanged, elements = solve(matrix[np.ix_(order, order)], np.ones(SIZE), right[order])
    assert found == pytest.approx(np.linalg.solve(matrix, right)[order], rel=1e-12, abs=1e-13)
    assert exchanged == 0
    assert elements <= filled * SIZE**2 + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_exchanged_where_pivots_are_small(solve: Solve, seed: int) -> None:
    """Diagonal elements next to zero, which leave nothing of the solution, and rows of other FMUs."""
    random = np.random.default_rng(seed)
    matrix, right = sparse(seed), random.normal(size=SIZE)
    places = random.permutation(SIZE)
    matrix[places[:10], places[:10]] *= 1e-18
    matrix[places[:10], np.roll(places[:10], 1)] = 2.0
    units: Floats = np.asarray(10.0 ** random.integers(-8, 9, SIZE), float)
    order, _ = elimination_order(matrix != 0.0)
    scaled = (matrix * units[:, np.newaxis] / units)[np.ix_(order, order)]
    found, exchanged, _ = solve(scaled, units[order], (units * right)[order])
    assert exchanged > 0
    assert found / units[order] == pytest.approx(np.linalg.solve(matrix, right)[order], rel=1e-9, abs=1e-11)


def test_pivots_stay_on_the_diagonal_in_other_units(solve: Solve) -> None:
    """What an element is large by follows from its row's unit: rows that are written in another one stay in place."""
    matrix = sparse(0)
    units: Floats = np.asarray(10.0 ** np.random.default_rng(1).integers(-8, 9, SIZE), float)
    order, _ = elimination_order(matrix != 0.0)
    scaled = (matrix * units[:, np.newaxis] / units)[np.ix_(order, order)]
    _, exchanged, _ = solve(scaled, units[order], np.ones(SIZE))
    assert exchanged == 0


def test_a_singular_matrix_is_told(solve: Solve) -> None:
    """One column that is zero."""
    matrix = sparse(0)
    matrix[:, 7] = 0.0
    assert solve(matrix, np.ones(SIZE), np.ones(SIZE))[1] < 0


def test_an_arrow_is_eliminated_from_its_tip() -> None:
    """Full first row and column, else the diagonal: the first comes last, and nothing is filled."""
    pattern = np.eye(SIZE, dtype=bool)
    pattern[0] = pattern[:, 0] = True
    order, filled = elimination_order(pattern)
    assert order.index(0) >= SIZE - 2  # with one other left either may come first
    assert filled == pytest.approx((3 * SIZE - 2) / SIZE**2)
    assert elimination_order(np.zeros((0, 0), dtype=bool)) == ([], 1.0)


def test_chained_elements_add_to_the_columns_of_their_rates() -> None:
    """ẏ₀ = y₁ is left out: what depends on y₀ depends on y₁ then."""
    slope = np.zeros((3, 3), dtype=bool)  # rates of y₁, y₂ and an integral by y₀, y₁, y₂
    slope[1, 0] = True
    assert stage_pattern(slope, 1).tolist() == [[True, False], [True, True]]
