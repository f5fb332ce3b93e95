"""Elimination order of loop multipliers in iteration matrices, from the tips to the base.

A multiplier acts on all joints of its loop up to the common ancestor, which may be the ground. Its pivot, J_e M_e⁻¹
J_eᵀ, needs only some of them, provided these move the loop's ends independently in all directions and independently of
loops further out. The multiplier can then be eliminated before the others, which keeps the fronts small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

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
