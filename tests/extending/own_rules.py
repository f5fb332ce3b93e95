"""Rules of integration of a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mbsfmu.rules import FirstOrderValues, Rule, Step
from mbsfmu.rules.rule import Array


@dataclass(frozen=True)
class BackwardEuler(Rule):
    """The mean rate of the step is that at its end: of first order, and it damps more than any other."""

    name: ClassVar[str] = "backward-euler"

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        return (end - begin.value) / step.size


@dataclass(frozen=True)
class AdamsMoulton(Rule):
    """The parabola through three rates, integrated: of third order, for motion that is not stiff.

    With r = h_before / h, x_{k+1} = x_k + h (b₁ ẋ_{k+1} + b₀ ẋ_k + b₋₁ ẋ_{k−1}). The first step is one of the
    trapezoidal rule.
    """

    name: ClassVar[str] = "adams-moulton"
    remembered: ClassVar[int] = 1

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        (earlier,) = begin.history
        known = step.before > 0.0
        r = np.where(known, step.before, step.size) / step.size
        after = np.where(known, (2.0 + 3.0 * r) / (6.0 * (1.0 + r)), 0.5)
        now = np.where(known, (1.0 + 3.0 * r) / (6.0 * r), 0.5)
        before = np.where(known, -1.0 / (6.0 * r * (1.0 + r)), 0.0)
        return ((end - begin.value) / step.size - now * begin.rate - before * earlier) / after

    def history(self, end: FirstOrderValues, begin: FirstOrderValues, step: Step) -> Sequence[Array]:
        return [begin.rate]
