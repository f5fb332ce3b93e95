"""The double-step semirecursive formulation: coordinate partitioning [Jaiswal2021, sect. 2.2]."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from mbsfmu.formulations.dependent import DependentCoordinates
from mbsfmu.formulations.formulation import Formulation, StepProblem, Tolerances
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.partition import Partition, choose, reconsidered
from mbsfmu.formulations.state import State


class DoubleStepProblem(StepProblem):
    """One trapezoidal step in the independent coordinates and the states [Jaiswal2021, eqs. 35 and 38].

    Parameters
    ----------
    functions, state, step
        As for every problem.
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
        partition: Partition,
        dependent: DependentCoordinates,
    ) -> None:
        super().__init__(functions, state, step)
        self._partition = partition
        self._independent = partition.independent
        self._freedom = len(partition.independent)
        self._dependent = dependent
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
        state, independent, functions = self.state, self._independent, self.functions
        self._estimate[independent] = unknowns[: self._freedom]
        self._dependent.place(self._estimate)
        self._estimate[:] = functions.coordinates
        before = state.velocities[independent]
        velocities = 2.0 / self.step * (unknowns[: self._freedom] - state.coordinates[independent]) - before
        self._dependent.set_velocities(velocities)
        accelerations = 2.0 / self.step * (velocities - before) - state.accelerations[independent]
        self._dependent.set_accelerations(accelerations)
        functions.states[:] = unknowns[self._freedom :]
        return self._state_rates(unknowns[self._freedom :])

    def residual(self, unknowns: Floats) -> Floats:
        """Return (M'' z̈^i − Q'', ẋ − f) [Jaiswal2021, eq. 38]."""
        rates = self._place(unknowns)
        unbalanced, derivative = self.functions.dynamics()
        self.functions.multipliers[:] = self._dependent.multipliers(unbalanced)
        return np.concatenate([self._dependent.reduce(unbalanced), rates - derivative])

    def jacobian(self) -> Floats:
        """Return the derivative by the independent coordinates and the states.

        The residual is the independent part of ρ = M z̈ − Q + Φ_zᵀ λ with λ such that the dependent part
        vanishes. Projecting dρ with R_zᵀ removes dλ, so that only the sensitivities of z, ż and z̈ are needed.
        """
        free, reduce = self._freedom, self._dependent.reduce
        by_motion, by_states = self.functions.residual_tangent()
        rates_by_motion, rates_by_states = self.functions.rates_tangent()
        sensitivities = self._dependent.sensitivities(self.step)
        size = free + len(by_states.T)
        matrix = np.empty((size, size))
        matrix[:free, :free] = reduce(by_motion @ sensitivities)
        matrix[:free, free:] = reduce(by_states)
        matrix[free:, :free] = -(rates_by_motion @ sensitivities[: rates_by_motion.shape[1]])
        matrix[free:, free:] = 2.0 / self.step * np.eye(size - free) - rates_by_states
        return matrix

    def finish(self, unknowns: Floats) -> State:
        """Return the state at the end, with another choice of coordinates where the present one gets steep."""
        rates = self._place(unknowns)
        multipliers = self._dependent.multipliers(self.functions.dynamics()[0])
        partition = reconsidered(self._partition, self.functions.closure()[1], self._dependent.ratio)
        return self._end(unknowns[self._freedom :].copy(), rates, multipliers, partition)


class DoubleStep(Formulation):
    """Coordinate partitioning: the loop equations hold to round-off; singular configurations are refused."""

    name: ClassVar[str] = "double-step"
    has_explicit_form: ClassVar[bool] = True

    def __init__(self, functions: SystemFunctions, tolerances: Tolerances) -> None:
        super().__init__(functions, tolerances)
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
            self._dependent = DependentCoordinates(self.functions, state.partition)
        return self._dependent

    def problem(self, state: State, step: float) -> DoubleStepProblem:
        """Return the equations of a step."""
        assert state.partition is not None
        return DoubleStepProblem(self.functions, state, step, state.partition, self.dependent(state))

    def explicit_rates(self, state: State) -> tuple[Floats, Floats]:
        """Return z̈^i [Jaiswal2021, eq. 17] and ẋ at the z, ż and x that the functions hold.

        Sets z̈ and λ in the functions; the choice of coordinates is that of `state`.
        """
        functions, dependent = self.functions, self.dependent(state)
        mass, rest, rates, _ = functions.equilibrium()
        # With z̈^i = 0 the accelerations are −(Φ_z^d)⁻¹ Φ̇_z ż, the D of eq. 16.
        dependent.set_accelerations(np.zeros(dependent.freedom))
        right = -dependent.reduce(rest + mass @ functions.accelerations)
        reduced = dependent.reduce(dependent.reduce(mass).T)
        independent: Floats = np.linalg.solve(reduced, right).astype(np.float64)
        dependent.set_accelerations(independent)
        functions.multipliers[:] = dependent.multipliers(rest + mass @ functions.accelerations)
        return independent, rates
