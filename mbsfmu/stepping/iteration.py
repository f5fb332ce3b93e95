"""Convergence criteria of the iterations of a step, and iteration counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.tracing.workspace import Floats


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

    def magnitudes(self, unknowns: Floats) -> Floats:
        """Return the magnitudes of the unknowns, at least their nominal values."""
        return np.maximum(self.nominal, np.abs(unknowns))

    def at(self, unknowns: Floats) -> Floats:
        """Return the tolerance of each increment at the unknowns."""
        return self.shares * self.magnitudes(unknowns)


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
