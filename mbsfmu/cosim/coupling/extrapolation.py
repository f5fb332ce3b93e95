"""Extrapolation of coupled inputs over a communication step by polynomials."""

from __future__ import annotations

from copy import copy
from enum import StrEnum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.compiled.library import FORGETTING, STRAIGHT
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


class PolynomialWeights:
    """Weights of the polynomial coefficients on known values.

    Products are rounded one by one and added to zero in the order of the known rows. Compiled code does the same to the
    last bit, which no library of linear algebra promises.

    Parameters
    ----------
    lengths
        Of the coming step and the last ones in s, for which they hold.
    matrix
        Shape (coefficients, known rows).
    others, chosen
        Another matrix, for some outputs.
    count
        Number of outputs.
    """

    def __init__(
        self, lengths: tuple[float, ...], matrix: Floats, others: Floats | None, chosen: NDArray[np.intp], count: int
    ) -> None:
        self.lengths, self._count = lengths, count
        self._equal = others is None
        self._values = matrix[:, :, np.newaxis]
        if others is not None:
            self._values = self.values()
            self._values[:, :, chosen] = others[:, :, np.newaxis]

    def values(self) -> Floats:
        """Return a copy of all weights, shape (coefficients, known rows, outputs)."""
        return np.broadcast_to(self._values, (*self._values.shape[:2], self._count)).copy()

    def combine(self, known: Floats, place: slice) -> Floats:
        """Return the coefficients of some outputs, shape (coefficients, outputs), from the known values of all."""
        values = self._values if self._equal else self._values[:, :, place]
        return np.add.reduce(values * known[:, place], 1, initial=0.0)


