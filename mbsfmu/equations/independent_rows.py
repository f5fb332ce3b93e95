"""Equations whose rows are independent beyond doubt, most of whose coefficients are zero: shortest solutions.

A Aᵀ has an element where two equations have an unknown in common. Of loops that only touch their neighbours it has a
narrow band, whose factors take a time that grows as their number. Where some follow from others, solutions are found by
iteration, which takes products with A and Aᵀ alone.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from mbsfmu.equations.linear import Floats

MANY = 64
"""Of no more rows than these singular values are quickly found, and tell more."""
WELL_CONDITIONED = 1e-8
"""Rows are independent beyond doubt where the eigenvalues of A Aᵀ differ by less than this …"""
ITERATIONS = 4
"""… the least of which is found by so many inverse iterations: what counts as zero outweighs the rest after two."""
MOST_PRODUCTS = 1000
"""Iterations for equations that follow from others, after which these are left to dense algebra."""
_AGREES = 1e-14
_SOLVED = (0, 1, 2, 4, 5)


class IndependentRows:
    """The factors of A Aᵀ.

    Parameters
    ----------
    matrix
        A, shape (m, n).

    Attributes
    ----------
    well_conditioned
        Whether solutions mean anything.
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
        """Return the least eigenvalue of A Aᵀ, or one that is little larger."""
        vector = np.random.default_rng(20261122).standard_normal(self._matrix.shape[0])
        size = 0.0
        for _ in range(ITERATIONS):
            vector = self._factors.solve(vector / np.linalg.norm(vector))
            size = float(np.linalg.norm(vector))
        return 1.0 / size if np.isfinite(size) else 0.0

    def shortest(self, right: Floats) -> Floats:
        """Return the shortest x with A x = b, shape (n,), from b of shape (m,)."""
        solution = self._matrix.T @ self._factors.solve(right)
        missing = right - self._matrix @ solution
        return np.asarray(solution + self._matrix.T @ self._factors.solve(missing), dtype=np.float64)


def independent_rows(matrix: Floats) -> IndependentRows | None:
    """Return the factors where rows are many, and independent beyond doubt."""
    if not MANY < len(matrix) <= matrix.shape[1]:
        return None
    factors = IndependentRows(matrix)
    return factors if factors.well_conditioned else None


def shortest_of_any_rank(matrix: Floats, right: Floats) -> Floats | None:
    """Return the shortest x with the least |A x − b| by iteration [Fong2011]; None for few rows, or where it is slow.

    Parameters
    ----------
    matrix
        A, shape (m, n); rows may follow from others, and contradict each other.
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
    for _ in range(2):  # the second time for what the first one has left
        missing = right - equations @ found
        step, told, *_ = sparse.linalg.lsmr(
            equations, missing, atol=_AGREES, btol=_AGREES, conlim=0.0, maxiter=MOST_PRODUCTS
        )
        if told not in _SOLVED:
            return None
        found += step
    return found


def _sparse() -> ModuleType:
    """Return SciPy's sparse matrices, which are loaded where loops are many."""
    import scipy.sparse.linalg  # noqa: PLC0415 - as said

    return scipy.sparse
