"""Formulations in all coordinates as ordinary differential equations: y = (z, w, x, integrals)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from mbsfmu.formulations.explicit_form import ExplicitForm
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


class CoordinateForm(ExplicitForm):
    """The equations for explicit solvers.

    Parameters
    ----------
    formulation, state
        The formulation and where it begins.
    moving
        The part w of a state: `velocities` or `momenta`.
    """

    def __init__(self, formulation: Formulation, state: State, moving: str) -> None:
        super().__init__(state)
        self._made_consistent = formulation.made_consistent
        self._with_loops, self._check_loops = formulation.with_loops, formulation.check_loops
        self._functions = formulation.functions
        self._moving = moving
        n, k = len(state.coordinates), len(state.states)
        self._bounds = [n, 2 * n, 2 * n + k]

    @property
    def start(self) -> Floats:
        """Return (z, w, x, integrals)."""
        state = self.state
        return np.concatenate([state.coordinates, getattr(state, self._moving), state.states, state.integrals])

    @property
    def end_rates(self) -> Floats:
        """Return (ż, ẇ, ẋ, rates of the integrals) of the last accepted state."""
        state = self.state
        moving = state.momentum_rates if self._moving == "momenta" else state.accelerations
        return np.concatenate([state.velocities, moving, state.rates, state.integral_rates])

    def load(self, values: Floats, inputs: Floats) -> Floats:
        """Write y and the inputs into the functions' arrays; return the integrals."""
        functions = self._functions
        parts = functions.coordinates, getattr(functions, self._moving), functions.states, functions.integrals
        for part, value in zip(parts, np.split(values, self._bounds), strict=True):
            part[:] = value
        functions.inputs[:] = inputs
        functions.references[:] = self.state.references
        functions.active[:] = self.state.active
        functions.loop_iterates[:] = self.state.loop_iterates
        return functions.integrals.copy()

    @abstractmethod
    def moved(self, integrals: Floats) -> State:
        """Return the present state of the functions."""

    def state_at(self, values: Floats, inputs: Floats) -> State:
        """Return the whole state for a y."""
        return replace(
            self.moved(self.load(values, inputs)), references=self.state.references, active=self.state.active
        )

    def with_loops(self, state: State) -> State:
        """Return a state with the solutions of algebraic loops."""
        return self._with_loops(state)

    def check_loops(self) -> None:
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers."""
        self._check_loops()

    def accept(self, state: State) -> State:
        """Accept the end of a step; return the state to continue from."""
        self.state = state
        return self._made_consistent(self.state)
