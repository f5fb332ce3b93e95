"""Linear systems: small dense ones, factorized once, and least-norm solutions of sparse ones.

Least-norm solutions of sparse linear equations with well-conditioned independent rows.

A Aᵀ has an element where two equations have an unknown in common. If loops are connected to their neighbours only, it
has a narrow band, and the time of its factors is linear in their number. For dependent equations, solutions are found
by iteration, with products with A and Aᵀ only.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

RANK_TOLERANCE = 1e-8
"""Singular values and pivots below this fraction of the largest count as zero."""

Floats = NDArray[np.float64]


@cache
def _lapack() -> ModuleType:
    """Return SciPy's LAPACK, imported on demand because it loads slowly."""
    import scipy.linalg.lapack  # noqa: PLC0415 - as said

    return scipy.linalg.lapack


class LuFactors:
    """LU factors of a small square matrix, by LAPACK.

    A matrix of right-hand sides is solved column by column. OpenBLAS distributes several columns over threads even if
    they are small, and the waiting costs more than a thousand times the solution on busy cores.

    Parameters
    ----------
    matrix
        Shape (n, n).

    Attributes
    ----------
    singular
        Whether a pivot is exactly zero; solutions are then invalid.
    """

    def __init__(self, matrix: Floats) -> None:
        self.singular = False
        self._rows = len(matrix)
        if self._rows:  # LAPACK refuses an empty matrix, as of a circuit without a mechanism
            self._factors, self._pivots, info = _lapack().dgetrf(matrix)
            self.singular = info != 0

    def solve(self, right: Floats) -> Floats:
        """Return the solution for a vector, shape (n,), or for each column of a matrix, shape (n, k)."""
        if not len(right):
            return right
        if right.ndim == 1:
            return np.asarray(_lapack().dgetrs(self._factors, self._pivots, right)[0])
        result = np.empty(right.shape)
        for column in range(right.shape[1]):
            result[:, column] = _lapack().dgetrs(self._factors, self._pivots, right[:, column])[0]
        return result

    def inverse(self) -> Floats:
        """Return the inverse, shape (n, n)."""
        return np.asarray(_lapack().dgetri(self._factors, self._pivots)[0]) if self._rows else np.zeros((0, 0))


NEXT_TO_ZERO = 1e-14
"""Diagonal elements of R below this fraction of the largest count as zero."""


class TallFactors:
    """QR factors of a matrix with more rows than columns, for least-squares solutions.

    Parameters
    ----------
    matrix
        Shape (m, n), m ≥ n.

    Attributes
    ----------
    singular
        Whether a diagonal element of R is zero or below `NEXT_TO_ZERO`; solutions are then invalid.
    """

    def __init__(self, matrix: Floats) -> None:
        columns = matrix.shape[1]
        factors, reflectors, *_ = _lapack().dgeqrf(matrix)
        self._triangle = factors[:columns]  # of which `dtrtrs` reads the upper half
        self._orthogonal = _lapack().dorgqr(factors, reflectors)[0]
        pivots = np.abs(self._triangle.diagonal())
        self.singular = not np.min(pivots, initial=np.inf) > NEXT_TO_ZERO * np.max(pivots, initial=0.0)

    def solve(self, right: Floats) -> Floats:
        """Return the solution for a vector, shape (n,)."""
        return np.asarray(_lapack().dtrtrs(self._triangle, self._orthogonal.T @ right)[0])

    def inverse(self) -> Floats:
        """Return the generalized inverse, shape (n, m)."""
        return np.asarray(_lapack().dtrtrs(self._triangle, self._orthogonal.T)[0])


AS_LONG = 1e-9
"""Lengths that differ by less than this fraction are equal, so that round-off does not decide a choice."""


NEGLIGIBLE = 1e-17
"""Components of a unit vector below this do not change a sum beyond round-off."""
WORN = 1e-2
"""Squared lengths below this fraction of their first value are summed again after subtractions (cancellation)."""


