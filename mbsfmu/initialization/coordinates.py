"""Coordinate partitioning: independent joint coordinates, and the dependent ones from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import RANK_TOLERANCE, factors_of, pivot_columns
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


CLOSED = 5e-14
"""Largest violation of closed loops in m and rad …"""
ACCEPTED = 1e-10
"""… or this one with larger round-off."""
STAGNATION = 0.5
"""Ratio of consecutive violations above which an iteration stagnates."""
LOST = 16.0
"""What stays open below this multiple of the resolution of the largest coordinate is round-off, times lever arms."""
MOST_ITERATIONS = 15
"""Largest number of Newton iterations."""


class DependentCoordinates:
    """Solver of the loop equations for the dependent coordinates of one partition.

    Parameters
    ----------
    functions
        Functions of the system; they hold z after each call.
    partition
        Dependent and independent coordinates.
    basis, lift
        Arrays for R_z [Jaiswal2021, eq. 14], shape (n, n − r), and for the matrix with (Φ_z^d)⁻¹ in its dependent
        rows and zeros in the others, shape (n, m): ż = R_z ż^i, z̈ = R_z z̈^i − G Φ̇_z ż. Where loop equations are
        redundant, m > r, it is the generalized inverse: all of them hold, whichever are independent. Written by
        `place`.
    """

    def __init__(self, functions: SystemFunctions, partition: Partition, basis: Floats, lift: Floats) -> None:
        self._functions = functions
        self._dependent = partition.dependent
        self._independent = partition.independent
        self._basis = basis
        self._lift = lift
        if len(partition.dependent):
            basis[partition.independent] = np.eye(len(partition.independent))
            lift[:] = 0.0

    def place(self, coordinates: Floats, *, near: bool = False) -> None:
        """Close the loops by Newton iteration with fixed independent coordinates.

        Parameters
        ----------
        coordinates
            Independent coordinates, and an estimate of the dependent ones; shape (n,).
        near
            Whether the estimate is so good that one increment does, with R_z and G of the estimate.

        Raises
        ------
        SimulationError
            When the loops cannot be closed from the estimate.
        """
        functions, dependent = self._functions, self._dependent
        functions.coordinates[:] = coordinates
        if not len(dependent):
            return
        last = np.inf
        for _ in range(MOST_ITERATIONS):
            violation, jacobian = functions.closure()
            size = math.sqrt(violation @ violation)
            factors = factors_of(jacobian.take(dependent, axis=1))
            if factors.singular or not math.isfinite(size):
                break
            closed = size <= CLOSED or (size >= STAGNATION * last and size <= ACCEPTED)
            if closed or near:
                inverse = self._lift[dependent] = factors.inverse()
                self._basis[dependent] = -(inverse @ jacobian.take(self._independent, axis=1))
            if closed:
                return
            last = size
            functions.coordinates[dependent] -= factors.solve(violation)
            if near:
                return
        largest = float(np.max(np.abs(functions.coordinates)))
        lost = last <= LOST * np.spacing(largest)
        why = f", for coordinates of {largest:.3g} have no more digits; start within a few turns" if lost else ""
        raise SimulationError(f"the loops cannot be closed: {last:.3g} m or rad stays open{why}")
