"""Damped Newton iteration for a static equilibrium, also along undetermined directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equilibrium.equilibrium_equations import KINDS, STILL, EquilibriumEquations
from mbsfmu.tracing.workspace import Floats

POSITIONS = 1e3
"""Weight of coordinates relative to other unknowns in magnitudes, if only their size decides."""
_INERTIA = 1e-3
"""Weight of inertia relative to damping, in 1/s; damping alone decides if there is any."""
_RANK = 1e-10
"""Fraction of the largest singular value below which others are zero."""


class OpenDirections:
    """Null directions of the equations, and the step along them.

    With F(y) = 0 at equilibrium, the slow motion towards it follows E ẏ = −F(y). E has the damping D of balances, and
    for rates the states themselves with the displacements of moving walls. Left null vectors w of F_y give the
    conserved quantities of such a motion, wᵀE ẏ = 0: the mass of trapped oil, or the position of a body held by damping
    only. Steps satisfy wᵀE Δy = 0 as well, independent of units, as implicit Euler steps of any length would
    [Kelley1998]. The remaining freedom, and all of it with fixed variables, is minimised with 1000 times the weight on
    coordinates: where states can carry the loads, positions stay.

    Parameters
    ----------
    equations
        The equations, whose functions are where the step begins.
    free
        Directions, in magnitudes, orthogonal and of length one; shape (number of unknowns, k).
    left
        The left null vectors of weighted equations, shape (number of equations, r).
    weights
        By which equations are multiplied; 0 of those that have no slope.
    """

    def __init__(self, equations: EquilibriumEquations, free: Floats, left: Floats, weights: Floats) -> None:
        self._free, self._lengths = free, np.ones(len(free))
        self._lengths[equations.unknowns("coordinates")] = POSITIONS
        self._shortest = -np.linalg.pinv(self._lengths[:, None] * free) * self._lengths
        self._conserving = None if equations.held else _conserving(equations, left, weights)
        if self._conserving is None:
            return
        _, triangle = np.linalg.qr(self._lengths[:, None] * free)
        self._turned = free @ np.linalg.inv(triangle)
        self._answer = np.linalg.pinv(self._conserving @ self._turned, rcond=_RANK)

    def along(self, step: Floats) -> Floats:
        """Return a step with the same effect on the equations, in magnitudes."""
        step = step + self._free @ (self._shortest @ step)
        if self._conserving is None:
            return step
        return step - self._turned @ (self._answer @ (self._conserving @ step))


def _conserving(equations: EquilibriumEquations, left: Floats, weights: Floats) -> Floats | None:
    """Return the rows wᵀE, shape (r, number of unknowns); None without any."""
    inertia = slow_motion(equations) * equations.scales
    sizes = np.max(np.abs(inertia), axis=1, initial=0.0)
    own = np.where(weights > 0.0, weights, 1.0 / np.where(sizes > 0.0, sizes, 1.0))
    rows = left.T @ (own[:, None] * inertia)
    lengths = np.linalg.norm(rows, axis=1)
    counts = lengths > _RANK * np.max(lengths, initial=0.0)
    return rows[counts] / lengths[counts, None] if counts.any() else None


def slow_motion(equations: EquilibriumEquations) -> Floats:
    """Return E, shape (number of equations, number of unknowns).

    Parameters
    ----------
    equations
        The equations, whose functions are where it is asked for.
    """
    mass, (damping, driven, _) = equations.functions.equilibrium()[0], equations.by_velocities()
    matrix = np.zeros((equations.rows("held").stop, len(equations.scales)))
    moving, balance, rates = (equations.unknowns("coordinates"), equations.rows("balance"), equations.rows("rates"))
    matrix[balance, moving] = _INERTIA * mass + damping
    matrix[rates, moving] = -equations.rates @ driven
    matrix[rates, equations.unknowns("states")] = equations.rates
    if equations.counts("updates"):
        first, updated = equations.unknowns("discrete").start, equations.rows("updates").start
        for each in equations.functions.system.samplings:
            for index in range(each.first, each.first + each.count):
                matrix[updated + index, first + index] = -each.sample_time
    return np.nan_to_num(matrix, nan=0.0, posinf=0.0, neginf=0.0)


PRIORITY = {"closure": 1e3, "held": 1e3}
"""Weights of equations with priority, if not all can hold."""
RANK = 1e-13
"""Fraction of the largest singular value, in scaled equations and unknowns, below which others are zero."""
LOAD = 1e-9
"""Load tolerance, relative to the largest load, or to one N or N m."""
GAP = 1e-9
"""Tolerance of loops in m and rad, and of fixed variables in magnitudes."""
_ROUND_OFF = 1e-13
CONVERGED = 1e-10
"""Convergence tolerance in magnitudes."""
_MOST_STEPS = 60
_SMALLEST_SHARE = 1e-4
LARGEST_TURN = 0.3
"""Largest change in a step, in rad or m, of coordinates with variable derivatives."""


@dataclass(frozen=True)
class StaticEquilibrium:
    """End of a search.

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
    conflict
        What of the residual no step takes away, as far as the Jacobian tells: its part along the left null vectors.
    """

    unknowns: Floats
    residual: Floats
    allowed: Floats
    free: Floats
    conflict: Floats

    @property
    def found(self) -> bool:
        """Whether it is an equilibrium."""
        return bool(np.all(np.abs(self.residual) <= self.allowed))

    @property
    def off(self) -> float:
        """Largest residual relative to its tolerance."""
        return float(np.max(np.abs(self.residual) / self.allowed, initial=0.0))


class FactoredJacobian:
    """Factorized Jacobian of scaled equations and unknowns, with least-squares solutions."""

    def __init__(self, equations: EquilibriumEquations, priority: Mapping[str, float] = PRIORITY) -> None:
        # along what has no finite slope, as a root at zero or what is beyond all numbers, no step goes
        self.matrix = equations.finite_jacobian()
        self._scales = equations.scales
        scaled = self.matrix * self._scales
        self._weights = weights_of(equations, scaled, priority)
        left, values, self._right = np.linalg.svd(scaled * self._weights[:, None])
        rank = int(np.count_nonzero(values > RANK * np.max(values, initial=0.0)))
        self._left, self._values = left[:, :rank], values[:rank]
        self._rank = rank
        self._open = OpenDirections(equations, self.free, left[:, rank:], self._weights) if self.free.size else None

    def solve(self, residual: Floats) -> Floats:
        """Return the least-squares step for a residual, in magnitudes."""
        step = -self._right[: self._rank].T @ ((self._left.T @ (self._weights * residual)) / self._values)
        return step if self._open is None else self._open.along(step)

    def conflict(self, residual: Floats) -> Floats:
        """Return the infeasible part of a residual: its part along the left null vectors."""
        weighted = self._weights * residual
        left = weighted - self._left @ (self._left.T @ weighted)
        return np.divide(left, self._weights, out=residual.copy(), where=self._weights > 0.0)

    @property
    def free(self) -> Floats:
        """Null space of the Jacobian, in magnitudes."""
        return np.asarray(self._right[self._rank :].T)


def weights_of(equations: EquilibriumEquations, scaled: Floats, priority: Mapping[str, float]) -> Floats:
    """Return weights that scale the equations alike; rows of round-off are ignored."""
    weights = np.zeros(len(scaled))
    for kind in KINDS:
        sizes = np.max(np.abs(scaled[equations.rows(kind)]), axis=1, initial=0.0)
        # updates are in the units of discrete states, which differ; other kinds of rows are of one unit, or relative
        own = equations.scales[equations.unknowns("discrete")] if kind == "updates" and len(sizes) else 1.0
        counts = sizes / own > _ROUND_OFF * np.max(sizes / own, initial=0.0)
        weights[equations.rows(kind)] = np.where(counts, priority.get(kind, 1.0) / np.where(counts, sizes, 1.0), 0.0)
    return weights


def newton(
    equations: EquilibriumEquations,
    guess: Floats,
    steps: int = _MOST_STEPS,
    priority: Mapping[str, float] = PRIORITY,
) -> StaticEquilibrium:
    """Return the end of Newton's iteration; the functions are there.

    Parameters
    ----------
    equations, guess
        The equations, and where it begins.
    steps
        How many there are at most.
    priority
        Factors by which kinds of equations count where not all of them can hold.
    """
    unknowns, residual = guess, residual_at(equations, guess)
    assert residual is not None, "the guess is where the equations were evaluated before"
    jacobian = FactoredJacobian(equations, priority)
    for _ in range(steps):
        step = jacobian.solve(residual)
        length = _length(step)
        share = min(1.0, LARGEST_TURN / max(bend(equations, step), LARGEST_TURN))
        while share > _SMALLEST_SHARE:
            trial = unknowns + share * step * equations.scales
            off = residual_at(equations, trial)
            if off is not None and _length(jacobian.solve(off)) <= max((1.0 - 0.25 * share) * length, CONVERGED):
                break
            share *= 0.5
        else:
            break
        unknowns, residual = trial, off
        jacobian = FactoredJacobian(equations, priority)
        if length < CONVERGED:
            break
    equations.load(unknowns)
    allowed = allowed_at(equations, unknowns, jacobian.matrix)
    return StaticEquilibrium(unknowns, residual, allowed, jacobian.free, jacobian.conflict(residual))


def _length(step: Floats) -> float:
    """Return the length of a step, infinite for non-finite steps."""
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(step))


def turn(equations: EquilibriumEquations, step: Floats) -> float:
    """Return the largest change of a coordinate in a step of the unknowns, in rad or m."""
    return float(np.max(np.abs(step[equations.unknowns("coordinates")]), initial=0.0))


def bend(equations: EquilibriumEquations, step: Floats) -> float:
    """Return the same for the coordinates with variable derivatives."""
    moves = np.abs(step[equations.unknowns("coordinates")])
    for index in np.argsort(-moves):
        if moves[index] <= LARGEST_TURN or not equations.is_straight(int(index)):
            return float(moves[index])
    return 0.0


def residual_at(equations: EquilibriumEquations, unknowns: Floats) -> Floats | None:
    """Return the residual, or None where the equations are undefined."""
    try:
        equations.load(unknowns)
    except SimulationError:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        residual = equations.residual()
    return residual if np.isfinite(residual).all() else None


def allowed_at(equations: EquilibriumEquations, unknowns: Floats, matrix: Floats) -> Floats:
    """Return the tolerances of the equations: relative to usual magnitudes, plus round-off."""
    system = equations.functions.system
    load = equations.largest_load()
    discrete = equations.scales[equations.unknowns("discrete")] if equations.counts("updates") else np.zeros(0)
    kinds = {
        "balance": np.full(len(system.coordinates), LOAD * load),
        "closure": np.full(len(system.constraints), GAP),
        "rates": np.full(len(equations.rates), STILL),
        "updates": STILL * discrete,
        "held": np.array([GAP * max(each.variable.nominal or 1.0, abs(each.value)) for each in equations.held]),
    }
    return np.concatenate(list(kinds.values())) + _ROUND_OFF * (np.abs(matrix) @ np.abs(unknowns))
