"""Inverse Jacobian of the interface equations, with Broyden's updates in limited memory."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbsfmu.cosim.compiled.layout import InverseTable
from mbsfmu.cosim.coupling.iterated import pointer_to
from mbsfmu.cosim.fmus.fmu_instance import Floats

_LEAST = 1e-3


class InterfaceInverse:
    """Inverse H of a Jacobian, as a matrix that was made once and the updates since.

    Broyden's update as a product, H ← (1 + p wᵀ) H with p = (Δz − H Δr) / (wᵀ H Δr), w being Δz over the squared
    scales, so that H Δr = Δz for the last change Δz of the iterates and Δr of the residual (Kelley 1995, "Iterative
    methods for linear and nonlinear equations", section 7.3). An update adds two vectors, and takes a number of
    operations proportional to that of the unknowns; a matrix that is updated would have to be inverted every time.

    Sums are made in order, as compiled code makes them, for the same result to the last bit.

    Parameters
    ----------
    count
        Number of unknowns m.
    most
        Number of updates that are kept before no more are added.
    table
        Its numbers, with pointers to its arrays; compiled code works on the same.

    Attributes
    ----------
    columns
        Columns of the matrix, one after the other, shape (m, m).
    moves, weights
        p and w of each update, shape (most, m).
    """

    CHANGES: ClassVar = ("columns", "moves", "weights", "updates", "is_known")

    def __init__(self, count: int, most: int, table: InverseTable) -> None:
        self.columns = np.zeros((count, count))
        self.moves, self.weights = np.zeros((most, count)), np.zeros((most, count))
        self._room = np.zeros((2, count))
        self.table = table
        table.count, table.most, table.least = count, most, _LEAST
        table.columns, table.room = pointer_to(self.columns), pointer_to(self._room)
        table.moves, table.weights = pointer_to(self.moves), pointer_to(self.weights)

    @property
    def updates(self) -> int:
        """Number of updates."""
        return self.table.updates

    @updates.setter
    def updates(self, count: int) -> None:
        self.table.updates = count

    @property
    def is_known(self) -> bool:
        """Whether there is a matrix."""
        return bool(self.table.is_known)

    @is_known.setter
    def is_known(self, known: bool) -> None:
        self.table.is_known = known

    @property
    def is_full(self) -> bool:
        """Whether no update can be added."""
        return self.updates == self.table.most

    def set(self, jacobian: Floats) -> None:
        """Set the Jacobian, without updates; the pseudo-inverse takes the place of an inverse that is not there."""
        try:
            inverse = np.linalg.inv(jacobian)
        except np.linalg.LinAlgError:
            inverse = np.linalg.pinv(jacobian)
        self.set_inverse(np.asarray(inverse, dtype=np.float64))

    def set_inverse(self, inverse: Floats) -> None:
        """Set the inverse itself, without updates."""
        self.columns[:] = inverse.T
        self.updates, self.is_known = 0, True

    def apply(self, vector: Floats) -> Floats:
        """Return H times a vector, shape (m,)."""
        result = np.add.reduce(self.columns * vector[:, np.newaxis], 0, initial=0.0)
        for move, weight in zip(self.moves[: self.updates], self.weights, strict=False):
            result += move * inner_product(weight, result)
        return result

    def update(self, change: Floats, difference: Floats, scales: Floats) -> None:
        """Add the update for changes of iterates and residual, unless it is full.

        Changes whose scaled square is not above `table.worth`, and those along which H would turn singular, say
        nothing.
        """
        weight = change / scales**2
        squared = inner_product(change, weight)
        if self.is_full or not squared > self.table.worth:
            return
        expected = self.apply(difference)
        along = inner_product(weight, expected)
        if not abs(along) > _LEAST * squared:
            return
        self.moves[self.updates] = (change - expected) / along
        self.weights[self.updates] = weight
        self.updates += 1


def inner_product(one: Floats, other: Floats) -> float:
    """Return the inner product of two vectors, summed in order."""
    return float(np.add.accumulate(one * other)[-1]) if len(one) else 0.0
