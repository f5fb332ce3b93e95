"""The search for a position of rest: Newton's iteration, damped, and where it fails an overdamped motion that ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.linear import null_space
from mbsfmu.errors import SimulationError
from mbsfmu.formulations.assembly import close_loops
from mbsfmu.formulations.partition import RANK_TOLERANCE
from mbsfmu.formulations.rest_equations import KINDS, STILL, RestEquations
from mbsfmu.formulations.rest_stability import GROWING, growth
from mbsfmu.formulations.workspace import Floats

_PRIORITY = {"closure": 1e3, "held": 1e3}
"""Where not all equations can hold, these do."""
RANK = 1e-13
"""Share of the largest singular value, of equations and unknowns in their magnitudes, up to which others are zero."""
LOAD = 1e-9
"""Share of the largest load, or of one N or N m, up to which loads balance."""
GAP = 1e-9
"""By how much loops in m and rad, and what is held in its magnitude, may be off."""
_ROUND_OFF = 1e-13
_SETTLED = 1e-10
_MOST_STEPS = 60
_SMALLEST_SHARE = 1e-4
_LARGEST_TURN = 0.3
"""In rad or m: no coordinate moves further in a step."""
_MOST_MOVES = 600
_FIRST, _SHORTEST, _LONGEST = 1e-3, 1e-9, 1e12
"""The first step of the overdamped motion in s, and between which times others are."""
_MOST_ITERATIONS, _NEAR = 10, 1e-6
_FAR = 0.3
"""In rad or m: rest that is further from the guess may have been reached past another."""
_LARGEST_MOVE = 10.0
"""Of a state, in its magnitudes, in a step of the overdamped motion."""


@dataclass(frozen=True)
class Rest:
    """Where a search has ended.

    Attributes
    ----------
    unknowns
        As the equations have them.
    residual
        What the equations are off there.
    allowed
        By how much each may be.
    free
        Directions in which the unknowns, in their magnitudes, can move without leaving rest, shape (unknowns, k).
    """

    unknowns: Floats
    residual: Floats
    allowed: Floats
    free: Floats

    @property
    def found(self) -> bool:
        """Whether it is at rest."""
        return bool(np.all(np.abs(self.residual) <= self.allowed))


def search(equations: RestEquations, horizon: float | None = None) -> Rest:
    """Return a position of rest, or else where the search comes closest to one.

    Newton's iteration is damped by its natural monotonicity, which no choice of units decides [Deuflhard2011, ch. 3];
    where equations are less than unknowns, each step is the shortest one, so that what they leave open stays near the
    guess.
    Where it fails, the overdamped motion of the system is followed to its end by implicit Euler steps that grow
    [Kelley1998], with what moves clamped where something is held, and Newton's iteration goes on from there. The same
    is done where Newton's iteration has gone far to a rest that is unstable, or open: out of balance, the derivatives
    of loads by angles of a body that turns freely are not zero, so that steps turn what no load does.

    Parameters
    ----------
    equations
        The equations, whose functions hold the guess.
    horizon
        Time in s after which states come to rest with what moves clamped; those that are slower are left to stand. None
        where nothing may move.
    """
    guess = equations.present()
    clamped = bool(equations.held)
    if horizon is not None:
        guess = _motion_to_its_end(equations, guess, horizon, clamped=True)
        equations.load(guess)
        equations.let_slow_ones_stand(horizon)
        return _newton(equations, guess)
    direct = _newton(equations, guess)
    far = _distance(equations, direct, guess)
    if direct.found and (clamped or far <= _FAR):
        return direct
    unstable = direct.found and growth(equations) > GROWING
    is_open = bool(np.max(np.abs(direct.free[equations.unknowns("coordinates")]), initial=0.0) > _SETTLED)
    if direct.found and not (unstable or is_open):
        return direct
    settled = _settled(equations, guess, clamped=clamped)
    if direct.found:
        better = settled.found and (unstable or _distance(equations, settled, guess) < far)
    else:
        better = settled.found or _off(settled) < _off(direct)
    chosen = settled if better else direct
    equations.load(chosen.unknowns)
    return chosen


def _settled(equations: RestEquations, guess: Floats, *, clamped: bool) -> Rest:
    """Return where the overdamped motion ends, or else where Newton's iteration goes from there."""
    end = _motion_to_its_end(equations, guess, clamped=clamped)
    rest = _newton(equations, end, steps=0)
    return rest if rest.found else _newton(equations, end)


