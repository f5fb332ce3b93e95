"""State equations ẇ = F(w, u, p) at the points of a run, whose trapezoidal steps are differentiated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mbsfmu.analysis.run_points import Indices, PointFunctions
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class Slopes:
    """Derivatives at points of a run.

    Attributes
    ----------
    by_motion
        Of F by w, shape (points, size, size).
    read_by_motion
        Of what is read by w, through accelerations too, shape (points, rows, size).
    """

    by_motion: Floats
    read_by_motion: Floats


class StateEquations(ABC):
    """The equations of a formulation at points of a run.

    Each formulation whose trapezoidal steps w_{n+1} = w_n + h/2 (F_n + F_{n+1}) are differentiated has a class of them:
    what w is, F, and their derivatives.

    Parameters
    ----------
    at
        Evaluates functions at the points.

    Attributes
    ----------
    size
        Number of elements of w.
    rates
        F at the points, shape (size, points), once they are completed.
    """

    stepped: ClassVar[bool]
    """Whether w has parts that results have not, and runs are made step by step for them."""
    rates: Floats

    def __init__(self, at: PointFunctions, size: int) -> None:
        self.at, self.size = at, size

    @staticmethod
    @abstractmethod
    def choice(state: State) -> Any:
        """Return the choice of coordinates or of loop equations with which steps go on from a state."""

    @staticmethod
    @abstractmethod
    def same(choice: Any, other: Any) -> bool:
        """Return whether two choices are the same."""

    @staticmethod
    def may_begin_anew(formulation: Formulation, state: State, step: float) -> bool:  # noqa: ARG004 - most do not
        """Return whether w may be another one from a state on than where the step before, of a size in s, ended."""
        return False

    @abstractmethod
    def complete(self, rows: Sequence[int]) -> Floats:
        """Find what the points lack, and F; return what is read there, shape (points, rows).

        Parameters
        ----------
        rows
            Rows of what is computed, see `SystemExpressions.computed`.
        """

    @abstractmethod
    def motion(self) -> Floats:
        """Return w at the points, shape (size, points)."""

    @abstractmethod
    def slopes(self, points: Indices, rows: Sequence[int]) -> Slopes:
        """Return derivatives by w at points, of F and of rows of what is computed."""

    @abstractmethod
    def by_parameters(
        self, points: Indices, slopes: Slopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Return derivatives by parameters at points, (points, size, columns) and (points, rows, columns).

        Parameters
        ----------
        points, slopes
            The points, and what `slopes` gives there.
        columns, rows
            Indices of the parameters, and of what is computed.
        """

    @abstractmethod
    def pulled_back(
        self, points: Indices, slopes: Slopes, by_rates: Floats, row: int, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return products of rows with derivatives by all parameters and inputs, (points, parameters or inputs).

        Parameters
        ----------
        points, slopes
            The points, and what `slopes` gives there for the row alone.
        by_rates
            Rows of F, shape (points, size).
        row, weights
            Index of what is computed, and its weights at the points.
        """

    @abstractmethod
    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats] | None:
        """Return how changes of w, and parameters, enter w where another choice is made; None where w stays.

        Parameters
        ----------
        before, after
            Indices of the point where a step ends, and of that where the next one begins.

        Returns
        -------
        by_motion, by_parameters
            Shapes (size, size) and (size, all parameters).
        """

    @abstractmethod
    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start, shape (size, directions)."""


def step_matrices(step_sizes: Floats, begin: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Return I − h/2 A_{n+1} and I + h/2 A_n of steps, each of shape (steps, size, size)."""
    half = 0.5 * step_sizes[:, None, None]
    one = np.eye(begin.shape[1])
    return one - half * end, one + half * begin
