"""Loop equations of a formulation, and the choice of independent ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.linear import Floats, pivot_columns

WORSE = 0.3
"""Ratio of distances from dependence at which other equations are chosen."""
NEAR = 1e-3
"""Relative distance of the last equation from the span of the others below which rank is lost; for mechanisms in which
it is small anyway, relative to its usual value.
"""

WEAK = 1e3
"""Ratio of the largest to the least singular value of Φ_z above which divide and conquer refines its solution: of 120
random machines 86 were below, where elimination had errors of 8e-8 at most; above, of 5e-6, and of 1.5e-3 once."""

UNEVEN = 1e5
"""Factor of round-off by unequal inertias (`System.inertia_spread`) above which divide and conquer refines its
solution: of 500 random trees those with 1e4 to 1e6 had errors up to 2e-7, with 1e12 to 1e14 up to 3e-4; refined they
had 1e-10 and 2e-8."""

LOST = 1e10
"""The same factor above which nothing is left of refined solutions in the worst case, so that their error is looked at
wherever they are used: with couplings, 1e-5 at 1e12 and all digits at 1e17, which `dca-alm` loses at 1e17 too."""


@dataclass(frozen=True)
class LockedCoordinates:
    """Coordinates of loops without freedom.

    Attributes
    ----------
    coordinates
        Their indices.
    rows
        Indices of the constraints that hold them.
    firmness
        Least singular value of the scaled equations, relative to the largest; 1 for many, where it is not computed.
    """

    coordinates: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    firmness: float = 1.0


def scale_of_arm(arm: float) -> float:
    """Return the power of two next to a lever arm in m.

    It makes equations dimensionless as well as the arm does, and code that has it inside is the same for machines of
    about the same size.
    """
    return float(2.0 ** np.round(np.log2(arm)))


def have_weak_direction(jacobian: Floats, rank: int) -> bool:
    """Return whether loops with Φ_z of shape (m, n) and a rank have a direction in which elimination loses digits.

    The least singular value that counts is then less than 1 / `WEAK` of the largest.
    """
    if not rank:
        return False
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    return not bool(sizes[rank - 1] * WEAK > sizes[0])


@dataclass(frozen=True)
class LoopEquations:
    """Loop equations of a formulation.

    Attributes
    ----------
    rows
        Indices of the constraints that depend on the coordinates at all.
    rank
        How many of these are independent; which ones may change as the mechanism moves.
    scales
        Scales of violations: 1 rad for angles; for distances the longest lever arm in m, the largest derivative of a
        violation.
    near
        Where the last equation stands out of the span of the others by less than this share of the first, the mechanism
        is next to a change point.
    staged
        By row whether it counts in stages of linearly implicit methods, where the others follow from these wherever the
        mechanism is; None where that is not so, or all count.
    locked
        The coordinates of loops without freedom.
    weak
        Whether elimination loses digits: loops have a weak direction, or inertias are very unequal.
    """

    rows: tuple[int, ...]
    rank: int
    scales: tuple[float, ...]
    near: float = NEAR
    staged: tuple[bool, ...] | None = None
    locked: LockedCoordinates = LockedCoordinates()
    weak: bool = False


def longest_lever_arm(units: Sequence[str], rows: Sequence[int], scales: Iterable[float]) -> float:
    """Return the longest lever arm of loops in m, how far a distance in them moves with an angle at most; 1 without.

    Parameters
    ----------
    units
        Of all constraints.
    rows, scales
        As of `LoopEquations`.
    """
    return max((scale for row, scale in zip(rows, scales, strict=True) if units[row] == "m"), default=1.0)


def chosen_rows(jacobian: Floats, rank: int, active: Floats | None = None) -> Floats:
    """Return independent rows of Φ_z by pivoting; the present choice is kept while nearly as good.

    The quality is the last pivot: the smallest distance of a row from the span of earlier ones.

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
