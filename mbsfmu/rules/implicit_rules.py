"""Implicit rules: trapezoidal, BDF2, generalized-α."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.rules.rule import Array, FirstOrderValues, PositionValues, Rule, Step

# -- the trapezoidal rule [Jaiswal2021, eqs. 33 and 34] ----------------------------------------------------------------


@dataclass(frozen=True)
class Trapezoidal(Rule):
    """Trapezoidal rule: mean of the rates at both ends; second order, without numerical damping."""

    name: ClassVar[str] = "trapezoidal"

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ = 2/h (x − x_k) − ẋ_k."""
        return 2.0 / step.size * (end - begin.value) - begin.rate


# -- backward differences of second order with variable steps [Hairer1993, sect. III.5] --------------------------------


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


# -- generalized-α method [Chung1993], with the equations at the end of the step as in [Arnold2007] --------------------


class _Weights(NamedTuple):
    """Coefficients α_m, α_f, γ and β."""

    inertia: Array
    force: Array
    gamma: Array
    beta: Array


@dataclass(frozen=True)
class GeneralizedAlpha(Rule):
    """Newmark's formulas with an auxiliary acceleration: second order, with numerical damping of high frequencies.

    The auxiliary acceleration a satisfies (1 − α_m) a_{k+1} + α_m a_k = (1 − α_f) z̈_{k+1} + α_f z̈_k, and Newmark's
    formulas with β and γ use it. First-order variables have an auxiliary rate in the same way [Jansen2000]. All
    coefficients follow from the spectral radius ρ∞ at infinite frequency.

    a approximates z̈ at the time t + (α_m − α_f) h. If the step size changes, a is evaluated there on the line through
    z̈ at t and the stored a. The first step, without a stored a, is a step of the trapezoidal rule, ρ∞ = 1, and a then
    follows from z̈ at both ends.

    Attributes
    ----------
    spectral_radius
        ρ∞: 1 without damping, 0 removes the highest frequencies in one step.
    """

    name: ClassVar[str] = "generalized-alpha"
    remembered: ClassVar[int] = 1
    spectral_radius: float = 0.8

    def __post_init__(self) -> None:
        if not 0.0 <= self.spectral_radius <= 1.0:
            raise InputError(f"the spectral radius is {self.spectral_radius:g}; it must lie between 0 and 1")

    @property
    def remembered_motion(self) -> tuple[int, int]:
        """Number of stored values: the auxiliary acceleration."""
        return 0, 1

    def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
        """Return ẋ [Jansen2000]."""
        auxiliary = _at_step(begin.history[0], begin.rate, step)
        weights = _of_first_order(self._radius(step))
        after = ((end - begin.value) / step.size - (1.0 - weights.gamma) * auxiliary) / weights.gamma
        return _true(weights, after, auxiliary, begin.rate)

    def motion(self, end: Array, begin: PositionValues, step: Step) -> tuple[Array, Array]:
        """Return ż and z̈ [Arnold2007]."""
        auxiliary = _at_step(begin.history[0], begin.acceleration, step)
        weights = _of_second_order(self._radius(step))
        gone = (end - begin.position) / step.size - begin.velocity - (0.5 - weights.beta) * step.size * auxiliary
        after = gone / (step.size * weights.beta)
        velocity = begin.velocity + step.size * ((1.0 - weights.gamma) * auxiliary + weights.gamma * after)
        return velocity, _true(weights, after, auxiliary, begin.acceleration)

    def history(self, end: FirstOrderValues, begin: FirstOrderValues, step: Step) -> Sequence[Array]:
        """Return the auxiliary rate."""
        return [self._auxiliary(_of_first_order, begin.history[0], begin.rate, end.rate, step)]

    def motion_history(self, end: PositionValues, begin: PositionValues, step: Step) -> Sequence[Array]:
        """Return the auxiliary acceleration."""
        return [self._auxiliary(_of_second_order, begin.history[0], begin.acceleration, end.acceleration, step)]

    def _radius(self, step: Step) -> Array:
        return np.where(step.before > 0.0, self.spectral_radius, 1.0)

    def _auxiliary(self, weights_of: _WeightsOf, before: Array, begin: Array, end: Array, step: Step) -> Array:
        weights = weights_of(np.asarray(self.spectral_radius))
        mean = (1.0 - weights.force) * end + weights.force * begin
        known = (mean - weights.inertia * _at_step(before, begin, step)) / (1.0 - weights.inertia)
        first = end + (weights.inertia - weights.force) * (end - begin)
        return np.where(step.before > 0.0, known, first)


def _of_second_order(radius: Array) -> _Weights:
    """Return the coefficients of [Chung1993, eqs. 17, 20 and 25]."""
    inertia, force = (2.0 * radius - 1.0) / (radius + 1.0), radius / (radius + 1.0)
    return _Weights(inertia, force, 0.5 - inertia + force, 0.25 * (1.0 - inertia + force) ** 2)


def _of_first_order(radius: Array) -> _Weights:
    """Return the coefficients of [Jansen2000], whose α_m and α_f are 1 − α_m and 1 − α_f here; no β."""
    inertia, force = 0.5 * (3.0 * radius - 1.0) / (radius + 1.0), radius / (radius + 1.0)
    return _Weights(inertia, force, 0.5 - inertia + force, np.zeros(()))


_WeightsOf = Callable[[Array], _Weights]


def _at_step(auxiliary: Array, rate: Array, step: Step) -> Array:
    """Return the auxiliary rate for the present step size from that of the previous step."""
    ratio = step.size / np.where(step.before > 0.0, step.before, step.size)
    return rate + ratio * (auxiliary - rate)


def _true(weights: _Weights, after: Array, before: Array, begin: Array) -> Array:
    """Return the rate at the end from auxiliary rates at both ends and the rate at the start."""
    moving = (1.0 - weights.inertia) * after + weights.inertia * before
    return (moving - weights.force * begin) / (1.0 - weights.force)
