"""The penalty-based semirecursive formulation: index-3 augmented Lagrangian with projections.

[Jaiswal2021, sect. 2.3]
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbsfmu.equations.linear import Factors
from mbsfmu.formulations.formulation import Formulation, StepProblem, Tolerances
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.state import State

PENALTY = 1e11
"""Penalty factor α in N/m and N m/rad, the paper's [Jaiswal2021, sect. 5]."""


class PenaltyProblem(StepProblem):
    """One trapezoidal step in all coordinates and the states [Jaiswal2021, eqs. 36 and 39]."""

    def __init__(self, functions: SystemFunctions, state: State, step: float, penalty: float) -> None:
        super().__init__(functions, state, step)
        self._penalty = penalty
        self._size = len(state.coordinates)
        self._multipliers = state.multipliers.copy()
        self.guess = np.concatenate([self._predicted_coordinates, self._predicted_states])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates and the states."""
        system = self.functions.system
        return tuple(variable.name for variable in (*system.coordinates, *system.states))

    def _place(self, unknowns: Floats) -> Floats:
        """Set z, ż, z̈ and x from the unknowns; return ẋ by the trapezoidal rule."""
        functions, state = self.functions, self.state
        functions.coordinates[:] = unknowns[: self._size]
        functions.velocities[:] = 2.0 / self.step * (functions.coordinates - state.coordinates)
        functions.velocities[:] -= state.velocities
        functions.accelerations[:] = 2.0 / self.step * (functions.velocities - state.velocities)
        functions.accelerations[:] -= state.accelerations
        functions.states[:] = unknowns[self._size :]
        return self._state_rates(unknowns[self._size :])

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M' z̈ + Φ_zᵀ (α Φ + λ) − Q', ẋ − f) [Jaiswal2021, eq. 39]."""
        rates = self._place(unknowns)
        unbalanced, derivative = self.functions.dynamics()
        violation, self._closure_jacobian = self.functions.closure()
        self.functions.multipliers[:] = self._penalty * violation + self._multipliers
        balance = unbalanced + self._closure_jacobian.T @ self.functions.multipliers
        return np.concatenate([balance, rates - derivative])

    def jacobian(self) -> Floats:
        """Return the derivative by the coordinates and the states."""
        first, n = 2.0 / self.step, self._size
        by_motion, by_states = self.functions.residual_tangent()
        rates_by_motion, rates_by_states = self.functions.rates_tangent()
        size = n + len(by_states.T)
        matrix = np.empty((size, size))
        by_z, by_v, by_a = by_motion[:, :n], by_motion[:, n : 2 * n], by_motion[:, 2 * n :]
        matrix[:n, :n] = by_z + first * (by_v + first * by_a)
        matrix[:n, :n] += self._penalty * (self._closure_jacobian.T @ self._closure_jacobian)
        matrix[:n, n:] = by_states
        matrix[n:, :n] = -(rates_by_motion[:, :n] + first * rates_by_motion[:, n:])
        matrix[n:, n:] = first * np.eye(size - n) - rates_by_states
        return matrix

    def updated(self, unknowns: Floats) -> None:
        """Add α Φ to the multipliers [Jaiswal2021, eq. 19]."""
        self.functions.coordinates[:] = unknowns[: self._size]
        self._multipliers += self._penalty * self.functions.closure()[0]

    def finish(self, unknowns: Floats) -> State:
        """Return the state at the end, velocities and accelerations projected onto the constraints."""
        rates = self._place(unknowns)
        functions = self.functions
        functions.multipliers[:] = self._multipliers
        if len(functions.rows):
            self._project()
        return self._end(unknowns[self._size :].copy(), rates, self._multipliers, None)

    def _project(self) -> None:
        """Project ż and z̈ with the weight W = M + h/2 C + h²/4 K [Jaiswal2021, eqs. 20 and 21]."""
        functions, step = self.functions, self.step
        jacobian = functions.closure()[1]
        by_motion, n = functions.residual_tangent()[0], self._size
        by_z, by_v, by_a = by_motion[:, :n], by_motion[:, n : 2 * n], by_motion[:, 2 * n :]
        weight = by_a + 0.5 * step * (by_v + 0.5 * step * by_z)
        scaled = 0.25 * step**2 * self._penalty * jacobian.T
        matrix = weight + scaled @ jacobian
        wanted = np.column_stack([functions.velocities, functions.accelerations])
        right = weight @ wanted
        right[:, 1] -= scaled @ functions.quadratic()[0]
        functions.velocities[:], functions.accelerations[:] = Factors(matrix).solve(right).T


class Penalty(Formulation):
    """Augmented Lagrangian: all coordinates are unknowns; redundant constraints and singularities do no harm.

    Parameters
    ----------
    functions, tolerances
        As for every formulation.
    penalty
        Penalty factor α in N/m and N m/rad.
    """

    name: ClassVar[str] = "penalty"
    has_explicit_form: ClassVar[bool] = False

    def __init__(self, functions: SystemFunctions, tolerances: Tolerances, penalty: float = PENALTY) -> None:
        super().__init__(functions, tolerances)
        self.penalty = penalty

    def problem(self, state: State, step: float) -> PenaltyProblem:
        """Return the equations of a step."""
        return PenaltyProblem(self.functions, state, step, self.penalty)