class OutputHistory:
    """Outputs at the last communication points, and the polynomials through them.

    A polynomial y(θ) = c₀ + c₁ θ + c₂ θ² over a step, θ running from 0 to 1, is an array of its coefficients of
    shape (rows, number of outputs). Coefficients are linear in what is known: a small matrix, which changes with the
    lengths of the steps only, times the known values.

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
    """

    CHANGES: ClassVar = ("now", "known", "_lengths", "correction")

    def __init__(self, extrapolation: Extrapolation, now: Floats, rates: Floats | None, held: list[int]) -> None:
        self.extrapolation = extrapolation
        self.now = now
        self.correction: Floats | None = None
        self.held = held
        self.rows = extrapolation.rows
        self._lengths: tuple[float, ...] = ()
        self.unknown = np.zeros(0, dtype=np.intp) if rates is None else np.flatnonzero(np.isnan(rates))
        self.points = extrapolation.degree if rates is None or len(self.unknown) else 0
        self.adapts = extrapolation is Extrapolation.ADAPTIVE
        self.known = np.zeros((2 + self.points + (rates is not None) + 2 * self.adapts, len(now)))
        self.known[1] = now
        if rates is not None:
            self.known[-1] = np.nan_to_num(rates)
        self._weights: dict[str, PolynomialWeights] = {}

    def copy(self) -> OutputHistory:
        """Return an independent copy of the history."""
        twin = copy(self)
        twin.known = self.known.copy()
        twin._weights = dict(self._weights)
        return twin

    def push(self, now: Floats, step: float, rates: Floats | None = None) -> None:
        """Append the outputs at the end of a step in s; their array is kept, that of the rates is copied."""
        known, most = self.known, self.points
        if self.adapts:
            self._judge(now, step)
        if most:
            known[2 : 2 + most] = known[1 : 1 + most]
            self._lengths = (step, *self._lengths[: most - 1])
        if rates is not None:
            known[-1] = rates
            known[-1, self.unknown] = 0.0
        known[1] = now
        self.now = now

    def _judge(self, now: Floats, step: float) -> None:
        """Record what holding and lines have missed in a step in s with these outputs at its end."""
        known = self.known
        weights = self.weights("extrapolate", step).values()[1]
        by_holding = now - known[1]
        by_line = by_holding - (weights[1] * known[1] + weights[2] * known[2])
        for row, missed in ((-2, by_holding), (-1, by_line)):
            known[row] = FORGETTING * known[row] + missed * missed

    def _held_now(self) -> list[int]:
        """Return the indices of outputs that are held in the coming step."""
        if not self.adapts:
            return self.held
        bent = np.flatnonzero(~(self.known[-1] <= STRAIGHT * self.known[-2]))
        return sorted({*self.held, *bent.tolist()})

    def went_on(self, step: float, count: int) -> None:
        """Record that a number of steps in s was written into `known` directly."""
        self._lengths = ((step,) * min(count, self.points) + self._lengths)[: self.points]
        self.now = self.known[1].copy()

    def restart(self) -> None:
        """Discard the history at a discontinuity of an input."""
        self._lengths = ()

    @property
    def is_fresh(self) -> bool:
        """Whether the history is too short for the polynomials."""
        return self.points > len(self._lengths)

    @property
    def rates(self) -> Floats | None:
        """Time derivatives of the outputs, zero for missing ones; None unless used."""
        return self.known[-1] if self.extrapolation is Extrapolation.DERIVATIVES else None

    def is_even(self, step: float) -> bool:
        """Return whether the weights for a step in s also apply to the following ones."""
        return self._lengths == (step,) * self.points

    def extrapolate(self, step: float) -> Floats:
        """Return the polynomials over the coming step in s; read-only with one row."""
        if self.rows == 1:
            return self.now.reshape(1, -1)
        result = self.weights("extrapolate", step).combine(self.known, slice(None))
        if held := self._held_now():
            result[1:, held] = 0.0
        return result

    def interpolate(self, step: float, end: Floats, place: slice = slice(None)) -> Floats:
        """Return the polynomials over a step in s whose end is known.

        Parameters
        ----------
        step
            Length of the step in s.
        end
            Outputs at its end.
        place
            Which outputs; `end` has these alone.
        """
        if self.rows == 1:
            return end.reshape(1, -1)
        self.known[0, place] = end
        result = self.weights("interpolate", step).combine(self.known, place)
        if held := self._held_now():
            inside = range(*place.indices(len(self.now)))
            local = [index - inside.start for index in held if index in inside]
            result[0, local], result[1:, local] = end[local], 0.0
        return result

    def weights(self, kind: str, step: float) -> PolynomialWeights:
        """Return the weights of `extrapolate` or `interpolate` over a step in s; none for constant values.

        They are made anew only where lengths have changed. Outputs without derivatives go by points.
        """
        lengths = (step, *self._lengths)
        found = self._weights.get(kind)
        if found is None or found.lengths != lengths:
            make = self._extrapolation_matrix if kind == "extrapolate" else self._interpolation_matrix
            matrix = make(step, by_rates=self.extrapolation is Extrapolation.DERIVATIVES)
            others = make(step, by_rates=False) if len(self.unknown) else None
            found = self._weights[kind] = PolynomialWeights(lengths, matrix, others, self.unknown, len(self.now))
        return found

    def _extrapolation_matrix(self, step: float, by_rates: bool) -> Floats:
        """Return the matrix from the known rows to c₀, c₁, c₂, for the available history."""
        matrix = np.zeros((self.rows, len(self.known)))
        matrix[0, 1] = 1.0
        if by_rates:
            matrix[1, -1] = step
        elif len(self._lengths) == 1:
            matrix[1, 1:3] = np.array([1.0, -1.0]) * step / self._lengths[0]
        elif len(self._lengths) == 2:
            last, second = self._lengths
            slope, earlier = np.array([1.0, -1.0, 0.0]) / last, np.array([0.0, 1.0, -1.0]) / second
            bend = (slope - earlier) / (last + second)
            matrix[1, 1:4] = step * (slope + last * bend)
            matrix[2, 1:4] = step * step * bend
        return matrix

    def _interpolation_matrix(self, step: float, by_rates: bool) -> Floats:
        """Return how c₀, c₁, c₂ follow from the known rows and the end."""
        matrix = np.zeros((self.rows, len(self.known)))
        matrix[0, 1] = 1.0
        matrix[1, :2] = 1.0, -1.0
        if by_rates:
            matrix[1, :2], matrix[1, -1] = 0.0, step
            matrix[2, :2], matrix[2, -1] = (1.0, -1.0), -step
        elif self.rows == 3 and self._lengths:
            last = self._lengths[0]
            slope, earlier = np.array([1.0, -1.0, 0.0]) / step, np.array([0.0, 1.0, -1.0]) / last
            bend = (slope - earlier) / (step + last)
            matrix[1, :3] = step * (slope - step * bend)
            matrix[2, :3] = step * step * bend
        return matrix


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
