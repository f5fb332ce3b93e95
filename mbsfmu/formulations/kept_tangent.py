"""The tangent of an implicit step that is kept for the steps that follow: its inverse, and what that was used for.

A product with the inverse takes half the time of a solution with factors, and there are many for each tangent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mbsfmu.formulations.workspace import Floats

USE = 5
"""How many numbers say what a tangent has been used for."""
SAME_STEP = 1e-2
"""Share by which a step may differ from the one that a tangent was made for."""


@dataclass(frozen=True)
class KeptTangent:
    """The inverse of a tangent with its age.

    Attributes
    ----------
    inverse
        Shape (u, u).
    step, before
        The step in s that it was made for, and the step before that one, 0 where nothing was remembered.
    steps
        How many steps it has been used for.
    spent
        What these have cost, itself included, in evaluations.
    rate
        The ratio by which increments by it shrink.
    """

    inverse: Floats
    step: float
    before: float
    steps: int = 0
    spent: float = 0.0
    rate: float = 0.0

    @classmethod
    def of(cls, numbers: Floats, use: Floats) -> KeptTangent | None:
        """Return the tangent that a state keeps; None where it keeps none."""
        if not use.size or use[0] == 0.0:
            return None
        unknowns = math.isqrt(numbers.size)
        inverse = numbers.reshape(unknowns, unknowns, order="F")
        return cls(inverse, float(use[0]), float(use[1]), int(use[2]), *use[3:].tolist())

    @property
    def numbers(self) -> Floats:
        """The inverse as a state keeps it, column by column, shape (u²,)."""
        return self.inverse.ravel(order="F")

    @property
    def use(self) -> Floats:
        """The rest of it, shape (`USE`,)."""
        return np.array([self.step, self.before, self.steps, self.spent, self.rate])

    def suits(self, step: float, before: float) -> bool:
        """Tell whether it is of a step like one in s that follows another one: the rule's coefficients are the same."""
        return abs(step - self.step) <= SAME_STEP * self.step and abs(before - self.before) <= SAME_STEP * self.before

    def used(self, spent: float, rate: float) -> KeptTangent | None:
        """Return it after one more step that it has served, with a ratio; None where a new one is due.

        It is due where this step has cost more than the steps have on average: from then on the average would rise.
        """
        if spent * self.steps > self.spent:
            return None
        return replace(self, steps=self.steps + 1, spent=self.spent + spent, rate=rate)
