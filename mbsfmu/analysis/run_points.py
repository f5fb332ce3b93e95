"""Points where the steps of a run begin and end, and functions that are evaluated there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
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
        results = [[np.empty((0, *traced.size_out(index)))] for index in range(traced.n_out())]
        for first in range(0, len(places), CHUNK):
            part = slice(first, first + CHUNK)
            here = places[part]
            arguments = [self._argument(name, here, part, given) for name in traced.name_in()]
            found = traced.call(arguments) if arguments else traced.call([])
            for index, (kept, value) in enumerate(zip(results, found, strict=True)):
                rows, columns = traced.size_out(index)
                array = np.asarray(value.full())
                if array.shape[1] == columns and len(here) > 1:  # of functions of nothing that changes
                    array = np.tile(array, len(here))
                kept.append(array.reshape(rows, len(here), columns).transpose(1, 0, 2))
        return [np.concatenate(each) for each in results]

    def _argument(self, name: str, here: Indices, part: slice, given: dict[str, Floats]) -> ca.DM:
        if name in given:
            return ca.DM(np.ascontiguousarray(given[name][:, part]))
        if name not in self.points.values:
            return ca.DM(self.constants[name])
        values = self.points.values[name]
        if values.ndim == 2:
            return ca.DM(np.ascontiguousarray(values[:, here]))
        taken = values[here]
        return ca.DM(np.ascontiguousarray(taken.transpose(1, 0, 2).reshape(taken.shape[1], -1)))


def chunks(stop: int, start: int = 0) -> list[slice]:
    """Return slices of so many steps, few enough that their matrices fit into a cache."""
    return [slice(first, min(first + CHUNK, stop)) for first in range(start, stop, CHUNK)]
