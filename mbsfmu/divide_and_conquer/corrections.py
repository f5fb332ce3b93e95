"""Mass-orthogonal corrections: the matrices of a linear problem as an object that solves it.

Its matrices depend on positions only, and serve for several right sides: who keeps them keeps their numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mbsfmu.equations.vector_pieces import cut
from mbsfmu.modelling.fields import Array

PENALTY = 1e6
"""Penalty factor α as a multiple of the bodies' mean mass in kg; the paper's for its bodies of 1 kg [Malczyk2012]."""

FEW_BODIES = 64
"""Bodies up to which this serves; beyond it grows as the square of their number."""


def suitable_penalty(coordinates: int) -> float:
    """Return the factor for bodies with so many coordinates together.

    An iteration leaves of each motion what 1/α is of its (Φ_q M⁻¹ Φ_qᵀ)⁻¹, and the slowest motion along a chain of n
    bodies has one that is n² times that of a single joint.
    """
    return PENALTY * max(1.0, (coordinates / (6 * FEW_BODIES)) ** 2)


class Corrections(ABC):
    """The matrices of M Δz + Φ_zᵀ Δλ = 0 and Δλ = α (Φ_z Δz + violation)."""

    @abstractmethod
    def numbers(self) -> Array:
        """Return the matrices as one vector, shape (numbers,)."""

    @abstractmethod
    def with_numbers(self, numbers: Array) -> Corrections:
        """Return the same problem with other matrices, as `numbers` gives them."""

    @abstractmethod
    def solve(self, violation: Array) -> tuple[Array, Array]:
        """Return Δz and Δλ for a violation, shapes (n,) and (m,)."""


class BlockDiagonalCorrections(Corrections):
    """Corrections of parts between which there are no constraints.

    Parameters
    ----------
    parts
        The corrections of the parts.
    constraints
        How many constraints each part has.
    """

    def __init__(self, parts: Sequence[Corrections], constraints: Sequence[int]) -> None:
        self._parts = parts
        self._constraints = constraints

    def numbers(self) -> Array:
        """Return the matrices of all parts."""
        return np.concatenate([np.zeros(0), *(part.numbers() for part in self._parts)])

    def with_numbers(self, numbers: Array) -> BlockDiagonalCorrections:
        """Return the same problem with other matrices."""
        own = cut(numbers, [len(part.numbers()) for part in self._parts])
        parts = [part.with_numbers(each) for part, each in zip(self._parts, own, strict=True)]
        return BlockDiagonalCorrections(parts, self._constraints)

    def solve(self, violation: Array) -> tuple[Array, Array]:
        """Return Δz and Δλ of all parts."""
        pairs = zip(self._parts, cut(violation, self._constraints), strict=True)
        found = [part.solve(own) for part, own in pairs]
        moved, pushing = zip(*found, strict=True) if found else ((), ())
        return np.concatenate([np.zeros(0), *moved]), np.concatenate([np.zeros(0), *pushing])


def in_a_row(tree: Any) -> Iterator[Array]:
    """Yield the elements of all arrays in lists and tuples, which may be in each other."""
    if isinstance(tree, (list, tuple)):
        for each in tree:
            yield from in_a_row(each)
    else:
        yield tree.ravel()


def rebuilt(tree: Any, numbers: Array) -> Any:
    """Return lists and tuples of arrays of the same shapes with other elements, as `in_a_row` yields them."""
    first = 0

    def taken(part: Any) -> Any:
        nonlocal first
        if isinstance(part, (list, tuple)):
            return type(part)([taken(each) for each in part])
        begin, first = first, first + int(np.prod(part.shape))
        return numbers[begin:first].reshape(part.shape)

    return taken(tree)
