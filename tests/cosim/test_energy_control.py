"""Energy control beside equal steps of the same cost, on an oscillator that is pushed, against its closed form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, MASSES, NAMES, STIFFNESSES, LinearSystem, export_linear, whole
from scipy.linalg import expm

from mbsfmu import CosimulationResult, StepSignal, cosimulate

DAMPING, STOP = 2.0, 6.0
PUSH = StepSignal(times=(1.0, 3.0), values=(10.0, -5.0))
"""In N, on the first mass; a signal of its unit's own, before which everything is at rest."""


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    (m1, _), (k1, k2), folder = MASSES, STIFFNESSES, tmp_path_factory.mktemp("pushed")
    m2 = MASSES[1]
    first = [[0, 1], [-k1 / m1, -DAMPING / m1]], [[0, 0], [1 / m1, 1 / m1]], [[1, 0], [0, 1], [0, 1]], np.zeros((3, 2))
    second = [[0, 1, 0], [0, 0, -k2 / m2], [0, 1, 0]], [[0], [0], [-1]], [[1, 0, 0], [0, 1, 0], [0, 0, k2]]
    one = LinearSystem(
        "one",
        [np.array(each, dtype=float) for each in first],
        np.zeros(2),
        {"force": "N", "push": "N"},
        {"position": "m", "speed": "m/s", "velocity": "m/s"},
    )
    two = LinearSystem(
        "two",
        [np.array(each, dtype=float) for each in (*second, np.zeros((3, 1)))],
        np.zeros(3),
        {"velocity": "m/s"},
        {"position": "m", "speed": "m/s", "force": "N"},
    )
    return [
        export_linear(one, folder, "rk4", 1e-3, signals={"push": PUSH}),
        export_linear(two, folder, "rk4", 1e-3),
    ]


def motion(time: float) -> np.ndarray:
    """Return (x₁, v₁, x₂, v₂): pieces of ẋ = A x + b, each from one exponential with b as a further column."""
    state = np.zeros(4)
    for begin, end, push in ((1.0, 3.0, 10.0), (3.0, STOP, -5.0)):
        wide = np.zeros((5, 5))
        wide[:4, :4], wide[1, 4] = whole(damping=DAMPING), push / MASSES[0]
        passed = min(max(time - begin, 0.0), end - begin)
        state = (expm(wide * passed) @ np.append(state, 1.0))[:4]
    return state


def worst_error(result: CosimulationResult) -> float:
    rows = np.unique(np.linspace(0, len(result.time) - 1, 200).astype(int))
    exact = np.array([motion(time) for time in result.time[rows]])
    off = np.abs(np.column_stack([result[name][rows] for name in NAMES]) - exact)
    return float(np.max(np.max(off, axis=0) / np.max(np.abs(exact), axis=0)))


@pytest.mark.parametrize(
    ("algorithm", "extrapolation", "tolerance"),
    [("jacobi", "zero", 1e-2), ("jacobi", "linear", 1e-2), ("gauss-seidel", "linear", 1e-2)],
)
def test_it_is_better_than_equal_steps_of_the_same_cost(
    pushed: list[Path], algorithm: str, extrapolation: str, tolerance: float
) -> None:
    """Far from instability, where a residual power that passes through zero would let steps grow at the wrong place."""
    options = {"algorithm": algorithm, "extrapolation": extrapolation, "stop": STOP, "connections": CONNECTIONS}
    controlled = cosimulate(pushed, control="energy", tolerance=tolerance, step=1e-2, **options)
    equal = cosimulate(pushed, step=STOP / controlled.iterations, **options)
    assert {1.0, 3.0} <= set(controlled.time)
    assert worst_error(controlled) < 0.9 * worst_error(equal)
    assert controlled.energy_residual_max < 0.9 * equal.energy_residual_max


def test_error_falls_with_the_tolerance(pushed: list[Path]) -> None:
    errors = [
        worst_error(
            cosimulate(
                pushed, control="energy", tolerance=tolerance, step=1e-2, stop=STOP, connections=CONNECTIONS,
                extrapolation="linear",
            )
        )
        for tolerance in (1e-2, 1e-3)
    ]  # fmt: skip
    assert errors[1] < 0.2 * errors[0]
