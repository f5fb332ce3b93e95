"""The iteration matrix of an implicit step that is kept for the steps that follow, and what it was used for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mbsfmu.equations.linear import LuFactors
from mbsfmu.tracing.workspace import Floats

USE = 5
"""How many numbers say what an iteration matrix has been used for."""
SAME_STEP = 1e-2
"""Share by which a step may differ from the one that an iteration matrix was made for."""


class Inverse(ABC):
    """What solves linear equations with an iteration matrix."""

    @property
    @abstractmethod
    def numbers(self) -> Floats:
        """What a state keeps of it."""

    @abstractmethod
    def times(self, right: Floats) -> Floats:
        """Return the solution for a right side."""


@dataclass(frozen=True)
class DenseInverse(Inverse):
    """An inverse as a matrix.

    A product with it takes half the time of a solution with factors, and there are many for each iteration matrix.

    Attributes
    ----------
    matrix
        Shape (u, u).
    """

    matrix: Floats

    @classmethod
    def of(cls, iteration_matrix: Floats) -> Self | None:
        """Return that of an iteration matrix; None where this is singular."""
        factors = LuFactors(iteration_matrix)
        return None if factors.singular else cls(factors.inverse())

    @classmethod
    def kept(cls, numbers: Floats) -> Self:
        """Return it as a state keeps it."""
        unknowns = math.isqrt(numbers.size)
        return cls(numbers.reshape(unknowns, unknowns, order="F"))

    @property
    def numbers(self) -> Floats:
        """Its elements column by column, shape (u²,)."""
        return self.matrix.ravel(order="F")

    def times(self, right: Floats) -> Floats:
        """Return the product."""
        return self.matrix @ right


@dataclass(frozen=True)
class ReusedJacobian:
    """An iteration matrix with its age.

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
        """Return the iteration matrix that a state keeps; None where it keeps none."""
        if not use.size or use[0] == 0.0:
            return None
        return cls(numbers, float(use[0]), float(use[1]), int(use[2]), *use[3:].tolist())

    @property
    def use(self) -> Floats:
        """The rest of it, shape (`USE`,)."""
        return np.array([self.step, self.before, self.steps, self.spent, self.rate])

    def suits(self, step: float, before: float) -> bool:
        """Tell whether it is of a step like one in s that follows another one: the rule's coefficients are the same."""
        return abs(step - self.step) <= SAME_STEP * self.step and abs(before - self.before) <= SAME_STEP * self.before

    def used(self, spent: float, rate: float) -> ReusedJacobian | None:
        """Return it after one more step that it has served, with a ratio; None where a new one is due.

        It is due where this step has cost more than the steps have on average: from then on the average would rise.
        """
        if spent * self.steps > self.spent:
            return None
        return replace(self, steps=self.steps + 1, spent=self.spent + spent, rate=rate)
