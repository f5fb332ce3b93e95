"""Which coordinates the loop multipliers wait for when iteration matrices are eliminated from the tips to the base.

A multiplier acts on all joints between its loop and where the loop's sides meet, which may be the ground. Its pivot,
J_e M_e⁻¹ J_eᵀ, needs no more than some of them, so long as these move the loop's ends in all directions independently
of each other and of the loops further out: then it goes before the others, and what is carried inwards stays narrow.
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
"""Share of a row of J that is independent of the others, squared, which leaves ten digits …"""
_OF_ALL = 1e-2
"""… or the share of what all coordinates leave, where this is small itself."""
_NONE = 1e-12
"""Share that all coordinates leave of an equation that is redundant there: it tells nothing."""
_SAMPLES = 3
_SPREAD = 0.3
"""In rad, and of the unit of lengths: how far around the start is looked."""


def outermost_of(
    functions: SystemFunctions, acted_on: Sequence[Sequence[int]], depths: Sequence[int]
) -> list[list[int]]:
    """Return by multiplier the outermost coordinates that it acts on, as many as its pivot needs.

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
    """Yield Φ_z of the equations in use where the system would start, and around that."""
    random, here = np.random.default_rng(20240229), functions.coordinates.copy()
    start, _ = functions.system.initial_coordinates(functions.parameters)
    for sample in range(_SAMPLES + 1):
        functions.coordinates[:] = start + (sample > 0) * _SPREAD * random.standard_normal(len(start))
        _, jacobian, _ = functions.all_closure()
        yield jacobian[list(functions.rows)].copy()
    functions.coordinates[:] = here


def _is_enough(jacobian: Floats, some: Sequence[Sequence[int]], depths: NDArray[np.int64]) -> bool:
    """Tell whether no pivot of a multiplier is lost when it waits for some of the coordinates that it acts on."""
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
    """Return which share of the square of each row is independent of the rows before it."""
    squares = np.sum(rows**2, axis=1)
    left = np.zeros(len(rows))
    triangle = np.linalg.qr(rows.T, mode="r")
    diagonal = np.diagonal(triangle)
    left[: len(diagonal)] = diagonal**2
    return np.divide(left, squares, out=np.zeros(len(rows)), where=squares > 0.0)
