"""The penalty-based semirecursive formulation: index-3 augmented Lagrangian with projections.

[Jaiswal2021, sect. 2.3]
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from mbsfmu.equations.linear import Factors
from mbsfmu.formulations.expressions import MOTION
from mbsfmu.formulations.formulation import Formulation, StepProblem, Tolerances
from mbsfmu.formulations.functions import Floats, SystemFunctions, TracedFunction
from mbsfmu.formulations.state import State

PENALTY = 1e11
"""Penalty factor α in N/m and N m/rad, the paper's [Jaiswal2021, sect. 5]."""


class AugmentedEquations:
    """The equations of motion with the penalty system's forces, in all coordinates.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.

    Attributes
    ----------
    estimates
        λ of the last iteration, shape (m,).
    penalty, step
        α and h in s, each of shape (1,).
    """

    def __init__(self, functions: SystemFunctions) -> None:
        self._functions = functions
        self._given = functions.expressions
        self._estimates, self.estimates = functions.add_part("estimates", len(functions.rows))
        self._penalty, self.penalty = functions.add_part("penalty", 1)
        self._h, self.step = functions.add_part("step", 1)

    @cached_property
    def balance(self) -> TracedFunction:
        """M z̈ − Q + Φ_zᵀ λ with λ = α Φ + estimates, shape (n,), and ẋ; writes λ."""
        given = self._given
        multipliers = self._penalty * given.closure + self._estimates
        results = [*given.at([given.balance, given.rates], {"multipliers": multipliers}), multipliers]
        return self._functions.traced("augmented_balance", results, into={2: "multipliers"})

    @cached_property
    def tangent(self) -> TracedFunction:
        """Derivative of (M z̈ − Q + Φ_zᵀ λ, ẋ by the trapezoidal rule − f) by (z, x); a square matrix.

        ż and z̈ follow z with 2/h and 4/h².
        """
        given, first = self._given, 2.0 / self._h
        by_z, by_v, by_a = (given.derivative(given.balance, part) for part in MOTION)
        springs = self._penalty * ca.mtimes(given.closure_jacobian.T, given.closure_jacobian)
        balance = by_z + first * (by_v + first * by_a) + springs
        rates = given.derivative(given.rates, "coordinates") + first * given.derivative(given.rates, "velocities")
        rates_by_states = given.derivative(given.rates, "states")
        own = first * ca.SX.eye(rates_by_states.shape[0]) - rates_by_states
        by_states = given.derivative(given.balance, "states")
        matrix = ca.vertcat(ca.horzcat(balance, by_states), ca.horzcat(-rates, own))
        return self._functions.traced("augmented_tangent", [matrix], matrices=[0])

    @cached_property
    def projection(self) -> TracedFunction:
        """Matrix, shape (n, n), and right sides, shape (n, 2), for the projected ż and z̈ [eqs. 20 and 21].

        The weight is W = M + h/2 C + h²/4 K, the matrix W + h²/4 α Φ_zᵀ Φ_z.
        """
        given, half = self._given, 0.5 * self._h
        by_z, by_v, by_a = (given.derivative(given.balance, part) for part in MOTION)
        weight = by_a + half * (by_v + half * by_z)
        scaled = half**2 * self._penalty * given.closure_jacobian.T
        velocities, accelerations = (given.symbol_by_part[part] for part in MOTION[1:])
        right = [ca.mtimes(weight, velocities), ca.mtimes(weight, accelerations) - ca.mtimes(scaled, given.quadratic)]
        results = [weight + ca.mtimes(scaled, given.closure_jacobian), ca.horzcat(*right)]
        return self._functions.traced("projection", results, matrices=[0, 1])


class PenaltyProblem(StepProblem):
    """One trapezoidal step in all coordinates and the states [Jaiswal2021, eqs. 36 and 39]."""

    def __init__(self, functions: SystemFunctions, state: State, step: float, equations: AugmentedEquations) -> None:
        super().__init__(functions, state, step)
        self._equations = equations
        equations.estimates[:] = state.multipliers
        equations.step[0] = step
        self._size = len(state.coordinates)
        self.guess = np.concatenate([self._predicted_coordinates, self._predicted_states])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates and the states."""
        system = self.functions.system
        return tuple(variable.name for variable in (*system.coordinates, *system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M' z̈ + Φ_zᵀ (α Φ + λ) − Q', ẋ − f) [Jaiswal2021, eq. 39]; sets z, ż, z̈ and x."""
        functions, state, first = self.functions, self.state, 2.0 / self.step
        states = unknowns[self._size :]
        functions.coordinates[:] = unknowns[: self._size]
        functions.velocities[:] = first * (functions.coordinates - state.coordinates) - state.velocities
        functions.accelerations[:] = first * (functions.velocities - state.velocities) - state.accelerations
        functions.states[:] = states
        balance, rates, _ = self._equations.balance()
        return np.concatenate([balance, self._state_rates(states) - rates])

    def jacobian(self) -> Floats:
        """Return the derivative by the coordinates and the states."""
        return self._equations.tangent()[0]

    def updated(self, unknowns: Floats) -> None:
        """Add α Φ to the multipliers [Jaiswal2021, eq. 19]."""
        self.functions.coordinates[:] = unknowns[: self._size]
        self._equations.estimates += self._equations.penalty * self.functions.closure()[0]

    def finish(self, unknowns: Floats) -> State:
        """Return the state at the end, velocities and accelerations projected onto the constraints."""
        self.residual(unknowns)
        functions, states = self.functions, unknowns[self._size :].copy()
        functions.multipliers[:] = self._equations.estimates
        if len(functions.rows):
            matrix, right = self._equations.projection()
            functions.velocities[:], functions.accelerations[:] = Factors(matrix).solve(right).T
        return self._end(states, self._state_rates(states), functions.multipliers.copy(), None)


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
        self.equations = AugmentedEquations(functions)
        self.equations.penalty[0] = penalty

    def problem(self, state: State, step: float) -> PenaltyProblem:
        """Return the equations of a step."""
        return PenaltyProblem(self.functions, state, step, self.equations)
