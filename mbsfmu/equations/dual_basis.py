"""Dual basis of a few vectors."""

from __future__ import annotations

from collections.abc import Sequence

from mbsfmu.modelling.fields import Array


def dual_basis(vectors: Sequence[Array]) -> list[Array]:
    """Return vectors whose product with the given ones is one for the one of the same place, zero for the others.

    They are the columns of H (Hᵀ H)⁻¹, in the span of H: with H = Q R, orthogonal columns of Q and a unit diagonal of
    R, they are those of Q (Qᵀ Q)⁻¹ R⁻ᵀ, without the squared condition number of Hᵀ H.

    Parameters
    ----------
    vectors
        The columns of H, independent of each other, each of shape (n,).
    """
    orthogonal: list[Array] = []
    factors: list[list[Array]] = []  # of each column, of those before it
    for each in vectors:
        rest, own = each, []
        for before in orthogonal:
            own.append((before @ rest) / (before @ before))
            rest = rest - before * own[-1]
        orthogonal.append(rest)
        factors.append(own)
    found: list[Array] = []  # from the last to the first
    for number in reversed(range(len(orthogonal))):
        rest = orthogonal[number] / (orthogonal[number] @ orthogonal[number])
        for later, dual in zip(range(len(orthogonal) - 1, number, -1), found, strict=True):
            rest = rest - dual * factors[later][number]
        found.append(rest)
    return found[::-1]
