"""Reused iteration matrix of implicit steps (modified Newton), with its age and cost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mbsfmu.equations.linear import LuFactors
from mbsfmu.tracing.workspace import Floats

USE = 5
"""Number of values that describe its use."""
SAME_STEP = 1e-2
"""Relative change of the step up to which an iteration matrix is reused."""


class Inverse(ABC):
    """Inverse of an iteration matrix."""

    @property
    @abstractmethod
    def numbers(self) -> Floats:
        """Values that a state stores of it."""

    @abstractmethod
    def times(self, right: Floats) -> Floats:
        """Return the solution for a right-hand side."""


@dataclass(frozen=True)
class DenseInverse(Inverse):
    """Inverse as a dense matrix.

    A product takes half the time of a solution with factors, and each iteration matrix serves many.

    Attributes
    ----------
    matrix
        Shape (u, u).
    """

    matrix: Floats

    @classmethod
    def of(cls, iteration_matrix: Floats) -> Self | None:
        """Return the inverse of an iteration matrix; None if singular."""
        factors = LuFactors(iteration_matrix)
        return None if factors.singular else cls(factors.inverse())

    @classmethod
    def kept(cls, numbers: Floats) -> Self:
        """Return the inverse from a state's values."""
        unknowns = math.isqrt(numbers.size)
        return cls(numbers.reshape(unknowns, unknowns, order="F"))

    @property
    def numbers(self) -> Floats:
        """Elements column by column, shape (u²,)."""
        return self.matrix.ravel(order="F")

    def times(self, right: Floats) -> Floats:
        """Return the product."""
        return self.matrix @ right


@dataclass(frozen=True)
class ReusedJacobian:
    """An iteration matrix with its age and cost.

    Attributes
    ----------
    numbers
        What its inverse is made of.
    step, before
        The step in s that it was made for, and the step before that one, 0 where nothing was remembered.
    steps
        How many steps it has been used for.
    spent
        What these have cost, itself included, in evaluations.
    rate
        The ratio by which increments by it shrink.
    """

    numbers: Floats
    step: float
    before: float
    steps: int = 0
    spent: float = 0.0
    rate: float = 0.0

    @classmethod
    def of(cls, numbers: Floats, use: Floats) -> ReusedJacobian | None:
        """Return the iteration matrix of a state; None if it has none."""
        if not use.size or use[0] == 0.0:
            return None
        return cls(numbers, float(use[0]), float(use[1]), int(use[2]), *use[3:].tolist())

    @property
    def use(self) -> Floats:
        """Values of its use, shape (`USE`,)."""
        return np.array([self.step, self.before, self.steps, self.spent, self.rate])

    def suits(self, step: float, before: float) -> bool:
        """Return whether the rule has the same coefficients for a step in s after another one."""
        return abs(step - self.step) <= SAME_STEP * self.step and abs(before - self.before) <= SAME_STEP * self.before

    def used(self, spent: float, rate: float) -> ReusedJacobian | None:
        """Return it after one more step with a convergence ratio; None if a refresh is due.

        Refresh criterion: this step has cost more than the average of its steps, which would increase from now on.
        """
        if spent * self.steps > self.spent:
            return None
        return replace(self, steps=self.steps + 1, spent=self.spent + spent, rate=rate)
