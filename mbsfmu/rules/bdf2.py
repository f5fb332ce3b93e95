"""Backward differences of second order with variable steps [Hairer1993, sect. III.5]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mbsfmu.rules.rule import Array, FirstOrderValues, Rule, Step


@dataclass(frozen=True)
class BackwardDifferences(Rule):
    """Second-order backward differentiation (BDF2), L-stable: stiff components decay in one step.

    With ω = h / h_before and θ = ω / (1 + ω), the usual form

    (1 + 2ω)/(1 + ω) x_{k+1} − (1 + ω) x_k + ω²/(1 + ω) x_{k−1} = h ẋ

    is ẋ = (1 + θ) (x_{k+1} − x_k)/h − θ (x_k − x_{k−1})/h_before. The history is the mean rate of the previous step.
    Without a history θ is 1, and the rate at the start of the step replaces it, which is a step of the trapezoidal
    rule.
    """

    name: ClassVar[str] = "bdf2"
    remembered: ClassVar[int] = 1

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ."""
        (mean,) = begin.history
        share = step.size / (step.size + step.before)
        return (1.0 + share) / step.size * (end - begin.value) - share * mean

    def history(self, end: FirstOrderValues, begin: FirstOrderValues, step: Step) -> Sequence[Array]:
        """Return the mean rate of the step as history."""
        return [(end.value - begin.value) / step.size]
