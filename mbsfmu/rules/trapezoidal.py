"""The trapezoidal rule [Jaiswal2021, eqs. 33 and 34]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mbsfmu.rules.rule import Array, FirstOrderValues, Rule, Step


@dataclass(frozen=True)
class Trapezoidal(Rule):
    """Trapezoidal rule: mean of the rates at both ends; second order, without numerical damping."""

    name: ClassVar[str] = "trapezoidal"

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ = 2/h (x − x_k) − ẋ_k."""
        return 2.0 / step.size * (end - begin.value) - begin.rate
