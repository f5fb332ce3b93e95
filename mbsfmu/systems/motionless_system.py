"""Base of systems without coordinates."""

from __future__ import annotations

import numpy as np

from mbsfmu.modelling.fields import Array
from mbsfmu.systems.system import System, SystemContext


class MotionlessSystem(System):
    """A system of first-order equations only."""

    def residual(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector: there are no coordinates."""
        return np.zeros(0)

    def closure(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector: there are no loops."""
        return np.zeros(0)

    def integral_rates(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector."""
        return np.zeros(0)

    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Return empty vectors: there are no coordinates."""
        return np.zeros(0), np.zeros(0)

    def initial_integrals(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return an empty vector."""
        return np.zeros(0)