def _distance(equations: RestEquations, rest: Rest, guess: Floats) -> float:
    return _turn(equations, rest.unknowns - guess)


def _off(rest: Rest) -> float:
    return float(np.max(np.abs(rest.residual) / rest.allowed, initial=0.0))


class _Tangent:
    """The derivative at unknowns, with equations and unknowns in their magnitudes; shortest least squares by it."""

    def __init__(self, equations: RestEquations) -> None:
        self.matrix = equations.jacobian()
        self._scales = equations.scales
        scaled = self.matrix * self._scales
        self._weights = _weights(equations, scaled)
        left, values, self._right = np.linalg.svd(scaled * self._weights[:, None])
        rank = int(np.count_nonzero(values > RANK * np.max(values, initial=0.0)))
        self._left, self._values = left[:, :rank], values[:rank]
        self._rank = rank

    def solve(self, residual: Floats) -> Floats:
        """Return the step, in magnitudes, that takes a residual away as far as it can."""
        return -self._right[: self._rank].T @ ((self._left.T @ (self._weights * residual)) / self._values)

    @property
    def free(self) -> Floats:
        return np.asarray(self._right[self._rank :].T)


def _weights(equations: RestEquations, scaled: Floats) -> Floats:
    """Return factors by which equations become the same size; rows that are round-off do not count."""
    weights = np.zeros(len(scaled))
    for kind in KINDS:
        sizes = np.max(np.abs(scaled[equations.rows(kind)]), axis=1, initial=0.0)
        counts = sizes > _ROUND_OFF * np.max(sizes, initial=0.0)
        weights[equations.rows(kind)] = np.where(counts, _PRIORITY.get(kind, 1.0) / np.where(counts, sizes, 1.0), 0.0)
    return weights


def _newton(equations: RestEquations, guess: Floats, steps: int = _MOST_STEPS) -> Rest:
    unknowns, residual = guess, _residual(equations, guess)
    assert residual is not None, "the guess is where the equations were evaluated before"
    tangent = _Tangent(equations)
    for _ in range(steps):
        step = tangent.solve(residual)
        length = float(np.linalg.norm(step))
        share = min(1.0, _LARGEST_TURN / max(_turn(equations, step), _LARGEST_TURN))
        while share > _SMALLEST_SHARE:
            trial = unknowns + share * step * equations.scales
            off = _residual(equations, trial)
            if off is not None and np.linalg.norm(tangent.solve(off)) <= max((1.0 - 0.25 * share) * length, _SETTLED):
                break
            share *= 0.5
        else:
            break
        unknowns, residual = trial, off
        tangent = _Tangent(equations)
        if length < _SETTLED:
            break
    equations.load(unknowns)
    return Rest(unknowns, residual, _allowed(equations, unknowns, tangent.matrix), tangent.free)


def _turn(equations: RestEquations, step: Floats) -> float:
    return float(np.max(np.abs(step[equations.unknowns("coordinates")]), initial=0.0))


def _residual(equations: RestEquations, unknowns: Floats) -> Floats | None:
    """Return what the equations are off, or None where they are not defined."""
    try:
        equations.load(unknowns)
    except SimulationError:
        return None
    residual = equations.residual()
    return residual if np.isfinite(residual).all() else None


