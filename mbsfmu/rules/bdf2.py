"""Backward differences of second order with steps that may change [Hairer1993, sect. III.5]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mbsfmu.rules.rule import Array, FirstOrderValues, Rule, Step


@dataclass(frozen=True)
class BackwardDifferences(Rule):
    """The slope at the end of the parabola through three values: of second order, and stiff motion dies at once.

    With ω = h by the step before and θ = ω / (1 + ω), the usual

    (1 + 2ω)/(1 + ω) x_{k+1} − (1 + ω) x_k + ω²/(1 + ω) x_{k−1} = h ẋ

    is ẋ = (1 + θ) (x_{k+1} − x_k)/h − θ (x_k − x_{k−1})/h_before. What is remembered is the mean rate of the step
    before. Where that is nothing, θ is 1, and the rate at the beginning takes its place: a step of the trapezoidal
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
        """Return the mean rate of the step."""
        return [(end.value - begin.value) / step.size]