def pivot_columns(matrix: Floats, most: int | None = None) -> tuple[Floats, NDArray[np.intp]]:
    """Return the distances of columns from the span of earlier pivot columns, and the pivot columns.

    Each pivot is the column of largest distance, the first one of equal ones. A column changes only if it has a row in
    common with the pivot, so that the work is small for banded rows.

    Parameters
    ----------
    matrix
        Shape (m, n).
    most
        Number of columns to find; min(m, n), the largest number, by default.

    Returns
    -------
    tuple
        Lengths, not increasing, shape (most,), and column indices of the same shape.
    """
    rest = np.ascontiguousarray(matrix[matrix.any(axis=1)].T)  # a row for each column
    count = min(*matrix.shape, matrix.shape[1] if most is None else most)
    lengths, order = np.zeros(count), np.arange(count)
    if not rest.size:
        return lengths, order
    left = np.ones(len(rest), dtype=bool)
    squares = np.einsum("ij,ij->i", rest, rest)
    summed = squares.copy()
    begins = np.argmax(rest != 0.0, axis=1)  # range of the elements of each column, which are nearly contiguous
    ends = rest.shape[1] - np.argmax(rest[:, ::-1] != 0.0, axis=1)
    for step in range(count):
        roots = np.sqrt(squares)
        sizes = np.where(left, roots, -1.0)
        column = int(np.argmax(sizes >= (1.0 - AS_LONG) * np.max(sizes)))
        size = float(np.linalg.norm(rest[column]))
        lengths[step], order[step], left[column] = size, column, False
        if size > 0.0:
            direction = rest[column] / size
            rest[column] = squares[column] = 0.0
            rows = _extent(np.abs(direction) > NEGLIGIBLE)
            met = _extent(left & (begins < rows.stop) & (ends > rows.start))
            shares = np.einsum("ij,j->i", rest[met, rows], direction[rows])  # BLAS would wait for threads
            shares[np.abs(shares) <= NEGLIGIBLE * roots[met]] = 0.0
            rest[met, rows] -= np.multiply.outer(shares, direction[rows])
            squares[met] -= shares**2
            touched = met.start + np.flatnonzero(shares)
            begins[touched] = np.minimum(begins[touched], rows.start)
            ends[touched] = np.maximum(ends[touched], rows.stop)
            worn = touched[squares[touched] < WORN * summed[touched]]
            summed[worn] = squares[worn] = np.einsum("ij,ij->i", rest[worn], rest[worn])
    return lengths, order


def _extent(chosen: NDArray[np.bool_]) -> slice:
    """Return the range from the first to the last selected index."""
    places = np.flatnonzero(chosen)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


def pivot_lengths(matrix: Floats) -> Floats:
    """Return the lengths of `pivot_columns` by LAPACK, which is faster: shape (min(m, n),)."""
    return np.abs(np.diagonal(_lapack().dgeqp3(matrix)[0]))


def pivots(matrix: Floats) -> tuple[Floats, float]:
    """Return the magnitudes of the LU pivots, and the sign of the determinant.

    Rows and columns change only if they have an element in common with the pivot's, so that the work is small for
    banded matrices.

    Parameters
    ----------
    matrix
        Shape (n, n).

    Returns
    -------
    tuple
        Pivots, shape (n,), positive up to the first one that vanishes; and 1.0 or -1.0.
    """
    rest, sign = matrix.copy(), 1.0
    found = np.zeros(len(rest))
    for step in range(len(rest)):
        row = step + int(np.argmax(np.abs(rest[step:, step])))
        pivot = float(rest[row, step])
        found[step] = abs(pivot)
        sign *= np.sign(pivot or 1.0) * (-1.0 if row > step else 1.0)
        if not pivot:
            break
        rest[[step, row], step:] = rest[[row, step], step:]
        rows = step + 1 + np.flatnonzero(rest[step + 1 :, step])
        columns = step + 1 + np.flatnonzero(rest[step, step + 1 :])
        rest[np.ix_(rows, columns)] -= np.outer(rest[rows, step] / pivot, rest[step, columns])
    return found, float(sign)


