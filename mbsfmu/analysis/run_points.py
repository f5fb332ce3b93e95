"""Points where the steps of a run begin and end, and functions that are evaluated there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.native.many_points import CHUNK, at_points
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class RunPoints:
    """A run from step to step. Each step begins at one point and ends at another; inputs jump between steps.

    Attributes
    ----------
    times
        Ends of the steps in s, the start first; shape (N + 1,).
    begins, ends
        Index of the point where each step begins and ends, shape (N,).
    choices, chosen
        Choices of independent coordinates, and which of them each point has.
    values
        Values at the points by the name of the part of the functions; shape (size, points), of matrices
        (points, rows, columns).
    """

    times: Floats
    begins: Indices
    ends: Indices
    choices: Sequence[Partition]
    chosen: Indices
    values: dict[str, Floats]

    @cached_property
    def independent(self) -> Indices:
        """Indices of the independent coordinates at each point, shape (n − r, points)."""
        return np.array([each.independent for each in self.choices], dtype=np.intp)[self.chosen].T

    def groups(self) -> Iterator[tuple[Partition, Indices]]:
        """Yield the choices of coordinates that points have, with these points."""
        for index in np.unique(self.chosen).tolist():
            yield self.choices[index], np.flatnonzero(self.chosen == index)

    @property
    def steps(self) -> Floats:
        """Sizes of the steps in s, shape (N,)."""
        return np.diff(self.times)


class PointFunctions:
    """Traced functions of a system, evaluated at points of a run.

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
        places = np.arange(len(self.points.chosen)) if chosen is None else np.asarray(chosen, dtype=np.intp)
        arguments = [self._argument(name, places, given) for name in function.function.name_in()]
        return at_points(function, arguments, len(places))

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
        own = self.points
        points = RunPoints(np.empty(0), nowhere, nowhere, own.choices, own.chosen[near], dict(values))
        return PointFunctions(self.functions, points, self.constants)

    def _argument(self, name: str, places: Indices, given: dict[str, Floats]) -> Floats:
        """Return the values of a part at points, one after the other, of matrices column by column."""
        if name in given:
            return np.ascontiguousarray(given[name].T)
        if name not in self.points.values:
            return np.tile(self.constants[name].ravel(order="F"), (len(places), 1))
        values = self.points.values[name]
        if values.ndim == 2:
            return np.ascontiguousarray(values[:, places].T)
        return np.ascontiguousarray(values[places].transpose(0, 2, 1))


@contextmanager
def regular() -> Iterator[None]:
    """Decorate what solves equations at points of a run.

    Raises
    ------
    SimulationError
        When they are singular at one of them.
    """
    try:
        yield
    except np.linalg.LinAlgError:
        raise SimulationError("the equations are singular at a point of the run: it is not differentiated") from None


def chunks(stop: int, start: int = 0) -> list[slice]:
    """Return slices of so many steps, few enough that their matrices fit into a cache."""
    return [slice(first, min(first + CHUNK, stop)) for first in range(start, stop, CHUNK)]
