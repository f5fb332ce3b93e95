"""Mass-orthogonal corrections: factors of a linear problem that solve for several right-hand sides.

The matrices depend on positions only, and are stored as a vector of numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mbsfmu.equations.vector_pieces import cut
from mbsfmu.modelling.fields import Array

PENALTY = 1e6
"""Penalty factor α relative to the bodies' mean mass in kg; the paper's value for bodies of 1 kg [Malczyk2012]."""

FEW_BODIES = 64
"""Largest number of bodies for this penalty; beyond it the penalty grows as the square of their number."""


def suitable_penalty(coordinates: int) -> float:
    """Return the penalty factor for bodies with a total number of coordinates.

    The remainder of an iteration is 1/α of (Φ_q M⁻¹ Φ_qᵀ)⁻¹ of each motion; for the slowest motion along a chain of n
    bodies this is n² times that of a single joint.
    """
    return PENALTY * max(1.0, (coordinates / (6 * FEW_BODIES)) ** 2)


class Corrections(ABC):
    """The matrices of M Δz + Φ_zᵀ Δλ = 0 and Δλ = α (Φ_z Δz + violation)."""

    @abstractmethod
    def numbers(self) -> Array:
        """Return the matrices as one vector, shape (numbers,)."""

    @abstractmethod
    def with_numbers(self, numbers: Array) -> Corrections:
        """Return the same problem with other matrices, from `numbers`."""

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """Number n of coordinates."""

    @abstractmethod
    def solve(self, violation: Array, free: Array | None = None) -> tuple[Array, Array]:
        """Return Δz and Δλ for a violation, shapes (n,) and (m,).

        Parameters
        ----------
        violation
            Φ, Φ̇ or Φ̈, shape (m,).
        free
            Accelerations of the bodies without constraints under loads, of which M Δz + Φ_zᵀ Δλ has the sum; without
            it there are no loads; shape (n,).
        """


class BlockDiagonalCorrections(Corrections):
    """Corrections of parts without constraints between them.

    Parameters
    ----------
    parts
        The corrections of the parts.
    constraints
        Number of constraints of each part.
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

    @property
    def coordinates(self) -> int:
        """Number of coordinates of all parts."""
        return sum(part.coordinates for part in self._parts)

    def solve(self, violation: Array, free: Array | None = None) -> tuple[Array, Array]:
        """Return Δz and Δλ of all parts."""
        counts = [part.coordinates for part in self._parts]
        alone = [None] * len(counts) if free is None else cut(free, counts)
        found = [
            part.solve(opening, own)
            for part, opening, own in zip(self._parts, cut(violation, self._constraints), alone, strict=True)
        ]
        moved, pushing = zip(*found, strict=True) if found else ((), ())
        return np.concatenate([np.zeros(0), *moved]), np.concatenate([np.zeros(0), *pushing])


def in_a_row(tree: Any) -> Iterator[Array]:
    """Yield the elements of all arrays in nested lists and tuples."""
    if isinstance(tree, (list, tuple)):
        for each in tree:
            yield from in_a_row(each)
    else:
        yield tree.ravel()


def rebuilt(tree: Any, numbers: Array) -> Any:
    """Return nested lists and tuples of arrays of the same shapes with other elements, in the order of `in_a_row`."""
    first = 0

    def taken(part: Any) -> Any:
        nonlocal first
        if isinstance(part, (list, tuple)):
            return type(part)([taken(each) for each in part])
        begin, first = first, first + int(np.prod(part.shape))
        return numbers[begin:first].reshape(part.shape)

    return taken(tree)
