"""The complete state of a running system, with the history of its rule; a run continues from it to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbsfmu.base.errors import InputError
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.rules.rule import Array, FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import MOTION
from mbsfmu.tracing.symbols import expression, symbolic_array, symbols
from mbsfmu.tracing.workspace import Floats, TracedFunction


@dataclass(frozen=True)
class State:
    """State at the end of a step.

    Attributes
    ----------
    coordinates, velocities, accelerations
        z, ż and z̈, each of shape (n,).
    multipliers
        λ, shape (m,); also where the next iteration starts from.
    states, rates
        x and ẋ, each of shape (k,).
    integrals, integral_rates
        Each of shape (i,).
    momenta, momentum_rates
        p and ṗ, each of shape (n,); zero where the formulation has none.
    references
        Orientations from which joints that turn freely turn, shape (4 r,).
    active
        Ones for the loop equations that count, zeros for those that follow from them, shape (m,); ones where the
        formulation does not choose.
    history
        What the rule of integration remembers of the steps before; zeros where that is nothing. See `StepHistory`.
    loop_iterates
        Solutions of algebraic loops where the last step ended, from which the next ones are found; shape (g,).
    suggested_step
        What a solver with step control tries next in s, shape (1,); zero where it does not know.
    iteration_matrix, iteration_matrix_use
        What is kept of the iteration matrix that the next implicit step begins with, and what it has been used for;
        zeros where none is. See `ReusedJacobian`.
    unconverged
        Where iterations are limited: by how many times its tolerance the solution of the last step was still off, zero
        where it converged, and the largest until now, shape (2,). Empty elsewhere.
    ahead
        What is known past the present, as long as nothing is set: see `mbsfmu.integration.solver`. Empty but
        for solvers that step past where they are asked to come.
    error, error_history, error_record
        Of runs whose error is estimated: that of (z, ż, z̈, x, ẋ), the rates of earlier steps, and the largest errors
        until now; see `mbsfmu.integration.error_transport` and `error_record`. Empty elsewhere.
    partition
        Choice of coordinates, None where the formulation needs none.
    """

    coordinates: Floats
    velocities: Floats
    accelerations: Floats
    multipliers: Floats
    states: Floats
    rates: Floats
    integrals: Floats
    integral_rates: Floats
    momenta: Floats
    momentum_rates: Floats
    references: Floats
    active: Floats
    history: Floats
    loop_iterates: Floats
    suggested_step: Floats
    iteration_matrix: Floats
    iteration_matrix_use: Floats
    unconverged: Floats
    ahead: Floats
    error: Floats
    error_history: Floats
    error_record: Floats
    partition: Partition | None = None

    def goes_on_from(self, other: State) -> bool:
        """Return whether the motion has the same chart as another state: the same coordinates and loop equations."""
        return self.partition is other.partition and np.array_equal(self.active, other.active)

    @classmethod
    def at_start(cls, functions: SystemFunctions, integrals: Floats) -> State:
        """Return the state of a run that starts from the present values: all loop equations active, zero rates."""
        return replace(
            cls.of(functions, integrals, np.zeros_like(integrals)),
            accelerations=np.zeros_like(functions.coordinates),
            multipliers=np.zeros(len(functions.rows)),
            rates=np.zeros_like(functions.states),
            active=np.ones(len(functions.rows)),
        )

    @classmethod
    def of(cls, functions: SystemFunctions, integrals: Floats, integral_rates: Floats) -> State:
        """Return the present state, without momenta and history."""
        nothing = np.zeros_like(functions.coordinates)
        return cls(
            functions.coordinates.copy(),
            functions.velocities.copy(),
            functions.accelerations.copy(),
            functions.multipliers.copy(),
            functions.states.copy(),
            functions.rates.copy(),
            integrals,
            integral_rates,
            nothing,
            nothing,
            functions.references.copy(),
            functions.active.copy(),
            np.zeros_like(functions.history),
            functions.loop_iterates.copy(),
            np.zeros_like(functions.suggested_step),
            functions.iteration_matrix,
            functions.iteration_matrix_use,
            functions.unconverged,
            functions.ahead,
            functions.error,
            functions.error_history,
            functions.error_record,
        )

    @property
    def touched(self) -> Self:
        """The state after a variable was set: interpolants beyond it become invalid."""
        return replace(self, ahead=np.zeros_like(self.ahead)) if len(self.ahead) else self

    @property
    def turned(self) -> Self:
        """The state after an internal discontinuity: as `touched`, without a set variable."""
        kept = self.touched
        kept.ahead[:1] = self.ahead[:1]
        return kept

    def with_error(self, error: Floats, history: Floats, record: Floats) -> Self:
        """Return the state with its error estimate."""
        return replace(self, error=error, error_history=history, error_record=record)

    def lost(self, loss: int) -> Floats:
        """Return the error record that marks the error as unknown, with the reason."""
        record = self.error_record.copy()
        record[-1] = loss
        return record

    @property
    def forgetful(self) -> Self:
        """The state without the history of earlier steps."""
        nothing = {
            name: np.zeros_like(getattr(self, name)) for name in ("history", "iteration_matrix", "iteration_matrix_use")
        }
        return replace(self, **nothing)


ARRAYS = {
    "coordinates": "coordinates",
    "velocities": "coordinates",
    "accelerations": "coordinates",
    "multipliers": "rows",
    "states": "states",
    "rates": "states",
    "integrals": "integrals",
    "integral_rates": "integrals",
    "momenta": "coordinates",
    "momentum_rates": "coordinates",
    "references": "references",
    "active": "rows",
    "history": "history",
    "loop_iterates": "loop_iterates",
    "suggested_step": "suggested_step",
    "iteration_matrix": "iteration_matrix",
    "iteration_matrix_use": "iteration_matrix_use",
    "unconverged": "unconverged",
    "ahead": "ahead",
    "error": "error",
    "error_history": "error_history",
    "error_record": "error_record",
}
"""Array fields in the order in which they are saved, each with the function array of the same length."""


def array_sizes(functions: SystemFunctions) -> tuple[int, ...]:
    """Return the sizes of these arrays for a system."""
    return tuple(len(getattr(functions, like)) for like in ARRAYS.values())


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
