"""Base class of closure equations of cut joints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from mbsfmu.model.force_context import BodyPoint
from mbsfmu.modelling import Array


class ClosureEquation(ABC):
    """One closure equation, Φ = 0, between the joint's points on both bodies.

    dΦ/dt is wᵀ Z on the child plus the same on the parent. The wrenches w are forces in N and moments about the
    inertial origin in N m of a unit multiplier. All are pure NumPy functions without branches on values.
    """

    unit: ClassVar[str]
    """Unit of the violation, m or rad."""

    @abstractmethod
    def value(self, parent: BodyPoint, child: BodyPoint) -> Array:
        """Return the violation, a scalar."""

    @abstractmethod
    def wrenches(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return w on the parent and on the child, each of shape (6,)."""

    @abstractmethod
    def wrench_rates(self, parent: BodyPoint, child: BodyPoint) -> tuple[Array, Array]:
        """Return dw/dt on the parent and on the child, each of shape (6,)."""
