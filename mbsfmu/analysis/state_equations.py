"""Equations of the steps of a run, of which each formulation that is differentiated has a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mbsfmu.analysis.run_points import PointFunctions
from mbsfmu.analysis.start_derivatives import StartDerivatives
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class StepSlopes:
    """Derivatives along some steps, L w_{n+1} = R w_n + ….

    Attributes
    ----------
    part
        Which steps.
    left, right
        L and R, each of shape (steps, size, size).
    read_begin, read_end
        Of what is read where steps begin by w_n, and where they end by w_{n+1}, each of shape (steps, rows, size).
    """

    part: slice
    left: Floats
    right: Floats
    read_begin: Floats
    read_end: Floats


class StateEquations(ABC):
    """The steps of a formulation along a run: what w is, and the derivatives of w_{n+1} by w_n, parameters and inputs.

    Parameters
    ----------
    at
        Evaluates functions at the points.

    Attributes
    ----------
    size
        Number of elements of w.
    """

    remembered: ClassVar[tuple[str, ...]] = ()
    """Parts of states that w has and results have not; runs are made step by step for them."""

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
        """Find what the points lack; return what is read there, shape (points, rows).

        Parameters
        ----------
        rows
            Rows of what is computed, see `SystemExpressions.computed`.
        """

    @abstractmethod
    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much recorded steps miss the equations, (quantities, steps), and magnitudes, (quantities,)."""

    @abstractmethod
    def steps(self, part: slice, rows: Sequence[int]) -> StepSlopes:
        """Return derivatives by w of steps, and of rows of what is computed where they begin and end."""

    @abstractmethod
    def steps_by_parameters(
        self, steps: StepSlopes, columns: Sequence[int], rows: Sequence[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by parameters.

        Parameters
        ----------
        steps
            What `steps` gives for the rows.
        columns, rows
            Indices of the parameters, and of what is computed.

        Returns
        -------
        steps, read_begin, read_end
            Of L w_{n+1}, shape (steps, size, columns), and of what is read where steps begin and end, (steps, rows,
            columns).
        """

    @abstractmethod
    def steps_pulled_back(
        self, steps: StepSlopes, by_steps: Floats, row: int, weights: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return products of rows with derivatives by all parameters and inputs.

        Parameters
        ----------
        steps
            What `steps` gives for the row alone.
        by_steps
            Rows of L w_{n+1}, shape (steps, size).
        row, weights
            Index of what is computed, and its weights where steps begin and end, each of shape (steps,).

        Returns
        -------
        parameters, inputs_begin, inputs_end
            Sum over the steps, shape (all parameters,), and by the inputs where steps begin and end, (steps, inputs).
        """

    def rechosen(self, before: int, after: int) -> tuple[Floats, Floats] | None:  # noqa: ARG002 - some stay
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
        return None

    @abstractmethod
    def at_start(self, start: StartDerivatives) -> Floats:
        """Return the derivatives of w at the start, shape (size, directions)."""
