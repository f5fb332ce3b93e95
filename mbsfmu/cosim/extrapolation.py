"""How coupled inputs run over a communication step: polynomials through what is known of the outputs."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from mbsfmu.cosim.port import Floats


class Extrapolation(StrEnum):
    """Polynomials that continue outputs over a step.

    `zero` holds the value at the beginning, `linear` and `quadratic` run through the last two and three
    communication points, `derivatives` takes value and derivative by time at the beginning, as the units give them.
    """

    ZERO = "zero"
    LINEAR = "linear"
    QUADRATIC = "quadratic"
    DERIVATIVES = "derivatives"

    @property
    def degree(self) -> int:
        """Degree of the polynomial that extrapolates."""
        return {"zero": 0, "linear": 1, "quadratic": 2, "derivatives": 1}[self]


class History:
    """Outputs at the last communication points, and the polynomials through them.

    A polynomial y(θ) = c₀ + c₁ θ + c₂ θ² over a step, θ running from 0 to 1, is an array of its coefficients of
    shape (`rows`, number of outputs).

    Parameters
    ----------
    extrapolation
        The kind of polynomial.
    now
        Outputs at the start, shape (number of outputs,).
    rates
        Their derivatives by time, NaN where a unit gives none; None unless `derivatives` is chosen.
    held
        Indices of outputs that are not continuous (whole numbers, truth values): they are held always.

    Attributes
    ----------
    now, rates
        Outputs at the last communication point, and their derivatives by time.
    correction
        Integral over the last step of what the inputs missed, one element an entry; None where nothing is corrected.
    """

    def __init__(self, extrapolation: Extrapolation, now: Floats, rates: Floats | None, held: list[int]) -> None:
        self.extrapolation = extrapolation
        self.now = now
        self.rates = rates
        self.correction: Floats | None = None
        self._held = held
        self._past: list[tuple[Floats, float]] = []
        self.rows = 3 if extrapolation is Extrapolation.DERIVATIVES else extrapolation.degree + 1

    def copy(self) -> History:
        """Return a history that goes on by itself."""
        twin = History(self.extrapolation, self.now, self.rates, self._held)
        twin.correction = self.correction
        twin._past = list(self._past)
        return twin

    def push(self, now: Floats, step: float, rates: Floats | None = None) -> None:
        """Take the outputs at the end of a step in s; the array is kept, not copied."""
        if self.extrapolation.degree:
            self._past = [(self.now, step), *self._past[: self.extrapolation.degree - 1]]
        self.now, self.rates = now, rates

    def restart(self) -> None:
        """Forget the past: at a jump of an input it says nothing of what comes."""
        self._past = []

    @property
    def is_fresh(self) -> bool:
        """Whether nothing but the present is known."""
        return not self._past

    def extrapolate(self, step: float) -> Floats:
        """Return the polynomials over the coming step in s."""
        result = np.zeros((self.rows, len(self.now)))
        result[0] = self.now
        if self.rows == 1:
            return result
        if self.rates is not None:
            np.multiply(self._known_rates(slice(None)), step, out=result[1])
        elif self._past:
            before, last = self._past[0]
            slope = (self.now - before) / last
            if len(self._past) == 2:
                earlier, second = self._past[1]
                bend = (slope - (before - earlier) / second) / (last + second)
                result[2] = bend * (step * step)
                slope = slope + bend * last
            np.multiply(slope, step, out=result[1])
        if self._held:
            result[1:, self._held] = 0.0
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
        now = self.now[place]
        result = np.zeros((self.rows, len(now)))
        result[0] = now
        np.subtract(end, now, out=result[1])
        if self.rates is not None:
            slope = self._known_rates(place) * step
            np.subtract(result[1], slope, out=result[2])
            result[1] = slope
        elif self.rows == 3 and self._past:
            before, last = self._past[0]
            rise = result[1] / step
            bend = (rise - (now - before[place]) / last) / (step + last)
            np.multiply(bend, step * step, out=result[2])
            result[1] -= result[2]
        if self._held:
            held = [index for index in self._held if index in range(*place.indices(len(self.now)))]
            local = [index - (place.start or 0) for index in held]
            result[0, local], result[1:, local] = end[local], 0.0
        return result

    def _known_rates(self, place: slice) -> Floats:
        """Return derivatives by time, from differences where a unit gives none."""
        assert self.rates is not None
        rates = self.rates[place]
        unknown = np.isnan(rates)
        if not unknown.any():
            return rates
        if not self._past:
            return np.where(unknown, 0.0, rates)
        before, last = self._past[0]
        return np.where(unknown, (self.now[place] - before[place]) / last, rates)


def mean(polynomials: Floats) -> Floats:
    """Return the mean of polynomials over their step, shape (number of columns,)."""
    result = polynomials[0].copy()
    for power in range(1, len(polynomials)):
        result += polynomials[power] / (power + 1)
    return result


def part(polynomials: Floats, begin: float, end: float) -> Floats:
    """Return polynomials over the part of the step from θ = begin to end, as polynomials of that part's own θ."""
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
