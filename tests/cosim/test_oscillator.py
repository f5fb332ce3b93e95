"""The master on FMUs that are not ours, against the exact solution of the coupled system."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from mbsfmu.cosim import CosimulationResult, cosimulate

CONNECTIONS = ("two.force=one.force_in", "one.velocity=two.velocity_in")
PARAMETERS = {"two.side": 2.0, "two.mass": 2.0, "two.stiffness": 20.0}
STOP = 1.0


def run(units: list[Path], step: float, stop: float = STOP, **options: object) -> CosimulationResult:
    return cosimulate(units, connections=CONNECTIONS, parameters=PARAMETERS, step=step, stop=stop, **options)


def exact(time: float) -> np.ndarray:
    """Position and velocity of both masses; both start at 0.1 m, at rest."""
    k1, d1, m1, k2, m2 = 40.0, 0.4, 1.0, 20.0, 2.0
    matrix = np.array(
        [
            [0, 1, 0, 0],
            [-(k1 + k2) / m1, -d1 / m1, k2 / m1, 0],
            [0, 0, 0, 1],
            [k2 / m2, 0, -k2 / m2, 0],
        ]
    )
    return expm(matrix * time) @ [0.1, 0.0, 0.1, 0.0]


@pytest.mark.parametrize(
    ("algorithm", "extrapolation", "order"),
    [
        ("jacobi", "zero", 1),
        ("gauss-seidel", "zero", 1),
        ("jacobi", "linear", 2),
        ("gauss-seidel", "linear", 2),
    ],
)
def test_order(oscillators: list[Path], algorithm: str, extrapolation: str, order: int) -> None:
    steps, errors = (0.01, 0.005, 0.0025), []
    for step in steps:
        result = run(oscillators, step, algorithm=algorithm, extrapolation=extrapolation)
        end = [result[name][-1] for name in ("one.position", "one.velocity", "two.position", "two.velocity")]
        errors.append(np.max(np.abs(end - exact(STOP))))
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.25)


def test_times_are_counted_and_labels_right(oscillators: list[Path]) -> None:
    result = run(oscillators, 0.03, stop=0.1)
    np.testing.assert_array_equal(result.time, [0.0, 0.03, 0.06, 0.09, 0.1])
    # One unit alone, its input held at the start value, is exact: row n belongs to time n h.
    alone = cosimulate([oscillators[0]], step=0.03, stop=0.1)
    single = [(expm(np.array([[0, 1], [-40, -0.4]]) * t) @ [0.1, 0])[0] for t in alone.time]
    np.testing.assert_allclose(alone["position"], single, rtol=1e-12)


def test_no_units_no_bond(oscillators: list[Path]) -> None:
    """The slave declares no units, so no bond is recognised; that must not read as zero energy."""
    assert run(oscillators, 0.02).energy_residual_max is None


def test_order_of_gauss_seidel_counts(oscillators: list[Path]) -> None:
    one_first = run(oscillators, 0.02, algorithm="gauss-seidel", order=("one", "two"))
    two_first = run(oscillators, 0.02, algorithm="gauss-seidel", order=("two", "one"))
    # Both start at rest with a relaxed spring: what one gets is the same, only a step of two earlier or later.
    assert one_first["one.position"][-1] == pytest.approx(two_first["one.position"][-1], rel=1e-9)
    assert abs(one_first["two.position"][-1] - two_first["two.position"][-1]) > 1e-3


def test_input_follows_a_function(oscillators: list[Path]) -> None:
    result = cosimulate([oscillators[0]], step=0.01, stop=2.0, inputs={"one.force_in": lambda _: 40.0 * 0.5})
    assert np.mean(result["position"][100:]) == pytest.approx(0.5, abs=0.15)
