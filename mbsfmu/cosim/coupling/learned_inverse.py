"""Inverse Jacobian that is learned from all corrections, for equations that are solved again and again."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mbsfmu.cosim.compiled.layout import InverseTable
from mbsfmu.cosim.coupling.interface_inverse import InterfaceInverse, inner_product
from mbsfmu.cosim.coupling.iterated import pointer_to
from mbsfmu.cosim.fmus.fmu_instance import Floats

_DRIFT = 0.01
"""What the variance of the Jacobian gains in a correction along each direction: much less makes no difference over
hundreds of steps, ten times more forgets as Broyden's update does."""
_NOISE = 1e-4
"""Variance of what a correction of unit length says, in that of a direction that nothing is known of: corrections are
nearly exact."""


class LearnedInverse(InterfaceInverse):
    """Inverse H of a Jacobian that drifts, by recursive least squares.

    Broyden's update takes the least change of the Jacobian J for which J Δz = Δr, and so loses what corrections along
    other directions have told before. Here the change is the least one in the metric of the covariance P of the rows of
    J, which falls along directions as they are seen, and rises by a random walk in between:

        w = P d, s = noise + dᵀ w, J ← J + (Δr/|Δz| − J d) wᵀ / s, P ← P − w wᵀ / s + drift

    with d = Δz/|Δz| (Ljung 1999, "System Identification", section 11.2; P = 1 without noise is Broyden's update,
    projections for P are those of Gay and Schnabel 1978). H follows by the formula of Sherman and Morrison.

    Parameters
    ----------
    count, table
        As for `InterfaceInverse`.

    Attributes
    ----------
    covariance
        P, whose diagonal is at most 1, shape (m, m).
    """

    CHANGES: ClassVar = (*InterfaceInverse.CHANGES, "covariance")

    def __init__(self, count: int, table: InverseTable) -> None:
        super().__init__(count, 0, table)
        self.covariance, self._wide = np.eye(count), np.zeros((4, count))
        table.room = pointer_to(self._wide)
        table.covariance, table.drift, table.noise = pointer_to(self.covariance), _DRIFT, _NOISE

    def set_inverse(self, inverse: Floats) -> None:
        """Set the inverse itself, of which nothing is known better than the rest."""
        super().set_inverse(inverse)
        self.covariance[:] = np.eye(len(inverse))

    def learn(self, change: Floats, difference: Floats) -> None:
        """Take in that a change of the iterates changed the residual by a difference, each of shape (m,).

        Nothing is learned where there is no change, or where H would turn singular.
        """
        squared = inner_product(change, change)
        if not squared > 0.0:
            return
        length = np.sqrt(squared)
        direction = change / length
        weight = np.add.accumulate(self.covariance * direction, axis=1)[:, -1]
        variance = _NOISE + inner_product(direction, weight)
        missed = direction - self.apply(difference / length)
        along = variance - inner_product(weight, missed)
        if not abs(along) > self.table.least * variance:
            return
        shares = np.add.accumulate(self.columns * weight, axis=1)[:, -1:]
        self.columns += missed / along * shares
        self.covariance -= weight[:, np.newaxis] * weight / variance
        self.covariance[np.diag_indices(len(weight))] += _DRIFT
        largest = float(np.max(np.diag(self.covariance)))
        if largest > 1.0:
            self.covariance /= largest
