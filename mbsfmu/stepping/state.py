"""The complete state of a running system; a run can continue from it to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mbsfmu.initialization.coordinates import Partition
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class State:
    """State at the end of a step.

    Attributes
    ----------
    coordinates, velocities, accelerations
        z, ż and z̈, each of shape (n,).
    multipliers
        λ, shape (m,); also where the next iteration starts from.
    states, rates
        x and ẋ, each of shape (k,).
    integrals, integral_rates
        Each of shape (i,).
    momenta, momentum_rates
        p and ṗ, each of shape (n,); zero where the formulation has none.
    references
        Orientations from which joints that turn freely turn, shape (4 r,).
    active
        Ones for the loop equations that count, zeros for those that follow from them, shape (m,); ones where the
        formulation does not choose.
    history
        What the rule of integration remembers of the steps before; zeros where that is nothing. See `StepHistory`.
    loop_iterates
        Solutions of algebraic loops where the last step ended, from which the next ones are found; shape (g,).
    suggested_step
        What a solver with step control tries next in s, shape (1,); zero where it does not know.
    iteration_matrix, iteration_matrix_use
        What is kept of the iteration matrix that the next implicit step begins with, and what it has been used for;
        zeros where none is. See `ReusedJacobian`.
    unconverged
        Where iterations are limited: by how many times its tolerance the solution of the last step was still off, zero
        where it converged, and the largest until now, shape (2,). Empty elsewhere.
    ahead
        What is known past the present, as long as nothing is set: see `mbsfmu.integration.steps_past_stop`. Empty but
        for solvers that step past where they are asked to come.
    error, error_history, error_record
        Of runs whose error is estimated: that of (z, ż, z̈, x, ẋ), the rates of earlier steps, and the largest errors
        until now; see `mbsfmu.integration.error_transport` and `error_record`. Empty elsewhere.
    partition
        Choice of coordinates, None where the formulation needs none.
    """

    coordinates: Floats
    velocities: Floats
    accelerations: Floats
    multipliers: Floats
    states: Floats
    rates: Floats
    integrals: Floats
    integral_rates: Floats
    momenta: Floats
    momentum_rates: Floats
    references: Floats
    active: Floats
    history: Floats
    loop_iterates: Floats
    suggested_step: Floats
    iteration_matrix: Floats
    iteration_matrix_use: Floats
    unconverged: Floats
    ahead: Floats
    error: Floats
    error_history: Floats
    error_record: Floats
    partition: Partition | None = None

    def goes_on_from(self, other: State) -> bool:
        """Return whether the motion has the same chart as another state: the same coordinates and loop equations."""
        return self.partition is other.partition and np.array_equal(self.active, other.active)

    @classmethod
    def at_start(cls, functions: SystemFunctions, integrals: Floats) -> State:
        """Return the state of a run that starts from the present values: all loop equations active, zero rates."""
        return replace(
            cls.of(functions, integrals, np.zeros_like(integrals)),
            accelerations=np.zeros_like(functions.coordinates),
            multipliers=np.zeros(len(functions.rows)),
            rates=np.zeros_like(functions.states),
            active=np.ones(len(functions.rows)),
        )

    @classmethod
    def of(cls, functions: SystemFunctions, integrals: Floats, integral_rates: Floats) -> State:
        """Return the present state, without momenta and history."""
        nothing = np.zeros_like(functions.coordinates)
        return cls(
            functions.coordinates.copy(),
            functions.velocities.copy(),
            functions.accelerations.copy(),
            functions.multipliers.copy(),
            functions.states.copy(),
            functions.rates.copy(),
            integrals,
            integral_rates,
            nothing,
            nothing,
            functions.references.copy(),
            functions.active.copy(),
            np.zeros_like(functions.history),
            functions.loop_iterates.copy(),
            np.zeros_like(functions.suggested_step),
            functions.iteration_matrix,
            functions.iteration_matrix_use,
            functions.unconverged,
            functions.ahead,
            functions.error,
            functions.error_history,
            functions.error_record,
        )

    @property
    def touched(self) -> Self:
        """The state after a variable was set: interpolants beyond it become invalid."""
        return replace(self, ahead=np.zeros_like(self.ahead)) if len(self.ahead) else self

    @property
    def turned(self) -> Self:
        """The state after an internal discontinuity: as `touched`, without a set variable."""
        kept = self.touched
        kept.ahead[:1] = self.ahead[:1]
        return kept

    def with_error(self, error: Floats, history: Floats, record: Floats) -> Self:
        """Return the state with its error estimate."""
        return replace(self, error=error, error_history=history, error_record=record)

    def lost(self, loss: int) -> Floats:
        """Return the error record that marks the error as unknown, with the reason."""
        record = self.error_record.copy()
        record[-1] = loss
        return record

    @property
    def forgetful(self) -> Self:
        """The state without the history of earlier steps."""
        nothing = {
            name: np.zeros_like(getattr(self, name)) for name in ("history", "iteration_matrix", "iteration_matrix_use")
        }
        return replace(self, **nothing)


ARRAYS = {
    "coordinates": "coordinates",
    "velocities": "coordinates",
    "accelerations": "coordinates",
    "multipliers": "rows",
    "states": "states",
    "rates": "states",
    "integrals": "integrals",
    "integral_rates": "integrals",
    "momenta": "coordinates",
    "momentum_rates": "coordinates",
    "references": "references",
    "active": "rows",
    "history": "history",
    "loop_iterates": "loop_iterates",
    "suggested_step": "suggested_step",
    "iteration_matrix": "iteration_matrix",
    "iteration_matrix_use": "iteration_matrix_use",
    "unconverged": "unconverged",
    "ahead": "ahead",
    "error": "error",
    "error_history": "error_history",
    "error_record": "error_record",
}
"""Array fields in the order in which they are saved, each with the function array of the same length."""


def array_sizes(functions: SystemFunctions) -> tuple[int, ...]:
    """Return the sizes of these arrays for a system."""
    return tuple(len(getattr(functions, like)) for like in ARRAYS.values())
