"""Nominal values of an FMU's variables, from the scale of its model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot
from typing import Self

import numpy as np

from mbsfmu.base.physical_units import dimension
from mbsfmu.modelling.variables import Causality, Variability, Variable

_STANDARD_GRAVITY = 9.81


@dataclass(frozen=True)
class Scale:
    """Scale of a model: mass, length and time, from which nominal values follow by unit.

    Attributes
    ----------
    mass
        Of all bodies, in kg.
    length
        Geometric mean of the lengths among the parameters, in m.
    time
        In which something falls so far, in s.
    """

    mass: float
    length: float
    time: float

    @classmethod
    def of(cls, variables: Iterable[Variable]) -> Self:
        """Return the scale from the start values of the parameters."""
        given: dict[str, list[float]] = {}
        for variable in variables:
            if variable.causality is Causality.PARAMETER and variable.start:
                given.setdefault(variable.unit, []).append(abs(variable.start))
        if "m" not in given:
            return cls(1.0, 1.0, 1.0)  # nothing tells: what the FMI takes where nothing is said
        length = float(np.exp(np.mean(np.log(given["m"]))))
        gravity = hypot(*given.get("m/s2", [])) or _STANDARD_GRAVITY
        return cls(sum(given.get("kg", [1.0])), length, (length / gravity) ** 0.5)

    def nominal(self, variable: Variable) -> float | None:
        """Return the nominal value of a variable, to one digit; None for discrete ones.

        The variable's own nominal value has priority, then its start value, then the scale.
        """
        if variable.variability is not Variability.CONTINUOUS:
            return None
        magnitude = variable.nominal or abs(variable.start or 0.0)
        if not magnitude:
            scale = {"kg": self.mass, "m": self.length, "s": self.time}
            exponents = dimension(variable.unit)
            magnitude = float(np.prod([scale.get(base, 1.0) ** exponent for base, exponent in exponents.items()]))
        return float(f"{magnitude:.0e}")
