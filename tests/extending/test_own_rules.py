"""Rules of integration of a user's file go wherever built-in ones go, with the orders that theory gives them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import fmpy
import numpy as np
import pytest
from click.testing import CliRunner
from own_rules import AdamsMoulton, BackwardEuler

import mbsfmu
from mbsfmu import Beam, CoupledModel, InputError, LinearSignal, Mechanism, Prismatic
from mbsfmu.base.registry import Registry
from mbsfmu.cli.commands import cli
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.rules import FirstOrderValues, Rule, Step, find_rule
from mbsfmu.rules.rule import Array
from mbsfmu.simulation.run_result import Result

FILE = Path(__file__).with_name("own_rules.py")
STOP, EVERY = 0.3, 0.01
ORDERS = {BackwardEuler.name: 1, AdamsMoulton.name: 3}
CASES = [
    *((BackwardEuler.name, each) for each in ("double-step", "penalty", "dca", "hdca", "dca-alm")),
    *((AdamsMoulton.name, each) for each in ("double-step", "dca", "hdca")),
]
needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def machine() -> CoupledModel:
    """The four-bar with its circuit and a command that has no jump inside."""
    ramp = LinearSignal(times=(0.0, STOP), values=(2.0, 3.0))
    data = mbsfmu.models.four_bar().to_dict()
    return CoupledModel.from_dict({**data, "signals": {"circuit.valve.command": ramp.to_dict()}})


@cache
def reference() -> float:
    options = {"solver": "dop853", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}
    return float(mbsfmu.models.pendulum(2).simulation(step=STOP, **options).run(STOP)["link_2.angle"][-1])


@pytest.mark.parametrize(("solver", "formulation"), CASES)
def test_order(solver: str, formulation: str) -> None:
    model, steps = mbsfmu.models.pendulum(2), (5e-3, 2.5e-3, 1.25e-3)
    tolerance = {} if formulation == "dca-alm" else {"newton_tolerance": 1e-12}
    options = {"solver": solver, "formulation": formulation, "compiled": False, **tolerance}
    errors = [abs(model.simulation(step=h, **options).run(STOP)["link_2.angle"][-1] - reference()) for h in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(ORDERS[solver], abs=0.15)


def agree(result: Result | np.ndarray, expected: Result, names: list[str]) -> None:
    for name in names:
        scale = np.max(np.abs(expected[name]))
        np.testing.assert_allclose(result[name], expected[name], atol=1e-9 * scale, err_msg=name)


NAMES = ["boom.angle", "cylinder.force", "V2.pressure"]


@needs_compiler
@pytest.mark.parametrize("solver", ORDERS)
def test_compiled_run_and_native_unit_are_the_same(solver: str, tmp_path: Path) -> None:
    """What they compute is traced into the code: the FMU has no need of the file."""
    expected = machine().simulation(solver=solver, compiled=False).run(STOP, output_step=EVERY)
    agree(machine().simulation(solver=solver).run(STOP, output_step=EVERY), expected, NAMES)
    path = mbsfmu.export(machine(), tmp_path, layout="monolithic", solver=solver)[0]
    unit = fmpy.simulate_fmu(str(path), stop_time=STOP, step_size=EVERY, output_interval=EVERY)
    agree(unit, expected, [name for name in NAMES if name in unit.dtype.names])
    assert np.ptp(unit["boom.angle"]) > 1e-3


def test_python_unit_takes_the_file_along(tmp_path: Path) -> None:
    expected = machine().simulation(solver="adams-moulton", compiled=False).run(0.05, output_step=EVERY)
    options = {"layout": "monolithic", "backend": "python", "solver": "adams-moulton"}
    path = mbsfmu.export(machine(), tmp_path, **options)[0]
    unit = fmpy.simulate_fmu(str(path), stop_time=0.05, step_size=EVERY, output_interval=EVERY)
    agree(unit, expected, [name for name in NAMES if name in unit.dtype.names])


def test_file_is_given_on_the_command_line(tmp_path: Path) -> None:
    arguments = ["simulate", "pendulum-1", "--parts", str(FILE), "--solver", "backward-euler", "--stop", "0.05"]
    done = CliRunner().invoke(cli, [*arguments, "-o", str(tmp_path / "run.csv"), "--quiet"])
    assert done.exit_code == 0, done.output
    expected = mbsfmu.models.pendulum(1).simulation(solver="backward-euler", compiled=False).run(0.05)
    found = mbsfmu.Trajectory.from_file(tmp_path / "run.csv")
    agree(found, expected, ["link_1.angle"])


def test_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match=r"there is no solver 'backward-eule'; did you mean 'backward-euler'\?"):
        machine().simulation(solver="backward-eule")


@pytest.mark.parametrize("formulation", ["double-step", "dca"])
def test_saved_history_is_restored_to_the_last_bit(formulation: str) -> None:
    """Into another simulation, which has remembered nothing."""
    one, other = (
        machine().simulation(solver="adams-moulton", formulation=formulation, compiled=False) for _ in range(2)
    )
    one.initialize()
    one.step(0.0, 0.05)
    saved = one.save()
    other.restore(saved)
    for simulation in (one, other):
        simulation.step(0.05, 0.02)
    assert one.save() == other.save()
    forgetful = machine().simulation(solver="adams-moulton", formulation=formulation, compiled=False)
    forgetful.restore(saved)
    state = forgetful._started()
    assert state.history[0] == pytest.approx(1e-3)
    state.history[:] = 0.0
    forgetful.step(0.05, 0.02)
    assert forgetful.get("boom.angle") != one.get("boom.angle")


def test_rule_of_the_page_has_its_order(tmp_path: Path) -> None:
    """θ = 1/2 is the trapezoidal rule; any other is of first order."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "own-rules.md").read_text(encoding="utf-8")
    file = tmp_path / "theta.py"
    file.write_text(page.partition("```python\n")[2].partition("```")[0])
    mbsfmu.load_parts([file])
    steps = (5e-3, 2.5e-3)
    for solver, order in (("theta:theta=0.5", 2.0), ("theta:theta=0.6", 1.0), ("theta", 1.0)):
        runs = [mbsfmu.models.pendulum(2).simulation(solver=solver, step=h, compiled=False).run(STOP) for h in steps]
        errors = [abs(run["link_2.angle"][-1] - reference()) for run in runs]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


