"""Iterated coupling by fixed-point iteration."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.interface import Interface
from mbsfmu.cosim.coupling.sweeps import OF_ITERATIONS, START, Algorithm, Settings, predicted
from mbsfmu.cosim.fmus.fmu_instance import Floats

_FIRST_RELAXATION = 1.0
_RELAXATION_RANGE = (0.05, 2.0)


class FixedPoint(Algorithm):
    """Relaxed sweeps until interface values converge.

    What each sweep changes is taken over with a factor ω, given or found by Aitken's rule
    ω ← −ω rᵀ(r' − r)/|r' − r|² from the last two residuals (Küttler and Wall 2008, "Fixed-point fluid–structure
    interaction solvers with dynamic relaxation"), in scaled residuals and kept from one step to the next.
    """

    CHANGES = (*Algorithm.CHANGES, "_interface", "_relaxation")
    iterates = True
    options: ClassVar[tuple[str, ...]] = ("order", *OF_ITERATIONS, "relaxation")

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        self._interface = Interface(exchange, settings.order)
        self._relaxation = _FIRST_RELAXATION if settings.relaxation == "aitken" else float(settings.relaxation)

    def _advance(self, history: OutputHistory, time: float, step: float) -> Floats:
        interface, columns = self._interface, self._interface.columns
        trial = predicted(history, step)
        self.exchange.save(START, time)
        relaxation, last = self._relaxation, None
        residual = scales = np.ones(0)
        for iteration in range(self.settings.maximum_iterations):
            if iteration:
                self._return()
            polynomials = self._complete(history.interpolate(step, trial), time, step)
            found = self._in_turn(history, polynomials.copy(), time, step)
            residual = found[columns] - trial[columns]
            scales = interface.scales(found[columns])
            scaled = residual / scales
            if not len(columns) or np.max(np.abs(scaled)) <= self.settings.iteration_tolerance:
                interface.take(found)
                self._keep(relaxation)
                return found.copy()
            if last is not None and self.settings.relaxation == "aitken":
                change = scaled - last
                squared = float(change @ change)
                if squared > 0.0:
                    relaxation *= -float(last @ change) / squared
                relaxation = float(np.clip(relaxation, *_RELAXATION_RANGE))
            last = scaled
            trial[columns] += relaxation * residual
        raise interface.failure(time, residual, scales, self.settings.maximum_iterations)

    def _keep(self, relaxation: float) -> None:
        self._relaxation = relaxation
