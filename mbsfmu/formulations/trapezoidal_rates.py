"""The trapezoidal rule with positions and states as primary unknowns [Jaiswal2021, eqs. 33 and 34]."""

from __future__ import annotations

import casadi as ca
import numpy as np

from mbsfmu.formulations.functions import Floats, SystemFunctions


class TrapezoidalRates:
    """Rates at the end of a step from the unknowns there, and where the step begins.

    Written with differences, which round off less than the printed sums:
    ż = 2/h (z − z_k) − ż_k,  z̈ = 2/h (ż − ż_k) − z̈_k,  ẋ = 2/h (x − x_k) − ẋ_k.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.
    coordinates
        Number c of coordinates among the unknowns.

    Attributes
    ----------
    unknowns
        Coordinates and states x at the end of the step, shape (c + k,).
    step
        h in s, shape (1,).
    velocities, accelerations, states, rates
        Expressions of the coordinates' rates, of x and of ẋ.
    """

    def __init__(self, functions: SystemFunctions, coordinates: int) -> None:
        size = coordinates + len(functions.states)
        unknowns, self.unknowns = functions.add_part("unknowns", size)
        begin, self._begin = functions.add_part("begin", size)
        begin_rates, self._begin_rates = functions.add_part("begin_rates", size)
        begin_accelerations, self._begin_accelerations = functions.add_part("begin_accelerations", coordinates)
        step, self.step = functions.add_part("step", 1)
        self.first = 2.0 / step
        rates = self.first * (unknowns - begin) - begin_rates
        parts = [0, coordinates, size]
        self.coordinates, self.states = ca.vertsplit(unknowns, parts)
        self.velocities, self.rates = ca.vertsplit(rates, parts)
        before = ca.vertsplit(begin_rates, parts)[0]
        self.accelerations = self.first * (self.velocities - before) - begin_accelerations
        self.symbol = step

    def begin(
        self, coordinates: Floats, velocities: Floats, accelerations: Floats, states: Floats, rates: Floats
    ) -> None:
        """Set where the step begins."""
        np.concatenate([coordinates, states], out=self._begin)
        np.concatenate([velocities, rates], out=self._begin_rates)
        self._begin_accelerations[:] = accelerations

    def square(self, balance: ca.SX, by_states: ca.SX, rates: ca.SX, rates_by_states: ca.SX) -> ca.SX:
        """Return the derivative of (balance, ẋ − f) from those of balance and f by coordinates and states."""
        own = self.first * ca.SX.eye(rates_by_states.shape[0]) - rates_by_states
        return ca.vertcat(ca.horzcat(balance, by_states), ca.horzcat(-rates, own))
