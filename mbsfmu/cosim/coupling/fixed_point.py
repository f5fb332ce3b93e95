"""Iterated coupling by fixed-point iteration."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.interface_inverse import inner_product
from mbsfmu.cosim.coupling.iterated import Iterated
from mbsfmu.cosim.coupling.sweeps import AITKEN, OF_ITERATIONS, Settings
from mbsfmu.cosim.fmus.fmu_instance import Floats

_FIRST_RELAXATION = 1.0
_RELAXATION_RANGE = (0.05, 2.0)


class FixedPoint(Iterated):
    """Relaxed sweeps until interface values converge.

    What each sweep changes is taken over with a factor ω, given or found by Aitken's rule
    ω ← −ω rᵀ(r' − r)/|r' − r|² from the last two residuals (Küttler and Wall 2008, "Fixed-point fluid–structure
    interaction solvers with dynamic relaxation"), in scaled residuals and kept from one step to the next.
    """

    CHANGES = (*Iterated.CHANGES, "_kept_relaxation")
    in_turn = True
    options: ClassVar[tuple[str, ...]] = ("order", *OF_ITERATIONS, "relaxation")

    def __init__(self, exchange: CouplingData, settings: Settings) -> None:
        super().__init__(exchange, settings)
        table = self.table
        table.adapts = settings.relaxation == AITKEN
        table.kept_relaxation = _FIRST_RELAXATION if table.adapts else float(settings.relaxation)
        table.least_relaxation, table.most_relaxation = _RELAXATION_RANGE

    @property
    def _kept_relaxation(self) -> float:
        """Relaxation factor that the next step begins with."""
        return self.table.kept_relaxation

    @_kept_relaxation.setter
    def _kept_relaxation(self, value: float) -> None:
        self.table.kept_relaxation = value

    def _sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        return self._in_turn(history, polynomials.copy(), time, step)

    def _begin(self) -> None:
        self.table.relaxation = self.table.kept_relaxation

    def _correction(self, iteration: int, size: float, history: OutputHistory, time: float, step: float) -> Floats:
        del size, history, time, step
        table = self.table
        scaled = self.residual / self.scales
        if iteration and table.adapts:
            change = scaled - self.last
            squared = inner_product(change, change)
            if squared > 0.0:
                table.relaxation *= -inner_product(self.last, change) / squared
            table.relaxation = float(np.clip(table.relaxation, *_RELAXATION_RANGE))
        self.last[:] = scaled
        return table.relaxation * self.residual

    def _converged(self) -> None:
        self.table.kept_relaxation = self.table.relaxation
