"""History of a rule from step to step; integrals are variables on which nothing depends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.rules.rule import Array, FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.stepping.history_layout import HistoryLayout, derivatives
from mbsfmu.stepping.state import State
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import MOTION
from mbsfmu.tracing.symbols import expression, symbolic_array
from mbsfmu.tracing.workspace import Floats, TracedFunction

BEGUN = "begun_"
"""Prefix of the parts with values at the start of the step."""
_INTEGRALS = ("integrals", "integral_rates")


class StepHistory:
    """History of a state for its rule, and its integrals.

    All coordinates have a history, even if not unknowns of a step, from their values at the end of the step: after
    projections, from the projected velocities and accelerations.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.
    rule
        The rule.
    motion
        Whether positions are taken with their accelerations.
    quantities
        Names of the parts of first order with those of their rates.
    """

    def __init__(
        self, functions: SystemFunctions, rule: Rule, *, motion: bool, quantities: Sequence[tuple[str, str]]
    ) -> None:
        self._functions = functions
        self._rule = rule
        self._motion = motion
        self._quantities = tuple(quantities)
        motions, count = self._size("coordinates") if motion else 0, sum(self._size(name) for name, _ in quantities)
        self.layout = HistoryLayout(rule, motions, count, self._size("integrals"))
        functions.add_part("history", self.layout.size)
        for name in {*MOTION, *(name for pair in (*quantities, _INTEGRALS) for name in pair), "history"}:
            functions.add_part(BEGUN + name, self._size(name))

    def _size(self, name: str) -> int:
        return self._functions.symbol(name).numel()

    @cached_property
    def carried(self) -> TracedFunction:
        """Integrals at the end of a step, shape (i,), and history there, shape (`layout.size`,).

        They depend on both ends of the step.
        """

        def made() -> list[ca.SX]:
            rule, given = self._rule, self.layout.symbolic(self._functions.symbol(BEGUN + "history"))
            step = Step(self._array("step")[0], given.before)
            begin, end = self._quantity(BEGUN, self._quantities), self._quantity("", self._quantities)
            begin = given.filled(begin._replace(history=given.quantities))
            remembered = [*rule.history(end, begin, step)]
            if self._motion:
                before, after = self._moved(BEGUN)._replace(history=given.motions), self._moved("")
                remembered = [*rule.motion_history(after, given.filled_motion(before), step), *remembered]
            integrals = given.filled(self._quantity(BEGUN, [_INTEGRALS])._replace(history=given.integrals))
            rates = self._array("integral_rates")
            slope = derivatives(rule, step)[-1]
            values = integrals.value + (rates - rule.rate(integrals.value, integrals, step)) / symbolic_array(slope)
            remembered += rule.history(FirstOrderValues(values, rates), integrals, step)
            numbers = [expression(step.size), *map(expression, remembered)] if self.layout.size else []
            return [expression(values), ca.vertcat(*numbers)]

        return self._functions.kept("carried", made)

    @cached_property
    def jumped(self) -> TracedFunction:
        """History after a discontinuity of rates, shape (`layout.size`,): it changes by the same amount."""

        def made() -> list[ca.SX]:
            velocities, accelerations = self._rule.remembered_motion if self._motion else (0, 0)
            rates = [["velocities"]] * velocities + [["accelerations"]] * accelerations
            rates += [[rate for _, rate in self._quantities]] * self._rule.remembered
            rates += [[_INTEGRALS[1]]] * self._rule.remembered
            jumps = [self._array(name) - self._array(BEGUN + name) for names in rates for name in names]
            before = self._functions.symbol(BEGUN + "history")
            every = ca.vertcat(ca.SX.zeros(min(1, self.layout.size)), *map(expression, jumps))
            return [before + every]

        return self._functions.kept("jumped", made)

    def _array(self, name: str) -> Array:
        return symbolic_array(self._functions.symbol(name))

    def _quantity(self, prefix: str, pairs: Sequence[tuple[str, str]]) -> FirstOrderValues:
        parts = [(self._array(prefix + value), self._array(prefix + rate)) for value, rate in pairs]
        return FirstOrderValues(
            np.concatenate([value for value, _ in parts]), np.concatenate([rate for _, rate in parts])
        )

    def _moved(self, prefix: str) -> PositionValues:
        position, velocity, acceleration = (self._array(prefix + name) for name in MOTION)
        return PositionValues(position, velocity, acceleration)

    def _begin(self, function: TracedFunction, state: State) -> None:
        """Write the values at the start of a step for a function."""
        for part in function.reads:
            if part.startswith(BEGUN):
                self._functions.write(part, getattr(state, part.removeprefix(BEGUN)))

    def end(self, before: State, integral_rates: Floats) -> tuple[Floats, Floats]:
        """Return the integrals and the history at the end of a step; the functions hold the other values."""
        self._begin(self.carried, before)
        self._functions.write("integral_rates", integral_rates)
        integrals, history = self.carried()
        return integrals.copy(), history.copy()

    def of(self, history: Floats, coordinates: ArrayLike) -> Floats:
        """Return the history of some coordinates and of all first-order variables, without integrals."""
        if not self.layout.size:
            return history
        (rates, count), (one, others), _ = self.layout.blocks
        motions = history[1 : 1 + rates * count].reshape(rates, count)[:, np.asarray(coordinates, dtype=int)]
        quantities = history[1 + rates * count : 1 + rates * count + one * others]
        return np.concatenate([history[:1], motions.ravel(), quantities])

    def after_jump(self, before: State, after: State) -> Floats:
        """Return the history after a discontinuity of rates from one state to another."""
        if not self.layout.size:
            return before.history
        self._begin(self.jumped, before)
        for part in self.jumped.reads:
            if not part.startswith(BEGUN):
                self._functions.write(part, getattr(after, part))
        return self.jumped()[0].copy()
