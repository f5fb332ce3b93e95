"""Minima of runs against closed forms, and constraints that hold."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from oscillator_in_closed_form import oscillator

import mbsfmu
from mbsfmu import InputError, SimulationError
from mbsfmu.analysis import optimization
from mbsfmu.analysis.gradient import Adjoint
from mbsfmu.cli.commands import cli
from mbsfmu.tracing.workspace import Floats

MODEL = oscillator(driven=False).model_copy(
    update={"start": {"mechanism.slider.velocity_start": 0.0, "mechanism.spring.damping": 1e-6}}
)
"""x = 0.3 cos(√(k/m) t), all but undamped."""


def test_a_minimum_in_closed_form() -> None:
    """x(0.5) is least where √(k/m) · 0.5 = π."""
    found = MODEL.optimize("slider.displacement", {"spring.stiffness": (40.0, 120.0)}, stop=0.5, step=5e-4)
    assert found.converged
    assert found["spring.stiffness"] == pytest.approx(2.0 * (2.0 * math.pi) ** 2, rel=1e-3)
    assert found.value == pytest.approx(-0.3, rel=1e-5)
    assert found.sentences == ()
    assert found.model.simulation().get("spring.stiffness") == found["mechanism.spring.stiffness"]


def test_a_constraint_in_closed_form() -> None:
    """Of the least velocity −0.3 √(k/m) with the largest one at most 1.5 m/s the minimum is at k = m (1.5 / 0.3)²."""
    limit = "max(slider.velocity)<=1.5"
    free = {"spring.stiffness": (20.0, 120.0)}
    found = MODEL.optimize("min(slider.velocity)", free, subject_to=[limit], stop=1.5, step=5e-4)
    assert found.converged
    assert found["spring.stiffness"] == pytest.approx(50.0, rel=1e-4)
    assert found.limits[limit] == pytest.approx(1.5, rel=1e-5)


def test_an_interrupt_leaves_the_best_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """x(0.5) = 0.3 cos(0.5 √(k/m)) with m = 2 kg, for the stiffness that is written."""
    ended: list[bool] = []
    run = optimization._Runs.tried

    def interrupted(runs: optimization._Runs, shares: Floats) -> Floats | None:
        if runs.count == 3 and not ended:
            ended.append(True)
            raise KeyboardInterrupt
        return run(runs, shares)

    monkeypatch.setattr(optimization._Runs, "tried", interrupted)
    model, output = tmp_path / "oscillator.json", tmp_path / "best.json"
    MODEL.to_file(model)
    call = ["optimize", str(model), "--minimize", "slider.displacement", "--free", "spring.stiffness=40:120"]
    done = CliRunner().invoke(cli, [*call, "--stop", "0.5", "-o", str(output)])
    assert done.exit_code != 0
    told = [float(each) for each in re.findall(r"INFO: run \d: (\S+)", done.stderr)]
    stiffness = mbsfmu.CoupledModel.from_file(output).simulation().get("spring.stiffness")
    assert len(told) == 3
    assert min(told) == pytest.approx(0.3 * math.cos(0.5 * math.sqrt(stiffness / 2.0)), abs=1e-4)
    assert "interrupted after 3 runs, of which the best is kept" in str(done.exception or done.output)


def test_a_lighter_boom_for_less_pressure(tmp_path: Path) -> None:
    """The command makes the boom lighter until it would rise too far; a run of the written model has the value."""
    output, numbers = tmp_path / "best.json", tmp_path / "numbers.json"
    objective = "rms(cylinder.pressure_piston)"
    call = ["optimize", "four-bar", "--minimize", objective, "--free", "boom.mass=150:300", "--stop", "1.5"]
    call += ["--subject-to", "end(boom.angle)<=0.028", "-o", str(output), "--json", str(numbers), "--quiet"]
    done = CliRunner().invoke(cli, call, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    content = json.loads(numbers.read_text(encoding="utf-8"))
    assert content["value"] < content["first"]
    assert content["limits"]["end(boom.angle)<=0.028"] == pytest.approx(0.028, rel=1e-5)
    model = mbsfmu.CoupledModel.from_file(output)
    run = model.simulation(formulation="double-step", solver="trapezoidal").run(1.5)
    pressure = run["cylinder.pressure_piston"]
    assert math.sqrt(np.trapezoid(pressure**2, run.time) / 1.5) == pytest.approx(content["value"], rel=1e-6)


def test_a_search_goes_back_from_lengths_that_a_cylinder_does_not_have() -> None:
    """The shortest cylinder of the four-bar is one that is drawn in: its stroke and less than that have no run."""
    model = mbsfmu.models.built_in("four-bar")
    found = model.optimize("end(cylinder.length)", {"link.length": (0.1, 2.0)}, stop=0.01)
    (least,) = {float(each.rpartition("between ")[2].partition(" and")[0]) for each in found.failures}
    assert least < found.value < least + 0.02
    assert all(each.startswith("the run with link.length = ") for each in found.failures)
    assert found.to_dict()["failures"] == list(found.failures)
    assert found.step_errors is not None
    exact = found.model.simulation().run(0.01)["cylinder.length"][-1]
    assert found.value - exact == pytest.approx(found.step_errors.value, rel=0.1)


def test_an_objective_that_is_zero_at_first() -> None:
    """x = x₀ cos(5 t) with x₀ = 0 in the model: the search has only the slope to go by, and be it small."""
    name = next(each.name for each in MODEL.simulation().variables if each.name.endswith("displacement_start"))
    free = {name: (-2e-11, 5e-11)}
    model = MODEL.with_values({name: 0.0})
    found = model.optimize("slider.displacement", free, stop=0.1, newton_tolerance=1e-13)
    assert found.first == 0.0
    assert found.values == pytest.approx([-2e-11], abs=0.0)
    assert found.sentences == (f"{found.names[0]} lies at its bound, -2e-11: widen it, and see whether it moves on",)
    assert found.to_dict()["units"] == {found.names[0]: "m"}
    assert found.value == pytest.approx(-2e-11 * math.cos(0.1 * math.sqrt(25.0)), rel=1e-4, abs=0.0)


def test_a_search_that_ends_where_a_run_fails_gives_the_best_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the objective is out of reach, constraints say nothing, and no minimum was found."""
    adjoint, seen = optimization.Adjoint, []

    def failing(simulation: Any, *given: Any) -> Adjoint:
        if simulation.get("spring.stiffness") > 100.0:
            raise SimulationError("too stiff")
        return adjoint(simulation, *given)

    def searched(objective: Any, start: Any, *, constraints: Any, **_: Any) -> Any:
        shares = np.array([[0.2], [0.6], [0.4], [1.0]])
        seen.extend((objective(share), constraints[0]["fun"](share)) for share in shares)
        return SimpleNamespace(x=np.ones(1), success=True, message="")

    monkeypatch.setattr(optimization, "Adjoint", failing)
    monkeypatch.setattr("scipy.optimize.minimize", searched)
    limit = "min(slider.displacement)>=-1"
    found = MODEL.optimize("slider.displacement", {"spring.stiffness": (20.0, 120.0)}, subject_to=[limit], stop=0.4)
    assert not found.converged
    assert found["spring.stiffness"] == pytest.approx(80.0)
    assert found.value == pytest.approx(0.3 * math.cos(0.4 * math.sqrt(80.0 / 2.0)), rel=1e-3)
    assert seen[1][1] == pytest.approx(1.0 + found.value, rel=1e-3)
    assert seen[3][0] > 1e3
    assert seen[3][1] == 0.0
    assert len(found.failures) == 1


