"""Hamiltonian divide and conquer: joint coordinates and canonical momenta [Chadaj2017]."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import casadi as ca

from mbsfmu.formulations.first_order import FirstOrder
from mbsfmu.formulations.functions import TracedFunction
from mbsfmu.formulations.state import State


class Hdca(FirstOrder):
    """Velocities and constraint impulses from an assembly of momenta; y = (z, p, x).

    Loops are closed in their velocities. Accelerations and constraint forces come from a second assembly, of
    accelerations, which the integration itself does without [Chadaj2017, sect. 3.4].
    """

    name: ClassVar[str] = "hdca"
    moving: ClassVar[str] = "momenta"

    def _kinetics(self) -> tuple[ca.SX, ca.SX]:
        """Return ż [eq. 40], and ṗ [eq. 77] with ż and σ as they follow from z and p."""
        given = self.functions.expressions
        velocities, impulses = given.impulsive_velocities
        (rates,) = given.at([given.momentum_rates], {"velocities": velocities, "multipliers": impulses})
        return velocities, rates

    def _dynamics(self) -> tuple[ca.SX, ca.SX]:
        accelerations, multipliers = self._at_velocities(*self.functions.expressions.forward_dynamics(0.0))
        return accelerations, multipliers

    @cached_property
    def initial_momenta(self) -> TracedFunction:
        """P = M ż, the impulses being zero [eq. 6]; shape (n,)."""
        given = self.functions.expressions
        return self.functions.traced("initial_momenta", [given.initial_momenta], into=["momenta"])

    def prepared(self, state: State) -> State:
        """Return the state with the momenta that fit its velocities."""
        state = super().prepared(state)
        self.load(state)
        self.initial_momenta()
        return replace(state, momenta=self.functions.momenta.copy())
