"""Overdamped motion of a system to its end, by growing implicit Euler steps."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.equilibrium.damped_newton import LARGEST_TURN, allowed_at, bend, residual_at, turn
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.initialization.closing_loops import OwnStarts, close_loops
from mbsfmu.tracing.workspace import Floats

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
