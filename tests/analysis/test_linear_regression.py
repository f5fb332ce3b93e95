"""Fits of a machine that is a straight line, against the closed forms of linear regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mbsfmu.analysis.fitted_machines import FittedMachine, Request, RunSlopes
from mbsfmu.analysis.fitting import Free, _Residuals, _Search, _Tally, fit
from mbsfmu.analysis.residuals import Experiment
from mbsfmu.modelling.variables import Variable

Floats = NDArray[np.float64]
GRID = np.linspace(0.0, 1.0, 11)
FREE = Free((0, 1), (), np.array([-4.0, -4.0]), np.array([6.0, 6.0]))


class LineRun:
    """A run of y = a + b t between the times of the grid."""

    def __init__(self, values: Floats) -> None:
        read = (values[0] + values[1] * GRID)[:, None]
        self.times: Floats = GRID
        self.begin: Floats = read[:-1]
        self.end: Floats = read[1:]

    def slopes(self, chosen: Sequence[int]) -> RunSlopes:
        """Return derivatives by a and b where steps begin and end."""
        found = np.stack([np.ones_like(GRID), GRID], axis=1)[:, None, list(chosen)]
        return RunSlopes(GRID, found[:-1], found[1:])


class LineMachine(FittedMachine):
    """A machine that is a straight line."""

    def __init__(self) -> None:
        self.parameters = [Variable("a", start=1.0), Variable("b", start=1.0)]
        self.outputs = [Variable("y")]
        self.given = np.ones(2)

    def run(self, request: Request) -> LineRun:
        """Return the run with a and b."""
        assert (*request.chosen, *request.rows) == (0, 1, 0)
        assert request.stop <= GRID[-1]
        return LineRun(request.values)


def log(count: int) -> tuple[Experiment, Floats, Floats]:
    """Return an experiment with noise, and the matrix and the right side of its regression."""
    times = np.linspace(0.03, 0.97, count)
    measured = 2.0 - 1.5 * times + 0.05 * np.random.default_rng(3).standard_normal(count)
    matrix = np.stack([np.ones(count), times], axis=1)
    return Experiment("log", {}, (0,), (times,), (measured,)), matrix, measured


@pytest.mark.parametrize("count", [5, 12])
def test_noise_that_is_not_given_has_as_many_degrees_of_freedom_as_values_less_parameters(count: int) -> None:
    """Covariance s² (JᵀJ)⁻¹ with s² = Σ r² / (n − p) [Draper, Smith: Applied Regression Analysis]."""
    experiment, matrix, measured = log(count)
    values, (squares,), *_ = np.linalg.lstsq(matrix, measured, rcond=None)
    variance = squares / (count - 2)
    found = fit([(experiment, LineMachine())], FREE, {}, "linear")
    np.testing.assert_allclose(found.values, values, rtol=1e-6)
    assert found.signals[0].noise == pytest.approx(np.sqrt(variance), rel=1e-6)
    np.testing.assert_allclose(found.covariance, variance * np.linalg.inv(matrix.T @ matrix), rtol=1e-6)


def test_a_prior_is_that_of_ridge_regression() -> None:
    """Minimum of |W (J x − m)|² + q² |x − x₀|², between the values that fit best and those of the beginning."""
    experiment, matrix, measured = log(8)
    residuals = _Residuals([(experiment, LineMachine())], FREE, _Tally())
    begin, prior, weight = np.array([0.2, 0.9]), 3.0, 0.7
    search = _Search(residuals, FREE, "linear", None)
    shares, left = search.ended(residuals, np.full(8, weight), begin, prior=prior, ftol=1e-14)
    width = FREE.high - FREE.low
    scaled = weight * matrix * width
    right = scaled.T @ (weight * (measured - matrix @ FREE.low)) + prior**2 * begin
    expected = np.linalg.solve(scaled.T @ scaled + prior**2 * np.eye(2), right)
    np.testing.assert_allclose(shares, expected, atol=1e-7)
    np.testing.assert_allclose(left, matrix @ (FREE.low + width * expected) - measured, atol=1e-6)
