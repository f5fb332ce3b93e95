"""The nonlinear equations of one implicit step, as formulations give them and Newton's iteration solves them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mbsfmu.formulations.kept_tangent import DenseInverse, Inverse, KeptTangent
from mbsfmu.formulations.partition import Partition
from mbsfmu.formulations.state import State
from mbsfmu.formulations.step_rates import StepRates
from mbsfmu.formulations.workspace import Floats, Overwritten

if TYPE_CHECKING:
    from mbsfmu.formulations.formulation import Formulation


class StepProblem(ABC):
    """The nonlinear equations of one implicit step, positions and states x being the unknowns.

    The formulation's rule gives the rates (see `StepRates`).

    Parameters
    ----------
    formulation
        The formulation; its functions have inputs at the end of the step and parameters set.
    state
        Where the step begins.
    step
        h in s.
    """

    guess: Floats
    """Predicted unknowns: z + h ż + h²/2 z̈ and x + h ẋ; behind them multipliers, where a formulation has them so."""

    def __init__(self, formulation: Formulation, state: State, step: float) -> None:
        self.functions = functions = formulation.functions
        self.history = formulation.history
        self.check_loops = formulation.check_loops
        self._tangents = formulation.tangents
        self.state = state
        self.step = step
        functions.references[:] = state.references
        functions.active[:] = state.active
        functions.guesses[:] = state.guesses
        self._predicted_coordinates = state.coordinates + step * state.velocities + 0.5 * step**2 * state.accelerations
        self._predicted_states = state.states + step * state.rates

    @property
    @abstractmethod
    def rates(self) -> StepRates:
        """The rates at the end of the step, and where it begins."""

    def spread(self, positions: Floats) -> Floats:
        """Return the changes of all coordinates, shape (n,), with those of the positions among the unknowns."""
        return positions

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each unknown, multipliers apart, for messages."""

    @abstractmethod
    def residual(self, unknowns: Floats) -> Overwritten:
        """Return the residual [Jaiswal2021, eqs. 38 and 39] without the common factor h²/4; shape of the unknowns."""

    def residual_near(self, unknowns: Floats, coordinates: Floats) -> Overwritten:  # noqa: ARG002 - most need none
        """Return the residual where coordinates, shape (n,), nearly close the loops; unknowns are as for `residual`."""
        return self.residual(unknowns)

    @abstractmethod
    def jacobian(self) -> Overwritten:
        """Return the derivative of the residual at the unknowns it was last called with.

        It is exact where loops are closed, but for what makes it regular where they are redundant, `softness`.
        """

    def inverse(self) -> Inverse | None:
        """Return what solves with the derivative; None where that is singular."""
        return self._tangents.made() if self._tangents else DenseInverse.of(self.jacobian())

    def kept(self, tangent: KeptTangent) -> Inverse:
        """Return what solves with the derivative of an earlier step."""
        return self._tangents.kept(tangent) if self._tangents else DenseInverse.kept(tangent.numbers)

    @property
    def softness(self) -> Floats:
        """What is taken from the derivative's diagonal, shape of the unknowns."""
        return np.zeros(len(self.guess))

    def land(self, unknowns: Floats) -> None:
        """Set what `finish` needs at the solution, where the residual was not evaluated."""
        self.residual(unknowns)

    @abstractmethod
    def finish(self) -> State:
        """Return the state at the end of the step; the residual was last evaluated there, or `land` called."""

    def _end(self, partition: Partition | None) -> State:
        """Return the state at the end of the step, where the functions are; integrals by the same rule."""
        functions, before = self.functions, self.state
        integral_rates = functions.integral_rates()[0].copy()
        integrals, history = self.history.end(before, integral_rates)
        end = State.of(functions, integrals, integral_rates)
        return replace(end, references=before.references, history=history, partition=partition)
