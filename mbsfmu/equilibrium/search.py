"""Search for a static equilibrium: Newton's iteration, overdamped motion, then continuation strategies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.equilibrium.damped_newton import (
    CONVERGED,
    LARGEST_TURN,
    PRIORITY,
    StaticEquilibrium,
    allowed_at,
    bend,
    newton,
    residual_at,
    turn,
)
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import cannot_be_held, fitted, posed
from mbsfmu.equilibrium.small_motions import GROWING, rates_about_equilibrium
from mbsfmu.initialization.closing_loops import OwnStarts, close_loops
from mbsfmu.tracing.workspace import Floats

_BALANCED = {**PRIORITY, "balance": 1e3}
_LEAKS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)


def contradiction(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return the point of the infeasibility report; the functions are there.

    Fixed variables must be compatible with the loops. Then loads have priority: if no states can carry them, the report
    is on the missing loads at the nearest point. If states can, it is on the states that cannot be constant there, such
    as a creeping integral part. With equal weights the iteration would end between both, with a missing load as a
    consequence of the actual cause.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which no way leads to rest.
    """
    guess = posed(equations, guess)
    if cannot_be_held(equations, guess):
        return newton(equations, guess, 0, _BALANCED)
    loads = equations.without_rates()
    near = carrying(loads, guess)
    if near.found:
        rest = newton(equations, near.unknowns, priority=_BALANCED)
        if np.all(np.abs(rest.residual) <= rest.allowed, where=_of_kind(equations, "balance")):
            return rest
    return newton(equations, near.unknowns, 0, _BALANCED)


def _of_kind(equations: EquilibriumEquations, kind: str) -> NDArray[np.bool_]:
    """Return which equations are of a kind."""
    chosen = np.zeros(equations.rows("held").stop, dtype=bool)
    chosen[equations.rows(kind)] = True
    return chosen


