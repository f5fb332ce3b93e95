"""Iterations of a step: convergence criteria, counts, and reused iteration matrices."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mbsfmu.equations.linear import LuFactors
from mbsfmu.tracing.workspace import Floats

REMAINING = 1e-7
"""Fraction of the tolerances that Newton's iteration may leave: it accumulates over steps, with 2 / h in rates."""

LIGHT = 1e-2
"""Weight of states in the decision whether the error is negligible. It does not accumulate over steps as in positions,
whose round-off changes a stiff pressure by more than this fraction of its tolerance.
"""

SMALL = 1e-2
"""First increment of the coordinates relative to the tolerance below which less is left of their error, in proportion.
It is the difference to the prediction, of the order of the step's own error: what is left has to decrease with that, or
smaller steps are no better …"""

ROUND_OFF = sys.float_info.epsilon / 256.0
"""… down to this fraction of the magnitudes: what is left has the same sign in many steps, which round-off has not …"""

STILL = 1e-13
"""… and if coordinates move by more than this fraction of the magnitudes: first increments of a system at rest are
round-off."""


@dataclass(frozen=True)
class NewtonTolerances:
    """Newton tolerances: an iteration has converged if every increment is below its tolerance.

    Attributes
    ----------
    coordinates
        In rad and m, relative to magnitudes above one; the paper's 1e-7 [Jaiswal2021, sect. 5].
    states
        Relative to the nominal value of each state, or to its magnitude if larger: 1e-8 is the paper's 1e-2 Pa and 1e-7
        V, up to 1 MPa and 10 V.
    opening
        Drift tolerance of loops that are closed at velocity or acceleration level, relative to lever arms or to 1 rad.
    """

    coordinates: float = 1e-7
    states: float = 1e-8
    opening: float = 1e-2


@dataclass(frozen=True)
class Limits:
    """Tolerances of the increments of all unknowns of a step; they follow the magnitudes of the unknowns.

    Attributes
    ----------
    shares
        Tolerance as a share of the magnitude, shape (u,).
    nominal
        Least magnitudes, shape (u,).
    states
        How many of the unknowns, the last ones, are states.
    """

    shares: Floats
    nominal: Floats
    states: int = 0

    @property
    def heaviest(self) -> float:
        """Greatest weight of coordinates in the decision whether the error is negligible."""
        return max(
            1.0, REMAINING * float(np.min(self.shares[: len(self.shares) - self.states], initial=1.0)) / ROUND_OFF
        )


@dataclass
class IterationCount:
    """Iteration counts of one level.

    Attributes
    ----------
    solutions
        How often it was solved.
    total, most
        Iterations over all solutions, and in the worst one.
    """

    solutions: int = 0
    total: int = 0
    most: int = 0

    @property
    def mean(self) -> float:
        """Iterations per solution."""
        return self.total / self.solutions if self.solutions else 0.0

    def join(self, other: IterationCount) -> None:
        """Add the counts of another one."""
        self.solutions += other.solutions
        self.total += other.total
        self.most = max(self.most, other.most)

    def clear(self) -> None:
        """Reset the counts."""
        self.solutions = self.total = self.most = 0


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
