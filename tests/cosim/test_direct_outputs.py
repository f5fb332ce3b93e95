"""Orders and error control where outputs depend on inputs without delay, against matrix exponentials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, NAMES, START, LinearSystem, export_linear, halves, whole
from scipy.linalg import expm

from mbsfmu import CosimulationResult, cosimulate

DAMPING = 4.0
"""In N s/m, between both masses: the force of one half depends directly on the velocity that it takes."""
STEPS = (0.01, 0.005, 0.0025)
LOOP = ("first.y=second.u", "second.y=first.u")
EXPECTED = {"zero": 1, "linear": 2, "quadratic": 3, "derivatives": 2}


@pytest.fixture(scope="module")
def damped(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("damped")
    return [export_linear(system, folder, "rk4", 1e-3) for system in halves(coupling_damping=DAMPING)]


@pytest.fixture(scope="module")
def damped_holding(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("damped-holding")
    return [
        export_linear(system, folder, "rk4", 1e-3, canInterpolateInputs=False)
        for system in halves(coupling_damping=DAMPING)
    ]


def motion(time: float) -> np.ndarray:
    """Positions, speeds and the force between both masses."""
    x1, v1, x2, v2 = expm(whole(coupling_damping=DAMPING) * time) @ START
    return np.array([x1, v1, x2, v2, 20.0 * (x2 - x1) + DAMPING * (v2 - v1)])


def reached(result: CosimulationResult, row: int = -1) -> np.ndarray:
    return np.array([result[name][row] for name in (*NAMES, "two.force")])


def slope(steps: tuple[float, ...], errors: list[float]) -> float:
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def observed_order(units: list[Path], **options: object) -> float:
    """Of the motion; the force begins with an error of its own that dies out, and is held against the bound alone."""
    ends = [reached(cosimulate(units, connections=CONNECTIONS, step=step, stop=1.0, **options)) for step in STEPS]
    return slope(STEPS, [np.max(np.abs(end - motion(1.0))[:4]) for end in ends])


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "fixed-point", "newton"])
@pytest.mark.parametrize("extrapolation", EXPECTED)
def test_order_with_direct_feed_through(damped: list[Path], algorithm: str, extrapolation: str) -> None:
    """The force shows what the velocity runs to at the end of a step, not its mean over it."""
    iterated = algorithm in ("fixed-point", "newton")
    order = EXPECTED[extrapolation] + (iterated and extrapolation == "derivatives")
    assert observed_order(damped, algorithm=algorithm, extrapolation=extrapolation) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("extrapolation", ["linear", "quadratic"])
def test_units_that_hold_are_of_first_order_then(damped_holding: list[Path], extrapolation: str) -> None:
    """The negative control: the force shows the mean, which lies half a step back."""
    assert observed_order(damped_holding, algorithm="newton", extrapolation=extrapolation) == pytest.approx(1, abs=0.1)
    told = cosimulate(damped_holding, connections=CONNECTIONS, step=0.01, stop=0.1, extrapolation=extrapolation).notes
    assert any("two.force shows the mean too, so the coupling is of first order" in note for note in told)


@pytest.mark.parametrize(
    ("algorithm", "extrapolation", "order"),
    [("jacobi", "linear", 2), ("gauss-seidel", "quadratic", 3), ("newton", "linear", 2)],
)
def test_error_control_takes_the_steps_of_its_order(
    damped: list[Path], algorithm: str, extrapolation: str, order: int
) -> None:
    """A hundredth of the tolerance takes 100^(1/order) times the steps, and keeps it, force included."""
    steps = []
    for tolerance in (1e-3, 1e-5):
        result = cosimulate(
            damped, connections=CONNECTIONS, step=0.01, stop=2.0, control="error", algorithm=algorithm,
            extrapolation=extrapolation, tolerance=tolerance, absolute_tolerance=0.1 * tolerance, smallest_step=1e-7,
        )  # fmt: skip
        steps.append(result.steps)
        rows = np.unique(np.linspace(0, len(result.time) - 1, 50).astype(int))
        exact = np.array([motion(result.time[row]) for row in rows])
        off = np.abs(np.array([reached(result, row) for row in rows]) - exact)
        assert np.max(np.max(off, axis=0) / np.max(np.abs(exact), axis=0)) < tolerance
        assert result.notes == []
    assert 0.7 < steps[1] / steps[0] / 100.0 ** (1.0 / order) < 1.3


def test_error_control_knows_units_that_hold(damped_holding: list[Path]) -> None:
    """The force is off by half its delay at once: a tenth of the tolerance takes ten times the steps."""
    steps = []
    for tolerance in (3e-2, 3e-3):
        result = cosimulate(
            damped_holding, connections=CONNECTIONS, step=0.01, stop=1.0, control="error", extrapolation="linear",
            algorithm="gauss-seidel", tolerance=tolerance, absolute_tolerance=0.1 * tolerance, smallest_step=1e-6,
        )  # fmt: skip
        steps.append(result.steps)
        off = np.abs(np.array([reached(result, row) - motion(result.time[row]) for row in range(len(result.time))]))
        scale = np.max(np.abs([motion(time) for time in result.time]), axis=0)
        assert np.max(np.max(off, axis=0) / scale) < tolerance
    assert 5.0 < steps[1] / steps[0] < 20.0


# -- algebraic loops ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """ẋ = −x + u, y = x + u/2, and ẋ = −2 x + 3 u, y = x − 0.8 u, each the other's input."""
    folder = tmp_path_factory.mktemp("loop")
    rows = ("first", -1.0, 1.0, 0.5, 1.0), ("second", -2.0, 3.0, -0.8, 0.5)
    systems = [
        LinearSystem(
            name,
            [np.array(each) for each in ([[decay]], [[gain]], [[1.0], [1.0]], [[direct], [0.0]])],
            [start],
            {"u": "1"},
            {"y": "1", "x": "1"},
        )
        for name, decay, gain, direct, start in rows
    ]
    return [export_linear(system, folder, "rk4", 1e-2) for system in systems]


