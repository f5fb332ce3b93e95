"""Dependent coordinates from independent ones: positions, velocities and accelerations."""

from __future__ import annotations

import math

import numpy as np

from mbsfmu.equations.linear import Factors
from mbsfmu.errors import SimulationError
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.partition import Partition

CLOSED = 5e-14
"""The loops are closed to this violation in m and rad …"""
ACCEPTED = 1e-12
"""… or, where round-off is larger, to this one."""
_ITERATIONS = 15


class DependentCoordinates:
    """Solves the loop equations for the dependent coordinates, and keeps what that gives.

    Parameters
    ----------
    functions
        Functions of the system; they hold z, ż and z̈ after each call.
    partition
        Dependent and independent coordinates.

    Attributes
    ----------
    freedom
        Number of independent coordinates, n − m.
    ratio
        −(Φ_z^d)⁻¹ Φ_z^i, the dependent rows of R_z [Jaiswal2021, eq. 14], shape (m, n − m).
    """

    def __init__(self, functions: SystemFunctions, partition: Partition) -> None:
        self._functions = functions
        self._dependent = partition.dependent
        self._independent = partition.independent
        self._coordinates = len(partition.dependent) + len(partition.independent)
        self.freedom = len(partition.independent)
        self._identity = np.eye(len(partition.independent))
        self._sensitivities = np.zeros((3 * self._coordinates, len(partition.independent)))
        self.ratio: Floats = np.zeros((len(partition.dependent), len(partition.independent)))

    def place(self, coordinates: Floats) -> None:
        """Close the loops by Newton iteration, the independent coordinates being kept.

        Parameters
        ----------
        coordinates
            Independent coordinates, and an estimate of the dependent ones; shape (n,).

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
        for _ in range(_ITERATIONS):
            violation, jacobian = functions.closure()
            size = math.sqrt(violation @ violation)
            self._factors = Factors(jacobian[:, dependent])
            if self._factors.singular or not math.isfinite(size):
                break
            if size <= CLOSED or (size >= 0.5 * last and size <= ACCEPTED):
                self.ratio = -self.solve(jacobian[:, self._independent])
                return
            last = size
            functions.coordinates[dependent] -= self.solve(violation)
        raise SimulationError(f"the loops cannot be closed: {last:.3g} m or rad stays open")

    def solve(self, right: Floats) -> Floats:
        """Return (Φ_z^d)⁻¹ times a vector or matrix."""
        return self._factors.solve(right)

    def set_velocities(self, independent: Floats) -> None:
        """Set ż from the independent velocities [Jaiswal2021, eq. 14]."""
        self._functions.velocities[self._independent] = independent
        self._functions.velocities[self._dependent] = self.ratio @ independent

    def set_accelerations(self, independent: Floats) -> None:
        """Set z̈ from the independent accelerations [Jaiswal2021, eq. 15]."""
        self._functions.accelerations[self._independent] = independent
        if len(self._dependent):
            quadratic = self._functions.quadratic()[0]
            self._functions.accelerations[self._dependent] = self.ratio @ independent - self.solve(quadratic)

    def reduce(self, residual: Floats) -> Floats:
        """Return R_zᵀ times a vector or matrix with n rows: what is left for the independent coordinates."""
        return residual[self._independent] + self.ratio.T @ residual[self._dependent]

    def sensitivities(self, step: float) -> Floats:
        """Return the derivatives of (z, ż, z̈) by the independent coordinates; shape (3 n, n − m).

        The trapezoidal rule gives 2/h and 4/h² for ż^i and z̈^i. The dependent rows follow from differentiating
        Φ, Φ_z ż and Φ_z z̈ + Φ̇_z ż, which stay zero.
        """
        n, result = self._coordinates, self._sensitivities
        first, second = 2.0 / step, 4.0 / step**2
        result[self._independent] = self._identity
        result[n + self._independent] = first * self._identity
        result[2 * n + self._independent] = second * self._identity
        if len(self._dependent):
            velocity, acceleration = self._functions.closure_tangent()
            result[self._dependent] = self.ratio
            turned = self.solve(velocity @ result[:n])
            result[n + self._dependent] = first * self.ratio - turned
            turned = self.solve(acceleration @ result[: 2 * n])
            result[2 * n + self._dependent] = second * self.ratio - turned
        return result

    def multipliers(self, residual: Floats) -> Floats:
        """Return λ from the dependent rows of M z̈ − Q + Φ_zᵀ λ = 0, shape (m,)."""
        if not len(self._dependent):
            return np.zeros(0)
        return -self._factors.solve(residual[self._dependent], transposed=True)