def test_files_that_define_one_rule_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The last one would win; a file that is loaded again wins again, which is told."""
    monkeypatch.setattr(mbsfmu.rules.rule, "RULES", Registry("rule", replaced=True))
    files = [tmp_path / f"half_{index}.py" for index in range(2)]
    for index, file in enumerate(files):
        text = FILE.read_text(encoding="utf-8").replace('"backward-euler"', '"twice"')
        file.write_text(text.replace('"adams-moulton"', f'"once-{index}"'))
    with pytest.raises(InputError, match=r"the rule 'twice' is defined twice, in .*half_0\.py and in .*half_1\.py"):
        mbsfmu.load_parts(files)
    before: Path | None = None
    for file in (files[0], files[1], files[0]):
        caplog.clear()
        mbsfmu.load_parts([file, file])
        told = f"the rule 'twice' is from now on that of {file}, no longer that of {before}"
        assert [told] * (before is not None) == [each for each in caplog.messages if "'twice'" in each]
        before = file
        rule = find_rule("twice")
        assert rule is not None
        assert sys.modules[type(rule).__module__].__file__ == str(file)


@needs_compiler
def test_rule_changed_under_its_name_makes_other_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same machine, whose code is kept: a mass that falls along a slide.

    After N steps v = N h a, and x = h² a Σ (k + θ) = h² a (N (N − 1) / 2 + θ N).
    """
    monkeypatch.setattr(mbsfmu.rules.rule, "RULES", Registry("rule", replaced=True))

    def define(theta: float) -> None:
        @dataclass(frozen=True)
        class Changed(Rule):
            name: ClassVar[str] = "changed"

            def rate(self, end: Array, begin: FirstOrderValues, step: Step) -> Array:
                return ((end - begin.value) / step.size - (1.0 - theta) * begin.rate) / theta

        assert find_rule("changed") == Changed()

    mechanism = Mechanism(
        gravity=(10.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Beam(name="mass", length=0.1, mass=2.0),),
        joints=(Prismatic(name="slide", parent="ground.O", child="mass.start"),),
    )
    model, step, count = CoupledModel(name="fall", systems={"mechanism": mechanism}), 0.01, 20
    for theta in (0.5, 1.0, 0.5):
        define(theta)
        result = model.simulation(solver="changed", step=step).run(count * step)
        expected = step**2 * 10.0 * (count * (count - 1) / 2 + theta * count)
        assert result["mass.displacement"][-1] == pytest.approx(expected, rel=1e-9)
