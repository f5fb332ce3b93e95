"""Implicit steps in absolute coordinates in kernel loops.

Newton's iteration solves (∂b/∂z + c ∂b/∂ż + c² ∂b/∂z̈) δz + ∂b/∂x δx + Φ_zᵀ δλ = r, where b is M z̈ − Q + Φ_zᵀ λ, with
Φ_z δz − δλ/α = r for the joints. b is a sum over bodies and joints, and is linearized call by call. Multipliers are
unknowns: each is eliminated after the coordinates of the bodies of its joint, with the pivot −1/α minus their
compliance. Springs α Φ_zᵀ Φ_z are not added to masses, so that small masses are not lost.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mbsfmu.formulations.penalty_factors import MOST_STIFFENING, PENALTY, REDUNDANT_STIFFENING
from mbsfmu.formulations.recorded_steps import LinearSolution, first_order, listed
from mbsfmu.modelling.fields import Array
from mbsfmu.rules.rule import FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.stepping.history_layout import HistoryLayout, RuleHistory, derivatives
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.symbols import symbolic_array
from mbsfmu.tracing.tape.elimination import EliminationPath, Following, TapeEquation, changes_of
from mbsfmu.tracing.tape.recording import ONE, ZERO, RecordedArray
from mbsfmu.tracing.workspace import RecordedFunction

_GIVEN = ("unknowns", "begin", "begin_rates", "begin_accelerations", "begin_history", "step")
_WRITTEN = ("coordinates", "velocities", "accelerations", "states", "rates")


class RecordedAugmented:
    """The equations of a step with multipliers as unknowns, in loops.

    Parameters
    ----------
    functions
        Functions of a system in absolute coordinates; they get the parts that follow.
    rule
        How ż, z̈ and ẋ follow from z and x at the end of a step.

    Attributes
    ----------
    end
        Where the step begins, and the unknowns at its end.
    """

    def __init__(self, functions: SystemFunctions, rule: Rule) -> None:
        self._functions = functions
        self._rule = rule
        self.end = StepRates(functions, rule, len(functions.coordinates), len(functions.states))
        self._layout = HistoryLayout(rule, len(functions.coordinates), len(functions.states))
        functions.add_part("right", len(functions.coordinates) + len(functions.states) + len(functions.rows))

    @cached_property
    def residual(self) -> RecordedFunction:
        """(M z̈ − Q + Φ_zᵀ λ, ẋ − f, Φ) at the end of a step; writes z, x, ẋ, ż and z̈."""

        def made(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            ends = self._ended(own)
            moved = given.at(**dict(zip(_WRITTEN[:4], ends[:4], strict=True)))
            return [np.concatenate([moved.constrained_residual, ends[4] - moved.rates, moved.closure]), *ends]

        return self._functions.recorded("augmented_residual", made, _GIVEN, into=_WRITTEN)

    @cached_property
    def landing(self) -> RecordedFunction:
        """Write the same values as `residual`."""
        return self._functions.recorded("augmented_landing", lambda _, own: self._ended(own), _GIVEN, into=_WRITTEN)

    def _ended(self, own: dict[str, Any]) -> list[Any]:
        """Return z, ż, z̈, x and ẋ at the end, by the rule."""
        recorder, n = own["unknowns"].recorder, len(self._functions.coordinates)
        before, motions, quantities = self._remembered(own["begin_history"])
        options = {"rule": self._rule}
        velocities, accelerations, rates = [], [], []
        for index in range(n):
            begin = [own[part][index] for part in _GIVEN[:4]]
            velocity, acceleration = recorder.call(_moved, [*begin, own["step"], before, motions[:, index]], options)
            velocities.append(velocity.places)
            accelerations.append(acceleration.places)
        for index in range(n, n + len(self._functions.states)):
            begin = [own[part][index] for part in _GIVEN[:3]]
            rate = recorder.call(_rate, [*begin, own["step"], before, quantities[:, index - n]], options)
            rates.append(rate.places)
        positions, states = own["unknowns"][:n], own["unknowns"][n:]
        made = [RecordedArray(recorder, _joined(each)) for each in (velocities, accelerations, rates)]
        return [positions, *made[:2], states, made[2]]

    def _remembered(self, history: Any) -> tuple[Any, Any, Any]:
        """Return the previous step, and earlier rates of positions and of states, each of shape (rates, numbers)."""
        (of_motion, n), (of_states, k), _ = self._layout.blocks
        if not self._layout.size:
            return np.zeros(1), np.zeros((0, n)), np.zeros((0, k))
        first = 1 + of_motion * n
        return history[:1], history[1:first].reshape(of_motion, n), history[first:].reshape(of_states, k)

    @cached_property
    def implicit(self) -> LinearSolution:
        """Solve with a step's iteration matrix at the parts that the residual writes, λ, `step` and `begin_history`."""
        names = "step_factors", "step_changes"
        parts, later = ("step", "begin_history"), ("right",)
        return LinearSolution(*self._functions.recorded_in_turn(names, self._solved, parts, later, "factors"))

    def _solved(self, given: RecordedSystem, own: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """Return the indicator of vanishing pivots, and the solution."""
        instant, closing = given.instant, given.loops.multipliers
        n, k = len(self._functions.coordinates), len(self._functions.states)
        history = own["begin_history"]
        recorder = own["step"].recorder
        before = history[:1] if self._layout.size else np.zeros(1)
        by_rate, by_turn, by_value = recorder.call(_slopes, [own["step"], before], {"rule": self._rule})
        by_balance, by_state, by_closing = np.split(-own["right"], [n, n + k])
        following = _following(instant.velocities, by_rate) | _following(instant.accelerations, by_turn)
        rows = zip(listed(given.regular_residual), listed(by_balance), strict=True)
        equations = [TapeEquation([(place, ONE)], bias) for place, bias in rows]
        equations += first_order(given.rates, instant.states, by_value, -by_state)
        (soft,) = listed(recorder.call(_softness, [by_turn, self._largest_inertia(given, recorder)], {}))
        rows = zip(listed(given.closure), listed(closing), listed(by_closing), strict=True)
        equations += [TapeEquation([(gap, ONE), (multiplier, soft)], bias) for gap, multiplier, bias in rows]
        unknowns: Any = np.concatenate([instant.coordinates, instant.states, closing])
        behind = {n + k + row: moved for row, moved in enumerate(given.moved_by_constraints)}
        asked = unknowns.places, listed(unknowns), following, equations
        places, pivots = changes_of(recorder, *asked, [EliminationPath(range(n), behind)])
        return [RecordedArray(recorder, pivots)], [RecordedArray(recorder, places)]

    def _largest_inertia(self, given: RecordedSystem, recorder: Any) -> Any:
        """Return the largest element of the mass matrix, in whose diagonal each body has a block of six by six."""
        bodies = len(self._functions.coordinates) // 6
        units = (np.tile(unit, bodies) for unit in np.eye(6))
        columns = [given.changes([given.residual], [(given.instant.accelerations, unit)])[0] for unit in units]
        largest = np.zeros(1)
        for body in range(bodies):
            largest = recorder.call(_larger, [largest, *(column[6 * body + j] for j, column in enumerate(columns))], {})
        return largest


def _joined(places: list[Any]) -> Any:
    return np.array(places, dtype=np.int64).ravel()


def _following(values: Any, factor: Any) -> dict[int, Following]:
    """Return values, one by one, that change as the first unknowns do by a factor."""
    (by,) = listed(factor)
    return {place: Following(index, by, ZERO) for index, place in enumerate(listed(values))}


def _moved(
    end: Array, position: Array, velocity: Array, acceleration: Array, size: Array, before: Array, history: Array,
    *, rule: Rule,
) -> tuple[Array, Array]:  # fmt: skip
    """Return ż and z̈ at the end of a step by a rule, of one position."""
    given = RuleHistory(before[0], velocities=rule.remembered_motion[0])
    begin = given.filled_motion(PositionValues(position, velocity, acceleration, list(history)))
    found = rule.motion(end, begin, Step(size[0], before[0]))
    return np.asarray(found[0]), np.asarray(found[1])


def _rate(end: Array, value: Array, rate: Array, size: Array, before: Array, history: Array, *, rule: Rule) -> Array:
    """Return ẋ at the end of a step by a rule, of one state."""
    begin = RuleHistory(before[0]).filled(FirstOrderValues(value, rate, list(history)))
    return np.asarray(rule.rate(end, begin, Step(size[0], before[0])))


def _slopes(size: Array, before: Array, *, rule: Rule) -> tuple[Array, ...]:
    """Return the derivatives of ż and z̈ with respect to z, and of ẋ with respect to x, each of shape (1,)."""
    return tuple(symbolic_array(each) for each in derivatives(rule, Step(size[0], before[0])))


def _larger(before: Array, *elements: Array) -> Array:
    """Return the largest of some numbers, shape (1,)."""
    for each in elements:
        before = np.maximum(before, each)
    return before


def _softness(by_turn: Array, largest: Array) -> Array:
    """Return −1/α, shape (1,), where α suits the masses as `DcaAlm.step_penalty` has it."""
    inertia = by_turn * largest
    return -1.0 / np.maximum(np.minimum(PENALTY, MOST_STIFFENING * inertia), REDUNDANT_STIFFENING * inertia)
