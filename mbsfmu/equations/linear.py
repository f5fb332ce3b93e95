"""Small dense linear systems, factored once and solved often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgeqrf, dgetrf, dgetri, dgetrs, dorgqr, dtrtrs

Floats = NDArray[np.float64]


class Factors:
    """The LU factors of a square matrix, straight from LAPACK: matrices here have a handful of rows.

    A matrix of right-hand sides is solved column by column. OpenBLAS hands several columns to threads however
    small they are, and waiting for these costs more than a thousand times the solution where cores are busy.

    Parameters
    ----------
    matrix
        Shape (n, n).

    Attributes
    ----------
    singular
        Whether a pivot is exactly zero; solutions mean nothing then.
    """

    def __init__(self, matrix: Floats) -> None:
        self._factors, self._pivots, info = dgetrf(matrix)
        self.singular = info != 0

    def solve(self, right: Floats) -> Floats:
        """Return the solution for a vector, shape (n,), or for each column of a matrix, shape (n, k)."""
        if right.ndim == 1:
            return np.asarray(dgetrs(self._factors, self._pivots, right)[0])
        result = np.empty(right.shape)
        for column in range(right.shape[1]):
            result[:, column] = dgetrs(self._factors, self._pivots, right[:, column])[0]
        return result

    def inverse(self) -> Floats:
        """Return the inverse, shape (n, n)."""
        return np.asarray(dgetri(self._factors, self._pivots)[0])


class TallFactors:
    """The QR factors of a matrix with more rows than columns: solutions are those of least squares.

    Parameters
    ----------
    matrix
        Shape (m, n), m ≥ n.

    Attributes
    ----------
    singular
        Whether a diagonal element of R is zero or next to it; solutions mean nothing then.
    """

    _SMALLEST = 1e-14

    def __init__(self, matrix: Floats) -> None:
        columns = matrix.shape[1]
        factors, reflectors, *_ = dgeqrf(matrix)
        self._triangle = factors[:columns]  # of which `dtrtrs` reads the upper half
        self._orthogonal = dorgqr(factors, reflectors)[0]
        pivots = np.abs(self._triangle.diagonal())
        self.singular = not np.min(pivots, initial=np.inf) > self._SMALLEST * np.max(pivots, initial=0.0)

    def solve(self, right: Floats) -> Floats:
        """Return the solution for a vector, shape (n,)."""
        return np.asarray(dtrtrs(self._triangle, self._orthogonal.T @ right)[0])

    def inverse(self) -> Floats:
        """Return the generalized inverse, shape (n, m)."""
        return np.asarray(dtrtrs(self._triangle, self._orthogonal.T)[0])


def factors_of(matrix: Floats) -> Factors | TallFactors:
    """Return the factors of a matrix that has at least as many rows as columns."""
    return Factors(matrix) if matrix.shape[0] == matrix.shape[1] else TallFactors(matrix)
