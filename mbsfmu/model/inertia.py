"""Validity of inertia tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ROUND_OFF = 1e-9
"""Tolerance of the validity conditions, relative to the trace."""
NO_INERTIA = 1e-14
"""Fraction of the trace below which a principal moment counts as zero."""
ALLOWED = "no principal moment may be negative, and each must be at most the sum of the two others"
REGULAR = "in the model it has a moment about each axis, and must keep one"

Tensor = Sequence[float]
"""Jxx, Jyy, Jzz, Jxy, Jxz, Jyz in kg m²: moments, and off-diagonal elements, about the centre of mass."""


def matrix_of(tensor: Tensor) -> NDArray[np.float64]:
    """Return an inertia tensor as a matrix, shape (3, 3)."""
    xx, yy, zz, xy, xz, yz = tensor
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def impossible_in(tensor: Tensor) -> str | None:
    """Return why no body has an inertia tensor, with its principal moments; None for a possible one.

    A body may have no moment about any axis (a point mass), or none about one axis (a thin rod).
    """
    missing = missing_in(tensor, rod=True)
    if missing is None:
        return None
    smallest, middle, largest = np.linalg.eigvalsh(matrix_of(tensor))
    return f"the principal moments are {smallest:.4g}, {middle:.4g}, {largest:.4g} kg m²; {missing}"


def missing_in(tensor: Tensor, *, rod: bool) -> str | None:
    """Return the violated condition of a valid inertia tensor; None for a valid one.

    With the density ρ, the matrix ∫ρ r rᵀ dV = ½ tr(J) I − J has no negative eigenvalue: none of the principal moments
    exceeds the sum of the two others, from which it follows that none is negative.

    Parameters
    ----------
    tensor
        The tensor.
    rod
        Whether principal moments may be zero.
    """
    (xx, yy, zz, xy, xz, yz), trace = tensor, sum(tensor[:3])
    half = 0.5 * trace
    if not trace > 0.0:
        return (None if rod else REGULAR) if not any(tensor) else ALLOWED
    if not _positive_definite((half - xx, half - yy, half - zz, -xy, -xz, -yz), ROUND_OFF * trace):
        return ALLOWED
    return None if rod or _positive_definite(tensor, -NO_INERTIA * trace) else REGULAR


def _positive_definite(matrix: Sequence[float], shift: float) -> bool:
    """Return whether a symmetric matrix, plus a shift of its diagonal, has positive pivots only."""
    xx, yy, zz, xy, xz, yz = matrix
    first = xx + shift
    if not first > 0.0:
        return False
    second = yy + shift - xy / first * xy
    if not second > 0.0:
        return False
    coupled = yz - xy / first * xz
    return zz + shift - xz / first * xz - coupled / second * coupled > 0.0