def test_constraints_that_nothing_keeps_are_named() -> None:
    """x = 0.3 cos(ω t) never reaches 1 m; SciPy only has words on its line search."""
    free = {"spring.stiffness": (20.0, 120.0)}
    found = MODEL.optimize("slider.displacement", free, subject_to=["max(slider.displacement)>=1"], stop=0.5)
    assert not found.converged
    assert found.message.startswith("max(slider.displacement)>=1 is 0.3 where the search ends")


def test_what_has_no_effect_at_the_start_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The largest x is that of the start, whatever the stiffness. Bounds may be around another value."""
    free = {"spring.stiffness": (20.0, 120.0)}
    with caplog.at_level("WARNING", logger="mbsfmu"):
        found = MODEL.optimize("max(slider.displacement)", free, stop=0.5)
        assert found.value == found.first
        MODEL.optimize("end(slider.displacement)", {"spring.stiffness": (90.0, 120.0)}, stop=0.5)
    flat, outside = [each.getMessage() for each in caplog.records if "the search" in each.getMessage()]
    assert flat.startswith("max(slider.displacement) does not change with spring.stiffness where the search begins")
    assert outside.startswith("spring.stiffness is ")
    assert "not between 90 and 120" in outside


@pytest.mark.parametrize(
    ("low", "high", "limit"),
    [("0.04 N/mm", "0.12 N/mm", "-25 cm"), ("40", "120", "-0.25"), (40.0, "0.12 kN/m", "-250 mm")],
)
def test_bounds_and_constraints_have_units(low: Any, high: Any, limit: str) -> None:
    """x(0.5) ≥ −0.25 m holds from x = 0.3 cos φ = −0.25 on: k = m (2 φ)², m = 2 kg."""
    found = MODEL.optimize(
        "slider.displacement", {"spring.stiffness": (low, high)}, subject_to=[f"end(slider.displacement)>={limit}"],
        stop=0.5, step=5e-4,
    )  # fmt: skip
    assert found["spring.stiffness"] == pytest.approx(2.0 * (2.0 * math.acos(-0.25 / 0.3)) ** 2, rel=1e-3)


def test_a_constraint_of_an_integral_is_in_its_unit() -> None:
    """∫ x dt to 0.5 s is 0.3 sin(ω / 2) / ω: 75 mm s is what it is at ω = 0, and less always."""
    free = {"spring.stiffness": (40.0, 120.0)}
    limits = ["integral(slider.displacement)<=150 mm.s"]
    found = MODEL.optimize("slider.displacement", free, subject_to=limits, stop=0.5, step=5e-4)
    assert found.limits[limits[0]] < 0.15
    with pytest.raises(InputError, match="units of different quantities"):
        MODEL.optimize("slider.displacement", free, subject_to=["integral(slider.displacement)<=150 mm"], stop=0.5)


def test_what_is_refused() -> None:
    """In one sentence."""
    free = {"spring.stiffness": (20.0, 120.0)}
    for match, call in (
        ("is no constraint", lambda: MODEL.optimize("slider.displacement", free, subject_to=["x=1"], stop=0.5)),
        ("is no number", lambda: MODEL.optimize("slider.displacement", free, subject_to=["x<=y"], stop=0.5)),
        ("give a smaller", lambda: MODEL.optimize("slider.displacement", {"spring.stiffness": (2.0, 1.0)}, stop=0.5)),
        ("write the unit with both", lambda: MODEL.optimize("x", {"spring.stiffness": ("40", "120 N/m")}, stop=0.5)),
        ("N/m.*different quan", lambda: MODEL.optimize("x", {"spring.stiffness": ("40 N", "120 N")}, stop=0.5)),
        (
            "is no constraint: '3 bar' is refused: 'bar' and 'm'",
            lambda: MODEL.optimize("slider.displacement", free, subject_to=["slider.displacement<=3 bar"], stop=0.5),
        ),
        ("is no constraint; write", lambda: MODEL.optimize("x", free, subject_to=["1<=x<=2"], stop=0.5)),
        ("^the run ends at 0.0001 s", lambda: MODEL.optimize("slider.displacement", free, stop=1e-4)),
        ("must be finite", lambda: MODEL.optimize("slider.displacement", free, subject_to=["x<=inf"], stop=0.5)),
        ("^there is no output", lambda: MODEL.optimize("slider.displacment", free, stop=0.5)),
        ("is no measure", lambda: MODEL.optimize("peak(slider.displacement)", free, stop=0.5)),
    ):
        with pytest.raises(InputError, match=match):
            call()
