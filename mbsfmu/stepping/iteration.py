"""Convergence criteria of the iterations of a step, and iteration counts."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

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
