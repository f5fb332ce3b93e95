"""Extrapolation of coupled inputs over a communication step by polynomials."""

from __future__ import annotations

from copy import copy
from enum import StrEnum
from typing import ClassVar

import numpy as np

from mbsfmu.cosim.fmus.fmu_instance import Floats


class Extrapolation(StrEnum):
    """Degree of extrapolation.

    `zero` holds the value at the beginning, `linear` and `quadratic` run through the last two and three
    communication points, `derivatives` takes value and derivative by time at the beginning, as the FMUs give them.
    `adaptive` is linear for each output that the last lines have met to half of what holding it would have missed, and
    holds the others: what jumps, chatters or oscillates faster than steps resolve.
    """

    ZERO = "zero"
    LINEAR = "linear"
    QUADRATIC = "quadratic"
    DERIVATIVES = "derivatives"
    ADAPTIVE = "adaptive"

    @property
    def degree(self) -> int:
        """Degree of the polynomial that extrapolates."""
        return {"zero": 0, "linear": 1, "quadratic": 2, "derivatives": 1, "adaptive": 1}[self]

    @property
    def rows(self) -> int:
        """Number of coefficients; derivatives at the beginning and the value at the end make a parabola."""
        return 3 if self is Extrapolation.DERIVATIVES else self.degree + 1


class OutputHistory:
    """Outputs at the last communication points.

    A polynomial y(θ) = c₀ + c₁ θ + c₂ θ² over a step, θ running from 0 to 1, is an array of its coefficients of
    shape (rows, number of outputs); `compiled.member_step` finds them from what is known.

    Parameters
    ----------
    extrapolation
        The kind of polynomial.
    now
        Outputs at the start, shape (number of outputs,).
    rates
        Their derivatives by time, NaN where an FMU gives none; None unless `derivatives` is chosen. Polynomials of
        those without run through the last two points, and through the end: for the same order.
    held
        Indices of outputs that are not continuous (whole numbers, truth values): they are held always.

    Attributes
    ----------
    now
        Outputs at the last communication point.
    correction
        Integral up to now of what the inputs missed, one element an entry; None where nothing is corrected.
    rows
        Number of coefficients.
    known
        What the coefficients follow from, shape (known rows, number of outputs): the end of the step, the present, then
        earlier points, as many as `points` says, then the derivatives by time, or the squares of what holding and
        lines have missed, with weights that halve from step to step.
    unknown
        Indices of outputs whose derivatives are not given.
    lengths
        Of the last steps in s, the last one first, as many as are known since a discontinuity, `points` at most.
    """

    CHANGES: ClassVar = ("now", "known", "lengths", "correction")

    def __init__(self, extrapolation: Extrapolation, now: Floats, rates: Floats | None, held: list[int]) -> None:
        self.extrapolation = extrapolation
        self.now = now
        self.correction: Floats | None = None
        self.held = held
        self.rows = extrapolation.rows
        self.lengths: tuple[float, ...] = ()
        self.unknown = np.zeros(0, dtype=np.intp) if rates is None else np.flatnonzero(np.isnan(rates))
        self.points = extrapolation.degree if rates is None or len(self.unknown) else 0
        self.adapts = extrapolation is Extrapolation.ADAPTIVE
        self.known = np.zeros((2 + self.points + (rates is not None) + 2 * self.adapts, len(now)))
        self.known[1] = now
        if rates is not None:
            self.known[-1] = np.nan_to_num(rates)

    def copy(self) -> OutputHistory:
        """Return an independent copy of the history."""
        twin = copy(self)
        twin.known = self.known.copy()
        return twin

    def went_on(self, lengths: tuple[float, ...]) -> None:
        """Record that steps were written into `known`, the last of which have these lengths in s."""
        self.lengths = lengths
        self.now = self.known[1].copy()

    def restart(self) -> None:
        """Discard the history at a discontinuity of an input."""
        self.lengths = ()


def mean(polynomials: Floats) -> Floats:
    """Return the mean of polynomials over their step, shape (number of columns,)."""
    result = polynomials[0].copy()
    for power in range(1, len(polynomials)):
        result += polynomials[power] / (power + 1)
    return result


def part(polynomials: Floats, begin: float, end: float) -> Floats:
    """Return polynomials restricted to θ = begin to end, in the θ of that part."""
    width = end - begin
    result = polynomials.copy()
    if len(polynomials) > 1:
        result[0] += begin * polynomials[1]
        result[1] *= width
    if len(polynomials) > 2:
        result[0] += begin * begin * polynomials[2]
        result[1] += 2.0 * begin * width * polynomials[2]
        result[2] *= width * width
    return result


def ends(polynomials: Floats) -> Floats:
    """Return the values at the end of the step, shape (number of columns,)."""
    return polynomials.sum(axis=0)
