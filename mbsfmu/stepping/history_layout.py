"""Storage of a rule's history as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.rules.rule import Array, FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.tracing.symbols import expression, symbolic_array, symbols


@dataclass(frozen=True)
class RuleHistory:
    """History in the form of a rule: previous step, earlier rates of positions, first-order variables and integrals."""

    before: Array
    motions: Sequence[Array] = ()
    quantities: Sequence[Array] = ()
    integrals: Sequence[Array] = ()
    velocities: int = 0

    def filled(self, quantity: FirstOrderValues) -> FirstOrderValues:
        """Return variables with their rates in place of a missing history."""
        history = [np.where(self.before > 0.0, each, quantity.rate) for each in quantity.history]
        return quantity._replace(history=history)

    def filled_motion(self, motion: PositionValues) -> PositionValues:
        """Return positions with their rates in place of a missing history."""
        rates = [motion.velocity] * self.velocities
        rates += [motion.acceleration] * (len(motion.history) - self.velocities)
        history = [np.where(self.before > 0.0, *each) for each in zip(motion.history, rates, strict=True)]
        return motion._replace(history=history)


@dataclass(frozen=True)
class HistoryLayout:
    """Layout of a rule's history: the previous step, then rates of all variables, number by number.

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
        """Number of stored rates of each kind of variable, and number of variables."""
        one = self.rule.remembered
        return [(sum(self.rule.remembered_motion), self.motions), (one, self.quantities), (one, self.integrals)]

    @property
    def size(self) -> int:
        """Number of values; zero for a rule without history."""
        remembers = self.rule.remembered or any(self.rule.remembered_motion)
        return 1 + sum(rates * count for rates, count in self.blocks) if remembers else 0

    def of_step(self, motions: int) -> HistoryLayout:
        """Return the layout for a step with a number of positions, without integrals."""
        return replace(self, motions=motions, integrals=0)

    def symbolic(self, vector: ca.SX) -> RuleHistory:
        """Return a symbolic vector of the history in the form of a rule."""
        if not self.size:
            return RuleHistory(np.zeros(()))
        numbers = symbolic_array(vector)
        parts, first = [], 1
        for rates, count in self.blocks:
            parts.append([numbers[first + k * count : first + (k + 1) * count] for k in range(rates)])
            first += rates * count
        motions, quantities, integrals = parts
        return RuleHistory(numbers[0], motions, quantities, integrals, self.rule.remembered_motion[0])


def derivatives(rule: Rule, step: Step) -> list[ca.SX]:
    """Return the derivatives of ż and z̈ with respect to z, and of ẋ with respect to x, at the end of a step.

    Raises
    ------
    InputError
        When they are not constant.
    """
    vector, (end, _), (motion, quantity) = _of_one(rule)
    made = (*rule.motion(end.position, motion, step), rule.rate(end.position, quantity, step))
    result = [ca.jacobian(expression(rate), vector[0]) for rate in made]
    if any(ca.depends_on(derivative, vector) for derivative in result):
        raise InputError(f"the rates of the rule '{rule.name}' are not linear in the values at the end of a step")
    return result


def fingerprint(rule: Rule) -> str:
    """Return the rule's equations as a text, because users may change a rule under its name."""
    vector, (end, end_quantity), (motion, quantity) = _of_one(rule)
    sizes, each = symbols("step", 2)
    step = Step(each[:1], each[1:])
    made = [*rule.motion(end.position, motion, step), rule.rate(end.position, quantity, step)]
    made += [*rule.motion_history(end, motion, step), *rule.history(end_quantity, quantity, step)]
    return ca.Function("rule", [vector, sizes], [*map(expression, made)]).serialize()


def _of_one(
    rule: Rule,
) -> tuple[ca.SX, tuple[PositionValues, FirstOrderValues], tuple[PositionValues, FirstOrderValues]]:
    """Return symbols, the position at the end first, and ends and beginnings of one motion and one quantity of them."""
    motions = sum(rule.remembered_motion)
    vector, each = symbols("one", 6 + max(motions, rule.remembered))
    (*end, value, rate, acceleration), history = (each[k : k + 1] for k in range(6)), [*each[6:, np.newaxis]]
    beginning = (
        PositionValues(value, rate, acceleration, history[:motions]),
        FirstOrderValues(value, rate, history[: rule.remembered]),
    )
    return vector, (PositionValues(*end), FirstOrderValues(*end[:2])), beginning