@pytest.mark.parametrize("algorithm", ["fixed-point", "newton"])
@pytest.mark.parametrize(("extrapolation", "order"), [("zero", 1), ("linear", 2), ("quadratic", 3), ("derivatives", 3)])
def test_order_in_an_algebraic_loop(loop: list[Path], algorithm: str, extrapolation: str, order: int) -> None:
    outputs = np.linalg.inv(np.array([[1.0, -0.5], [0.8, 1.0]]))  # y of x
    states = expm(2.0 * (np.diag([-1.0, -2.0]) + np.array([[0.0, 1.0], [3.0, 0.0]]) @ outputs)) @ [1.0, 0.5]
    exact = np.concatenate([outputs @ states, states])
    steps, errors = (0.1, 0.05, 0.025), []
    for step in steps:
        result = cosimulate(
            loop, connections=LOOP, step=step, stop=2.0, algorithm=algorithm, extrapolation=extrapolation,
            iteration_tolerance=1e-10,
        )  # fmt: skip
        end = [result[name][-1] for name in ("first.y", "second.y", "first.x", "second.x")]
        errors.append(np.max(np.abs(end - exact)))
    assert slope(steps, errors) == pytest.approx(order, abs=0.1)


def test_second_point_is_of_third_order_too(damped: list[Path]) -> None:
    """A parabola needs two points before: until then steps are made again, else the force is of second order there."""
    steps, errors = (0.02, 0.01, 0.005), []
    for step in steps:
        result = cosimulate(
            damped, connections=CONNECTIONS, algorithm="jacobi", extrapolation="quadratic", step=step, stop=2 * step
        )
        errors.append(abs(reached(result)[-1] - motion(2 * step)[-1]))
    assert slope(steps, errors) > 2.8
