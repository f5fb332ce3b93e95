"""How coupled inputs run over a communication step: polynomials through what is known of the outputs."""

from __future__ import annotations

from copy import copy
from enum import StrEnum

import numpy as np

from mbsfmu.cosim.instance import Floats

_MEAN = np.array([1.0, 1.0 / 2.0, 1.0 / 3.0])


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

    @property
    def rows(self) -> int:
        """Number of coefficients; derivatives at the beginning and the value at the end make a parabola."""
        return 3 if self is Extrapolation.DERIVATIVES else self.degree + 1


class History:
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
        Their derivatives by time, NaN where a unit gives none; None unless `derivatives` is chosen. Polynomials of
        those without run through the last two points, and through the end: for the same order.
    held
        Indices of outputs that are not continuous (whole numbers, truth values): they are held always.

    Attributes
    ----------
    now
        Outputs at the last communication point.
    correction
        Integral up to now of what the inputs missed, one element an entry; None where nothing is corrected.
    """

    def __init__(self, extrapolation: Extrapolation, now: Floats, rates: Floats | None, held: list[int]) -> None:
        self.extrapolation = extrapolation
        self.now = now
        self.correction: Floats | None = None
        self._held = held
        self._rows = extrapolation.rows
        self._lengths: tuple[float, ...] = ()
        self._unknown = np.zeros(0, dtype=np.intp) if rates is None else np.flatnonzero(np.isnan(rates))
        self._most = extrapolation.degree if rates is None or len(self._unknown) else 0
        self._known = np.zeros((2 + self._most + (rates is not None), len(now)))
        """Rows: the end of the step, the present, then earlier points, then the derivatives by time."""
        self._known[1] = now
        if rates is not None:
            self._known[-1] = np.nan_to_num(rates)
        self._weights: dict[tuple[str, bool], tuple[tuple[float, ...], Floats]] = {}

    def copy(self) -> History:
        """Return a history that goes on by itself."""
        twin = copy(self)
        twin._known = self._known.copy()
        twin._weights = dict(self._weights)
        return twin

    def push(self, now: Floats, step: float, rates: Floats | None = None) -> None:
        """Take the outputs at the end of a step in s; their array is kept, that of the rates is copied."""
        known, most = self._known, self._most
        if most:
            known[2 : 2 + most] = known[1 : 1 + most]
            self._lengths = (step, *self._lengths[: most - 1])
        if rates is not None:
            known[-1] = rates
            known[-1, self._unknown] = 0.0
        known[1] = now
        self.now = now

    def restart(self) -> None:
        """Forget the past: at a jump of an input it says nothing of what comes."""
        self._lengths = ()

    @property
    def is_fresh(self) -> bool:
        """Whether nothing is known of a past that the polynomials need."""
        return self._most > 0 and not self._lengths

    @property
    def rates(self) -> Floats | None:
        """Derivatives of the outputs by time, zero where a unit gives none; None unless they are used."""
        return self._known[-1] if self.extrapolation is Extrapolation.DERIVATIVES else None

    def extrapolate(self, step: float) -> Floats:
        """Return the polynomials over the coming step in s; not to be written to where there is one row."""
        if self._rows == 1:
            return self.now.reshape(1, -1)
        result = self._polynomials("extrapolate", step, slice(None))
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
        if self._rows == 1:
            return end.reshape(1, -1)
        self._known[0, place] = end
        result = self._polynomials("interpolate", step, place)
        if self._held:
            inside = range(*place.indices(len(self.now)))
            local = [index - inside.start for index in self._held if index in inside]
            result[0, local], result[1:, local] = end[local], 0.0
        return result

    def _polynomials(self, kind: str, step: float, place: slice) -> Floats:
        """Return the coefficients for some outputs; those without derivatives go by points."""
        known = self._known[:, place]
        if self.extrapolation is not Extrapolation.DERIVATIVES:
            return self._matrix(kind, step, by_rates=False).dot(known)
        result = self._matrix(kind, step, by_rates=True).dot(known)
        if len(self._unknown):
            inside = range(*place.indices(len(self.now)))
            local = [index - inside.start for index in self._unknown if index in inside]
            result[:, local] = self._matrix(kind, step, by_rates=False).dot(known[:, local])
        return result

    def _matrix(self, kind: str, step: float, by_rates: bool) -> Floats:
        """Return the matrix for these lengths of steps, made anew only where they have changed."""
        lengths = (step, *self._lengths)
        found = self._weights.get((kind, by_rates))
        if found is None or found[0] != lengths:
            make = self._extrapolation_matrix if kind == "extrapolate" else self._interpolation_matrix
            found = self._weights[kind, by_rates] = (lengths, make(step, by_rates))
        return found[1]

    def _extrapolation_matrix(self, step: float, by_rates: bool) -> Floats:
        """Return how c₀, c₁, c₂ follow from the known rows, for what is known of the past."""
        matrix = np.zeros((self._rows, len(self._known)))
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
        matrix = np.zeros((self._rows, len(self._known)))
        matrix[0, 1] = 1.0
        matrix[1, :2] = 1.0, -1.0
        if by_rates:
            matrix[1, :2], matrix[1, -1] = 0.0, step
            matrix[2, :2], matrix[2, -1] = (1.0, -1.0), -step
        elif self._rows == 3 and self._lengths:
            last = self._lengths[0]
            slope, earlier = np.array([1.0, -1.0, 0.0]) / step, np.array([0.0, 1.0, -1.0]) / last
            bend = (slope - earlier) / (step + last)
            matrix[1, :3] = step * (slope - step * bend)
            matrix[2, :3] = step * step * bend
        return matrix


def mean(polynomials: Floats) -> Floats:
    """Return the mean of polynomials over their step, shape (number of columns,)."""
    return _MEAN[: len(polynomials)].dot(polynomials)


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
