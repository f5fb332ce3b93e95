"""Explicit coupling: each FMU steps once with extrapolated inputs."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, OutputHistory
from mbsfmu.cosim.coupling.linear_correction import LinearCorrection
from mbsfmu.cosim.coupling.sweeps import START, Algorithm, Settings
from mbsfmu.cosim.fmus.fmu_instance import Floats


class OneSweep(Algorithm):
    """Base of algorithms that make one sweep of each step.

    Attributes
    ----------
    again
        How often a step is made again of which too little is known.
    """

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        # Adaptive inputs are held until lines have met them, which asks nothing of the FMUs.
        ahead = settings.extrapolation.degree > 0 and settings.extrapolation is not Extrapolation.ADAPTIVE
        improves = ahead and not exchange.without_states()
        self._correction = LinearCorrection(exchange) if settings.linear_correction else None
        self.again = 1 + sum(bool(member.direct) for member in exchange.members) if improves else 0

    def repeats(self, history: OutputHistory) -> bool:
        """Return whether the coming step is repeated, for lack of history."""
        return self.again > 0 and history.is_fresh

    def _advance(self, history: OutputHistory, time: float, step: float) -> Floats:
        """Make a step without iteration; without sufficient history repeat it, if states can be saved.

        The second time, inputs interpolate to what the first one found: a single step with held inputs would spoil
        the third order, and make step control begin with tiny ones; so would a second one with straight inputs where
        parabolas are wanted, in outputs that depend directly on inputs. An output that depends directly on inputs is as
        wrong as these were in the sweep before: each FMU with such outputs asks for one sweep more.
        """
        again = self.again if self.repeats(history) else 0
        if again:
            self.exchange.save(START, time)
        polynomials = self._complete(history.extrapolate(step), time, step)
        end = self._corrected(self._one_sweep(history, polynomials, time, step), time + step)
        for _ in range(again):
            self._return()
            polynomials = self._complete(history.interpolate(step, end.copy()), time, step)
            end = self._corrected(self._one_sweep(history, polynomials, time, step), time + step)
        if again:
            self.exchange.release(START)
        return end.copy()

    def _corrected(self, end: Floats, time: float) -> Floats:
        """Return outputs at the end of a step, at a time in s, corrected if that is wanted."""
        return end if self._correction is None else self._correction.apply(end, time)

    @abstractmethod
    def _one_sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        """Let all members step once; return the outputs, which the next sweep overwrites."""


class Explicit(OneSweep):
    """Base of explicit algorithms."""


class Jacobi(Explicit):
    """Jacobi: all members step with the data at the start of the step."""

    options: ClassVar[tuple[str, ...]] = ("threads", "linear_correction")

    def _one_sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        return self._in_parallel(polynomials, time, step, history.correction)


class GaussSeidel(Explicit):
    """Gauss–Seidel: members step in sequence; later ones use new outputs of earlier ones.

    With held inputs a later member gets the end value, else the polynomial to it.
    """

    options: ClassVar[tuple[str, ...]] = ("order", "linear_correction")
    in_turn = True

    def _one_sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        return self._in_turn(history, polynomials.copy(), time, step, history.correction)
