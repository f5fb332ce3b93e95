"""Discontinuities of exchanged variables: position in a step, and effect on its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.control.watched import Watched
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.sweeps import predicted
from mbsfmu.cosim.fmus.fmu_instance import Floats

BEGIN, END = "begin of a controlled step", "end of a controlled step"
"""Slots of saved states around a repeatable step."""
_SAME_DEFECT = 0.7  # of the defect in a step twice as long or more


@dataclass(frozen=True)
class Sample:
    """Signals of followed inputs at the start, a quarter, the half, three quarters and the end of a step.

    Attributes
    ----------
    values
        Shape (5, number of signals).
    """

    values: Floats

    def mean(self) -> Floats:
        """Return the means over the step, by Simpson's rule on each half; shape (number of signals,)."""
        return np.array([1.0, 4.0, 2.0, 4.0, 1.0]) @ self.values / 12.0

    def defect(self, held: bool) -> Floats:
        """Return the deviation of signals from an FMU's inputs over half a step, the larger half counting.

        An FMU that holds its inputs gets the value at the beginning, another one the straight line through both ends.
        """
        begin, quarter, middle, last, end = self.values
        if held:
            return np.maximum(np.abs(middle - begin), np.abs(end - middle))
        first, second = quarter - 0.5 * (begin + middle), last - 0.5 * (middle + end)
        return 2.0 * np.maximum(np.abs(first), np.abs(second))


class Suspect(NamedTuple):
    """A rejected step with a possible discontinuity.

    Attributes
    ----------
    end, length
        Of the step in s.
    defect
        How far what is exchanged went off its extrapolation in it.
    """

    end: float
    length: float
    defect: float

    def is_discontinuity(self, length: float, defect: float) -> bool:
        """Return whether a much shorter step in s at the same place has nearly the same error."""
        return length <= 0.5 * self.length and defect >= _SAME_DEFECT * self.defect


class DiscontinuityFinder:
    """Detection of discontinuities in halved steps.

    A step as a whole and its halves miss a jump alike where an FMU gets to know of it in the next step only, or where
    all of them are told its end. What shows it is the exchanged variable itself, which goes off its extrapolation by
    more than the tolerance; how much it matters shows where the step is made once more with inputs that run straight
    from beginning to end: over each half the inputs may have been off by as much.

    Parameters
    ----------
    stepping
        The members that make the steps.
    watched
        What is looked at.
    """

    def __init__(self, stepping: Stepping, watched: Watched) -> None:
        self._stepping, self._watched = stepping, watched
        exchange = stepping.exchange
        driving = sorted({exchange.columns[each.source] for each in exchange.connections})
        self._driving: NDArray[np.intp] = np.array(driving, dtype=np.intp)
        self._held = np.zeros(len(exchange.columns), dtype=bool)
        self._held[exchange.held] = True

    def sample(self, time: float, step: float) -> Sample:
        """Return the followed signals over a step in s."""
        driven = self._stepping.exchange.driven
        inside = [driven.after(time + share * step) for share in (0.0, 0.25, 0.5, 0.75)]
        return Sample(np.array([*inside, driven.before(time + step)]))

    def weights(self, sample: Sample, tolerances: CouplingTolerances) -> Floats:
        """Return the allowed errors of followed signals, shape (number of signals,)."""
        nominals = self._stepping.exchange.driven.nominals()
        return tolerances.absolute * nominals + tolerances.relative * np.abs(sample.values).max(axis=0)

    def defect(self, history: OutputHistory, step: float, end: Floats, weights: Floats) -> float:
        """Return the largest deviation of exchanged variables from their extrapolation, relative to weights."""
        off = np.abs(end - predicted(history, step))[self._driving]
        return float(np.max(off / weights[self._driving], initial=0.0))

    def effect(self, begin: Floats, end: Floats, sample: Sample, time: float, step: float) -> Floats:
        """Return the watched variables at the end of the step with linear inputs.

        Parameters
        ----------
        begin, end
            Outputs at the beginning and at the end of the step that was made, at which the members are and stay.
        sample
            The followed signals in it.
        time, step
            Beginning and length of the step in s.
        """
        self._stepping.save(END, time + step)
        self._stepping.restore(BEGIN)
        exchange = self._stepping.exchange
        begin = np.concatenate([begin, sample.values[0]])
        end = np.concatenate([end, sample.values[-1]])
        rows = exchange.rows
        polynomials = np.zeros((rows, len(begin)))
        polynomials[0] = begin if rows > 1 else 0.5 * (begin + end)
        polynomials[1:2] = end - begin
        given = [member.applied for member in exchange.members]
        for member, applied in zip(exchange.members, given, strict=True):
            member.advance(self._otherwise(member, applied, polynomials, begin, end), None, time, step)
        self._stepping.algorithm.sweeps += 1
        result = self._watched.read(exchange.read())
        self._stepping.restore(END)
        exchange.release(END)
        return result

    def _otherwise(
        self, member: CoupledInstance, applied: Floats, polynomials: Floats, begin: Floats, end: Floats
    ) -> Floats:
        """Give inputs without intermediate values the value that the member did not receive."""
        chosen = self._held[member.sources]
        if not chosen.any():
            return polynomials
        sources = member.sources[chosen]
        result = polynomials.copy()
        had_end = np.isclose(applied[chosen], end[sources] * member.factors[chosen] + member.offsets[chosen])
        result[0, sources], result[1:, sources] = np.where(had_end, begin[sources], end[sources]), 0.0
        return result
