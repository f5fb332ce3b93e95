"""Divide and conquer with accelerations [Featherstone1999]; loops by generalized inverses, as the papers' reference."""

from __future__ import annotations

from typing import ClassVar

import casadi as ca

from mbsfmu.formulations.first_order import FirstOrder
from mbsfmu.formulations.formulation import TRAPEZOIDAL, Tolerances
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.rules.rule import Rule


class Dca(FirstOrder):
    """Accelerations from an assembly of the whole mechanism; y = (z, ż, x).

    Loops are closed in their accelerations only: positions drift.

    Parameters
    ----------
    functions, tolerances, rule
        As for every formulation.
    stabilisation
        Baumgarte's rate a in 1/s, of Φ̈ + 2 a Φ̇ + a² Φ = 0; 0 for none.
    """

    name: ClassVar[str] = "dca"
    moving: ClassVar[str] = "velocities"
    quantities: ClassVar[tuple[tuple[str, str], ...]] = (
        ("coordinates", "velocities"),
        ("velocities", "accelerations"),
        ("states", "rates"),
    )

    def __init__(
        self,
        functions: SystemFunctions,
        tolerances: Tolerances,
        rule: Rule = TRAPEZOIDAL,
        *,
        stabilisation: float = 0.0,
    ) -> None:
        super().__init__(functions, tolerances, rule)
        self._stabilisation = stabilisation

    def _kinetics(self) -> tuple[ca.SX, ca.SX]:
        return self.functions.symbol("velocities"), self.dynamics[0]

    def _dynamics(self) -> tuple[ca.SX, ca.SX]:
        return self.functions.expressions.forward_dynamics(self._stabilisation)
