"""Controlled steps in compiled code: the results of Python to the last bit, and the motion by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.both_ways import Failures, Run
from cosim.linear_units import CONNECTIONS
from foreign_fmus import compiler

from mbsfmu import StepSignal
from mbsfmu.cosim.coupling.coupled_steps import SingleSteps

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
ALGORITHMS = ("jacobi", "gauss-seidel", "fixed-point", "newton")


@pytest.fixture(autouse=True)
def single(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether compiled code has made each single step that it was asked for."""
    make, answers = SingleSteps.make, list[bool]()

    def noting(self: SingleSteps, *arguments: Any) -> None:
        answers.append(self.is_compiled)
        make(self, *arguments)

    monkeypatch.setattr(SingleSteps, "make", noting)
    return answers


@pytest.mark.parametrize("units", ["halves_exact", "halves_3"])
@pytest.mark.parametrize("extrapolation", ["linear", "quadratic", "derivatives"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_error_control(
    request: pytest.FixtureRequest, both: Run, single: list[bool], algorithm: str, extrapolation: str, units: str
) -> None:
    """With steps made again, a signal that jumps inside of them, and one FMU that makes three steps in each."""
    result = both(
        request.getfixturevalue(units), connections=CONNECTIONS[1:], step=0.01, stop=0.5, control="error",
        tolerance=1e-3, algorithm=algorithm, extrapolation=extrapolation, rates={"two": 3},
        inputs={"one.force": lambda time: 5.0 * (time > 0.123)},
    )  # fmt: skip
    assert 2 * sum(single) == len(single) > 20
    assert result["one.velocity"][-1] > 0.5


def test_signals_with_events(halves_exact: list[Path], both: Run, single: list[bool]) -> None:
    result = both(
        halves_exact, connections=CONNECTIONS[1:], step=0.01, stop=0.5, control="error", tolerance=1e-3,
        algorithm="gauss-seidel", extrapolation="linear",
        inputs={"one.force": StepSignal(times=(0.123,), values=(5.0,))},
    )  # fmt: skip
    assert any(abs(time - 0.123) < 1e-12 for time in result.time)
    assert any(single)


@pytest.mark.parametrize("corrects", [False, True])
@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_energy_control(
    halves_exact: list[Path], both: Run, single: list[bool], algorithm: str, corrects: bool
) -> None:
    """Held and straight inputs, and what they have missed, which each history has of its own."""
    result = both(
        halves_exact, connections=CONNECTIONS, step=0.01, stop=1.0, control="energy", tolerance=1e-3,
        algorithm=algorithm, extrapolation="linear", energy_correction=corrects,
    )  # fmt: skip
    assert any(single)
    assert result.steps > 10


def test_fmus_without_states(halves_poor: list[Path], both: Run, single: list[bool]) -> None:
    both(halves_poor, connections=CONNECTIONS, step=0.01, stop=0.5, control="error", extrapolation="linear")
    assert all(single[len(single) // 2 :])


def test_events_of_fmus(foreign: Callable[[str], Path], both: Run, single: list[bool]) -> None:
    """An FMU of FMI 3.0 that comes back early, where steps are made again to there."""
    result = both(
        [foreign("ticking")], parameters={"ticking.period": 10.0}, step=0.25, stop=2.0, control="error",
        tolerance=1e-3,
    )  # fmt: skip
    assert 2 * sum(single) == len(single) > 10
    np.testing.assert_allclose(result["ticking.height"], 1.0 - np.abs(result.time - 1.0), atol=1e-12)


def test_steps_that_fail(foreign: Callable[[str], Path], failures: Failures) -> None:
    errors = failures([foreign("failing")], step=0.1, stop=5.0, control="error")
    assert str(errors[0]) == str(errors[1])
