"""Loop closure at the start: number of independent equations, and loops without freedom."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.equations.linear import (
    MANY,
    RANK_TOLERANCE,
    independent_rows,
    null_space,
    pivot_columns,
    shortest_of_any_rank,
)
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import NEAR, UNEVEN, LockedCoordinates, LoopEquations, System, have_weak_direction
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

CLOSED = 1e-9
"""Largest violation in m and rad of closed loops."""
GIVEN = 1e-4
"""What is given follows from others only where these move this many times as fast; twice as many orders of
magnitude for what was set.
"""
STEP_LIMIT = 0.5
"""Largest change of a loop coordinate in a Gauss–Newton step, in rad or m …"""
SMALLEST_SHARE = 1e-3
"""… and the fraction of a step at which the search ends without improvement."""
MOST_ITERATIONS = 100
"""Largest number of Gauss–Newton steps."""
TURNED = 1.0
"""Misalignment, 1 − cos θ, from which on a joint is turned over: on closed loops it is 0 or 2."""
MOST_TURNS = 4
"""Searches for closed loops with no joint turned over, each from next to where the last one has ended …"""
NEXT = 0.1
"""… which is so far off in rad and m, by the fractions of multiples of …"""
GOLDEN = 0.6180339887498949
"""… the golden ratio, which differ for all coordinates: no turns of theirs cancel."""
LEAST_TURNED = 1e-2
"""Least weight of a coordinate against the one that moves most where a joint is turned back."""
NO_ARM = 1e-12
"""Lever arm in m that is round-off of points that coincide."""
IMMOBILE = 1e-6
"""Motion relative to the free motions below which a coordinate is locked."""
_TIED = 1e-4
"""Share by which a column that is not chosen must be shorter than a chosen one, for the choice to be said clear."""
_ASIDE = 0.1
"""Offset of coordinates in rad and m to detect nonlinear equations."""
_SAMPLES = 4
_SAMPLE_SPREAD = 0.05


@dataclass(frozen=True)
class OwnStarts:
    """Start values of coordinates or velocities of a model as it was made: what differs from them was set.

    Attributes
    ----------
    values
        Shape (n,).
    written
        Which of them the model has, zeros too, and which are zero by default, shape (n,).
    """

    values: Floats
    written: NDArray[np.bool_]

    @classmethod
    def of(cls, values: Floats, written: Sequence[bool] = ()) -> OwnStarts:
        """Return the start values; what is not zero counts as written, and no zero does by default."""
        there = values != 0.0
        return cls(values.copy(), there | np.array(written, dtype=bool) if len(written) else there)


@dataclass(frozen=True)
class OnConstraints:
    """Coordinates or velocities on the constraints, and which of them follow from the others.

    Attributes
    ----------
    values
        Shape (n,).
    dependent
        Indices of those that follow from the others, which keep their given values; None where all moved.
    weighted
        The matrix whose columns of largest distance from each other these are, shape (m, n).
    """

    values: Floats
    dependent: NDArray[np.intp] | None
    weighted: Floats

    @property
    def is_chosen_clearly(self) -> bool:
        """Whether no other column has the length of a chosen one: the choice stays for neighbouring parameters."""
        if self.dependent is None:
            return False
        rest = self.weighted.copy()
        chosen = np.isin(np.arange(rest.shape[1]), self.dependent)
        for _ in range(len(self.dependent)):
            lengths = np.linalg.norm(rest, axis=0)
            column = int(np.argmax(np.where(chosen, lengths, -1.0)))
            if np.max(lengths[~chosen], initial=0.0) >= (1.0 - _TIED) * lengths[column]:
                return False
            direction = rest[:, column] / lengths[column]
            rest -= np.multiply.outer(direction, direction @ rest)
            rest[:, column] = 0.0
        return True


def close_loops(
    functions: SystemFunctions, guess: Floats, own: OwnStarts, counted: NDArray[np.intp] | None = None
) -> OnConstraints:
    """Return the coordinates on the constraints near the given ones.

    Coordinates that are given, which zero by default is not, stay where the others alone can close the loops;
    where they cannot, those stay that were set. Of the coordinates that may move, the independent ones (by full
    pivoting) keep their values where the loops can be closed so. Where no coordinate can stay, all move by as little as
    possible. Redundant constraints do no harm.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    guess
        Coordinates in rad and m, shape (n,).
    own
        Those of the model as it was made.
    counted
        How much coordinates are given; as `given_ranks` says by default.

    Raises
    ------
    InputError
        When the loops cannot be closed from there.
    """
    ranks = given_ranks(guess, own) if counted is None else counted.copy()
    for least in (1, 2, 3):  # the rank from which on coordinates stay
        ranks[ranks < least] = 0
        moving = np.flatnonzero(ranks == 0)
        nearest, violation = _approach(functions, guess, moving)
        if not violation.size:
            return OnConstraints(nearest, np.zeros(0, dtype=np.intp), np.zeros((0, len(guess))))
        closed, turned = _holds(functions, nearest, violation), None
        if not closed and (turned := _turned_back(functions, guess, moving)) is not None:
            nearest, closed = turned, True
        if closed:
            break
    if not closed:
        raise InputError(_refusal(functions, nearest, violation))
    jacobian = _closure_at(functions, nearest)[1]
    far = _far(functions, nearest, jacobian, nearest)
    if turned is not None:  # what has been turned over follows from the others, which stay
        away = np.abs(nearest - guess)
        far = np.maximum(away / np.max(away), LEAST_TURNED)
    weighted = _weighted(jacobian, ranks, far)
    dependent = _dependent(weighted, rank_of(jacobian))
    independent = np.delete(np.arange(len(guess)), dependent)
    kept = nearest.copy()
    kept[independent] = guess[independent]
    kept, violation = _approach(functions, kept, dependent)
    if _holds(functions, kept, violation):
        return OnConstraints(kept, dependent, weighted)
    return OnConstraints(nearest, None, weighted)


def _holds(functions: SystemFunctions, coordinates: Floats, violation: Floats) -> bool:
    """Return whether the loops are closed at coordinates, by no joint that is turned by half a turn."""
    return bool(np.max(np.abs(violation), initial=0.0) < CLOSED) and turned_joint(functions, coordinates) is None


def turned_joint(functions: SystemFunctions, coordinates: Floats) -> str | None:
    """Return the name of a joint that closes a loop turned by half a turn at coordinates; None without one."""
    if not functions.system.aligned:
        return None
    functions.coordinates[:] = coordinates
    misalignment = functions.misalignment()[0]
    worst = int(np.argmax(misalignment))
    return functions.system.aligned[worst] if not misalignment[worst] < TURNED else None


def _turned_back(functions: SystemFunctions, guess: Floats, moving: NDArray[np.intp]) -> Floats | None:
    """Return coordinates on the constraints near given ones with no joint turned over; None if none are found.

    The misalignments of joints are equations like the others here. Where a joint is turned by half a turn exactly, they
    have no slope: the search begins again next to that.
    """
    if not functions.system.aligned:
        return None
    begin = guess
    for attempt in range(MOST_TURNS):
        found, violation = _approach(functions, begin, moving, aligning=True)
        if _holds(functions, found, violation[: len(functions.system.constraints)]):
            return found
        begin = found.copy()
        shares = np.modf(GOLDEN * (1.0 + np.arange(len(guess)) + attempt))[0]
        begin[moving] -= (NEXT * (0.5 + shares) * np.where(found < 0.0, -1.0, 1.0))[moving]
    return None


def _refusal(functions: SystemFunctions, coordinates: Floats, violation: Floats) -> str:
    """Return the sentence on loops that cannot be closed, or by a joint turned by half a turn alone."""
    name, worst = functions.system.name, int(np.argmax(np.abs(violation)))
    if (gap := np.abs(violation[worst])) < CLOSED:
        return (
            f"{name} cannot be assembled: from the given start values the loops close only with joint "
            f"{turned_joint(functions, coordinates)} turned by half a turn against its own orientation; check points, "
            "axes and start values, or turn the joint's orientation by pi"
        )
    return (
        f"{name} cannot be assembled: from the given start values the loops come no closer "
        f"than {gap:.3g} at joint {functions.system.constraints[worst]}; check lengths, points and start values"
    )


def onto_velocity_constraints(
    functions: SystemFunctions,
    coordinates: Floats,
    velocities: Floats,
    own: OwnStarts,
    counted: NDArray[np.intp] | None = None,
) -> OnConstraints:
    """Return velocities with Φ_z ż + Φ_t = 0, shape (n,).

    Those that were set, and before others those that the model has, are kept as far as the loops let them.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    coordinates
        On the constraints, shape (n,).
    velocities, own
        As given, shape (n,), and those of the model as it was made.
    counted
        How much velocities are given; as `given_ranks` says by default.
    """
    violation, jacobian = _closure_at(functions, coordinates)
    if not violation.size:
        return OnConstraints(velocities.copy(), np.zeros(0, dtype=np.intp), jacobian)
    moving = functions.all_closure()[2].copy()
    ranks = given_ranks(velocities, own) if counted is None else counted
    given = ranks > 0
    following = velocities.copy()
    if given.any():
        following[~given] = -_least_squares(jacobian[:, ~given], jacobian @ velocities + moving)
    weighted = _weighted(jacobian, ranks, _far(functions, coordinates, jacobian, following))
    dependent = _dependent(weighted, rank_of(jacobian))
    independent = np.delete(np.arange(len(velocities)), dependent)
    driven = jacobian[:, independent] @ velocities[independent] + moving
    result = velocities.copy()
    result[dependent] = -_least_squares(jacobian[:, dependent], driven)
    return OnConstraints(result, dependent, weighted)


def given_ranks(values: Floats, own: OwnStarts) -> NDArray[np.intp]:
    """Return how much coordinates or velocities are given, shape (n,): 2 what was set, 1 what the model has, 0 else."""
    return np.where(values != own.values, 2, np.where(own.written, 1, 0))


def _weighted(jacobian: Floats, ranks: NDArray[np.intp], far: Floats) -> Floats:
    """Return Φ_z with its columns weighted: given coordinates follow from others only where it must be.

    What gears drive moves as much as it has to: `far` is how far that is, shape (n,), and one of all others.
    """
    return np.asarray(jacobian * np.where(ranks > 0, GIVEN**ranks, far))


def _dependent(weighted: Floats, rank: int) -> NDArray[np.intp]:
    """Return which columns follow from the others, ascending."""
    return np.sort(pivot_columns(weighted, rank)[1])


def _far(functions: SystemFunctions, coordinates: Floats, jacobian: Floats, moved: Floats) -> Floats:
    """Return by how much coordinates are moved where that is more than one, and no equation bends with them."""
    return np.where(_bent(functions, coordinates, jacobian), 1.0, np.maximum(1.0, np.abs(moved)))


def _bent(
    functions: SystemFunctions, coordinates: Floats, jacobian: Floats, counted: NDArray[np.intp] | None = None
) -> NDArray[np.bool_]:
    """Return which coordinates are in equations that are not linear in them, as those of loops, shape (n,)."""
    there = _closure_at(functions, coordinates + _ASIDE, counted)[1]
    rows = (there != jacobian).any(axis=1)
    return np.logical_or(jacobian[rows].any(axis=0), there[rows].any(axis=0))


def rank_of(jacobian: Floats) -> int:
    """Return how many of the constraints with these derivatives are independent, shape (m, n)."""
    rows = jacobian[jacobian.any(axis=1)]
    if not rows.size:
        return 0
    if independent_rows(rows):
        return len(rows)
    if min(rows.shape) > MANY:  # of matrices that are mostly zeros pivots are found sooner than singular values
        lengths = pivot_columns(rows)[0]
        return int(np.count_nonzero(lengths > RANK_TOLERANCE * lengths[0]))
    return int(np.linalg.matrix_rank(rows, rtol=RANK_TOLERANCE))


def closed_nearby(functions: SystemFunctions, guess: Floats, rows: NDArray[np.intp]) -> list[Floats]:
    """Return Φ_z of all constraints without units where some of them hold, near given coordinates and around there.

    Each is of shape (m, n); lengths are measured by the longest lever arm.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    guess
        Coordinates, shape (n,).
    rows
        Indices of the constraints that have to hold; where they cannot, nothing is returned.
    """
    random = np.random.default_rng(20210611)
    jacobians: list[Floats] = []
    spread, center = np.zeros(len(guess)), guess
    for _ in range(1 + _SAMPLES):
        nearby = center + spread * random.standard_normal(len(guess))
        closed, violation = _approach(functions, nearby, np.arange(len(guess)), rows)
        if np.max(np.abs(violation), initial=0.0) < CLOSED:
            jacobians.append(_closure_at(functions, closed)[1])
            if len(jacobians) == 1:
                center, spread = closed, _SAMPLE_SPREAD * functions.coordinate_lengths(_lever_arm(functions, jacobians))
        if not jacobians:
            break
    scales = functions.element_scales(_lever_arm(functions, jacobians)) if jacobians else 1.0
    return [jacobian / scales for jacobian in jacobians]


def _approach(
    functions: SystemFunctions,
    guess: Floats,
    moving: NDArray[np.intp],
    rows: NDArray[np.intp] | None = None,
    *,
    aligning: bool = False,
) -> tuple[Floats, Floats]:
    """Return the coordinates with the least violation found by moving some of them, and the violation.

    Gauss–Newton steps of least length, shortened until the violation falls. All constraints count, or some of them; or
    misalignments behind all constraints.
    """
    coordinates = guess.copy()
    violation, jacobian = _closure_at(functions, coordinates, rows, aligning=aligning)
    if not violation.size:
        return coordinates, violation
    for _ in range(MOST_ITERATIONS):
        step = np.zeros_like(coordinates)
        step[moving] = -_least_squares(jacobian[:, moving], violation)
        if np.max(np.abs(step)) > STEP_LIMIT:
            bent = _bent(functions, coordinates, jacobian[: len(functions.system.constraints)], rows)
            longest = np.max(np.abs(step[bent]), initial=STEP_LIMIT)
            step *= STEP_LIMIT / longest
        size, share = np.linalg.norm(violation), 1.0
        while share > SMALLEST_SHARE:
            trial = coordinates + share * step
            trial_violation, trial_jacobian = _closure_at(functions, trial, rows, aligning=aligning)
            if np.linalg.norm(trial_violation) < size:
                break
            share *= 0.5 if size > CLOSED else 0.0  # where whole steps make closed loops no better, it is round-off
        else:
            break  # no step makes it better: at round-off, or at a violation that stays
        coordinates, violation, jacobian = trial, trial_violation, trial_jacobian
    return coordinates, violation


def _least_squares(matrix: Floats, right: Floats) -> Floats:
    """Return the shortest solution; equations without coefficients, as across a plane, only take time."""
    rows = matrix.any(axis=1)
    matrix, right = matrix[rows], right[rows]
    if (factors := independent_rows(matrix)) is not None:
        return factors.shortest(right)
    if (found := shortest_of_any_rank(matrix, right)) is not None:
        return found
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK_TOLERANCE)[0], dtype=np.float64)


def closure_at(functions: SystemFunctions, coordinates: Floats) -> list[Floats]:
    """Return Φ, Φ_z and Φ_t of all constraints at coordinates, shapes (m,), (m, n) and (m,)."""
    functions.coordinates[:] = coordinates
    return [each.copy() for each in functions.all_closure()]


def _closure_at(
    functions: SystemFunctions, coordinates: Floats, rows: NDArray[np.intp] | None = None, *, aligning: bool = False
) -> tuple[Floats, Floats]:
    functions.coordinates[:] = coordinates
    violation, jacobian, _ = functions.all_closure()
    if rows is not None:
        return violation[rows], jacobian[rows]
    if aligning:
        misalignment, slopes = functions.misalignment_slopes()
        return np.concatenate([violation, misalignment]), np.concatenate([jacobian, slopes])
    return violation.copy(), jacobian.copy()


def find_loop_equations(functions: SystemFunctions, coordinates: Floats) -> LoopEquations:
    """Return the loop equations that depend on coordinates; log how many are redundant.

    The rank may be lower where a mechanism happens to start than nearby (a dead centre); configurations
    around the start are therefore looked at too, and the largest rank counts.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    coordinates
        Coordinates on the constraints, shape (n,).
    """
    system = functions.system
    uneven = system.inertia_spread(functions.parameters) > UNEVEN
    if not system.constraints:
        return LoopEquations((), 0, (), weak=uneven)
    random = np.random.default_rng(20210611)
    jacobians = [_closure_at(functions, coordinates)[1]]
    spread = _SAMPLE_SPREAD * functions.coordinate_lengths(_lever_arm(functions, jacobians))
    for _ in range(_SAMPLES):
        nearby = coordinates + spread * random.standard_normal(len(coordinates))
        closed, violation = _approach(functions, nearby, np.arange(len(nearby)))
        if np.max(np.abs(violation)) < CLOSED:
            jacobians.append(_closure_at(functions, closed)[1])
    rank = max(rank_of(jacobian) for jacobian in jacobians)
    rows = functions.moving_rows
    redundant = len(system.constraints) - rank
    if redundant:
        logger.info("%s: %d of %d loop equations are redundant", system.name, redundant, len(system.constraints))
    arm = _lever_arm(functions, jacobians)
    distances = [unit == "m" for unit in system.constraint_units]
    scaled = [jacobian / functions.element_scales(arm) for jacobian in jacobians]
    scales = tuple(arm if distances[row] else 1.0 for row in rows)
    weak = uneven or (min(jacobians[0].shape) <= MANY and have_weak_direction(jacobians[0], rank))
    return LoopEquations(rows, rank, scales, _near(scaled, rank), locked=_locked(scaled, rank), weak=weak)


def _locked(jacobians: list[Floats], rank: int) -> LockedCoordinates:
    """Return the coordinates that move with none of the motions left free, where a mechanism starts and around that.

    Parameters
    ----------
    jacobians
        Φ_z without units there; each of shape (m, n).
    rank
        The number of independent loop equations.
    """
    jacobian = jacobians[0]
    count = jacobian.shape[1]
    if rank == count:
        locked = np.ones(count, dtype=bool)
    elif min(jacobian.shape) > MANY:
        return LockedCoordinates()
    else:
        moved = [np.linalg.norm(null_space(each, RANK_TOLERANCE), axis=1) for each in jacobians]
        locked = np.all(np.array(moved) <= IMMOBILE, axis=0)
    if not locked.any():
        return LockedCoordinates()
    holding = jacobian[:, locked]
    rows = tuple(np.flatnonzero((np.abs(holding) > RANK_TOLERANCE).any(axis=1)).tolist())
    if min(holding.shape) > MANY:
        return LockedCoordinates(tuple(np.flatnonzero(locked).tolist()), rows)
    sizes = np.linalg.svd(holding, compute_uv=False)
    return LockedCoordinates(tuple(np.flatnonzero(locked).tolist()), rows, float(sizes[-1] / sizes[0]))


def _near(jacobians: list[Floats], rank: int) -> float:
    """Return by which share the last equation stands out where a change point is next.

    In long loops, and in loops one upon the other, it stands out by little wherever the mechanism is, and by what it
    does some way off a change point.

    Parameters
    ----------
    jacobians
        Φ_z without units where a mechanism starts, and around that; each of shape (m, n).
    rank
        The number of independent loop equations.
    """
    if not rank or len(jacobians) == 1:
        return NEAR
    lengths = [pivot_columns(jacobian, rank)[0] for jacobian in jacobians]
    shares = [each[-1] / each[0] for each in lengths if each[0] > 0.0]
    return NEAR * min(1.0, max(shares) / _SAMPLE_SPREAD)


def _lever_arm(functions: SystemFunctions, jacobians: list[Floats]) -> float:
    """Return how far distances in loops move with angles at most, in m; 1 where none does but by round-off."""
    system = functions.system
    distances = np.array([unit == "m" for unit in system.constraint_units])
    angles = np.array([each.unit != "m" for each in system.coordinates])
    levers = np.array(jacobians)[:, distances][:, :, angles]
    arm = float(np.max(np.abs(levers), initial=0.0))
    return arm if arm > NO_ARM else 1.0


MOST_NAMED = 3
"""Largest number of joints named in a message."""
ROUND_OFF = 1e-13
"""Derivatives below this fraction of the largest one are zero but for round-off."""


def loops_at(system: System, rows: Iterable[int]) -> str:
    """Return the loops of constraints, given by index, in words: "the loop closed at C", for example."""
    joints = list(dict.fromkeys(system.constraints[row].partition(" (")[0] for row in rows))
    if len(joints) == 1:
        return f"the loop closed at {joints[0]}"
    named, others = joints[:MOST_NAMED], len(joints) - MOST_NAMED
    return f"the loops closed at {', '.join(named)}" + (f" and {others} others" if others > 0 else "")


def refuse_locked_motion(functions: SystemFunctions, guess: Floats) -> None:
    """Refuse prescribed motions of coordinates that the other constraints lock, or other motions prescribe.

    A coordinate is locked where it moves with none of the motions that the constraints without prescribed motions leave
    free, neither where the mechanism starts nor in configurations nearby: at a dead centre alone it would not be.

    Parameters
    ----------
    functions
        Functions of the system, all constraints in use, with its parameters and inputs set.
    guess
        Coordinates where the search for closed loops begins, shape (n,).

    Raises
    ------
    InputError
        When a prescribed motion drives such a coordinate, or one freedom has two prescribed motions.
    """
    system, driven = functions.system, list(functions.driven)
    if not driven or len(functions.rows) < 2:
        return
    held = np.setdiff1d(np.arange(len(functions.rows)), driven)
    jacobians = closed_nearby(functions, guess, held)
    for index, row in enumerate(driven if jacobians else ()):
        if all(_locks(jacobian, held, row) for jacobian in jacobians):
            coordinates = np.flatnonzero(jacobians[0][row])
            locking = held[jacobians[0][np.ix_(held, coordinates)].any(axis=1)]
            raise InputError(
                f"{system.name}: {system.constraints[row]} cannot move its joint, which is locked: no freedom is left "
                f"there by {loops_at(system, locking)}; leave the motion out, or free a joint of the loop"
            )
        if all(_locks(jacobian, np.append(held, driven[:index]).astype(np.intp), row) for jacobian in jacobians):
            others = _needed(jacobians[0], held, driven[:index], row)
            raise InputError(
                f"{system.name}: {system.constraints[row]} prescribes a freedom that "
                f"{' and '.join(system.constraints[other] for other in others)} prescribe{'s' * (len(others) == 1)} "
                f"already; leave one of them out"
            )


def _needed(jacobian: Floats, held: NDArray[np.intp], others: list[int], row: int) -> list[int]:
    """Return those of other prescribed motions without which a prescribed motion would be free."""
    needed = list(others)
    for other in others:
        without = [each for each in needed if each != other]
        if _locks(jacobian, np.append(held, without).astype(np.intp), row):
            needed = without
    return needed


def _locks(jacobian: Floats, held: NDArray[np.intp], row: int) -> bool:
    """Return whether the active constraints leave no motion that another one, given by its row, restricts.

    Coordinates are scaled by their largest derivative in the active constraints, for gears with large ratios.
    """
    active, restricted = jacobian[held], jacobian[row]
    largest = np.max(np.abs(active), axis=0, initial=0.0)
    scales = np.where(largest > ROUND_OFF * np.max(largest), largest, 1.0)
    restricted = restricted / scales
    free = null_space(active / scales, RANK_TOLERANCE)
    return bool(np.linalg.norm(restricted @ free) <= IMMOBILE * np.linalg.norm(restricted))
