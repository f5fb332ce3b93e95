"""Order of updates of discrete states at one sample time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.systems.system import Sampling


def readers_first(samplings: Sequence[Sampling], pattern: NDArray[np.bool_]) -> tuple[Sampling, ...]:
    """Return updates with readers before writers; loops in the given order.

    Parameters
    ----------
    samplings
        The updates.
    pattern
        Which discrete states (rows) follow from which ones (columns), shape (d, d).
    """
    needs = _needs(pattern, samplings)
    left, ordered = list(range(len(samplings))), list[Sampling]()
    while left:
        free = next(each for each in left if all(needs[other, each] for other in left if needs[each, other]))
        ordered.append(samplings[free])
        left.remove(free)
    return tuple(ordered)


def _needs(pattern: NDArray[np.bool_], samplings: Sequence[Sampling]) -> NDArray[np.bool_]:
    """Return the transitive dependencies between updates; those of a loop depend on each other."""
    own = [slice(each.first, each.first + each.count) for each in samplings]
    needs = np.array([[bool(pattern[one, other].any()) for other in own] for one in own])
    for between in range(len(own)):
        needs |= np.outer(needs[:, between], needs[between])
    return needs
