"""Integrated defect: error of the mean inputs of FMUs over a step."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mbsfmu.cosim.control.discontinuities import Sample
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.fmus.fmu_instance import Floats


class Defects:
    """Compares the means of inputs over a step with those of their sources.

    Of the outputs at the beginning, the middle and the end of a step Simpson's rule makes the mean that inputs should
    have had, to an order more than any extrapolation here. Its difference from the mean that they had, times the
    length of the step, is what an FMU was given too much [Busch and Schweizer 2011, "An explicit approach for
    controlling the macro-step size of co-simulation methods"; Arnold, Clauß, Schierz 2014, "Error analysis and error
    estimates for co-simulation in FMI for model exchange and co-simulation v2.0"; arXiv:2406.17353]. It needs no
    states, and is of the inputs: what units make of it nobody knows.

    Parameters
    ----------
    stepping
        The members that make the steps. What drives an input and shows at the end of a step what its own inputs are off
        by there is left out: the next step begins with that, however short it is.
    seen
        Names of those whose states are seen, in which the effect of defects shows.
    """

    def __init__(self, stepping: Stepping, seen: Collection[str]) -> None:
        exchange = stepping.exchange
        left_out = np.zeros(len(exchange.columns), dtype=bool)
        left_out[exchange.held] = True
        left_out[: len(exchange.names)] |= stepping.shows_inputs
        sources = exchange.entry_sources
        hidden = [
            np.full(len(member.sources), member.instance.name not in seen, dtype=bool) for member in exchange.members
        ]
        factors = np.concatenate([member.factors for member in exchange.members])
        self._chosen = np.flatnonzero(np.concatenate(hidden) & ~left_out[sources] & (factors != 0.0))
        self._sources = sources[self._chosen]
        self._factors = factors[self._chosen]
        self._offsets = np.concatenate([member.offsets for member in exchange.members])[self._chosen]

    def largest(
        self,
        points: tuple[Floats, Floats, Floats],
        sample: Sample,
        inputs: tuple[Floats, Floats],
        weights: Floats,
        of_signals: Floats,
    ) -> float:
        """Return the largest defect over a step, relative to the tolerance of the input's source.

        Parameters
        ----------
        points
            Outputs at the beginning, the middle and the end of the step.
        sample
            The followed signals in it.
        inputs
            Means that all inputs had over both of its halves.
        weights, of_signals
            What may be wrong about outputs (and states) and about signals.
        """
        if not len(self._chosen):
            return 0.0
        begin, middle, end = points
        true = np.concatenate([(begin + 4.0 * middle + end) / 6.0, sample.mean()])[self._sources]
        applied = 0.5 * (inputs[0] + inputs[1])[self._chosen]
        allowed = np.concatenate([weights[: len(begin)], of_signals])[self._sources] * np.abs(self._factors)
        return float(np.max(np.abs(true * self._factors + self._offsets - applied) / allowed))
