"""Loops without freedom: their joints, and prescribed motions that they prevent."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.initialization.closing_loops import IMMOBILE, closed_nearby
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import System
from mbsfmu.tracing.workspace import Floats

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
