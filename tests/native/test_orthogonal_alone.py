"""Decompositions of units, which pass over the rows in which a column has no elements, against those of LAPACK."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from runtime_sources import INCLUDES

from mbsfmu.equations.linear import AS_LONG, NEGLIGIBLE, pivot_columns, pivots
from mbsfmu.tracing.workspace import Floats

TOLERANCE = 1e-8


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The C of units."""
    made = tmp_path_factory.mktemp("orthogonal") / "orthogonal.so"
    sizes = ["COORDINATES", "CONSTRAINTS", "ALL_CONSTRAINTS", "REACTIONS", "RANK", "PLAY", "OWN_MOTION", "CHANGES"]
    sizes += ["MOST_COORDINATES", "MOST_CONSTRAINTS"]
    sizes += ["SOLVER", "IMPLICIT", "ITERATION_MATRIX", "GRADIENTS", "CLOSES_LOOPS"]
    defined = [f"-DAS_LONG={AS_LONG}", f"-DNEGLIGIBLE={NEGLIGIBLE}", *(f"-D{name}=1" for name in sizes)]
    defined += ["-Dinline=__attribute__((unused))", "-DMOST(a,b)=((a)>(b)?(a):(b))"]
    command = ["gcc", "-std=c99", "-O1", "-fPIC", "-shared", *defined, "-include", "parts.h", *INCLUDES]
    (made.parent / "parts.h").write_text("typedef struct { double *scratch; } Parts;\n")
    source = Path(__file__).parent / "orthogonal_alone.c"
    subprocess.run([*command, f"-I{made.parent}", str(source), "-o", str(made), "-lm"], check=True)
    return ctypes.CDLL(str(made))


def pointer(values: np.ndarray) -> ctypes.c_void_p:
    return values.ctypes.data_as(ctypes.c_void_p)


def by_columns(matrix: Floats) -> Floats:
    return np.asfortranarray(matrix).copy("K")


def loops(count: int, seed: int, *, redundant: int = 0) -> Floats:
    """Two equations of each loop in its own unknowns and the next loop's, rows shuffled; some follow from others."""
    random = np.random.default_rng(seed)
    matrix = np.zeros((2 * count + redundant, 3 * count + 3))
    for loop in range(count):
        matrix[2 * loop : 2 * loop + 2, 3 * loop : 3 * loop + 6] = random.normal(size=(2, 6))
    for row in range(2 * count, 2 * count + redundant):
        first = random.integers(0, 2 * count - 1)
        matrix[row] = random.normal(size=2) @ matrix[first : first + 2]
    return matrix[random.permutation(len(matrix))]


MATRICES = {
    "wide": loops(9, 1),
    "redundant": loops(9, 2, redundant=7),
    "turned": loops(9, 3, redundant=4).T,
    "full": np.random.default_rng(4).normal(size=(12, 7)),
    "one column without elements": np.eye(6)[:, [0, 1, 2, 2]] * [1.0, 2.0, 0.0, 3.0],
}


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_lengths_are_those_of_lapack(library: ctypes.CDLL, matrix: Floats) -> None:
    rows, columns = matrix.shape
    lengths, order = np.zeros(min(rows, columns)), np.zeros(min(rows, columns), dtype=np.intc)
    found = library.stands_out(
        rows, columns, pointer(by_columns(matrix)), ctypes.c_double(TOLERANCE), pointer(lengths), pointer(order)
    )
    triangle, expected = scipy.linalg.qr(matrix, mode="r", pivoting=True)
    rank = np.linalg.matrix_rank(matrix)
    assert found == rank
    np.testing.assert_allclose(lengths[:rank], np.abs(np.diagonal(triangle))[:rank], rtol=1e-9)
    np.testing.assert_array_equal(order[:rank], expected[:rank])
    np.testing.assert_array_equal(pivot_columns(matrix, int(rank))[1], expected[:rank])


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_shortest_solutions_and_free_directions(library: ctypes.CDLL, matrix: Floats) -> None:
    """Of equations that contradict each other those of least squares; all directions that change nothing."""
    rows, columns = matrix.shape
    right = np.random.default_rng(5).normal(size=rows)
    work, found = np.zeros(4 * (rows + columns) ** 2), np.zeros(columns)
    share = ctypes.c_double(TOLERANCE)
    library.shortest(rows, columns, pointer(by_columns(matrix)), pointer(right), share, pointer(found), pointer(work))
    np.testing.assert_allclose(found, np.linalg.lstsq(matrix, right)[0], atol=1e-10)
    basis = np.zeros((columns, columns), order="F")
    free = library.left_free(rows, columns, pointer(by_columns(matrix)), share, columns, pointer(basis), pointer(work))
    assert free == columns - np.linalg.matrix_rank(matrix)
    np.testing.assert_allclose(matrix @ basis[:, :free], 0.0, atol=1e-12)
    np.testing.assert_allclose(basis[:, :free].T @ basis[:, :free], np.eye(free), atol=1e-12)


@pytest.mark.parametrize("band", [1, 3, 20])
def test_factors_with_a_band(library: ctypes.CDLL, band: int) -> None:
    """Rows are exchanged; below the band there is nothing to do. Pivots in Python, whose product is the determinant."""
    size, random = 20, np.random.default_rng(band)
    matrix = np.triu(np.tril(random.normal(size=(size, size)), band), -band)
    right = random.normal(size=size)
    found = right.copy()
    library.solve_dense(size, pointer(by_columns(matrix)), pointer(found))
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-8)
    sizes, sign = pivots(matrix)
    assert sign * np.prod(sizes) == pytest.approx(np.linalg.det(matrix), rel=1e-10)
