"""Coordinate partitioning: which joint coordinates are independent [Jaiswal2021, sect. 2.2]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import RANK_TOLERANCE, pivot_columns
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

LARGEST_SLOPE = 20.0
"""Ratio of dependent to independent velocity at which another partition is chosen."""


@dataclass(frozen=True)
class Partition:
    """Dependent and independent coordinates.

    Attributes
    ----------
    dependent, independent
        Indices of the coordinates, ascending; shapes (r,) and (n − r,).
    """

    dependent: np.typing.NDArray[np.intp]
    independent: np.typing.NDArray[np.intp]

    @classmethod
    def of(cls, independent: list[int], coordinates: int) -> Partition:
        """Return the partition with the given independent coordinates."""
        dependent = [index for index in range(coordinates) if index not in independent]
        return cls(np.array(dependent, dtype=np.intp), np.array(independent, dtype=np.intp))

    def same_as(self, other: Partition) -> bool:
        """Return whether another partition makes the same choice."""
        return np.array_equal(self.independent, other.independent)


def reconsidered(partition: Partition, functions: SystemFunctions, basis: Floats, scales: Floats) -> Partition:
    """Return the partition, or another one if a dependent coordinate has become ill-conditioned.

    Parameters
    ----------
    partition
        The present choice.
    functions
        Functions of the system; they hold z.
    basis
        R_z, the derivative of the coordinates by the independent ones, shape (n, n − r).
    scales
        What the elements of Φ_z are divided by to be the same in all units and sizes, shape (m, n).
    """
    if not functions.rank:
        return partition
    slopes = np.abs(basis) * np.divide.outer(scales[0], scales[0, partition.independent])
    if np.max(slopes, initial=0.0) <= LARGEST_SLOPE:
        return partition
    other = best_choice(functions, scales)
    return partition if other.same_as(partition) else other


def best_choice(functions: SystemFunctions, scales: Floats) -> Partition:
    """Return the best partition at the present point, with scales as for `reconsidered`."""
    return choose(functions.closure()[1] / scales, functions.rank)


def choose(jacobian: Floats, rank: int) -> Partition:
    """Return the partition by QR decomposition with column pivoting; columns without a pivot are independent.

    The columns' lengths decide, which are the same in every frame; the largest elements, by which Gaussian elimination
    with full pivoting [Jaiswal2021, sect. 2.2] would go, are not.

    Parameters
    ----------
    jacobian
        Φ_z, shape (m, n), its elements in the same measure whether coordinates are angles or displacements: else the
        unit of length decides.
    rank
        Number of independent rows.

    Raises
    ------
    SimulationError
        When fewer rows are independent: the configuration is singular.
    """
    columns = jacobian.shape[1]
    if not rank:
        return Partition.of(list(range(columns)), columns)
    pivots, order = pivot_columns(jacobian, rank)
    if not pivots[rank - 1] > RANK_TOLERANCE * pivots[0]:
        raise SimulationError(
            "the configuration is singular: the loop equations lose rank there, and double-step cannot "
            "part dependent from independent coordinates; take dca, hdca or dca-alm"
        )
    return Partition.of([index for index in range(columns) if index not in order], columns)
