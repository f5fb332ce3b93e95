"""The state of a running system, all of it: whoever has it can continue to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.partition import Partition


@dataclass(frozen=True)
class State:
    """What one step hands over to the next.

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
    partition: Partition | None = None

    @classmethod
    def of(cls, functions: SystemFunctions, integrals: Floats, integral_rates: Floats) -> State:
        """Return the state where functions are, without momenta."""
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
        )


ARRAYS = tuple(field.name for field in fields(State) if field.name != "partition")
"""The parts that are arrays, in the order in which they are saved."""


def array_sizes(functions: SystemFunctions) -> tuple[int, ...]:
    """Return the sizes of these arrays for a system."""
    n, m = len(functions.coordinates), len(functions.rows)
    states, integrals = len(functions.states), len(functions.integrals)
    return (n, n, n, m, states, states, integrals, integrals, n, n, len(functions.references))
