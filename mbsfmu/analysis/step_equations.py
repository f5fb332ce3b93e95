"""Equations of the steps of a run: how w at the end of each follows from w at its start, parameters and inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mbsfmu.analysis.run_points import Indices, chunks
from mbsfmu.analysis.state_equations import StateEquations
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class StepSlopes:
    """Derivatives along some steps.

    Attributes
    ----------
    part
        Which steps.
    forward
        Of w_{n+1} by w_n, shape (steps, size, size).
    read_begin, read_end
        Of what is read where steps begin by w_n, and where they end by w_{n+1}, each of shape (steps, rows, size).
    """

    part: slice
    forward: Floats
    read_begin: Floats
    read_end: Floats


@dataclass(frozen=True)
class Readings:
    """What is read along a run, over intervals that end with steps, and where something is read within these.

    Attributes
    ----------
    times
        Ends of the intervals in s, the start first; shape (N + 1,).
    begin, end
        What is read where they begin and end, shape (N, rows).
    """

    times: Floats
    begin: Floats
    end: Floats


class StepEquations(ABC):
    """The steps of a run: what w is, and the derivatives of w_{n+1} by w_n, parameters and inputs.

    Steps here are intervals between times at which something is read. Within a step of a solver w stays that at its
    start until the last of them.

    Parameters
    ----------
    states
        The equations at the points where steps begin and end.

    Attributes
    ----------
    at, size, states
        What evaluates functions at the points, the number of elements of w, and the equations.
    """

    formula_count: ClassVar[int] = 1
    """How many `formulas` there are."""

    def __init__(self, states: StateEquations) -> None:
        self.at, self.size, self.states = states.at, states.size, states

    @abstractmethod
    def complete(self, rows: Sequence[int]) -> Readings:
        """Find what the points lack; return what is read along the run.

        Parameters
        ----------
        rows
            Rows of what is computed, see `SystemExpressions.computed`.
        """

    def first_interval(self, step: int) -> int:
        """Return the first interval of a step of the solver."""
        return step

    @property
    def step_ends(self) -> Indices:
        """Indices of the times of `Readings` at which steps of the solver begin and end: inputs are linear between."""
        return np.arange(len(self.at.points.times))

    def chunks(self, first: int, last: int) -> list[slice]:
        """Return slices of intervals, few enough that their matrices fit into a cache."""
        return chunks(last, first)

    @abstractmethod
    def missed(self) -> tuple[Floats, Floats]:
        """Return by how much recorded steps miss the equations, (quantities, steps), and magnitudes, (quantities,)."""

    @abstractmethod
    def steps(self, part: slice, rows: Sequence[int]) -> StepSlopes:
        """Return derivatives by w of steps, and of rows of what is computed where they begin and end."""

    def formulas(self, steps: StepSlopes) -> Iterator[StepSlopes]:
        """Yield derivatives as they are, and those by the embedded formula in the same steps, where there is one.

        What differs tells how exact derivatives are, for step sizes are chosen for the run alone.

        Parameters
        ----------
        steps
            What `steps` gives.
        """
        yield steps

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
            Of w_{n+1}, shape (steps, size, columns), and of what is read where steps begin and end, (steps, rows,
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
            Rows of w_{n+1}, shape (steps, size).
        row, weights
            Index of what is computed, and its weights where steps begin and end, each of shape (steps,).

        Returns
        -------
        parameters, inputs_begin, inputs_end
            Sum over the steps, shape (all parameters,), and by the inputs where steps begin and end, (steps, inputs).
        """


def chained(forward: Floats, added: Floats, first: Floats) -> Floats:
    """Return x_0, …, x_N of x_{n+1} = A_n x_n + b_n, with A of shape (N, size, size)."""
    found = np.empty((len(forward) + 1, *first.shape))
    found[0] = first
    found[1:] = added
    for before, matrix, after in zip(found, forward, found[1:], strict=False):
        np.add(after, matrix @ before, out=after)
    return found
