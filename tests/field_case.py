"""A benchmark problem of the field: its model, what is known of its motion, and the error of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from unittest.mock import patch

import numpy as np
from scipy.integrate import solve_ivp

from mbsfmu import CoupledModel, Result
from mbsfmu.integration.error_measure import ErrorMeasure
from mbsfmu.tracing.workspace import Floats

Expected = Mapping[str, Floats]
"""Values of variables, the last one or all of them."""


@dataclass(frozen=True)
class FieldCase:
    """A benchmark problem.

    Attributes
    ----------
    name, source
        What it is called, and where its definition and its numbers come from.
    make
        Returns the model.
    expected
        Returns what variables are at times in s.
    stop
        End in s.
    """

    name: str
    source: str
    make: Callable[[], CoupledModel]
    expected: Callable[[Floats], Expected]
    stop: float
    _known: dict[bytes, Expected] = field(default_factory=dict, compare=False, repr=False)

    def known(self, times: Floats) -> Expected:
        """Return what is expected, computed once for all runs with these times."""
        key = times.tobytes()
        if key not in self._known:
            self._known[key] = self.expected(times)
        return self._known[key]

    def error(self, result: Result) -> tuple[float, str]:
        """Return the largest error relative to the range of its variable, and that variable."""
        errors = {
            name: float(np.max(np.abs(result[name][-len(values) :] - values)))
            / float(np.ptp(values if len(values) > 1 else result[name]))
            for name, values in self.known(result.time).items()
        }
        worst = max(errors, key=errors.__getitem__)
        return errors[worst], worst


def integrated(
    rates: Callable[[float, Floats], Floats | list[float]],
    start: list[float],
    times: Floats,
    method: str = "DOP853",
    max_step: float = inf,
) -> Floats:
    """Return the solution of an ordinary differential equation at times, shape (number of unknowns, k)."""
    span = float(times[0]), float(times[-1])
    solution = solve_ivp(rates, span, start, method, times, rtol=1e-12, atol=1e-13, max_step=max_step)
    return np.asarray(solution.y)


@contextmanager
def estimated_errors() -> Iterator[dict[str, float]]:
    """Collect the estimated error of each variable, relative to its range: a result has the largest alone."""
    errors: dict[str, float] = {}
    shares = ErrorMeasure.shares

    def collected(measure: ErrorMeasure, *numbers: Floats) -> Floats:
        values = shares(measure, *numbers)
        errors.update(zip(measure.names, values.tolist(), strict=True))
        return values

    with patch.object(ErrorMeasure, "shares", collected):
        yield errors
