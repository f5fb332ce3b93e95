"""The state of a running system, all of it: whoever has it can continue to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mbsfmu.formulations.functions import Floats
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
    partition: Partition | None = None


ARRAYS = tuple(field.name for field in fields(State) if field.name != "partition")
"""The parts that are arrays, in the order in which they are saved."""
