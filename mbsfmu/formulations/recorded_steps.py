"""Implicit and linearly implicit steps of first-order formulations in kernel loops.

Newton's iteration and Rosenbrock stages solve (c − ∂f/∂y) δ = r, y = (z, w, x), where c is the derivative of a rate
with respect to its value by the rule, or 1/(h γ). f is the result of divide and conquer, whose Jacobian is dense. But
accelerations and velocities satisfy equations that are sums from the leaves of the tree to its base, M z̈ + Φ_zᵀ λ = Q
and p = M ż − Φ_zᵀ σ, and these are linearized instead. With δż = c δz − r_z and, for accelerations, δz̈ = c δż − r_ż, a
linear equation remains for each coordinate in the changes of positions, velocities, accelerations and forces of the
adjacent bodies. Loop multipliers are further unknowns, by Φ̈ + 2 a Φ̇ + a² Φ = 0, or Φ̇ + a Φ = 0; they are eliminated
after the coordinates of their loop. Elimination along the tree takes a time that is linear in its size
(`mbsfmu.tracing.tape.elimination`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mbsfmu.formulations.multiplier_order import outermost_of
from mbsfmu.modelling.fields import Array
from mbsfmu.rules.rule import FirstOrderValues, Rule, Step
from mbsfmu.stepping.history_layout import HistoryLayout, derivatives
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.symbols import symbolic_array
from mbsfmu.tracing.tape.elimination import EliminationPath, Following, TapeEquation, changes_of
from mbsfmu.tracing.tape.recording import ONE, RecordedArray
from mbsfmu.tracing.workspace import RecordedFunction


class Moved(NamedTuple):
    """A system with its equations of motion satisfied.

    Attributes
    ----------
    system
        With ż, z̈ and λ as they follow.
    moving_rates
        ẇ.
    closing
        What loops are closed by: the multipliers λ, or the impulses σ.
    """

    system: RecordedSystem
    moving_rates: Array
    closing: Array


class LinearSolution(NamedTuple):
    """Solution of the linear equations of a step, in two functions.

    Attributes
    ----------
    factors
        What is found before right sides are known; gives numbers that are finite unless a pivot vanishes.
    changes
        Gives δ from the part `right`, where the other was called last.
    """

    factors: RecordedFunction
    changes: RecordedFunction

    def refresh_cost(self, residual: RecordedFunction) -> float:
        """Return the cost of factors, in evaluations of a residual including the solution."""
        return self.factors.operations / max(residual.operations + self.changes.operations, 1)


class RecordedSteps:
    """Functions of steps in kernel loops.

    Parameters
    ----------
    functions
        Functions of the system; they have the parts of a step.
    rule
        How rates follow from the unknowns.
    moving
        The part w of an instant: `velocities` or `momenta`.
    moved
        How ż, z̈ and ẇ follow.
    stabilisation
        Rate a in 1/s at which loops that have drifted close.
    """

    def __init__(
        self,
        functions: SystemFunctions,
        rule: Rule,
        moving: str,
        moved: Callable[[RecordedSystem], Moved],
        stabilisation: float,
    ) -> None:
        self._functions = functions
        self._rule = rule
        self._moving = moving
        self._moved = moved
        self._stabilisation = stabilisation
        functions.add_part("right", 2 * len(functions.coordinates) + len(functions.states))
        functions.add_part("right_of_integrals", len(functions.integrals))

    @cached_property
    def residual(self) -> RecordedFunction:
        """ẏ by the rule from the part `unknowns`, less f(y) from the parts z, w and x, which must be the same."""
        parts = ("unknowns", "begin", "begin_rates", "begin_history", "step")
        size = self._functions.symbol("unknowns").numel()
        remembered = HistoryLayout(self._rule, 0, size).size > 0

        def made(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            flow = self._flow(given)
            history = own["begin_history"]
            before = history[:1] if remembered else np.zeros(1)
            earlier = history[1:].reshape(-1, size) if remembered else np.zeros((0, size))
            missing = [
                own["begin_history"]
                .recorder.call(
                    _missing,
                    [*(own[part][index] for part in parts[:3]), flow[index], own["step"], before, earlier[:, index]],
                    {"rule": self._rule},
                )
                .places
                for index in range(size)
            ]
            return [RecordedArray(history.recorder, np.array(missing, dtype=np.int64).ravel())]

        return self._functions.recorded("first_order_residual", made, parts)

    def _flow(self, given: RecordedSystem) -> Any:
        moved, moving_rates, _ = self._moved(given)
        return np.concatenate([moved.instant.velocities, moving_rates, moved.rates])

    @cached_property
    def implicit(self) -> LinearSolution:
        """Solve with the rule's iteration matrix at the parts z, w and x, `step` and `begin_history`."""

        def slope(own: dict[str, Any]) -> Any:
            history = own["begin_history"]
            before = history[:1] if history.size else np.zeros(1)
            return history.recorder.call(_slope, [own["step"], before], {"rule": self._rule})

        return self._solution(slope)

    @cached_property
    def stages(self) -> LinearSolution:
        """Solves for stages; `step` has h γ. Integrals follow behind the others."""
        return self._solution(lambda own: 1.0 / own["step"], integrals=True)

    @cached_property
    def left(self) -> RecordedFunction:
        """Return h γ times the residual of the stage equation for the solution in `right`, without integrals."""

        def made(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            instant, change = given.instant, own["right"]
            n = len(self._functions.coordinates)
            parts = instant.coordinates, getattr(instant, self._moving), instant.states
            along = list(zip(parts, np.split(change, [n, 2 * n]), strict=True))
            (moved,) = self._changes(given, [self._flow(given)], along)
            return [change / own["step"] - moved]

        return self._functions.recorded("first_order_left", made, ["right", "step"])

    @cached_property
    def drift(self) -> RecordedFunction:
        """Change of ẏ with time by the part `input_rates`."""

        def made(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            flow = np.concatenate([self._flow(given), self._moved(given).system.integral_rates])
            return self._changes(given, [flow], [(given.instant.inputs, own["input_rates"])])

        return self._functions.recorded("first_order_drift", made, ["input_rates"])

    def _changes(self, given: RecordedSystem, values: list[Any], along: list[tuple[Any, Any]]) -> list[Any]:
        """Return directional derivatives along z, w, x and inputs."""
        return given.changes(values, along)

    def _solution(self, slope: Callable[[dict[str, Any]], Any], *, integrals: bool = False) -> LinearSolution:
        names = "step_factors", "step_changes"
        later = ("right", "right_of_integrals") if integrals else ("right",)

        def made(given: RecordedSystem, own: dict[str, Any]) -> tuple[list[Any], list[Any]]:
            return self._solved(given, slope(own), [own[part] for part in later])

        return LinearSolution(
            *self._functions.recorded_in_turn(names, made, ["step", "begin_history"], later, "factors")
        )

    def _solved(self, given: RecordedSystem, slope: Any, right: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the indicator of vanishing pivots, and the solution."""
        moved, moving_rates, closing = self._moved(given)
        instant, n = moved.instant, len(self._functions.coordinates)
        recorder = slope.recorder
        by_position, by_motion, by_state = np.split(right[0], [n, 2 * n])
        following = _following(instant.velocities, slope, -by_position)
        if self._moving == "velocities":
            unbalanced, loops = self._unmet(moved)
            balance = [TapeEquation([(place, ONE)]) for place in listed(unbalanced)]
            held, square = instant.velocities, slope * slope
            biases = [-(slope * one + other) for one, other in zip(by_position, by_motion, strict=True)]
            following |= _following(instant.accelerations, square, biases)
        else:
            held = moved.at(multipliers=closing).canonical_momenta
            loops = moved.loop_rates(self._stabilisation)
            balance = first_order(moving_rates, held, slope, by_motion)
        equations = [*balance, *first_order(moved.rates, instant.states, slope, by_state)]
        equations += _closing(loops, closing, moved.loops.active)
        wanted: Any = np.concatenate([instant.coordinates, held, instant.states, closing])
        unknowns = np.concatenate([instant.coordinates, instant.states, closing])
        ways = self._ways(moved, n + len(instant.states))
        places, pivots = changes_of(recorder, wanted.places, listed(unknowns), following, equations, ways)
        changes = RecordedArray(recorder, places)
        solution = changes[: len(wanted) - len(closing)]
        if len(right) > 1:
            solution = np.concatenate([solution, self._of_integrals(moved, slope, changes, right)])
        return [RecordedArray(recorder, pivots)], [solution]

    def _unmet(self, moved: RecordedSystem) -> tuple[Array, Array]:
        """Return M z̈ − Q + Φ_zᵀ λ and Φ̈ + 2 a Φ̇ + a² Φ."""
        return moved.balance, moved.loop_accelerations(self._stabilisation)

    def _ways(self, moved: RecordedSystem, first: int) -> list[EliminationPath]:
        """Return elimination orders: multipliers, from index `first` on, after all their coordinates, or after some.

        With redundant equations the active set may change, and the pivots with it.
        """
        every, depths = moved.acted_on, moved.depths
        ways = [EliminationPath(range(len(depths)), dict(enumerate(every, first)))]
        if moved.loops.active is not None:
            return ways
        some = outermost_of(self._functions, every, depths)
        return ways if some == every else [*ways, EliminationPath(depths, dict(enumerate(some, first)))]

    def _of_integrals(self, moved: RecordedSystem, slope: Any, changes: Any, right: list[Any]) -> Any:
        """Return δ of the integrals, (δ rates + r) / c, from that of the others."""
        instant, n = moved.instant, len(self._functions.coordinates)
        ends = [n, 2 * n, 2 * n + len(instant.states)]
        of_positions, of_moving, of_states, of_closing = np.split(changes, ends)
        by_position, by_motion, _ = np.split(right[0], [n, 2 * n])
        of_velocities = slope * of_positions - by_position
        along = [(instant.coordinates, of_positions), (instant.states, of_states), (instant.velocities, of_velocities)]
        if self._moving == "velocities":
            along.append((instant.accelerations, slope * of_moving - by_motion))
            along.append((moved.loops.multipliers, of_closing))
        (rates,) = moved.changes([moved.integral_rates], along)
        return (rates + right[1]) / slope


def listed(array: Any) -> list[int]:
    """Return the memory indices of an array; none for an empty array that is not recorded."""
    return array.places.tolist() if isinstance(array, RecordedArray) else []


def _following(values: Any, factor: Any, biases: Any) -> dict[int, Following]:
    """Return values, one by one, whose changes follow from those of the first unknowns."""
    (by,) = listed(factor)
    return {
        place: Following(index, by, int(np.asarray(bias.places).item()))
        for index, (place, bias) in enumerate(zip(listed(values), biases, strict=True))
    }


def first_order(rates: Any, values: Any, slope: Any, right: Any) -> list[TapeEquation]:
    """Return δ rate − c δ value + r = 0."""
    (back,) = listed(-slope)
    rows = zip(listed(rates), listed(values), listed(right), strict=True)
    return [TapeEquation([(rate, ONE), (value, back)], bias) for rate, value, bias in rows]


def _closing(loops: Any, multipliers: Any, active: Any) -> list[TapeEquation]:
    """Return the linearized loop equations: active ones hold, multipliers of the others are zero."""
    if active is None:
        return [TapeEquation([(place, ONE)]) for place in listed(loops)]
    rows = zip(*map(listed, (loops, active, multipliers, 1.0 - active)), strict=True)
    return [TapeEquation([(place, counts), (multiplier, idle)]) for place, counts, multiplier, idle in rows]


def _missing(
    end: Array, value: Array, rate: Array, flow: Array, size: Array, before: Array, history: Array, *, rule: Rule
) -> Array:
    """Return the rate at the end of a step by a rule minus the required one, of one variable."""
    earlier = [np.where(before > 0.0, each, rate) for each in history]
    return np.asarray(rule.rate(end, FirstOrderValues(value, rate, earlier), Step(size[0], before[0])) - flow)


def _slope(size: Array, before: Array, *, rule: Rule) -> Array:
    """Return the derivative of a rate with respect to its value, shape (1,)."""
    return symbolic_array(derivatives(rule, Step(size[0], before[0]))[-1])
