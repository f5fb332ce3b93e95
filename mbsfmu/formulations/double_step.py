"""The double-step semirecursive formulation: coordinate partitioning [Jaiswal2021, sect. 2.2]."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from mbsfmu.formulations.dependent import DependentCoordinates
from mbsfmu.formulations.formulation import Formulation, StepProblem
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.partition import Partition, choose, reconsidered
from mbsfmu.formulations.state import State


class DoubleStepProblem(StepProblem):
    """One trapezoidal step in the independent coordinates and the states [Jaiswal2021, eqs. 35 and 38]."""

    def __init__(self, functions: SystemFunctions, state: State, step: float) -> None:
        super().__init__(functions, state, step)
        assert state.partition is not None
        self._partition = state.partition
        self._independent = state.partition.independent
        self._freedom = len(self._independent)
        self._dependent = DependentCoordinates(functions, state.partition)
        self._estimate = self._predicted_coordinates.copy()
        self.guess = np.concatenate([self._estimate[self._independent], self._predicted_states])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the independent coordinates and the states."""
        system = self.functions.system
        coordinates = (system.coordinates[index].name for index in self._independent)
        return (*coordinates, *(variable.name for variable in system.states))

    def _place(self, unknowns: Floats) -> Floats:
        """Set z, ż, z̈ and x from the unknowns; return ẋ by the trapezoidal rule."""
        state, independent = self.state, self._independent
        self._estimate[independent] = unknowns[: self._freedom]
        self._dependent.place(self._estimate)
        self._estimate[:] = self.functions.coordinates
        velocities = 2.0 / self.step * (unknowns[: self._freedom] - state.coordinates[independent])
        velocities -= state.velocities[independent]
        self._dependent.set_velocities(velocities)
        accelerations = 2.0 / self.step * (velocities - state.velocities[independent])
        self._dependent.set_accelerations(accelerations - state.accelerations[independent])
        self.functions.states[:] = unknowns[self._freedom :]
        return self._state_rates(unknowns[self._freedom :])

    def residual(self, unknowns: Floats) -> Floats:
        """Return h²/4 (M'' z̈^i − Q'', ẋ − f) [Jaiswal2021, eq. 38]."""
        rates = self._place(unknowns)
        unbalanced, derivative = self.functions.dynamics()
        self.functions.multipliers[:] = self._dependent.multipliers(unbalanced)
        return 0.25 * self.step**2 * np.concatenate([self._dependent.reduce(unbalanced), rates - derivative])

    def jacobian(self) -> Floats:
        """Return the derivative by the independent coordinates and the states.

        The residual is the independent part of ρ = M z̈ − Q + Φ_zᵀ λ with λ such that the dependent part
        vanishes. Projecting dρ with R_zᵀ removes dλ, so that only the sensitivities of z, ż and z̈ are needed;
        they follow from differentiating Φ, Φ_z ż and Φ_z z̈ + Φ̇_z ż, which stay zero.
        """
        step, free, reduce = self.step, self._freedom, self._dependent.reduce
        by_z, by_v, by_a, by_x = self.functions.residual_tangent()
        rates_z, rates_v, rates_x = self.functions.rates_tangent()
        identity = np.eye(free)
        if len(self._partition.dependent):
            velocity_z, acceleration_z, acceleration_v = self.functions.closure_tangent()
            solve, ratio, expand = self._dependent.solve, self._dependent.ratio, self._dependent.expand
            z = expand(ratio, identity)
            v = expand(2.0 / step * ratio - solve(velocity_z @ z), 2.0 / step * identity)
            dependent = 4.0 / step**2 * ratio - solve(acceleration_z @ z + acceleration_v @ v)
            a = expand(dependent, 4.0 / step**2 * identity)
        else:
            z, v, a = identity, 2.0 / step * identity, 4.0 / step**2 * identity
        size = free + len(self.functions.states)
        matrix = np.empty((size, size))
        matrix[:free, :free] = reduce(by_z @ z + by_v @ v + by_a @ a)
        matrix[:free, free:] = reduce(by_x)
        matrix[free:, :free] = -(rates_z @ z + rates_v @ v)
        matrix[free:, free:] = -rates_x
        matrix[range(free, size), range(free, size)] += 2.0 / step
        return 0.25 * step**2 * matrix

    def finish(self, unknowns: Floats) -> State:
        """Return the state at the end, with another choice of coordinates where the present one gets steep."""
        rates = self._place(unknowns)
        functions = self.functions
        multipliers = self._dependent.multipliers(functions.dynamics()[0])
        partition = reconsidered(self._partition, functions.closure()[1], self._dependent.ratio)
        return self._end(unknowns[self._freedom :].copy(), rates, multipliers, partition)


class DoubleStep(Formulation):
    """Coordinate partitioning: the loop equations hold to round-off; singular configurations are refused."""

    name: ClassVar[str] = "double-step"
    has_explicit_form: ClassVar[bool] = True

    def prepared(self, state: State) -> State:
        """Return the state with a choice of coordinates."""
        self.load(state)
        if len(self.functions.rows):
            return replace(state, partition=choose(self.functions.closure()[1]))
        return replace(
            state, partition=Partition.of(list(range(len(state.coordinates))), len(state.coordinates))
        )

    def problem(self, state: State, step: float) -> DoubleStepProblem:
        """Return the equations of a step."""
        return DoubleStepProblem(self.functions, state, step)

    def explicit_rates(self, dependent: DependentCoordinates, partition: Partition) -> tuple[Floats, Floats]:
        """Return z̈^i [Jaiswal2021, eq. 17] and ẋ at the z, ż and x that the functions hold.

        Sets z̈ and λ in the functions.
        """
        functions = self.functions
        mass, rest, rates, _ = functions.equilibrium()
        # With z̈^i = 0 the accelerations are −(Φ_z^d)⁻¹ Φ̇_z ż, the D of eq. 16.
        dependent.set_accelerations(np.zeros(len(partition.independent)))
        right = -dependent.reduce(rest + mass @ functions.accelerations)
        reduced = dependent.reduce(dependent.reduce(mass).T)
        independent = np.linalg.solve(reduced, right)
        dependent.set_accelerations(independent)
        functions.multipliers[:] = dependent.multipliers(rest + mass @ functions.accelerations)
        return independent, rates
