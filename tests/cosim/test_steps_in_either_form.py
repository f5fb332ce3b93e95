"""What FMUs, signals and processes see of coupled steps is the same whether these are C or run as they stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS
from foreign_fmus import compiler

from mbsfmu import cosimulate
from mbsfmu.compiling.compiler import SWITCH

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
Foreign = Callable[[str], Path]


@pytest.fixture(params=["0", "1"], ids=["python", "compiled"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, request.param)


@pytest.mark.parametrize("extrapolation", ["zero", "linear", "quadratic"])
@pytest.mark.parametrize("how", [{}, {"isolate": ["committing"]}, {"threads": 2}], ids=["here", "isolated", "threads"])
def test_fmus_count_on_it_that_no_state_is_restored(foreign: Foreign, extrapolation: str, how: dict[str, Any]) -> None:
    """One acts on what it is told of that; behind the first steps, which are made again, it may in every step."""
    units = [foreign("committing"), foreign("halting")]
    result = cosimulate(units, step=0.01, stop=0.08, algorithm="jacobi", extrapolation=extrapolation, **how)
    np.testing.assert_allclose(result["committing.clock"], result.time, atol=1e-12)


@pytest.mark.parametrize("control", ["fixed", "error", "energy"])
@pytest.mark.parametrize("units", ["halves_exact", "halves_poor"])
def test_signals_are_asked_inside_of_the_run_alone(
    request: pytest.FixtureRequest, foreign: Foreign, units: str, control: str
) -> None:
    """With FMUs that save their states, and without; to round-off, for times of steps are added up."""

    def signal(time: float) -> float:
        if not 1.0 - 1e-9 <= time <= 1.3 + 1e-9:
            raise ValueError(f"asked at t = {time} s")
        return time

    fmus = [*request.getfixturevalue(units), foreign("dahlquist")]
    result = cosimulate(
        fmus, connections=CONNECTIONS, inputs={"dahlquist.u": signal}, start_time=1.0, stop=1.3, step=0.01,
        control=control, algorithm="jacobi", extrapolation="linear",
    )  # fmt: skip
    assert result.time[-1] == pytest.approx(1.3)
    # x' = u - x with u = t from x(1) = 1 on: x = t - 1 + exp(1 - t)
    np.testing.assert_allclose(result["dahlquist.x"], result.time - 1.0 + np.exp(1.0 - result.time), atol=1e-4)


@pytest.mark.parametrize("isolate", [None, ["one"], ["ending", "one"], ["two", "ending"]])
def test_an_fmu_ends_the_run_while_others_step_in_their_processes(
    halves_exact: list[Path], foreign: Foreign, isolate: list[str] | None
) -> None:
    """Inside of a controlled step: all are waited for, and brought back to before it."""
    result = cosimulate(
        [*halves_exact, foreign("ending")], connections=CONNECTIONS, parameters={"ending.highest": 0.0533}, stop=0.2,
        step=1e-2, control="error", algorithm="jacobi", extrapolation="linear", tolerance=1e-2, isolate=isolate,
    )  # fmt: skip
    assert result.time[-1] == pytest.approx(0.0533)
    assert any("ending ended the run at t = 0.0533 s" in note for note in result.statistics.notes)


def test_the_rest_of_a_discarded_step_is_made_again_with_it(halves_exact: list[Path], foreign: Foreign) -> None:
    """An iteration brings FMUs back to before a step of which one has discarded all but a part."""
    result = cosimulate(
        [*halves_exact, foreign("halting")], connections=CONNECTIONS, algorithm="fixed-point", step=0.007, stop=0.8,
        maximum_iterations=6, parameters={"halting.wall": 0.1234},
    )  # fmt: skip
    assert result.time[-1] == pytest.approx(0.8)
    assert result.rollbacks > 100