def null_space(matrix: Floats, tolerance: float) -> Floats:
    """Return an orthonormal basis of the null space of a matrix, shape (n, n − rank).

    Parameters
    ----------
    matrix
        Shape (m, n).
    tolerance
        Fraction of the largest singular value up to which others count as zero.
    """
    _, sizes, turned = np.linalg.svd(matrix)
    return np.asarray(turned[np.count_nonzero(sizes > tolerance * np.max(sizes, initial=0.0)) :].T)


def factors_of(matrix: Floats) -> LuFactors | TallFactors:
    """Return the factors of a matrix with at least as many rows as columns."""
    return LuFactors(matrix) if matrix.shape[0] == matrix.shape[1] else TallFactors(matrix)


MANY = 64
"""Largest number of rows for which singular values are used instead: they are fast, and more reliable."""
WELL_CONDITIONED = 1e-8
"""Largest ratio of eigenvalues of A Aᵀ of rows that count as independent …"""
ITERATIONS = 4
"""… where so many inverse iterations find the least eigenvalue; two suffice for one at round-off."""
MOST_PRODUCTS = 1000
"""Largest number of iterations for dependent equations; beyond it dense algebra is used."""
_AGREES = 1e-14
_SOLVED = (0, 1, 2, 4, 5)


class IndependentRows:
    """Cholesky factors of A Aᵀ.

    Parameters
    ----------
    matrix
        A, shape (m, n).

    Attributes
    ----------
    well_conditioned
        Whether solutions are valid.
    """

    def __init__(self, matrix: Floats) -> None:
        sparse = _sparse()
        self._matrix = sparse.csr_array(matrix)
        normal = (self._matrix @ self._matrix.T).tocsc()
        try:
            self._factors = sparse.linalg.splu(normal, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        except RuntimeError:  # a pivot is exactly zero
            self.well_conditioned = False
        else:
            self.well_conditioned = self._least() > WELL_CONDITIONED * float(np.max(abs(normal).sum(axis=0)))

    def _least(self) -> float:
        """Return an estimate of the least eigenvalue of A Aᵀ, from above."""
        vector = np.random.default_rng(20261122).standard_normal(self._matrix.shape[0])
        size = 0.0
        for _ in range(ITERATIONS):
            vector = self._factors.solve(vector / np.linalg.norm(vector))
            size = float(np.linalg.norm(vector))
        return 1.0 / size if np.isfinite(size) else 0.0

    def shortest(self, right: Floats) -> Floats:
        """Return the least-norm x with A x = b, shape (n,), from b of shape (m,)."""
        solution = self._matrix.T @ self._factors.solve(right)
        missing = right - self._matrix @ solution
        return np.asarray(solution + self._matrix.T @ self._factors.solve(missing), dtype=np.float64)


def independent_rows(matrix: Floats) -> IndependentRows | None:
    """Return the factors if there are many rows, and they are well conditioned; otherwise None."""
    if not MANY < len(matrix) <= matrix.shape[1]:
        return None
    factors = IndependentRows(matrix)
    return factors if factors.well_conditioned else None


def shortest_of_any_rank(matrix: Floats, right: Floats) -> Floats | None:
    """Return the least-norm least-squares x by iteration [Fong2011]; None for few rows or slow convergence.

    Parameters
    ----------
    matrix
        A, shape (m, n); rows may be dependent and inconsistent.
    right
        b, shape (m,).

    References
    ----------
    [Fong2011] D. C.-L. Fong, M. Saunders, LSMR: an iterative algorithm for sparse least-squares problems, SIAM Journal
    on Scientific Computing 33 (2011).
    """
    if min(matrix.shape) <= MANY:
        return None
    sparse = _sparse()
    equations = sparse.csr_array(matrix)
    found = np.zeros(matrix.shape[1])
    for _ in range(2):  # the second solution corrects the residual of the first
        missing = right - equations @ found
        step, told, *_ = sparse.linalg.lsmr(
            equations, missing, atol=_AGREES, btol=_AGREES, conlim=0.0, maxiter=MOST_PRODUCTS
        )
        if told not in _SOLVED:
            return None
        found += step
    return found


def _sparse() -> ModuleType:
    """Return SciPy's sparse module, imported for many loops only."""
    import scipy.sparse.linalg  # noqa: PLC0415 - as said

    return scipy.sparse
