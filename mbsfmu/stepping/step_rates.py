"""Rates at the end of a step by a rule, with positions and states as unknowns."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbsfmu.rules.rule import FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.stepping.state import HistoryLayout, derivatives
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.symbols import expression, symbolic_array
from mbsfmu.tracing.workspace import Floats


class StepRates:
    """Rates at the end of a step from the unknowns there, and where the step begins.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.
    rule
        How rates follow.
    coordinates, others
        Numbers c of positions among the unknowns, which come first, and k of quantities of first order.

    Attributes
    ----------
    unknowns
        Positions and other quantities at the end of the step, shape (c + k,).
    coordinates, velocities, accelerations
        Expressions of the positions and their rates, each of shape (c,).
    values, rates
        Expressions of the other quantities and their rates, each of shape (k,).
    velocity_by_position, acceleration_by_position, rate_by_value
        How much ż and z̈ change with z at the end, and ẋ with x: 2/h, 4/h² and 2/h by the trapezoidal rule.
    """

    def __init__(self, functions: SystemFunctions, rule: Rule, coordinates: int, others: int) -> None:
        size = coordinates + others
        layout = HistoryLayout(rule, coordinates, others)
        unknowns, self.unknowns = functions.add_part("unknowns", size)
        begin, self._begin = functions.add_part("begin", size)
        begin_rates, self._begin_rates = functions.add_part("begin_rates", size)
        begin_accelerations, self._begin_accelerations = functions.add_part("begin_accelerations", coordinates)
        begin_history, self._begin_history = functions.add_part("begin_history", layout.size)
        size_of_step, self._step = functions.add_part("step", 1)
        positions, others_begin = np.split(symbolic_array(begin), [coordinates])
        velocities, rates = np.split(symbolic_array(begin_rates), [coordinates])
        given = layout.symbolic(begin_history)
        step = Step(symbolic_array(size_of_step)[0], given.before)
        motion = PositionValues(positions, velocities, symbolic_array(begin_accelerations), given.motions)
        quantity = FirstOrderValues(others_begin, rates, given.quantities)
        ends = np.split(symbolic_array(unknowns), [coordinates])
        self.coordinates, self.values = map(expression, ends)
        made = rule.motion(ends[0], given.filled_motion(motion), step)
        self.velocities, self.accelerations = map(expression, made)
        self.rates = expression(rule.rate(ends[1], given.filled(quantity), step))
        self.velocity_by_position, self.acceleration_by_position, self.rate_by_value = derivatives(rule, step)

    def begin(
        self, values: Sequence[Floats], rates: Sequence[Floats], accelerations: Floats, history: Floats, step: float
    ) -> None:
        """Set the start of the step: values of all unknowns, their rates, z̈, the history; and the step size."""
        np.concatenate(values, out=self._begin)
        np.concatenate(rates, out=self._begin_rates)
        self._begin_accelerations[:] = accelerations
        self._begin_history[:] = history
        self._step[0] = step

    def square(self, balance: ca.SX, by_states: ca.SX, rates: ca.SX, rates_by_states: ca.SX) -> ca.SX:
        """Return the Jacobian of (balance, ẋ − f) from those of balance and f by coordinates and states."""
        own = self.rate_by_value * ca.SX.eye(rates_by_states.shape[0]) - rates_by_states
        return ca.vertcat(ca.horzcat(balance, by_states), ca.horzcat(-rates, own))
