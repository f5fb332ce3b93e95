"""Least-norm solutions of sparse linear equations with well-conditioned independent rows.

A Aᵀ has an element where two equations have an unknown in common. If loops are connected to their neighbours only, it
has a narrow band, and the time of its factors is linear in their number. For dependent equations, solutions are found
by iteration, with products with A and Aᵀ only.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from mbsfmu.equations.linear import Floats

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
