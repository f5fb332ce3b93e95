"""Small dense linear systems, factored once and solved often."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgetrf, dgetri, dgetrs

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
