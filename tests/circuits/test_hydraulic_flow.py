"""The laws of flow, against the formulas of the paper written with branches."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydraulics import DataError, catalogue_coefficient
from hydraulics.flow import orifice_flow, throttle_coefficient

COEFFICIENT, LAMINAR = 1.1e-6, 2e5
drops = st.floats(-3e7, 3e7)


def flow(drop: float) -> float:
    return float(orifice_flow(COEFFICIENT, np.asarray(drop), LAMINAR))


@given(drops.filter(lambda drop: abs(drop) >= LAMINAR))
def test_turbulent_flow_follows_the_root(drop: float) -> None:
    assert flow(drop) == pytest.approx(np.sign(drop) * COEFFICIENT * sqrt(abs(drop)), rel=1e-13)


@given(st.floats(-LAMINAR, LAMINAR))
def test_laminar_flow_is_linear(drop: float) -> None:
    assert flow(drop) == pytest.approx(COEFFICIENT * drop / sqrt(LAMINAR), rel=1e-13, abs=1e-300)


@given(drops)
def test_flow_is_odd(drop: float) -> None:
    assert flow(-drop) == -flow(drop)


@given(drops, drops)
def test_flow_rises_with_the_pressure_drop(one: float, other: float) -> None:
    low, high = sorted((one, other))
    # The law is flattest at the largest drop; neighbouring numbers may come out of order by round-off.
    flattest, largest = 0.5 * COEFFICIENT / sqrt(3e7), COEFFICIENT * sqrt(3e7)
    assert flow(high) - flow(low) >= flattest * (high - low) - 1e-15 * largest


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_flow_is_continuous_where_it_turns_turbulent(side: float) -> None:
    below, above = flow(side * LAMINAR * (1.0 - 1e-9)), flow(side * LAMINAR * (1.0 + 1e-9))
    # Across the threshold the flow may move by no more than its slope allows; a jump would be far larger.
    assert abs(above - below) < 2.1e-9 * COEFFICIENT * sqrt(LAMINAR)
    assert above != below


def test_no_flow_without_a_pressure_drop_and_a_finite_slope_there() -> None:
    assert flow(0.0) == 0.0
    assert (flow(1e-3) - flow(-1e-3)) / 2e-3 == pytest.approx(COEFFICIENT / sqrt(LAMINAR), rel=1e-12)


def test_flow_takes_arrays() -> None:
    drops = np.array([-4e6, -1e4, 0.0, 1e4, 4e6])
    np.testing.assert_array_equal(orifice_flow(COEFFICIENT, drops, LAMINAR), [flow(drop) for drop in drops])


def test_throttle_coefficient_is_bernoullis() -> None:
    # Bernoulli: velocity in the orifice √(2 Δp/ρ), of which C_d A passes.
    drop, density, diameter = 1.7e6, 850.0, 6e-3
    velocity = sqrt(2.0 * drop / density)
    bernoulli = 0.8 * pi * (0.5 * diameter) ** 2 * velocity
    coefficient = throttle_coefficient(0.8, diameter, density)
    assert float(orifice_flow(coefficient, np.asarray(drop), LAMINAR)) == pytest.approx(bernoulli, rel=1e-13)


def test_catalogue_coefficient_gives_the_catalogue_point_back() -> None:
    coefficient = catalogue_coefficient(4e-4, 35e5, 10.0)
    assert coefficient == pytest.approx(2.138e-8, rel=1e-4)  # the value that is published for this valve
    assert float(orifice_flow(10.0 * coefficient, np.asarray(35e5), LAMINAR)) == pytest.approx(4e-4, rel=1e-13)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["flow", "pressure_drop", "command"])
def test_catalogue_point_must_be_positive(name: str, wrong: float) -> None:
    point = {"flow": 4e-4, "pressure_drop": 35e5, "command": 10.0, name: wrong}
    with pytest.raises(DataError, match=f"^catalogue_coefficient: {name} is {wrong}; it must be positive"):
        catalogue_coefficient(**point)