def _allowed(equations: RestEquations, unknowns: Floats, matrix: Floats) -> Floats:
    """Return by how much the equations may be off: a share of what is usual, and what round-off makes of them."""
    system = equations.functions.system
    load = equations.largest_load()
    kinds = {
        "balance": np.full(len(system.coordinates), LOAD * load),
        "closure": np.full(len(system.constraints), GAP),
        "rates": np.full(len(equations.rates), STILL),
        "updates": np.array([STILL * (each.nominal or 1.0) for each in system.discrete]),
        "held": np.array([GAP * max(each.variable.nominal or 1.0, abs(each.value)) for each in equations.held]),
    }
    return np.concatenate(list(kinds.values())) + _ROUND_OFF * (np.abs(matrix) @ np.abs(unknowns))


def _motion_to_its_end(equations: RestEquations, guess: Floats, longest: float = _LONGEST, *, clamped: bool) -> Floats:
    """Return where M ż/τ = Q − Φ_zᵀ λ, Φ = 0, ẋ = f come to rest, or near it.

    Damping counts, and what moving walls displace, so that trapped oil stays the same. Implicit Euler steps of the
    length τ grow as long as nothing moves far in one and Newton's iteration finds its end.

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
            if time < _SHORTEST:
                break
            continue
        unknowns = moved
        time *= 2.0
        if time > longest:
            break
    return unknowns


def _moved(equations: RestEquations, begin: Floats, time: float, *, clamped: bool) -> Floats | None:
    """Return the end of a step of the overdamped motion, or None where it is too long."""
    unknowns = begin
    residual = _residual(equations, unknowns)
    states, before = equations.unknowns("states"), np.inf
    for _ in range(_MOST_ITERATIONS):
        assert residual is not None, "iterations go on where they are defined"
        move = _Move(equations, time, clamped=clamped)
        if move.climbs:
            return None
        step = move.taken(residual + move.inertia @ (unknowns - begin))
        unknowns = _onto_loops(equations, unknowns + step)
        far = np.max(np.abs((unknowns - begin)[states] / equations.scales[states]), initial=0.0)
        if _turn(equations, unknowns - begin) > _LARGEST_TURN or far > _LARGEST_MOVE:
            return None
        if (residual := _residual(equations, unknowns)) is None:
            return None
        size = float(np.max(np.abs(step / equations.scales)[states.start :], initial=0.0))
        size = max(size, _turn(equations, step))
        if size < _NEAR:
            return unknowns
        if size > before:
            return None
        before = size
    return None


def _onto_loops(equations: RestEquations, unknowns: Floats) -> Floats:
    """Return unknowns with the loops closed, and multipliers that balance loads as well as they can."""
    functions = equations.functions
    closed, moving = unknowns.copy(), equations.unknowns("coordinates")
    if functions.rows:
        closed[moving] = close_loops(functions, unknowns[moving])
        equations.load(closed)
        jacobian, rest = functions.closure()[1], functions.equilibrium()[1]
        closed[equations.unknowns("multipliers")] = np.linalg.lstsq(jacobian.T, -rest, rcond=RANK_TOLERANCE)[0]
    return closed


class _Move:
    """A step of the overdamped motion from where the functions are, in directions that the loops leave free."""

    def __init__(self, equations: RestEquations, time: float, *, clamped: bool) -> None:
        scales = equations.scales
        matrix, (mass, damping, driven) = equations.jacobian(), equations.motion()
        balance, closure = equations.rows("balance"), equations.rows("closure")
        rates, moving, states = equations.rows("rates"), equations.unknowns("coordinates"), equations.unknowns("states")
        loops = matrix[closure, moving]
        free = null_space(loops, RANK_TOLERANCE) if len(loops) else np.eye(len(mass))
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
        self._inverse = np.linalg.pinv(reduced * weights[:, None], rcond=1e-14) * weights

    def taken(self, residual: Floats) -> Floats:
        """Return the step of the unknowns; multipliers stay."""
        return self._into @ (-self._inverse @ (self._project @ residual))

    @property
    def climbs(self) -> bool:
        """Whether loads that are added would work negatively: the stiffness is, with which the states answer."""
        answers = self._inverse[: self._count, : self._count]
        sizes = np.linalg.eigvalsh(answers + answers.T)
        return bool(np.min(sizes, initial=0.0) < -1e-6 * np.max(np.abs(sizes), initial=0.0))
