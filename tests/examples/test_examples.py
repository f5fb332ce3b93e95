"""The examples are the built-in models, and what they print when run is true."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from double_pentagon import double_pentagon
from five_bar import five_bar
from four_bar import four_bar
from loops import double_loop_8, loop_4, loop_8
from pendulum import pendulum
from quick_return import quick_return
from started import run_python

from mbsfmu import CoupledModel, models
from mbsfmu.cli.found_models import find_model
from mbsfmu.models.chains import ORIGIN

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\d)")


def model_alone(model: CoupledModel) -> dict[str, Any]:
    """The model without its origin: an example is its user's."""
    return {key: value for key, value in model.to_dict().items() if key not in ORIGIN}


@pytest.mark.parametrize(
    ("made", "built_in"),
    [
        (four_bar, models.four_bar),
        (quick_return, models.quick_return),
        (five_bar, models.five_bar),
        (double_pentagon, models.double_pentagon),
        (loop_4, models.loop_4),
        (loop_8, models.loop_8),
        (double_loop_8, models.double_loop_8),
    ],
    ids=lambda factory: factory.__name__,
)
def test_example_is_the_built_in_model(made: Callable[[], CoupledModel], built_in: Callable[[], CoupledModel]) -> None:
    assert model_alone(made()) == model_alone(built_in())


@pytest.mark.parametrize("name", models.BUILT_IN)
def test_built_in_machines_start_as_their_data_say(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A sound machine is warned of nothing: the ram of the quick-return mechanism stands on its head, as published."""
    models.built_in(name).simulation(compiled=False).initialize()
    assert not [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("links", [1, 2, 3, 8])
def test_pendulum_is_the_built_in_chain(links: int) -> None:
    assert model_alone(pendulum(links)) == model_alone(models.pendulum(links))


@pytest.mark.parametrize(
    ("file", "factory"),
    [
        ("four_bar", "four_bar"),
        ("quick_return", "quick_return"),
        ("pendulum", "pendulum"),
        ("five_bar", "five_bar"),
        ("double_pentagon", "double_pentagon"),
        ("loops", "loop_4"),
        ("loops", "loop_8"),
        ("loops", "double_loop_8"),
    ],
)
def test_command_line_takes_the_factory(file: str, factory: str) -> None:
    assert isinstance(find_model(f"{EXAMPLES / file}.py:{factory}"), CoupledModel)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_imports_public_names_only(path: Path) -> None:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    public = {"mbsfmu", "hydraulics", "fmpy", "fmpy.fmi3", "casadi", "numpy", "numpy.typing", "scipy.spatial.transform"}
    public.add("excavator_looks")
    assert all(name in public or name in sys.stdlib_module_names for name in modules)


def run(file: str, *arguments: str) -> list[str]:
    """Run an example as a script, as a user does; return its lines."""
    done = run_python("-W", "error", str(EXAMPLES / file), *arguments)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()


def numbers(line: str) -> list[float]:
    """Return the numbers in a line that stand alone."""
    return [float(text) for text in NUMBER.findall(line)]


def test_four_bar_conserves_energy() -> None:
    moved, energy, newton, told = run("four_bar.py")
    assert "the error of throttle.flow is estimated at" in told
    drift, work = numbers(energy)
    assert numbers(moved)[0] > 0.05
    assert drift < 1e-4 * work
    assert 1.0 <= numbers(newton)[0] < 1.5


def test_quick_return_couples(tmp_path: Path) -> None:
    units, length, force, _, *told = run("quick_return.py", str(tmp_path))
    assert all("is estimated at" in each for each in told)
    assert units == "coupled: mechanism.fmu, circuit.fmu"
    assert 0.0 < numbers(length)[0] < 1e-4
    assert 0.0 < numbers(force)[0] < 1e3
    assert {path.name for path in tmp_path.iterdir()} == {"mechanism.fmu", "circuit.fmu", "quick-return.ssp"}


def test_pendulum_has_the_exact_period() -> None:
    period, exact, small = numbers(run("pendulum.py")[0])
    assert period == pytest.approx(exact, rel=1e-6)
    assert small < exact


def test_five_bar_names_the_redundant_equations() -> None:
    lines = run("five_bar.py")
    assert any("3 of 5 loop equations are redundant" in line for line in lines)
    assert any("the loop opens by at most" in line and numbers(line)[0] < 1e-9 for line in lines)


def test_double_pentagon_formulations_agree() -> None:
    *formulations, difference = run("double_pentagon.py")
    assert [line.partition(":")[0] for line in formulations] == ["double-step", "penalty"]
    assert numbers(difference)[0] < 1e-6


def test_loops_drift_with_the_square_of_the_step() -> None:
    lines = run("loops.py")
    assert [line.partition(":")[0] for line in lines] == ["loop-4", "double-loop-8"]
    assert [numbers(line)[-1] for line in lines] == pytest.approx([4.0] * 2, abs=0.2)
