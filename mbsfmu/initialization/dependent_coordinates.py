"""Dependent coordinates from independent ones: loop closure and reduction matrices."""

from __future__ import annotations

import math

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import factors_of
from mbsfmu.initialization.independent_coordinates import Partition
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

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
