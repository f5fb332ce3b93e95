"""Which loop equations a formulation deals with, and which of them are independent where the mechanism is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.linear import Floats, pivot_columns

WORSE = 0.3
"""Where the equations in use are this much nearer to dependence than the best ones, others are chosen."""
NEAR = 1e-3
"""Where the last equation stands out of the span of the others by less than this share of the first, rank is lost; of
mechanisms in which it stands out by little anyway, by less than the same share of that."""


@dataclass(frozen=True)
class LockedCoordinates:
    """The coordinates of loops without freedom.

    Attributes
    ----------
    coordinates
        Their indices.
    rows
        Indices of the constraints that hold them.
    firmness
        Least singular value of these equations without units, as a share of the largest; 1 of many, where nobody looks.
    """

    coordinates: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    firmness: float = 1.0


@dataclass(frozen=True)
class LoopEquations:
    """The loop equations that a formulation deals with.

    Attributes
    ----------
    rows
        Indices of the constraints that depend on the coordinates at all.
    rank
        How many of these are independent; which ones may change as the mechanism moves.
    scales
        What violations are large by: 1 rad for angles; for distances the longest lever arm in m, how far a violation
        moves with a coordinate at most.
    near
        Where the last equation stands out of the span of the others by less than this share of the first, the mechanism
        is next to a change point.
    staged
        By row whether it counts in stages of linearly implicit methods, where the others follow from these wherever the
        mechanism is; None where that is not so, or all count.
    locked
        The coordinates of loops without freedom.
    """

    rows: tuple[int, ...]
    rank: int
    scales: tuple[float, ...]
    near: float = NEAR
    staged: tuple[bool, ...] | None = None
    locked: LockedCoordinates = LockedCoordinates()


def chosen_rows(jacobian: Floats, rank: int, active: Floats | None = None) -> Floats:
    """Choose independent rows of Φ_z by pivoting; those of now are kept while they are nearly as good.

    How good rows are is the last pivot: the smallest distance of one of them from the span of those before.

    Parameters
    ----------
    jacobian
        Φ_z of all loop equations, shape (m, n).
    rank
        How many to choose.
    active
        Ones for the rows in use, zeros for the others, shape (m,); None where a choice is made for the first time.

    Returns
    -------
    NDArray
        Ones and zeros, shape (m,); `active` itself where it stays.
    """
    best, order = pivot_columns(jacobian.T, rank)
    if active is not None:
        used, _ = pivot_columns(jacobian[active == 1.0].T, rank)
        if used[rank - 1] >= WORSE * best[rank - 1]:
            return active
    chosen = np.zeros(len(jacobian))
    chosen[order] = 1.0
    return chosen
