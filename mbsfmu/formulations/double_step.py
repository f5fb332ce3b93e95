"""The double-step semirecursive formulation: coordinate partitioning [Jaiswal2021, sect. 2.2]."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from mbsfmu.formulations.dependent import DependentCoordinates
from mbsfmu.formulations.expressions import MOTION
from mbsfmu.formulations.formulation import Formulation, StepProblem, Tolerances
from mbsfmu.formulations.functions import Floats, SystemFunctions, TracedFunction
from mbsfmu.formulations.partition import Partition, choose, reconsidered
from mbsfmu.formulations.state import State


class ReducedEquations:
    """The equations of motion in the independent coordinates, whichever these are.

    R_z and G (see `DependentCoordinates`) are arguments, so that one set of functions serves every choice.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.

    Attributes
    ----------
    basis, lift
        R_z, shape (n, n − m), and G, shape (n, m).
    velocities, accelerations
        ż^i and z̈^i, each of shape (n − m,).
    step
        h in s, shape (1,).
    """

    def __init__(self, functions: SystemFunctions) -> None:
        n, m = len(functions.coordinates), len(functions.rows)
        self._functions = functions
        self._given = functions.expressions
        if m:
            self._r, self.basis = functions.add_part("basis", n, n - m)
            self._g, self.lift = functions.add_part("lift", n, m)
        else:
            # Without loops all coordinates are independent; as constants these matrices vanish from the equations.
            self._r, self.basis = ca.SX.eye(n), np.eye(n)
            self._g, self.lift = ca.SX(n, 0), np.zeros((n, 0))
        self._v, self.velocities = functions.add_part("independent_velocities", n - m)
        self._a, self.accelerations = functions.add_part("independent_accelerations", n - m)
        self._h, self.step = functions.add_part("step", 1)

    def _motion(self) -> dict[str, ca.SX]:
        """Return ż and z̈ from the independent ones [Jaiswal2021, eqs. 14 and 15]."""
        velocities = ca.mtimes(self._r, self._v)
        (quadratic,) = self._given.at([self._given.quadratic], {"velocities": velocities})
        accelerations = ca.mtimes(self._r, self._a) - ca.mtimes(self._g, quadratic)
        return {"velocities": velocities, "accelerations": accelerations}

    @cached_property
    def balance(self) -> TracedFunction:
        """R_zᵀ (M z̈ − Q) [eq. 17], shape (n − m,), and ẋ; writes ż, z̈ and λ.

        λ = −Gᵀ (M z̈ − Q) comes from the dependent rows of M z̈ − Q + Φ_zᵀ λ = 0.
        """
        motion = self._motion()
        residual, rates = self._given.at([self._given.residual, self._given.rates], motion)
        multipliers = -ca.mtimes(self._g.T, residual)
        results = [ca.mtimes(self._r.T, residual), rates, *motion.values(), multipliers]
        return self._functions.traced(
            "reduced_balance", results, into={2: "velocities", 3: "accelerations", 4: "multipliers"}
        )

    @cached_property
    def tangent(self) -> TracedFunction:
        """Derivative of (R_zᵀ (M z̈ − Q), ẋ by the trapezoidal rule − f) by (z^i, x); a square matrix.

        ż^i and z̈^i follow z^i with 2/h and 4/h². The sensitivities of z, ż and z̈ follow from differentiating Φ,
        Φ_z ż and Φ_z z̈ + Φ̇_z ż, which stay zero. The residual is the independent part of ρ = M z̈ − Q + Φ_zᵀ λ with
        λ such that the dependent part vanishes: projecting dρ with R_zᵀ removes dλ.
        """
        given, r, first = self._given, self._r, 2.0 / self._h
        turned = ca.mtimes(self._g, ca.mtimes(given.derivative(given.closure_rate, "coordinates"), r))
        by_velocity = first * r - turned
        both = given.derivative(given.closure_acceleration, "coordinates", "velocities")
        turned = ca.mtimes(self._g, ca.mtimes(both, ca.vertcat(r, by_velocity)))
        motion = ca.vertcat(r, by_velocity, first**2 * r - turned)
        balance = ca.mtimes(r.T, ca.mtimes(given.derivative(given.balance, *MOTION), motion))
        by_states = ca.mtimes(r.T, given.derivative(given.balance, "states"))
        rates = ca.mtimes(given.derivative(given.rates, *MOTION), motion)
        rates_by_states = given.derivative(given.rates, "states")
        own = first * ca.SX.eye(rates_by_states.shape[0]) - rates_by_states
        matrix = ca.vertcat(ca.horzcat(balance, by_states), ca.horzcat(-rates, own))
        return self._functions.traced("reduced_tangent", [matrix], matrices=[0])

    @cached_property
    def explicit(self) -> TracedFunction:
        """M'' = R_zᵀ M R_z, shape (n − m, n − m), Q'', shape (n − m,) [eq. 17], and ẋ."""
        motion, r = self._motion(), self._r
        # With z̈^i = 0 the accelerations are −G Φ̇_z ż, the D of eq. 16.
        motion["accelerations"] = ca.substitute(motion["accelerations"], self._a, ca.SX.zeros(self._a.shape))
        mass, residual, rates = self._given.at([self._given.mass, self._given.residual, self._given.rates], motion)
        results = [ca.mtimes(r.T, ca.mtimes(mass, r)), -ca.mtimes(r.T, residual), rates]
        return self._functions.traced("reduced_dynamics", results, matrices=[0])


class DoubleStepProblem(StepProblem):
    """One trapezoidal step in the independent coordinates and the states [Jaiswal2021, eqs. 35 and 38].

    Parameters
    ----------
    functions, state, step
        As for every problem.
    equations
        The reduced equations.
    partition
        The choice of coordinates.
    dependent
        Solves for the dependent ones of that choice.
    """

    def __init__(
        self,
        functions: SystemFunctions,
        state: State,
        step: float,
        equations: ReducedEquations,
        partition: Partition,
        dependent: DependentCoordinates,
    ) -> None:
        super().__init__(functions, state, step)
        self._equations = equations
        self._partition = partition
        self._independent = independent = partition.independent
        self._freedom = len(independent)
        self._dependent = dependent
        self._estimate = self._predicted_coordinates
        self._before = state.coordinates[independent], state.velocities[independent], state.accelerations[independent]
        self.guess = np.concatenate([self._estimate[independent], self._predicted_states])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the independent coordinates and the states."""
        system = self.functions.system
        coordinates = (system.coordinates[index].name for index in self._independent)
        return (*coordinates, *(variable.name for variable in system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M'' z̈^i − Q'', ẋ − f) [Jaiswal2021, eq. 38]; sets z, ż, z̈, λ and x."""
        functions, equations, first = self.functions, self._equations, 2.0 / self.step
        independent, states = unknowns[: self._freedom], unknowns[self._freedom :]
        self._estimate[self._independent] = independent
        self._dependent.place(self._estimate)
        self._estimate[:] = functions.coordinates
        coordinates, velocities, accelerations = self._before
        equations.velocities[:] = first * (independent - coordinates) - velocities
        equations.accelerations[:] = first * (equations.velocities - velocities) - accelerations
        functions.states[:] = states
        balance, rates, *_ = equations.balance()
        return np.concatenate([balance, self._state_rates(states) - rates])

    def jacobian(self) -> Floats:
        """Return the derivative by the independent coordinates and the states."""
        self._equations.step[0] = self.step
        return self._equations.tangent()[0]

    def finish(self, unknowns: Floats) -> State:
        """Return the state at the end, with another choice of coordinates where the present one gets steep."""
        self.residual(unknowns)
        states = unknowns[self._freedom :].copy()
        multipliers = self.functions.multipliers.copy()
        partition = reconsidered(self._partition, self.functions, self._equations.basis)
        return self._end(states, self._state_rates(states), multipliers, partition)


class DoubleStep(Formulation):
    """Coordinate partitioning: the loop equations hold to round-off; singular configurations are refused."""

    name: ClassVar[str] = "double-step"
    has_explicit_form: ClassVar[bool] = True

    def __init__(self, functions: SystemFunctions, tolerances: Tolerances) -> None:
        super().__init__(functions, tolerances)
        self.equations = ReducedEquations(functions)
        self._partition: Partition | None = None
        self._dependent: DependentCoordinates

    def prepared(self, state: State) -> State:
        """Return the state with a choice of coordinates."""
        self.load(state)
        if len(self.functions.rows):
            return replace(state, partition=choose(self.functions.closure()[1]))
        return replace(state, partition=Partition.of(list(range(len(state.coordinates))), len(state.coordinates)))

    def dependent(self, state: State) -> DependentCoordinates:
        """Return what solves for the dependent coordinates of a state's choice."""
        assert state.partition is not None
        if state.partition is not self._partition:
            self._partition = state.partition
            equations = self.equations
            self._dependent = DependentCoordinates(self.functions, state.partition, equations.basis, equations.lift)
        return self._dependent

    def problem(self, state: State, step: float) -> DoubleStepProblem:
        """Return the equations of a step."""
        assert state.partition is not None
        dependent = self.dependent(state)
        return DoubleStepProblem(self.functions, state, step, self.equations, state.partition, dependent)

    def explicit_rates(self, state: State, independent: Floats, velocities: Floats) -> tuple[Floats, Floats]:
        """Return z̈^i [Jaiswal2021, eq. 17] and ẋ at the x and inputs that the functions hold.

        Sets z, ż, z̈ and λ in the functions.

        Parameters
        ----------
        state
            Its coordinates are the estimate of the dependent ones, its choice of coordinates is used.
        independent, velocities
            z^i and ż^i, each of shape (n − m,).

        Raises
        ------
        SimulationError
            When the loops cannot be closed.
        """
        assert state.partition is not None
        coordinates = state.coordinates.copy()
        coordinates[state.partition.independent] = independent
        self.dependent(state).place(coordinates)
        equations = self.equations
        equations.velocities[:] = velocities
        mass, load, rates = equations.explicit()
        accelerations: Floats = np.linalg.solve(mass, load).astype(np.float64)
        equations.accelerations[:] = accelerations
        equations.balance()
        return accelerations, rates
