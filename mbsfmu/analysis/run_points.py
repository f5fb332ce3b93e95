"""Points where the steps of a run begin and end, and functions that are evaluated there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

Indices = NDArray[np.intp]
CHUNK = 512
"""Points at which functions are evaluated in one call: enough to make the call cheap, few enough to fit in a cache."""


@dataclass(frozen=True)
class RunPoints:
    """A run from step to step. Each step begins at one point and ends at another; inputs jump between steps.

    Attributes
    ----------
    times
        Ends of the steps in s, the start first; shape (N + 1,).
    begins, ends
        Index of the point where each step begins and ends, shape (N,).
    choices
        Of each point, the choice of independent coordinates or of loop equations; see `StateEquations.choice`.
    values
        Values at the points by the name of the part of the functions; shape (size, points), of matrices
        (points, rows, columns).
    """

    times: Floats
    begins: Indices
    ends: Indices
    choices: tuple[Any, ...]
    values: dict[str, Floats]

    @property
    def steps(self) -> Floats:
        """Sizes of the steps in s, shape (N,)."""
        return np.diff(self.times)


class PointFunctions:
    """Traced functions of a system, evaluated at points of a run by CasADi's interpreter.

    Parameters
    ----------
    functions
        Of the system.
    points
        The points.
    constants
        Values of parts that stay as they are in a run.
    """

    def __init__(self, functions: SystemFunctions, points: RunPoints, constants: Mapping[str, Floats]) -> None:
        self.functions, self.points, self.constants = functions, points, dict(constants)

    def evaluate(
        self, function: AnyFunction, chosen: Sequence[int] | Indices | None = None, **given: Floats
    ) -> list[Floats]:
        """Return the results of a traced function at points, each of shape (points, rows, columns).

        Parameters
        ----------
        function
            A `TracedFunction` in unrolled code.
        chosen
            Indices of the points; all of them by default.
        given
            Values of further parts, shape (size, number of points).
        """
        assert isinstance(function, TracedFunction)
        traced = function.function
        places = np.arange(len(self.points.choices)) if chosen is None else np.asarray(chosen, dtype=np.intp)
        results = [np.zeros((len(places), *traced.size_out(index))) for index in range(traced.n_out())]
        elements = [traced.sparsity_out(index).get_triplet() for index in range(traced.n_out())]
        for first in range(0, len(places), CHUNK):
            part = slice(first, first + CHUNK)
            here = places[part]
            mapped = traced.map(len(here))
            buffer, call = mapped.buffer()
            # C has the elements of a matrix column by column, and the points one after the other.
            arguments = [self._argument(name, here, part, given) for name in traced.name_in()]
            for index, values in enumerate(arguments):
                buffer.set_arg(index, values.data)  # pyright: ignore[reportCallIssue]
            found = [np.empty(mapped.nnz_out(index)) for index in range(traced.n_out())]
            for index, values in enumerate(found):
                buffer.set_res(index, values.data)  # pyright: ignore[reportCallIssue]
            call()
            for result, (rows, columns), values in zip(results, elements, found, strict=True):
                result[part, rows, columns] = values.reshape(len(here), len(rows))
        return results

    def elsewhere(self, values: Mapping[str, Floats], near: Indices) -> PointFunctions:
        """Return the functions at other points, given values of parts there, shape (size, points).

        Parameters
        ----------
        values
            What these points have.
        near
            Points of this one next to which they are, with the same choices.
        """
        nowhere = np.empty(0, dtype=np.intp)
        choices = tuple(self.points.choices[place] for place in near.tolist())
        points = RunPoints(np.empty(0), nowhere, nowhere, choices, dict(values))
        return PointFunctions(self.functions, points, self.constants)

    def _argument(self, name: str, here: Indices, part: slice, given: dict[str, Floats]) -> Floats:
        """Return the values of a part at points, one after the other, of matrices column by column."""
        if name in given:
            return np.ascontiguousarray(given[name][:, part].T)
        if name not in self.points.values:
            return np.tile(self.constants[name].ravel(order="F"), (len(here), 1))
        values = self.points.values[name]
        if values.ndim == 2:
            return np.ascontiguousarray(values[:, here].T)
        return np.ascontiguousarray(values[here].transpose(0, 2, 1))


def chunks(stop: int, start: int = 0) -> list[slice]:
    """Return slices of so many steps, few enough that their matrices fit into a cache."""
    return [slice(first, min(first + CHUNK, stop)) for first in range(start, stop, CHUNK)]