def carrying(loads: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return the point of best load balance, also behind saturations."""
    loads.load(guess)
    straight = newton(loads, guess)
    if straight.found or (leaky := loads.leaky()) is None:
        return straight
    leaking, share = leaky
    at = guess
    for each in _LEAKS:
        share[:] = each
        leaking.load(at)
        at = newton(leaking, at).unknowns
    loads.load(at)
    around = newton(loads, at)
    if not around.found and np.linalg.norm(_missing(loads, straight)) <= np.linalg.norm(_missing(loads, around)):
        loads.load(straight.unknowns)
        return straight
    return around


def _missing(loads: EquilibriumEquations, rest: StaticEquilibrium) -> Floats:
    return rest.residual[loads.rows("balance")]


_MOST_MOVES = 600
_FIRST, _SHORTEST, _LONGEST = 1e-3, 1e-9, 1e12
"""First step in s, and limits of the others."""
_MOST_ITERATIONS, _NEAR = 10, 1e-6
_LARGEST_MOVE = 10.0
"""Largest change of a state in a step, in magnitudes."""
_SINGULAR, _CONDITION = 1e-14, 1e12
"""Fraction of the largest singular value below which others are zero, and condition number up to which none are."""


def motion_to_its_end(
    equations: EquilibriumEquations, guess: Floats, longest: float = _LONGEST, *, clamped: bool
) -> Floats:
    """Return the end of M ż/τ = Q − Φ_zᵀ λ, Φ = 0, ẋ = f, at or near an equilibrium.

    Damping and displacements of moving walls are included, so that the mass of trapped oil is constant. Implicit Euler
    steps of length τ grow while no variable moves far in one and Newton's iteration converges.

    Parameters
    ----------
    equations, guess
        The equations, and where the motion begins.
    longest
        Step in s after which it ends.
    clamped
        Whether coordinates, and what is asked for, stay as they are: states come to rest alone.
    """
    unknowns, time = guess, _FIRST
    for _ in range(_MOST_MOVES):
        moved = _moved(equations, unknowns, time, clamped=clamped)
        if moved is None:
            time *= 0.25
            if time < _SHORTEST or _rests(equations, unknowns):
                break
            continue
        unknowns = moved
        time *= 2.0
        if time > longest:
            break
    return _onto_loops(equations, unknowns) if clamped else unknowns


def _moved(equations: EquilibriumEquations, begin: Floats, time: float, *, clamped: bool) -> Floats | None:
    """Return the end of a step of the overdamped motion, or None if it is too long."""
    unknowns = begin
    residual = residual_at(equations, unknowns)
    states, before = equations.unknowns("states"), np.inf
    mass = _inertia(equations)  # as it is at the begin: where it changes much, iterations would not find the end
    for _ in range(_MOST_ITERATIONS):
        assert residual is not None, "iterations go on where they are defined"
        move = _Move(equations, mass, time, clamped=clamped)
        if move.climbs:
            return None
        step = move.taken(residual + move.inertia @ (unknowns - begin))
        unknowns = unknowns + step if clamped else _onto_loops(equations, unknowns + step)
        far = np.max(np.abs((unknowns - begin)[states] / equations.scales[states]), initial=0.0)
        if bend(equations, unknowns - begin) > LARGEST_TURN or far > _LARGEST_MOVE:
            return None
        if (residual := residual_at(equations, unknowns)) is None:
            return None
        size = float(np.max(np.abs(step / equations.scales)[states.start :], initial=0.0))
        size = max(size, turn(equations, step))
        if size < _NEAR:
            return unknowns
        if size > before:
            return None
        before = size
    return None


def _rests(equations: EquilibriumEquations, unknowns: Floats) -> bool:
    """Return whether unknowns are at equilibrium, to round-off."""
    residual = residual_at(equations, unknowns)
    allowed = allowed_at(equations, unknowns, equations.finite_jacobian())
    return residual is not None and bool(np.all(np.abs(residual) <= allowed))


def _inertia(equations: EquilibriumEquations) -> Floats:
    """Return M with equal inertia of all coordinates of a joint's vector.

    Slender bars have nearly no inertia about their axes, and free rotations about these would be instantaneous. Away
    from equilibrium the angles of a joint do not separate such a rotation from others, so that steps would stay short.
    The end of the motion does not depend on the inertia.
    """
    mass = equations.functions.equilibrium()[0].copy()
    vectors = [(each.name.rpartition(".")[0], each.unit) for each in equations.functions.system.coordinates]
    own = np.diag(mass)
    for vector in set(vectors):
        of_vector = np.flatnonzero([each == vector for each in vectors])
        mass[of_vector, of_vector] += np.max(own[of_vector]) - own[of_vector]
    return mass


def _onto_loops(equations: EquilibriumEquations, unknowns: Floats) -> Floats:
    """Return unknowns on the loops, with multipliers of best load balance."""
    functions = equations.functions
    closed, moving = unknowns.copy(), equations.unknowns("coordinates")
    if functions.rows:
        closed[moving] = close_loops(functions, unknowns[moving], OwnStarts.of(unknowns[moving])).values
        equations.load(closed)
        jacobian, rest = functions.closure()[1], functions.equilibrium()[1]
        closed[equations.unknowns("multipliers")] = np.linalg.lstsq(jacobian.T, -rest, rcond=RANK_TOLERANCE)[0]
    return closed


class _Move:
    """A step of the overdamped motion from the present point, in the null space of the loops."""

    def __init__(self, equations: EquilibriumEquations, mass: Floats, time: float, *, clamped: bool) -> None:
        scales = equations.scales
        matrix, (damping, driven, _) = equations.finite_jacobian(), equations.by_velocities()
        balance, closure = equations.rows("balance"), equations.rows("closure")
        rates, moving, states = equations.rows("rates"), equations.unknowns("coordinates"), equations.unknowns("states")
        loops = matrix[closure, moving]
        free = null_space(loops, RANK_TOLERANCE)
        if clamped:
            free = free[:, :0]
        self._count = free.shape[1]
        last = equations.unknowns("discrete").stop if clamped else len(scales)
        into = np.zeros((len(scales), self._count + last - states.start))
        into[moving, : self._count] = free
        into[states.start : last, self._count :] = np.eye(last - states.start)
        self._into = scales[:, None] * into
        self.inertia = np.zeros_like(matrix)
        self.inertia[balance, moving] = mass / time**2 + damping / time
        self.inertia[rates, moving] = -equations.rates @ driven / time
        self.inertia[rates, states] = equations.rates / time
        last = equations.rows("held").start if clamped else len(matrix)
        self._project = np.zeros((self._count + last - closure.stop, len(matrix)))
        self._project[: self._count, balance] = free.T
        self._project[self._count :, closure.stop : last] = np.eye(last - closure.stop)
        reduced = (self._project @ (matrix + self.inertia)) @ self._into
        sizes = np.max(np.abs(reduced), axis=1, initial=0.0)
        weights = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
        self._inverse = _inverse(reduced * weights[:, None]) * weights

    def taken(self, residual: Floats) -> Floats:
        """Return the step of the unknowns; multipliers stay."""
        return self._into @ (-self._inverse @ (self._project @ residual))

    @property
    def climbs(self) -> bool:
        """Whether added loads would do negative work: negative stiffness including the response of states."""
        answers = self._inverse[: self._count, : self._count]
        sizes = np.linalg.eigvalsh(answers + answers.T)
        return bool(np.min(sizes, initial=0.0) < -1e-6 * np.max(np.abs(sizes), initial=0.0))


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse, or the pseudo-inverse of a nearly singular matrix, which is slower."""
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(matrix)
        if np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1) < _CONDITION:
            return np.asarray(inverse, dtype=np.float64)
    return np.asarray(np.linalg.pinv(matrix, rcond=_SINGULAR), dtype=np.float64)


