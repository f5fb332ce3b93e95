"""Newton's iteration for a position of rest, damped by its natural monotonicity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equilibrium.equilibrium_equations import KINDS, STILL, EquilibriumEquations
from mbsfmu.equilibrium.undetermined_directions import OpenDirections
from mbsfmu.tracing.workspace import Floats

PRIORITY = {"closure": 1e3, "held": 1e3}
"""Where not all equations can hold, these do: factors by which they count."""
RANK = 1e-13
"""Share of the largest singular value, of equations and unknowns in their magnitudes, up to which others are zero."""
LOAD = 1e-9
"""Share of the largest load, or of one N or N m, up to which loads balance."""
GAP = 1e-9
"""By how much loops in m and rad, and what is held in its magnitude, may be off."""
_ROUND_OFF = 1e-13
CONVERGED = 1e-10
"""In magnitudes: what is no further is the same."""
_MOST_STEPS = 60
_SMALLEST_SHARE = 1e-4
LARGEST_TURN = 0.3
"""In rad or m: no coordinate that derivatives change with moves further in a step."""


@dataclass(frozen=True)
class StaticEquilibrium:
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
        """Whether it is at rest."""
        return bool(np.all(np.abs(self.residual) <= self.allowed))

    @property
    def off(self) -> float:
        """The largest residual by what is allowed."""
        return float(np.max(np.abs(self.residual) / self.allowed, initial=0.0))


class FactoredJacobian:
    """The derivative at unknowns, with equations and unknowns in their magnitudes; least squares by it."""

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
        """Return the step, in magnitudes, that takes a residual away as far as it can."""
        step = -self._right[: self._rank].T @ ((self._left.T @ (self._weights * residual)) / self._values)
        return step if self._open is None else self._open.along(step)

    def conflict(self, residual: Floats) -> Floats:
        """Return what of a residual no step can take away: its part along the left null vectors."""
        weighted = self._weights * residual
        left = weighted - self._left @ (self._left.T @ weighted)
        return np.divide(left, self._weights, out=residual.copy(), where=self._weights > 0.0)

    @property
    def free(self) -> Floats:
        """Directions, in magnitudes, that change no equation."""
        return np.asarray(self._right[self._rank :].T)


def weights_of(equations: EquilibriumEquations, scaled: Floats, priority: Mapping[str, float]) -> Floats:
    """Return factors by which equations become the same size; rows that are round-off do not count."""
    weights = np.zeros(len(scaled))
    for kind in KINDS:
        sizes = np.max(np.abs(scaled[equations.rows(kind)]), axis=1, initial=0.0)
        counts = sizes > _ROUND_OFF * np.max(sizes, initial=0.0)
        weights[equations.rows(kind)] = np.where(counts, priority.get(kind, 1.0) / np.where(counts, sizes, 1.0), 0.0)
    return weights


def newton(
    equations: EquilibriumEquations,
    guess: Floats,
    steps: int = _MOST_STEPS,
    priority: Mapping[str, float] = PRIORITY,
) -> StaticEquilibrium:
    """Return where Newton's iteration ends; the functions are there.

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
    """Return the length of a step, infinite where it is beyond all numbers."""
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(step))


def turn(equations: EquilibriumEquations, step: Floats) -> float:
    """Return the largest change of a coordinate in a step of the unknowns, in rad or m."""
    return float(np.max(np.abs(step[equations.unknowns("coordinates")]), initial=0.0))


def bend(equations: EquilibriumEquations, step: Floats) -> float:
    """Return the same of the coordinates that derivatives change with."""
    moves = np.abs(step[equations.unknowns("coordinates")])
    for index in np.argsort(-moves):
        if moves[index] <= LARGEST_TURN or not equations.is_straight(int(index)):
            return float(moves[index])
    return 0.0


def residual_at(equations: EquilibriumEquations, unknowns: Floats) -> Floats | None:
    """Return what the equations are off, or None where they are not defined."""
    try:
        equations.load(unknowns)
    except SimulationError:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        residual = equations.residual()
    return residual if np.isfinite(residual).all() else None


def allowed_at(equations: EquilibriumEquations, unknowns: Floats, matrix: Floats) -> Floats:
    """Return by how much the equations may be off: a share of what is usual, and what round-off makes of them."""
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
