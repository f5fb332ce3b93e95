"""The penalty-based semirecursive formulation: index-3 augmented Lagrangian with projections.

[Jaiswal2021, sect. 2.3]
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from mbsfmu.equations.linear import Factors
from mbsfmu.formulations.equilibrium import accelerations, shortest
from mbsfmu.formulations.expressions import MOTION
from mbsfmu.formulations.formulation import Formulation, StepProblem, Tolerances
from mbsfmu.formulations.functions import Floats, SystemFunctions, TracedFunction
from mbsfmu.formulations.state import State
from mbsfmu.formulations.trapezoidal_rates import TrapezoidalRates

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
    penalty
        α, shape (1,).
    trapezoidal
        ż, z̈ and ẋ at the end of a step.
    """

    def __init__(self, functions: SystemFunctions) -> None:
        self._functions = functions
        self._given = functions.expressions
        self._estimates, self.estimates = functions.add_part("estimates", len(functions.rows))
        self._penalty, self.penalty = functions.add_part("penalty", 1)
        self.trapezoidal = TrapezoidalRates(functions, len(functions.coordinates))

    @cached_property
    def residual(self) -> TracedFunction:
        """(M z̈ − Q + Φ_zᵀ (α Φ + λ), ẋ − f) at the end of a step [eq. 39]; writes z, x, ẋ, ż, z̈ and α Φ + λ."""
        given, end = self._given, self.trapezoidal
        at_end = {
            "coordinates": end.coordinates,
            "velocities": end.velocities,
            "accelerations": end.accelerations,
            "states": end.states,
        }
        (closure,) = given.at([given.closure], at_end)
        at_end["multipliers"] = self._penalty * closure + self._estimates
        balance, rates = given.at([given.balance, given.rates], at_end)
        written = {**at_end, "rates": end.rates}
        results = [ca.vertcat(balance, end.rates - rates), *written.values()]
        return self._functions.traced("augmented_residual", results, into=written)

    @cached_property
    def tangent(self) -> TracedFunction:
        """Derivative of (M z̈ − Q + Φ_zᵀ λ, ẋ by the trapezoidal rule − f) by (z, x); a square matrix.

        ż and z̈ follow z with 2/h and 4/h².
        """
        given, first = self._given, self.trapezoidal.first
        by_z, by_v, by_a = (given.derivative(given.balance, part) for part in MOTION)
        springs = self._penalty * ca.mtimes(given.closure_jacobian.T, given.closure_jacobian)
        balance = by_z + first * (by_v + first * by_a) + springs
        rates = given.derivative(given.rates, "coordinates") + first * given.derivative(given.rates, "velocities")
        by_states, own = (given.derivative(value, "states") for value in (given.balance, given.rates))
        matrix = self.trapezoidal.square(balance, by_states, rates, own)
        return self._functions.traced("augmented_tangent", [matrix], matrices=[0])

    @cached_property
    def projection(self) -> TracedFunction:
        """Matrix, shape (n, n), and right sides, shape (n, 2), for the projected ż and z̈ [eqs. 20 and 21].

        The weight is W = M + h/2 C + h²/4 K, the matrix W + h²/4 α Φ_zᵀ Φ_z.
        """
        given, half = self._given, 0.5 * self.trapezoidal.symbol
        by_z, by_v, by_a = (given.derivative(given.balance, part) for part in MOTION)
        weight = by_a + half * (by_v + half * by_z)
        scaled = half**2 * self._penalty * given.closure_jacobian.T
        velocities, accelerations = (given.symbol_by_part[part] for part in MOTION[1:])
        right = [ca.mtimes(weight, velocities), ca.mtimes(weight, accelerations) - ca.mtimes(scaled, given.quadratic)]
        results = [weight + ca.mtimes(scaled, given.closure_jacobian), ca.horzcat(*right)]
        return self._functions.traced("projection", results, matrices=[0, 1])


class AugmentedProblem(StepProblem):
    """One trapezoidal step in all coordinates and the states [Jaiswal2021, eqs. 36 and 39]."""

    def __init__(self, functions: SystemFunctions, state: State, step: float, equations: AugmentedEquations) -> None:
        super().__init__(functions, state, step)
        self._equations = equations
        equations.estimates[:] = state.multipliers
        equations.trapezoidal.begin(state.coordinates, state.velocities, state.accelerations, state.states, state.rates)
        equations.trapezoidal.step[0] = step
        self._size = len(state.coordinates)
        self.guess = np.concatenate([self._predicted_coordinates, self._predicted_states])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates and the states."""
        system = self.functions.system
        return tuple(variable.name for variable in (*system.coordinates, *system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M' z̈ + Φ_zᵀ (α Φ + λ) − Q', ẋ − f) [Jaiswal2021, eq. 39]; sets z, ż, z̈ and x."""
        self._equations.trapezoidal.unknowns[:] = unknowns
        return self._equations.residual()[0]

    def jacobian(self) -> Floats:
        """Return the derivative by the coordinates and the states."""
        return self._equations.tangent()[0]

    def updated(self, unknowns: Floats) -> None:
        """Add α Φ to the multipliers [Jaiswal2021, eq. 19]."""
        self.functions.coordinates[:] = unknowns[: self._size]
        self._equations.estimates += self._equations.penalty * self.functions.closure()[0]


class PenaltyProblem(AugmentedProblem):
    """A step that ends with projections in the weights of the step's tangent."""

    def finish(self) -> State:
        """Return the state at the end, velocities and accelerations projected onto the constraints."""
        functions = self.functions
        functions.multipliers[:] = self._equations.estimates
        if functions.redundant:
            # What redundant equations hold against each other moves nothing, but would add up as they turn.
            jacobian = functions.closure()[1]
            functions.multipliers[:] = shortest(jacobian, jacobian.T @ functions.multipliers)
        if len(functions.rows):
            matrix, right = self._equations.projection()
            functions.velocities[:], functions.accelerations[:] = Factors(matrix).solve(right).T
        return self._end(None)


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

    def reactions(self) -> Floats:
        """Return the reactions at positions and velocities; the functions hold the accelerations that go with them.

        The multipliers of a step balance accelerations that are projected afterwards. Between joints that hold
        something against each other the difference is of first order in the step.
        """
        functions = self.functions
        functions.accelerations[:], functions.multipliers[:], _ = accelerations(functions)
        return super().reactions()
