"""What a rule remembers from step to step, and how it goes on: integrals are quantities that nothing depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.errors import InputError
from mbsfmu.formulations.expressions import MOTION
from mbsfmu.formulations.functions import Floats, SystemFunctions, TracedFunction
from mbsfmu.formulations.state import State
from mbsfmu.rules.rule import Array, Motion, Quantity, Rule, Step
from mbsfmu.tracing import expression, symbolic_array, symbols

INTEGRALS = ("integrals", "integral_rates")


@dataclass(frozen=True)
class History:
    """What is remembered, as a rule takes it: the step before, earlier rates of positions, quantities and integrals."""

    before: Array
    motions: Sequence[Array] = ()
    quantities: Sequence[Array] = ()
    integrals: Sequence[Array] = ()
    velocities: int = 0

    def filled(self, quantity: Quantity) -> Quantity:
        """Return quantities with their rates in place of earlier ones where nothing is remembered."""
        history = [np.where(self.before > 0.0, each, quantity.rate) for each in quantity.history]
        return quantity._replace(history=history)

    def filled_motion(self, motion: Motion) -> Motion:
        """Return positions with their rates in place of earlier ones where nothing is remembered."""
        rates = [motion.velocity] * self.velocities
        rates += [motion.acceleration] * (len(motion.history) - self.velocities)
        history = [np.where(self.before > 0.0, *each) for each in zip(motion.history, rates, strict=True)]
        return motion._replace(history=history)


@dataclass(frozen=True)
class HistoryLayout:
    """Where the numbers stand that a rule remembers: the step before, then rates of all quantities, number by number.

    Attributes
    ----------
    rule
        The rule.
    motions, quantities, integrals
        How many positions, quantities of first order and integrals there are.
    """

    rule: Rule
    motions: int
    quantities: int
    integrals: int = 0

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """How many rates are remembered of each kind of quantity, and how many quantities there are."""
        one = self.rule.remembered
        return [(sum(self.rule.remembered_motion), self.motions), (one, self.quantities), (one, self.integrals)]

    @property
    def size(self) -> int:
        """How many numbers there are; zero for a rule that remembers nothing."""
        remembers = self.rule.remembered or any(self.rule.remembered_motion)
        return 1 + sum(rates * count for rates, count in self.blocks) if remembers else 0

    def symbolic(self, vector: ca.SX) -> History:
        """Return a vector of these numbers as a rule takes it."""
        if not self.size:
            return History(np.zeros(()))
        numbers = symbolic_array(vector)
        parts, first = [], 1
        for rates, count in self.blocks:
            parts.append([numbers[first + k * count : first + (k + 1) * count] for k in range(rates)])
            first += rates * count
        motions, quantities, integrals = parts
        return History(numbers[0], motions, quantities, integrals, self.rule.remembered_motion[0])


def derivatives(rule: Rule, step: Step) -> list[ca.SX]:
    """Return the derivatives of ż and z̈ by z, and of ẋ by x, at the end of a step.

    Raises
    ------
    InputError
        When they are not constant.
    """
    vector, each = symbols("quantity", 4 + sum(rule.remembered_motion))
    end, position, velocity, acceleration, *history = (each[k : k + 1] for k in range(len(each)))
    made = [*rule.motion(end, Motion(position, velocity, acceleration, history), step)]
    made.append(rule.rate(end, Quantity(position, velocity, history[: rule.remembered]), step))
    result = [ca.jacobian(expression(rate), vector[0]) for rate in made]
    if any(ca.depends_on(derivative, vector) for derivative in result):
        raise InputError(f"the rates of the rule '{rule.name}' are not linear in the values at the end of a step")
    return result


class StepHistory:
    """What the rule remembers of a state, and its integrals.

    All coordinates are remembered, whichever are unknowns of a step, as they are at its end: where velocities and
    accelerations are projected, those that the projections lead to.

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
        names = {*MOTION, *(name for pair in (*quantities, INTEGRALS) for name in pair)}
        self._begun = {f"begun_{name}": functions.add_part(f"begun_{name}", self._size(name)) for name in names}
        motions = self._size("coordinates") if motion else 0
        self.layout = HistoryLayout(
            rule, motions, sum(self._size(each) for each, _ in quantities), self._size("integrals")
        )
        self._symbols, functions.history = functions.add_part("history", self.layout.size)

    def _size(self, name: str) -> int:
        return self._functions.symbol(name).numel()

    @cached_property
    def carried(self) -> TracedFunction:
        """The integrals at the end of a step, shape (i,), and what is remembered there, shape (`layout.size`,).

        It depends on where the step began, which parts called `begun_…` tell, and on where it ended.
        """
        rule, given = self._rule, self.layout.symbolic(self._symbols)
        step = Step(symbolic_array(self._functions.symbol("step"))[0], given.before)
        begin, end = self._quantity("begun_", self._quantities), self._quantity("", self._quantities)
        begin = given.filled(begin._replace(history=given.quantities))
        remembered = [*rule.history(end, begin, step)]
        if self._motion:
            before, after = self._moved("begun_")._replace(history=given.motions), self._moved("")
            remembered = [*rule.motion_history(after, given.filled_motion(before), step), *remembered]
        integrals = given.filled(self._quantity("begun_", [INTEGRALS])._replace(history=given.integrals))
        rates = self._array("integral_rates")
        slope = derivatives(rule, step)[-1]
        values = integrals.value + (rates - rule.rate(integrals.value, integrals, step)) / symbolic_array(slope)
        remembered += rule.history(Quantity(values, rates), integrals, step)
        numbers = [expression(step.size), *map(expression, remembered)] if self.layout.size else []
        return self._functions.traced("carried", [expression(values), ca.vertcat(*numbers)])

    def _array(self, name: str) -> Array:
        return symbolic_array(self._functions.symbol(name))

    def _quantity(self, prefix: str, pairs: Sequence[tuple[str, str]]) -> Quantity:
        parts = [(self._array(prefix + value), self._array(prefix + rate)) for value, rate in pairs]
        return Quantity(np.concatenate([value for value, _ in parts]), np.concatenate([rate for _, rate in parts]))

    def _moved(self, prefix: str) -> Motion:
        position, velocity, acceleration = (self._array(prefix + name) for name in MOTION)
        return Motion(position, velocity, acceleration)

    def end(self, before: State, integral_rates: Floats) -> tuple[Floats, Floats]:
        """Return the integrals at the end of a step, and what is remembered there; the functions hold the rest."""
        function = self.carried
        self._functions.write("integral_rates", integral_rates)
        self._functions.write("history", before.history)
        for part in function.function.name_in():
            if part in self._begun:
                self._begun[part][1][:] = getattr(before, part.removeprefix("begun_"))
        integrals, history = function()
        return integrals.copy(), history.copy()

    def of(self, history: Floats, coordinates: ArrayLike) -> Floats:
        """Return what is remembered of some coordinates and of all quantities of first order, without integrals."""
        if not self.layout.size:
            return history
        (rates, count), (one, others), _ = self.layout.blocks
        motions = history[1 : 1 + rates * count].reshape(rates, count)[:, np.asarray(coordinates, dtype=int)]
        quantities = history[1 + rates * count : 1 + rates * count + one * others]
        return np.concatenate([history[:1], motions.ravel(), quantities])

    def after_jump(self, before: State, after: State) -> Floats:
        """Return what is remembered where rates jump from one state to another: all that is remembered jumps too."""
        if not self.layout.size:
            return before.history

        def jump(names: Sequence[str]) -> Floats:
            return np.concatenate([getattr(after, name) - getattr(before, name) for name in names])

        velocities, accelerations = self._rule.remembered_motion
        jumps = [np.zeros(1)]
        if self._motion:
            jumps += [np.zeros(velocities * len(after.velocities)), *[jump(["accelerations"])] * accelerations]
        for pairs in (self._quantities, [INTEGRALS]):
            jumps += [jump([rate for _, rate in pairs])] * self._rule.remembered
        return before.history + np.concatenate(jumps)
