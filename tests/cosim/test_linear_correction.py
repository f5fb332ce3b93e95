"""Linear correction of explicit coupling: algebraic loops closed, and orders kept, without repeated steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import (
    CONNECTIONS,
    LOOP,
    NAMES,
    START,
    export_linear,
    gain_units,
    halves,
    whole,
)
from scipy.linalg import expm

from mbsfmu import CosimulationResult, LinearSignal, SimulationError, cosimulate
from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import Connection

DAMPING, STEPS = 4.0, (0.01, 0.005, 0.0025)


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("extrapolation", ["zero", "linear", "quadratic"])
def test_a_loop_of_any_gain_is_closed_without_saved_states(tmp_path: Path, algorithm: str, extrapolation: str) -> None:
    """y₁ = 0.9 y₂ + e^{−t}, y₂ = −3 y₁ + 1: a gain of −2.7, delayed by a step it grows 2.7 times in each."""
    files = gain_units(tmp_path, 0.9, -3.0, canGetAndSetFMUstate=False)
    given = {"connections": LOOP, "algorithm": algorithm, "extrapolation": extrapolation, "step": 0.1, "stop": 1.0}
    result = cosimulate(files, linear_correction=True, **given)
    first = (np.exp(-result.time) + 0.9) / 3.7
    np.testing.assert_allclose(result["first.y"], first, atol=1e-9)
    np.testing.assert_allclose(result["second.y"], 1.0 - 3.0 * first, atol=1e-9)
    assert not any("algebraic loop" in note for note in result.notes)
    assert result.rollbacks == 0
    assert result.unit_steps == {"first": result.steps, "second": result.steps}
    plain = cosimulate(files, **given)
    assert np.max(np.abs(plain["first.y"] - first)) > 1.0
    assert any("linear_correction=True" in note for note in plain.notes)


def test_factors_and_offsets_of_connections_count(tmp_path: Path) -> None:
    """y₁ = 0.5 u₁ + e^{−t} with u₁ = −2 y₂ + 3 and y₂ = 0.7 y₁ + 1, so y₁ (1 + 0.7) = 0.5 + e^{−t}."""
    result = cosimulate(
        gain_units(tmp_path, 0.5, 0.7), algorithm="jacobi", step=0.1, stop=1.0, linear_correction=True,
        connections=("first.y=second.u", Connection(("second", "y"), ("first", "u"), factor=-2.0, offset=3.0)),
    )  # fmt: skip
    y = (0.5 + np.exp(-result.time)) / 1.7
    np.testing.assert_allclose(result["first.y"], y, atol=1e-9)
    np.testing.assert_allclose(result["second.y"], 0.7 * y + 1.0, atol=1e-9)


def test_signals_and_whole_numbers_have_no_part_in_it(tmp_path: Path, foreign: Callable[[str], Path]) -> None:
    """y₁ = 0.5 y₂ + e^{−t}, y₂ = −3 t + 1; the FMUs beside pass on a whole number, and give no derivatives."""
    others = [f"{name}={foreign('feed_through')}" for name in "ab"]
    ramp = LinearSignal(times=(0.0, 1.0), values=(0.0, 1.0))
    result = cosimulate(
        [*gain_units(tmp_path, 0.5, -3.0), *others], linear_correction=True, step=0.1, stop=1.0, extrapolation="linear",
        connections=("second.y=first.u", "a.integer_out=b.integer_in"), inputs={"second.u": ramp},
        parameters={"a.integer_in": 7},
    )  # fmt: skip
    second = 1.0 - 3.0 * result.time
    np.testing.assert_allclose(result["second.y"], second, atol=1e-9)
    np.testing.assert_allclose(result["first.y"], 0.5 * second + np.exp(-result.time), atol=1e-9)
    assert result.final()["b.integer_out"] == 7


def test_a_loop_without_a_solution_ends_the_run(tmp_path: Path) -> None:
    """A gain that is 1 from the start on is refused there already."""
    with pytest.raises(SimulationError, match="no single solution"):
        cosimulate(gain_units(tmp_path, 1.0, 1.0), connections=LOOP, step=0.1, stop=1.0, linear_correction=True)


def motion(time: float) -> np.ndarray:
    """Positions, speeds and the force between both masses."""
    x1, v1, x2, v2 = expm(whole(coupling_damping=DAMPING) * time) @ START
    return np.array([x1, v1, x2, v2, 20.0 * (x2 - x1) + DAMPING * (v2 - v1)])


def error(result: CosimulationResult) -> float:
    found = np.array([result[name][-1] for name in (*NAMES, "two.force")])
    return float(np.max(np.abs(found - motion(1.0))))


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("rates", [None, {"two": 2}])
def test_fmus_that_hold_their_inputs_keep_second_order(
    tmp_path: Path, algorithm: str, rates: dict[str, int] | None
) -> None:
    """Without it the force shows the mean of the velocity, half a step back, which is of first order at most."""
    paths = [
        export_linear(system, tmp_path, "rk4", 1e-3, canInterpolateInputs=False)
        for system in halves(coupling_damping=DAMPING)
    ]
    given = {"connections": CONNECTIONS, "algorithm": algorithm, "extrapolation": "linear", "rates": rates, "stop": 1.0}
    errors = {
        corrected: [error(cosimulate(paths, step=step, linear_correction=corrected, **given)) for step in STEPS]
        for corrected in (False, True)
    }
    slopes = {key: np.polyfit(np.log(STEPS), np.log(each), 1)[0] for key, each in errors.items()}
    assert 0.5 < slopes[False] < 1.2
    assert slopes[True] == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize(
    ("algorithm", "extrapolation", "tolerance"),
    [("jacobi", "linear", 1e-3), ("jacobi", "linear", 1e-4), ("gauss-seidel", "zero", 6e-3)],
)
def test_error_control_keeps_its_tolerance_with_it(
    tmp_path: Path, algorithm: str, extrapolation: str, tolerance: float
) -> None:
    """Outputs that are corrected do not show what their inputs are off by: errors of steps add up, by holding most."""
    paths = [export_linear(system, tmp_path, "rk4", 1e-3) for system in halves(coupling_damping=DAMPING)]
    result = cosimulate(
        paths, connections=CONNECTIONS, algorithm=algorithm, extrapolation=extrapolation, linear_correction=True,
        control="error", tolerance=tolerance, step=1e-2, stop=1.0,
    )  # fmt: skip
    exact = np.array([motion(time) for time in result.time])
    for column, name in enumerate((*NAMES, "two.force")):
        assert np.max(np.abs(result[name] - exact[:, column])) < tolerance * np.max(np.abs(exact[:, column]))


def test_what_it_cannot_do_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = [export_linear(system, tmp_path / "plain", "rk4", 1e-2) for system in halves()]
    given = {"step": 0.1, "stop": 1.0, "linear_correction": True}
    with pytest.raises(InputError, match="no output depends directly on a connected input"):
        cosimulate(plain, connections=CONNECTIONS, **given)
    files = gain_units(tmp_path, 0.5, -0.5, providesDirectionalDerivative=False)
    with pytest.raises(
        InputError, match=r"first\.y depends directly on inputs, and its FMU gives no directional deriv"
    ):
        cosimulate(files, connections=LOOP, **given)
    with pytest.raises(InputError, match="has no effect with the algorithm 'newton'"):
        cosimulate(files, connections=LOOP, algorithm="newton", **given)
