"""Jumps on connections, in functions of time and inside units, as error control sees them; against closed forms."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import LinearSystem, export_linear

import mbsfmu
from mbsfmu import CosimulationResult, StepSignal, cosimulate

DELAY = 0.3
"""Time constant in s of a lag that takes what jumps."""


@pytest.fixture(scope="module")
def lag_system() -> LinearSystem:
    matrices = [np.array([[value]]) for value in (-1.0 / DELAY, 1.0 / DELAY, 1.0, 0.0)]
    return LinearSystem("lag", matrices, [0.0], {"u": "1"}, {"x": "1"})


@pytest.fixture(scope="module")
def lag(lag_system: LinearSystem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_linear(lag_system, tmp_path_factory.mktemp("lag"), "rk4", 1e-3)


@pytest.fixture(scope="module")
def source(foreign: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the foreign FMUs, saying that its stairs are continuous, as careless units do."""
    path = tmp_path_factory.mktemp("source") / "source.fmu"
    with zipfile.ZipFile(foreign("source")) as archive, zipfile.ZipFile(path, "w") as changed:
        for name in archive.namelist():
            text = archive.read(name)
            if name == "modelDescription.xml":
                said = b'name="stairs" valueReference="3" causality="output" variability='
                assert said in text
                text = text.replace(said + b'"discrete"', said + b'"continuous"')
            changed.writestr(name, text)
    return path


def response(times: np.ndarray, jumps: list[tuple[float, float]]) -> np.ndarray:
    """Return x of τ ẋ = u − x where u jumps by some height at each time."""
    return sum(height * (1.0 - np.exp(-np.maximum(times - time, 0.0) / DELAY)) for time, height in jumps)


def check(result: CosimulationResult, name: str, jumps: list[tuple[float, float]], tolerance: float) -> None:
    exact = response(result.time, jumps)
    assert np.max(np.abs(result[name] - exact)) < tolerance * np.max(np.abs(exact))


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "newton"])
@pytest.mark.parametrize("extrapolation", ["zero", "quadratic"])
@pytest.mark.parametrize("output", ["continuous", "stairs", "odd"])
def test_jump_on_a_connection_is_seen(
    foreign: Callable[[str], Path], source: Path, lag: Path, algorithm: str, extrapolation: str, output: str
) -> None:
    """Real outputs that jump, whether they say so or not, and a truth value."""
    unit = source if output == "continuous" else foreign("source")
    name, heights = ("odd", (1.0, -1.0)) if output == "odd" else ("stairs", (10.0, 10.0))
    for tolerance in (1e-2, 1e-3):
        result = cosimulate(
            [unit, lag], connections=[f"source.{name}=lag.u"], step=0.0371, stop=2.9, control="error",
            algorithm=algorithm, extrapolation=extrapolation, tolerance=tolerance, absolute_tolerance=0.1 * tolerance,
        )  # fmt: skip
        check(result, "lag.x", list(zip((1.0, 2.0), heights, strict=True)), tolerance)
        assert result.steps < 150
        if extrapolation == "zero" and tolerance == 1e-2:
            assert not any("smallest length" in note for note in result.notes)


@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
def test_jump_of_a_function_is_seen(lag: Path, extrapolation: str) -> None:
    result = cosimulate(
        [lag], inputs={"lag.u": lambda time: 10.0 * (time >= 1.003)}, step=0.05, stop=2.0, control="error",
        extrapolation=extrapolation, tolerance=1e-2, absolute_tolerance=1e-3,
    )  # fmt: skip
    check(result, "x", [(1.003, 10.0)], 1e-2)
    assert result.steps < 100
    assert not any("smallest length" in note for note in result.notes)


def test_jump_inside_a_unit_ends_a_step(lag_system: LinearSystem, tmp_path: Path) -> None:
    """Two lags, one at the other's output; the first follows a signal of its own that nobody outside can see."""
    (tmp_path / "second").mkdir()
    first = LinearSystem("first", lag_system.matrices, [0.0], {"u": "1"}, {"x": "1"})
    signal = StepSignal(times=(0.1234,), values=(1.0,))
    files = [
        export_linear(first, tmp_path, "rk4", 1e-3, signals={"u": signal}),
        export_linear(lag_system, tmp_path / "second", "rk4", 1e-3),
    ]
    for tolerance in (1e-2, 1e-3, 1e-4):
        result = cosimulate(
            files, connections=["first.x=lag.u"], step=0.02, largest_step=1.0, stop=2.0, control="error",
            extrapolation="linear", tolerance=tolerance, absolute_tolerance=0.1 * tolerance,
        )  # fmt: skip
        assert 0.1234 in result.time
        passed = np.maximum(result.time - 0.1234, 0.0) / DELAY
        exact = 1.0 - (1.0 + passed) * np.exp(-passed)
        assert np.max(np.abs(result["lag.x"] - exact)) < tolerance


def test_four_bar_follows_the_signal_inside_its_circuit(tmp_path: Path) -> None:
    """The valve opens at 1 s inside a unit at rest: the error of the force falls with the tolerance."""
    model = mbsfmu.models.four_bar()
    package = mbsfmu.export(model, tmp_path, layout="separate", step=2e-4)[-1]
    reference = model.simulation(step=2e-4).run(1.1)
    for tolerance in (1e-2, 1e-3):
        result = cosimulate(
            package, algorithm="gauss-seidel", extrapolation="linear", control="error", tolerance=tolerance,
            step=1e-3, largest_step=0.1, stop=1.1,
        )  # fmt: skip
        assert 1.0 in result.time
        assert result.largest_step > 0.03
        force = np.interp(result.time, reference.time, reference["cylinder.force"])
        assert np.max(np.abs(result["cylinder.force"] - force)) < tolerance * np.max(force)
