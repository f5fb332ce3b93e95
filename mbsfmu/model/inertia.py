"""Validity of inertia tensors."""

from __future__ import annotations

from collections.abc import Sequence

ROUND_OFF = 1e-9
"""Tolerance of the validity conditions, relative to the trace."""
NO_INERTIA = 1e-14
"""Fraction of the trace below which a principal moment counts as zero."""
ALLOWED = "no principal moment may be negative, and each must be at most the sum of the two others"
ALLOWED_OF_RODS = "a rod may have none about its axis, which must be one of the body's axes"


def missing_in(tensor: Sequence[float], *, rod: bool) -> str | None:
    """Return the violated condition of a valid inertia tensor; None for a valid one.

    With the density ρ, the matrix ∫ρ r rᵀ dV = ½ tr(J) I − J has no negative eigenvalue: none of the principal moments
    exceeds the sum of the two others, from which it follows that none is negative.

    Parameters
    ----------
    tensor
        Jxx, Jyy, Jzz, Jxy, Jxz, Jyz in kg m²: the upper triangle of the tensor about the centre of mass.
    rod
        Whether one of the principal moments may be zero.
    """
    (xx, yy, zz, xy, xz, yz), trace = tensor, sum(tensor[:3])
    half = 0.5 * trace
    if not trace > 0.0:
        return ALLOWED if trace else ALLOWED_OF_RODS
    if not _positive_definite((half - xx, half - yy, half - zz, -xy, -xz, -yz), ROUND_OFF * trace):
        return ALLOWED
    return None if rod or _positive_definite(tensor, -NO_INERTIA * trace) else ALLOWED_OF_RODS


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
