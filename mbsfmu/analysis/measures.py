"""Scalar measures of a run: end value, integral, mean, largest value, distance to measurements."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import combined
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class OutputEnds:
    """One output at both ends of each step.

    Attributes
    ----------
    times
        Ends of the steps in s, shape (N + 1,).
    begin, end
        Values where each step begins and ends, shape (N,).
    """

    times: Floats
    begin: Floats
    end: Floats

    @property
    def steps(self) -> Floats:
        """Sizes of the steps in s, shape (N,)."""
        return np.diff(self.times)


@dataclass(frozen=True)
class OutputWeights:
    """Derivatives of a scalar with respect to an output at both ends of each step, shape (N,)."""

    begin: Floats
    end: Floats


class Measure(ABC):
    """A scalar of one output of a run.

    Attributes
    ----------
    output
        Name of the output.
    """

    output: str

    @abstractmethod
    def value(self, ends: OutputEnds) -> float:
        """Return the scalar."""

    @abstractmethod
    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return the derivatives with respect to the output."""

    def unit(self, output_unit: str) -> str:
        """Return the unit of the scalar, of an output in a unit."""
        return output_unit


@dataclass(frozen=True)
class EndValue(Measure):
    """The output at the end of the run."""

    output: str

    def value(self, ends: OutputEnds) -> float:
        """Return y(T)."""
        return float(ends.end[-1])

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return 1 at the end, 0 elsewhere."""
        end = np.zeros_like(ends.end)
        end[-1] = 1.0
        return OutputWeights(np.zeros_like(end), end)


@dataclass(frozen=True)
class Integral(Measure):
    """∫ y^power dt over the run, by the trapezoidal rule."""

    output: str
    power: int = 1

    def value(self, ends: OutputEnds) -> float:
        """Return Σ h/2 (y_n^power + y_{n+1}^power)."""
        return float(np.sum(0.5 * ends.steps * (ends.begin**self.power + ends.end**self.power)))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return h/2 · power · y^(power − 1)."""
        half = 0.5 * ends.steps * self.power
        return OutputWeights(half * ends.begin ** (self.power - 1), half * ends.end ** (self.power - 1))

    def unit(self, output_unit: str) -> str:
        """Return the unit of the output to its power, by time."""
        try:
            return combined((output_unit, self.power), ("s", 1))
        except InputError:  # of an FMU, in a unit that is not of the SI
            return f"({output_unit}){self.power if self.power > 1 else ''}.s"


@dataclass(frozen=True)
class Mean(Measure):
    """The mean of the output over the run."""

    output: str

    def value(self, ends: OutputEnds) -> float:
        """Return ∫ y dt / T."""
        return Integral(self.output).value(ends) / float(ends.times[-1] - ends.times[0])

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return h / (2 T)."""
        share = 0.5 * ends.steps / float(ends.times[-1] - ends.times[0])
        return OutputWeights(share, share)


@dataclass(frozen=True)
class RootMeanSquare(Measure):
    """The root mean square of the output over the run."""

    output: str

    def value(self, ends: OutputEnds) -> float:
        """Return √(∫ y² dt / T)."""
        return float(np.sqrt(Integral(self.output, 2).value(ends) / float(ends.times[-1] - ends.times[0])))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return the derivatives of ∫ y² dt over 2 T times the value; 0 where the output is 0 throughout."""
        value = self.value(ends)
        inner = Integral(self.output, 2).weights(ends)
        share = 0.5 / (value * float(ends.times[-1] - ends.times[0])) if value > 0.0 else 0.0
        return OutputWeights(share * inner.begin, share * inner.end)