_FAR = 0.3
"""Distance from the guess in rad or m above which an equilibrium may not be the nearest."""


def nearest(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return an equilibrium near a guess, or the closest point of the search; the functions are there.

    If Newton's iteration fails, the overdamped motion of the system is followed to its end, with moving parts clamped
    if variables are fixed, and Newton's iteration continues from there. Without fixed variables, the same is done if
    Newton's iteration has ended far away at an unstable equilibrium, or at an undetermined one unless unstable and
    near: the equilibrium that a run from the guess would reach is preferred. Away from equilibrium the Jacobian does
    not give the conserved quantities of the motion, nor the free rotations of a body.
    """
    clamped = bool(equations.held)
    direct = newton(equations, guess)
    if direct.found and (clamped or not _is_left_to_motion(equations, direct, guess)):
        return direct
    rest = _held_from(equations, guess) if clamped else _ended(equations, direct, guess)
    better = rest.found or (not direct.found and rest.off < direct.off)
    chosen = rest if better else direct
    equations.load(chosen.unknowns)
    return chosen


def _is_left_to_motion(equations: EquilibriumEquations, direct: StaticEquilibrium, guess: Floats) -> bool:
    """Return whether the motion shall select among equilibria."""
    far = turn(equations, direct.unknowns - guess) > _FAR
    moving = np.r_[equations.unknowns("coordinates"), equations.unknowns("states"), equations.unknowns("discrete")]
    counts = np.setdiff1d(moving, [equations.unknowns("states").start + index for index in equations.left])
    growing, slowest = rates_about_equilibrium(equations)
    # At the edge of a valve that shuts, a Jacobian may be that of the side where it is open by next to nothing.
    is_open = bool(np.max(np.abs(direct.free[counts]), initial=0.0) > CONVERGED) or slowest <= GROWING
    return (far or is_open) and (far if growing > GROWING else is_open)


def _ended(equations: EquilibriumEquations, direct: StaticEquilibrium, guess: Floats) -> StaticEquilibrium:
    """Return the end of the motion from a guess, with the free variables found, if it ends."""
    if not direct.found or not equations.sought:
        return _converged(equations, guess, clamped=False)
    asked = equations.unknowns("inputs").start
    given = EquilibriumEquations(equations.functions, (), ())
    given.load(guess[:asked])
    end = motion_to_its_end(given, guess[:asked], clamped=False)
    return newton(equations, np.concatenate([end, direct.unknowns[asked:]]))


def _held_from(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium:
    """Return the equilibrium from fitted coordinates and free variables, or after states have settled there.

    If neither converges, states settle at the unchanged guess.
    """
    begin = fitted(equations, posed(equations, guess))
    rest = newton(equations, begin)
    if not rest.found:
        rest = newton(equations, fitted(equations, motion_to_its_end(equations, begin, clamped=True)))
    return rest if rest.found else _converged(equations, guess, clamped=True)


def _converged(equations: EquilibriumEquations, guess: Floats, *, clamped: bool) -> StaticEquilibrium:
    """Return the end of the overdamped motion, or of Newton's iteration from there."""
    end = motion_to_its_end(equations, guess, clamped=clamped)
    rest = newton(equations, end, steps=0)
    return rest if rest.found else newton(equations, end)


_MOST_ASKED = 4
_MOST_HALVINGS = 30
_MOST_CLAMPED_STEPS = 25
_RANK = 1e-6
"""Fraction of the largest effect of a command below which others have none."""


def bisect_dead_bands(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium in which commands open just enough to supply the leakage, for any guess.

    States carry balanced loads. With the machine clamped there, each free variable is set to the ends of its range in
    turn, and states settle to their equilibrium: a pressure to that of the source, or of the tank. Each variable
    changes its own part of the imbalance, and is bisected by the sign of this part, until Newton's iteration converges.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which Newton's iteration has failed.
    """
    if not 0 < len(equations.sought) <= _MOST_ASKED:
        return None
    near = carrying(equations.without_rates(), posed(equations, guess))
    if not near.found:
        return None
    clamped = _Clamped(equations, near.unknowns)
    low, high = _range(equations)
    middle = np.clip(0.0, low, high)
    ends = [[clamped.off(_with(middle, index, end[index]))[1] for index in range(len(low))] for end in (low, high)]
    changes = np.column_stack(ends[1]) - np.column_stack(ends[0])
    own = np.linalg.pinv(changes, rcond=_RANK)
    if not all(own[index] @ ends[0][index] < 0.0 < own[index] @ ends[1][index] for index in range(len(low))):
        return None
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (low + high)
        at, off = clamped.off(middle)
        if (rest := newton(equations, at, _MOST_CLAMPED_STEPS)).found:
            return rest
        above = own @ off > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return None


def _with(values: Floats, index: int, value: float) -> Floats:
    changed = values.copy()
    changed[index] = value
    return changed


def _range(equations: EquilibriumEquations) -> tuple[Floats, Floats]:
    """Return the range of the free variables: their limits, or plus and minus their magnitude."""
    asked = [each for part in ("inputs", "parameters") for each in equations.sought if each.part == part]
    scales = equations.scales[equations.unknowns("inputs").start :]
    limits = [(each.variable.minimum, each.variable.maximum) for each in asked]
    low = [-scale if least is None else least for (least, _), scale in zip(limits, scales, strict=True)]
    high = [scale if most is None else most for (_, most), scale in zip(limits, scales, strict=True)]
    return np.array(low), np.array(high)


class _Clamped:
    """Equilibrium states of a clamped machine, for any values of the free variables.

    Parameters
    ----------
    equations, at
        The equations, and the position at which it is clamped.
    """

    def __init__(self, equations: EquilibriumEquations, at: Floats) -> None:
        self._equations, self._at = equations, at
        equations.load(at)
        self._free = null_space(equations.functions.closure()[1], RANK_TOLERANCE)
        self._allowed = allowed_at(equations, at, equations.jacobian())

    def off(self, asked: Floats) -> tuple[Floats, Floats]:
        """Return the equilibrium states, and the residuals of loads and fixed variables relative to tolerances."""
        equations, begin = self._equations, self._at.copy()
        begin[equations.unknowns("inputs").start :] = asked
        equations.load(begin)
        at = motion_to_its_end(equations, begin, clamped=True)
        begin[equations.unknowns("states")] = at[equations.unknowns("states")]
        begin[equations.unknowns("discrete")] = at[equations.unknowns("discrete")]
        equations.load(begin)
        residual = equations.residual()
        balance, held = equations.rows("balance"), equations.rows("held")
        loads = self._free.T @ residual[balance] / np.max(self._allowed[balance], initial=1.0)
        return begin, np.concatenate([loads, residual[held] / self._allowed[held]])


_FIRST_LEAK, _LEAST_LEAK, _NO_LEAK = 0.1, 1e-2, 1e-9
"""Slope of regularised saturations: the first one, the one below which the equilibrium is tried without, and zero."""
_SHRINKING, _SLOWEST = 0.3, 0.98
"""Reduction factor of the slope at first, and the factor at which the continuation is abandoned."""
_MOST_LEAKS = 40
_FIRST_WAY, _SHORTEST_WAY, _LONGER, _SHORTER = 0.1, 1e-4, 1.7, 0.35
"""Continuation of fixed variables: first and shortest fraction, and factors after successful and failed steps."""
_MOST_CONTINUED_STEPS = 25
"""Largest number of Newton steps at a point of a continuation, and from another initial guess."""
_GUESSES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0)
"""Offsets of free variables in magnitudes, from their guess and from zero."""


def other_ways(equations: EquilibriumEquations, guess: Floats) -> Iterator[StaticEquilibrium]:
    """Yield equilibria of the continuation strategies; each is started on demand.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which Newton's iteration has failed.
    """
    ways = [less_and_less_leaking]
    if equations.sought:
        ways += [bisect_dead_bands, carried] if equations.held else []
        ways += [from_other_start_points]
    for way in ways:
        equations.load(guess)
        found = way(equations, guess)
        if found is not None and found.found:
            yield found


def less_and_less_leaking(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium by regularised saturations: a homotopy in their slope.

    A saturated command, a spool within its overlap, a closed valve or an open end stop then has a slope, in the
    direction in which it would act.
    """
    if (leaky := equations.leaky()) is None:
        return None
    leaking, share = leaky
    at, last, factor = guess, 0.0, _SHRINKING
    share[:] = _FIRST_LEAK
    for _ in range(_MOST_LEAKS):
        present = float(share[0])
        rest = newton(leaking, at)
        if rest.found:
            at, last, factor = rest.unknowns, present, factor**1.5
            if present < _LEAST_LEAK and ((tight := newton(equations, at)).found or present < _NO_LEAK):
                return tight
        elif not last or (factor := factor**0.5) > _SLOWEST:
            return None
        share[:] = last * factor
    return None


def carried(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium by continuation of the fixed variables from the equilibrium without them.

    Free variables start at values fitted to the machine's position, or at their guess.
    """
    for begin in (fitted(equations, posed(equations, guess)), fitted(equations, guess), guess):
        equations.load(begin)
        rest = _carried_from(equations, begin)
        if rest is not None and rest.found:
            return rest
    return None


def _carried_from(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    free = nearest(EquilibriumEquations(equations.functions, (), ()), guess=_without_sought(equations, guess))
    if not free.found:
        return None
    at = equations.present()
    target = [each.value for each in equations.held]
    begin = target + equations.residual()[equations.rows("held")]
    way, step = 0.0, _FIRST_WAY
    while step >= _SHORTEST_WAY:
        further = min(way + step, 1.0)
        rest = newton(equations.at_values(begin + further * (target - begin)), at, _MOST_CONTINUED_STEPS)
        if not rest.found:
            step *= _SHORTER
            continue
        at, way, step = rest.unknowns, further, step * _LONGER
        if way == 1.0:
            return newton(equations, at)
    return None


def _without_sought(equations: EquilibriumEquations, guess: Floats) -> Floats:
    """Return the unknowns of a guess without the free variables."""
    return guess[: equations.unknowns("inputs").start]


def from_other_start_points(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium from other initial guesses, with all free variables offset alike."""
    asked = slice(equations.unknowns("inputs").start, len(guess))
    for begin in (guess[asked], 0.0 * guess[asked])[: 2 if guess[asked].any() else 1]:
        for size in _GUESSES:
            for way in (size, -size):
                moved = guess.copy()
                moved[asked] = begin + way * equations.scales[asked]
                rest = newton(equations, moved, _MOST_CONTINUED_STEPS)
                if rest.found:
                    return rest
    return None


def search(equations: EquilibriumEquations, horizon: float | None = None) -> StaticEquilibrium:
    """Return an equilibrium, or the infeasible point for the report; the functions are there.

    Newton's iteration is damped by its natural monotonicity test, which is independent of units [Deuflhard2011, ch. 3].
    With fewer equations than unknowns each step is the shortest one, so that undetermined variables stay near the
    guess. If it fails, the overdamped motion is followed to its end by growing implicit Euler steps [Kelley1998]; see
    `nearest`. If that fails too, the equilibrium may be behind saturations; see `continuation_strategies`.

    Parameters
    ----------
    equations
        The equations, whose functions hold the guess.
    horizon
        Time in s after which states come to rest with what moves clamped; those that are slower are left to stand. None
        where nothing may move.
    """
    guess = equations.present()
    if equations.held and cannot_be_held(equations, posed(equations, guess)):
        return contradiction(equations, guess)
    equations.load(guess)
    if horizon is not None:
        return _within(equations, guess, horizon)
    direct = nearest(equations, guess)
    rest = direct if direct.found else next(other_ways(equations, guess), None)
    if rest is None:
        return contradiction(equations, guess)
    equations.load(rest.unknowns)
    return rest


def _within(equations: EquilibriumEquations, guess: Floats, horizon: float) -> StaticEquilibrium:
    """Return an equilibrium of all changes within a time in s.

    By its eigenvalue, an integral part may be as slow as a leak, but it can be constant and a leak cannot; it must be
    constant if possible. If this finds nothing, all states may be constant with the machine clamped.
    """
    whole = copy(equations)
    begin = motion_to_its_end(equations, guess, horizon, clamped=True)
    for warned in (True, False) if equations.untold else (False,):
        equations.rates = whole.rates
        equations.load(begin)
        equations.let_slow_ones_stand(horizon, warned=warned)
        rest: StaticEquilibrium | None = newton(equations, begin)
        if not rest.found:
            equations.load(begin)
            rest = newton(equations, newton(equations.standing_still(), begin).unknowns)
        if not rest.found:
            rest = next(other_ways(equations, begin), None)
        if rest is not None:
            equations.load(rest.unknowns)
            return rest
    whole.load(posed(whole, guess))
    still = search(whole.standing_still())
    if not still.found:
        return contradiction(equations, begin)
    equations.rates = whole.rates
    return newton(equations, still.unknowns, steps=0)
