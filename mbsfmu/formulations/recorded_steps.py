"""Implicit and linearly implicit steps in kernel loops, with their iteration matrices and elimination orders.

Elimination order of loop multipliers in iteration matrices, from the tips to the base.

A multiplier acts on all joints of its loop up to the common ancestor, which may be the ground. Its pivot, J_e M_e⁻¹
J_eᵀ, needs only some of them, provided these move the loop's ends independently in all directions and independently of
loops further out. The multiplier can then be eliminated before the others, which keeps the fronts small.

Linearly implicit steps in absolute coordinates in kernel loops.

Rates are ẏ = (q̇, q̈, ẋ) with M q̈ + Φ_qᵀ λ = Q and Φ̈ + 2 a Φ̇ + a² Φ = 0 of the active constraints, on and off the
manifold: stages are not projected, because their rates would have other derivatives. These equations, sums over bodies
and joints, are linearized at known accelerations and multipliers, and solved with these as unknowns.

Implicit steps in absolute coordinates in kernel loops.

Newton's iteration solves (∂b/∂z + c ∂b/∂ż + c² ∂b/∂z̈) δz + ∂b/∂x δx + Φ_zᵀ δλ = r, where b is M z̈ − Q + Φ_zᵀ λ, with
Φ_z δz − δλ/α = r for the joints. b is a sum over bodies and joints, and is linearized call by call. Multipliers are
unknowns: each is eliminated after the coordinates of the bodies of its joint, with the pivot −1/α minus their
compliance. Springs α Φ_zᵀ Φ_z are not added to masses, so that small masses are not lost.

Implicit and linearly implicit steps of first-order formulations in kernel loops.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbsfmu.formulations.penalty_factors import MOST_STIFFENING, PENALTY, REDUNDANT_STIFFENING
from mbsfmu.modelling.data import Array
from mbsfmu.rules.rule import FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.stepping.iteration import Inverse, ReusedJacobian
from mbsfmu.stepping.stages import Stages
from mbsfmu.stepping.state import HistoryLayout, RuleHistory, derivatives
from mbsfmu.stepping.step_rates import StepRates
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.symbols import symbolic_array
from mbsfmu.tracing.tape.elimination import EliminationPath, Following, TapeEquation, changes_of
from mbsfmu.tracing.tape.recording import ONE, ZERO, RecordedArray
from mbsfmu.tracing.workspace import Floats, RecordedFunction

_LEVELS = (3, 6, 12)
"""Levels of joints, counted from the outermost, of which some have to do."""
_ENOUGH = 1e-6
"""Least independent part of a row of J, squared, which leaves ten digits …"""
_OF_ALL = 1e-2
"""… or this fraction of the part with all coordinates, if that is small itself."""
_NONE = 1e-12
"""Independent part with all coordinates below which an equation is redundant and not considered."""
_SAMPLES = 3
_SPREAD = 0.3
"""Range of test configurations around the start in rad, and in the unit of lengths."""


def outermost_of(
    functions: SystemFunctions, acted_on: Sequence[Sequence[int]], depths: Sequence[int]
) -> list[list[int]]:
    """Return for each multiplier the outermost coordinates that its pivot needs.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    acted_on
        By multiplier the coordinates that it acts on.
    depths
        By coordinate how many joints are between it and the ground.
    """
    every = [list(each) for each in acted_on]
    candidates = [[_outermost(each, depths, levels) for each in every] for levels in _LEVELS]
    candidates = [each for each in candidates if each != every]
    if candidates:
        jacobians = list(_around_start(functions))
        for candidate in candidates:
            if all(_is_enough(jacobian, candidate, np.array(depths)) for jacobian in jacobians):
                return candidate
    return every


def _outermost(coordinates: Sequence[int], depths: Sequence[int], levels: int) -> list[int]:
    deepest = max((depths[each] for each in coordinates), default=0)
    return [each for each in coordinates if depths[each] > deepest - levels]


def _around_start(functions: SystemFunctions) -> Iterator[Floats]:
    """Yield the active Φ_z at the start of the system and at configurations around it."""
    random, here = np.random.default_rng(20240229), functions.coordinates.copy()
    start, _ = functions.system.initial_coordinates(functions.parameters)
    for sample in range(_SAMPLES + 1):
        functions.coordinates[:] = start + (sample > 0) * _SPREAD * random.standard_normal(len(start))
        _, jacobian, _ = functions.all_closure()
        yield jacobian[list(functions.rows)].copy()
    functions.coordinates[:] = here


def _is_enough(jacobian: Floats, some: Sequence[Sequence[int]], depths: NDArray[np.int64]) -> bool:
    """Return whether no pivot is lost if a multiplier is eliminated after only some of its coordinates."""
    stages = np.array([min((depths[each] for each in own), default=0) for own in some])
    order = np.argsort(-stages, kind="stable")
    all_shares = _shares(jacobian[order])
    for stage in np.unique(stages):
        gone = stages[order] >= stage
        shares = _shares(jacobian[order][gone][:, depths >= stage])
        now = stages[order][gone] == stage
        least = np.minimum(_ENOUGH, _OF_ALL * all_shares[gone])
        if np.any((shares < least)[now & (all_shares[gone] > _NONE)]):
            return False
    return True


def _shares(rows: Floats) -> Floats:
    """Return for each row the part of its square that is independent of earlier rows."""
    squares = np.sum(rows**2, axis=1)
    left = np.zeros(len(rows))
    triangle = np.linalg.qr(rows.T, mode="r")
    diagonal = np.diagonal(triangle)
    left[: len(diagonal)] = diagonal**2
    return np.divide(left, squares, out=np.zeros(len(rows)), where=squares > 0.0)


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


class RecordedStages(RecordedSteps):
    """Functions of linearly implicit steps in absolute coordinates, with accelerations and multipliers as parts.

    Parameters
    ----------
    functions
        Functions of a system in absolute coordinates.
    rule
        Of the formulation; no stage asks for it.
    stabilisation
        Rate a in 1/s at which constraints that have drifted come back.
    """

    def __init__(self, functions: SystemFunctions, rule: Rule, stabilisation: float) -> None:
        functions.add_part("step", 1)
        functions.add_part("begin_history", 0)
        super().__init__(functions, rule, "velocities", _as_given, stabilisation)

    def _changes(self, given: RecordedSystem, values: list[Any], along: list[tuple[Any, Any]]) -> list[Any]:
        """Return directional derivatives, with the resulting changes of accelerations and multipliers."""
        instant, multipliers = given.instant, given.loops.multipliers
        still = [(each, np.zeros(len(each))) for each in (instant.accelerations, multipliers)]
        unbalanced, opening = given.changes(list(self._unmet(given)), [*along, *still])
        turned, pushing = given.answers(-unbalanced, opening)
        return given.changes(values, [*along, (instant.accelerations, turned), (multipliers, pushing)])

    def change(self, given: RecordedSystem, directions: Sequence[Any], *, projects: bool) -> list[Any]:
        """Return directional derivatives of ẏ, the outputs, q, q̇ and q̈ near the manifold.

        Parameters
        ----------
        given
            The system, its accelerations and multipliers as they follow.
        directions
            Of q, q̇, x, the integrals and the inputs.
        projects
            Whether ẏ is that of the projected q, and all else that of the projected q and q̇.
        """
        placing, moving, *others = directions
        instant = given.instant
        beside = list(zip((instant.states, instant.integrals, instant.inputs), others, strict=True))
        placed, moved = placing, moving
        if projects:
            driven = instant.inputs, others[-1]  # prescribed motion
            placed = given.tangential(placing, given.changes([given.closure], [driven])[0])
            rate = given.along(given.closure, instant.velocities) + given.drifts
            (opening,) = given.changes([rate], [(instant.coordinates, placed), driven])
            moved = given.tangential(moving, opening)
        along = [(instant.coordinates, placed), *beside]
        flow = [instant.accelerations, given.rates, given.integral_rates]
        rates = self._changes(given, flow, [*along, (instant.velocities, moving)])
        values = [given.outputs, instant.accelerations]
        outputs, turned = self._changes(given, values, [*along, (instant.velocities, moved)])
        return [np.concatenate([moving, *rates]), outputs, placed, moved, turned]

    def _unmet(self, moved: RecordedSystem) -> tuple[Array, Array]:
        opening = moved.turning(self._stabilisation) + moved.along(moved.closure, moved.instant.accelerations)
        return moved.regular_residual, opening

    def _ways(self, moved: RecordedSystem, first: int) -> list[EliminationPath]:
        """Return one elimination order: multipliers after the coordinates of their bodies."""
        behind = {first + row: acted_on for row, acted_on in enumerate(moved.moved_by_constraints)}
        return [EliminationPath(range(len(self._functions.coordinates)), behind)]


def _as_given(given: RecordedSystem) -> Moved:
    return Moved(given, given.instant.accelerations, given.loops.multipliers)


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
        following = _following_all(instant.velocities, by_rate) | _following_all(instant.accelerations, by_turn)
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


def _following_all(values: Any, factor: Any) -> dict[int, Following]:
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


class RecordedIterationMatrices:
    """Computes iteration matrices and solves with them; the factors of one are stored at a time.

    Their memory is many times that of the point. If the factors were overwritten by those of another matrix, they are
    computed again from the point, to the last bit.

    Parameters
    ----------
    functions
        Functions of the system.
    steps
        Gives what steps call: what solves with the iteration matrix where they are, and the residual.
    parts
        All that an iteration matrix depends on, the step apart.
    """

    def __init__(
        self,
        functions: SystemFunctions,
        steps: Callable[[], RecordedSteps | RecordedAugmented],
        parts: Sequence[str],
    ) -> None:
        self._functions = functions
        self._steps = steps
        self._parts = parts
        self._factored: PointJacobian | None = None

    @property
    def numbers(self) -> int:
        """Number of values of a point, without its step."""
        return sum(self._functions.values(part).size for part in self._parts)

    @property
    def refresh_cost(self) -> float:
        """Cost of an iteration matrix, in evaluations of the residual including the solution."""
        steps = self._steps()
        return steps.implicit.refresh_cost(steps.residual)

    def made(self) -> PointJacobian | None:
        """Return the iteration matrix at the present point; None if a pivot vanishes."""
        self._factored = self.here()
        (pivots,) = self._steps().implicit.factors()
        return self._factored if np.all(np.isfinite(pivots)) else None

    def kept(self, iteration_matrix: ReusedJacobian) -> PointJacobian:
        """Return the iteration matrix that a state has stored."""
        return PointJacobian(self, iteration_matrix.numbers, iteration_matrix.step, iteration_matrix.before)

    def solved(self, iteration_matrix: PointJacobian, right: Floats) -> Floats:
        """Return the solution for a right-hand side."""
        if self._factored is None or not self._factored.is_same_as(iteration_matrix):
            here = self.here()
            self.load(iteration_matrix)
            self.made()
            self.load(here)
        self._functions.write("right", right)
        return self._steps().implicit.changes()[0].copy()

    def here(self) -> PointJacobian:
        """Return the iteration matrix at the present point; its factors are computed on demand."""
        functions = self._functions
        history = functions.values("begin_history")
        point = np.concatenate([functions.values(part) for part in self._parts])
        before = float(history[0]) if history.size else 0.0
        return PointJacobian(self, point, float(functions.values("step")[0]), before)

    def load(self, iteration_matrix: PointJacobian) -> None:
        """Set the functions to the point of an iteration matrix."""
        functions, first = self._functions, 0
        for part in self._parts:
            array = functions.values(part)
            array[:] = iteration_matrix.point[first : first + array.size]
            first += array.size
        functions.values("step")[0] = iteration_matrix.step
        functions.values("begin_history")[:1] = iteration_matrix.before


@dataclass(frozen=True)
class PointJacobian(Inverse):
    """An iteration matrix, represented by its point.

    Attributes
    ----------
    iteration_matrices
        What has made it.
    point
        Positions, velocities or momenta, states, inputs, parameters and whatever else it depends on.
    step, before
        The step in s that it was made for, and the one before, 0 where nothing was remembered.
    """

    iteration_matrices: RecordedIterationMatrices
    point: Floats
    step: float
    before: float

    @property
    def numbers(self) -> Floats:
        """The point."""
        return self.point

    def is_same_as(self, other: PointJacobian) -> bool:
        """Return whether it is the iteration matrix at the same point."""
        return (self.step, self.before) == (other.step, other.before) and np.array_equal(self.point, other.point)

    def times(self, right: Floats) -> Floats:
        """Return the solution for a right side."""
        return self.iteration_matrices.solved(self, right)


class FactoredStages(Stages):
    """Solver of the stages of a step in kernel loops.

    Parameters
    ----------
    functions
        Functions of the system, where the step begins.
    steps
        What steps call.
    iteration_matrices
        Tells where they are.
    """

    def __init__(
        self, functions: SystemFunctions, steps: RecordedSteps, iteration_matrices: RecordedIterationMatrices
    ) -> None:
        self.controlled = 2 * len(functions.coordinates) + len(functions.states)
        self._functions, self._steps, self._iteration_matrices = functions, steps, iteration_matrices
        self._begin = iteration_matrices.here()

    def factorize(self, share: float) -> bool:
        """Compute the factors for h γ in s; return whether no pivot vanishes."""
        self._begin = replace(self._begin, step=share)
        self._iteration_matrices.load(self._begin)
        return bool(np.all(np.isfinite(self._steps.stages.factors()[0])))

    def solve(self, right: Floats) -> Floats:
        """Return u."""
        self._functions.write("right", right[: self.controlled])
        self._functions.write("right_of_integrals", right[self.controlled :])
        return self._steps.stages.changes()[0].copy()

    def missing(self, right: Floats, solution: Floats) -> Floats:
        """Return the residual of a solution, without integrals."""
        self._iteration_matrices.load(self._begin)
        self._functions.write("right", solution[: self.controlled])
        return self._steps.left()[0] - right[: self.controlled]
