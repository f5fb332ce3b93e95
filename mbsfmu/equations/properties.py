"""Numbers of a mechanism as parameters, and their slots in the equations.

A zero in the model is structural: it remains the constant zero, is removed from the traced equations, and is not a
parameter. A planar mechanism therefore remains planar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.modelling import Quantity
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.variables import Causality, Variability, Variable


@dataclass(frozen=True)
class Slot:
    """Source of a number: the parameter vector, or the model itself if structural."""

    constant: float
    index: int | None

    def of(self, parameters: Array) -> Array:
        """Return the number, a scalar array."""
        return np.asarray(self.constant) if self.index is None else parameters[self.index]


@dataclass(frozen=True)
class VectorSlot:
    """A vector of slots."""

    slots: tuple[Slot, ...]

    def of(self, parameters: Array) -> Array:
        """Return the vector, shape (number of slots,)."""
        return np.stack([slot.of(parameters) for slot in self.slots])


class Properties:
    """Registry of a mechanism's parameters, in the order of their first use in the equations."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self._slot_by_name: dict[str, Slot] = {}

    def scalar(
        self,
        name: str,
        value: float,
        unit: str,
        description: str,
        minimum: float | None = None,
        structural_zero: bool = True,
        maximum: float | None = None,
        tunable: bool = False,
    ) -> Slot:
        """Register one number; a repeated name returns the same slot."""
        if name in self._slot_by_name:
            return self._slot_by_name[name]
        if value == 0.0 and structural_zero:
            slot = Slot(0.0, None)
        else:
            slot = Slot(value, len(self.variables))
            least = (
                value if minimum is not None and value < minimum else minimum
            )  # values of the model are always allowed
            self.variables.append(
                Variable(
                    name,
                    Causality.PARAMETER,
                    Variability.TUNABLE if tunable else Variability.FIXED,
                    unit,
                    start=value,
                    minimum=least,
                    maximum=maximum,
                    description=description,
                )
            )
        self._slot_by_name[name] = slot
        return slot

    def starts(self) -> Array:
        """Return the parameter values of the model, shape (number of parameters so far,)."""
        return np.array([variable.start or 0.0 for variable in self.variables])

    def quantity(self, quantity: Quantity) -> Slot:
        """Register a number of a part; a tunable one is a parameter even if zero."""
        return self.scalar(
            quantity.name,
            quantity.start or 0.0,
            quantity.unit,
            quantity.description,
            quantity.minimum,
            structural_zero=not quantity.tunable,
            maximum=quantity.maximum,
            tunable=quantity.tunable,
        )

    def vector(
        self, name: str, values: Sequence[float], unit: str, description: str, suffixes: str = "x y z"
    ) -> VectorSlot:
        """Register the components of a vector as `name.x`, `name.y`, `name.z`."""
        return VectorSlot(
            tuple(
                self.scalar(f"{name}.{suffix}", value, unit, f"{description}, {suffix}")
                for suffix, value in zip(suffixes.split(), values, strict=True)
            )
        )