@dataclass(frozen=True)
class Largest(Measure):
    """The largest or smallest value of the output at ends of steps, with one derivative."""

    output: str
    sign: float = 1.0

    def value(self, ends: OutputEnds) -> float:
        """Return max y, or min y with the sign −1."""
        return float(self.sign * np.max(self.sign * np.concatenate([ends.begin, ends.end])))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return 1 where the first of the largest values is, 0 elsewhere."""
        both = np.zeros(2 * len(ends.begin))
        both[int(np.argmax(self.sign * np.concatenate([ends.begin, ends.end])))] = 1.0
        return OutputWeights(*np.split(both, 2))


class LeastSquares(Measure):
    """Σ ((y(t_k) − m_k) / σ)² to measured values, y being interpolated between the ends of steps.

    Parameters
    ----------
    output
        Name of the output.
    times, values
        Times in s and measured values in the SI unit of the output, shape (k,).
    noise
        Standard deviation σ of the measured values; 1 by default.

    Raises
    ------
    InputError
        When shapes differ, a number is not finite, or the noise is not positive.
    """

    def __init__(self, output: str, times: ArrayLike, values: ArrayLike, noise: float = 1.0) -> None:
        self.output = output
        self._times, self._values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
        if self._times.ndim != 1 or self._times.shape != self._values.shape:
            raise InputError(f"{output} is measured at {self._times.shape} times with {self._values.shape} values")
        if not (np.isfinite(self._times).all() and np.isfinite(self._values).all()):
            raise InputError(f"{output} has measured times or values that are no finite numbers")
        if not noise > 0.0:
            raise InputError(f"the noise of {output} is {noise:g}; it must be positive")
        self._noise = noise

    def value(self, ends: OutputEnds) -> float:
        """Return the sum of squares."""
        return float(np.sum(self._off(ends)[2] ** 2))

    def weights(self, ends: OutputEnds) -> OutputWeights:
        """Return 2 (y − m) / σ², distributed over the ends of the steps of the measurements."""
        step, share, off = self._off(ends)
        begin, end = np.zeros_like(ends.begin), np.zeros_like(ends.end)
        np.add.at(begin, step, 2.0 * off * (1.0 - share) / self._noise)
        np.add.at(end, step, 2.0 * off * share / self._noise)
        return OutputWeights(begin, end)

    def unit(self, output_unit: str) -> str:  # noqa: ARG002
        """Return the unit of a ratio."""
        return "1"

    def _off(self, ends: OutputEnds) -> tuple[np.ndarray, Floats, Floats]:
        step, share = places_in_steps(ends.times, self._times, self.output)
        found = (1.0 - share) * ends.begin[step] + share * ends.end[step]
        return step, share, (found - self._values) / self._noise


def places_in_steps(ends: Floats, times: Floats, name: str) -> tuple[np.ndarray, Floats]:
    """Return the step of each time, and the fraction of the step before it.

    Raises
    ------
    InputError
        When a time is outside the run.
    """
    slack = 1e-9 * (ends[-1] - ends[0])
    if len(times) and (times.min() < ends[0] - slack or times.max() > ends[-1] + slack):
        raise InputError(
            f"{name} is measured from {times.min():g} s to {times.max():g} s, and the run is from {ends[0]:g} s to "
            f"{ends[-1]:g} s"
        )
    step = np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(ends) - 2)
    return step, np.clip((times - ends[step]) / np.diff(ends)[step], 0.0, 1.0)


_KINDS = {
    "end": EndValue,
    "integral": Integral,
    "mean": Mean,
    "rms": RootMeanSquare,
    "max": Largest,
    "min": lambda output: Largest(output, -1.0),
}
_WRITTEN = re.compile(r"\s*(?:(\w+)\(\s*([^()]+?)\s*\)|([^()]+?))\s*")


def measure(text: str) -> Measure:
    """Return the measure of a text: `max(cylinder.pressure_piston)`, or the end value for a bare output.

    Raises
    ------
    InputError
        When it is none of end, integral, mean, rms, max and min of an output.
    """
    found = _WRITTEN.fullmatch(text)
    kind, inner, bare = found.groups() if found else (None, None, None)
    if bare is not None:
        return EndValue(bare)
    if kind not in _KINDS or inner is None:
        raise InputError(f"'{text}' is no measure of a run; write {', '.join(f'{each}(output)' for each in _KINDS)}")
    return _KINDS[kind](inner)
