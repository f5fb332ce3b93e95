"""One equation as the problem of a step, for Newton's iteration."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from mbsfmu import SimulationError
from mbsfmu.stepping.iteration import DenseInverse, ReusedJacobian
from mbsfmu.tracing.workspace import Floats

STEP = 1e-3


@dataclass
class Scalar:
    """f(x) = x + bend x³ = 0.5, as the problem of a step."""

    bend: float
    guess: Floats
    step: float = STEP
    names = ("x",)
    state = SimpleNamespace(coordinates=np.zeros(1), velocities=np.ones(1))
    evaluations: int = 0
    iteration_matrices: int = 0

    def residual(self, unknowns: Floats) -> Floats:
        self.evaluations += 1
        self._at = unknowns.copy()
        if abs(self._at[0]) > 1e6:
            raise SimulationError("far away")
        return self._at + self.bend * self._at**3 - 0.5

    def jacobian(self) -> Floats:
        self.iteration_matrices += 1
        return np.atleast_2d(1.0 + 3.0 * self.bend * self._at**2)

    def inverse(self) -> DenseInverse | None:
        return DenseInverse.of(self.jacobian())

    def kept(self, iteration_matrix: ReusedJacobian) -> DenseInverse:
        return DenseInverse.kept(iteration_matrix.numbers)
