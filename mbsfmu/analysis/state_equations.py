"""State equations ẇ = F(w, u, p) of a formulation at points of a run, for rules whose steps are differentiated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from mbsfmu.analysis.implicit_map import ImplicitMap
from mbsfmu.analysis.run_points import Indices, PointFunctions
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

_flow_maps: WeakKeyDictionary[object, ImplicitMap] = WeakKeyDictionary()
"""By `StateEquations.traced`."""


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


class RunStates(ABC):
    """What equations of steps need of the states of a run beside its results."""

    remembered: ClassVar[tuple[str, ...]] = ()
    """Parts of states that w has and results have not; runs are made step by step for them."""

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


class StateEquations(RunStates):
    """Equations ẇ = F(w, u, p) of a formulation at points, and what is read there.

    Parameters
    ----------
    at
        Evaluates functions at the points.
    size
        Number of elements of w.

    Attributes
    ----------
    at, size
        As given.
    rates
        F at the points, shape (size, points), once they are completed.
    """

    rates: Floats

    def __init__(self, at: PointFunctions, size: int) -> None:
        self.at, self.size = at, size

    @abstractmethod
    def complete(self, rows: Sequence[int]) -> Floats:
        """Find what the points lack; return what is read there, shape (points, rows).

        Parameters
        ----------
        rows
            Rows of what is computed, see `SystemExpressions.computed`.
        """

    @abstractmethod
    def read(self, rows: Sequence[int]) -> Floats:
        """Return what is read at completed points, shape (points, rows)."""

    def end_trapezoidal_steps(self) -> None:
        """Find what the run does not tell of w where steps of the trapezoidal rule end."""

    def end_steps(self, ends: Indices, motion: Floats) -> bool:  # noqa: ARG002 - as above
        """Take from w at points where steps end, shape (size, points), what the run does not tell.

        Returns
        -------
        bool
            Whether that is anything: the points are to be completed again.
        """
        return False

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

    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats] | None:  # noqa: ARG002 - some stay
        """Return how changes of w, and parameters, enter w where another choice is made; see `StepEquations`."""
        return None

    @abstractmethod
    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start, shape (size, directions)."""

    @property
    def magnitudes(self) -> Floats:
        """Largest magnitudes of w at the points, nominal values of states and integrals at least; shape (size,)."""
        system = self.at.functions.system
        own = [each.nominal or 1.0 for each in (*system.states, *system.integrals)]
        nominal = [1.0] * (self.size - len(own)) + own
        return np.maximum(np.abs(self.motion()).max(axis=1), nominal)

    # -- second derivatives, for steps that have F_w in them ------------------------------------------------

    @abstractmethod
    def elsewhere(self, motion: Floats, inputs: Floats, near: Indices) -> StateEquations:
        """Return the completed equations at as many other points.

        Parameters
        ----------
        motion, inputs
            w and the inputs there, shapes (size, points) and (inputs, points).
        near
            Points of this one, next to which these are.
        """

    @property
    def flow_map(self) -> ImplicitMap:
        """F as a map from w; of all coordinates, where w has chosen ones."""
        if self.traced not in _flow_maps:
            _flow_maps[self.traced] = self._made_flow_map()
        return _flow_maps[self.traced]

    @property
    @abstractmethod
    def traced(self) -> object:
        """What outlives a run and has the functions: fits differentiate runs of it again and again."""

    @abstractmethod
    def _made_flow_map(self) -> ImplicitMap:
        """Return a new `flow_map`."""

    @abstractmethod
    def mapped(self, points: Indices) -> tuple[dict[str, Floats], Indices]:
        """Return what `flow_map` needs beside the parts of points with one choice, and the indices of w in it.

        Values have the shape (size, points).
        """
