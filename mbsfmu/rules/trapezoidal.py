"""The trapezoidal rule [Jaiswal2021, eqs. 33 and 34]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mbsfmu.rules.rule import Array, FirstOrderValues, Rule, Step


@dataclass(frozen=True)
class Trapezoidal(Rule):
    """Mean of the rates at both ends: of second order, and without damping at any frequency."""

    name: ClassVar[str] = "trapezoidal"

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ = 2/h (x − x_k) − ẋ_k."""
        return 2.0 / step.size * (end - begin.value) - begin.rate
