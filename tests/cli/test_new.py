"""New machines and examples: they run as they are, by name and from the file that is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ended_calls import Ended

import mbsfmu
from mbsfmu.cli.found_models import find_model
from mbsfmu.models.examples import EXAMPLES, example_description

Call = Callable[..., Ended]
EXAMPLES_FOLDER = Path(__file__).parents[2] / "examples"


def test_a_new_machine_runs_is_exported_and_does_the_work_of_its_lift(in_process: Call, tmp_path: Path) -> None:
    """Until it stands all work of the ram is in the height of the centre of mass, 2.2 m out and 0.6 m up."""
    done = in_process("new", "my-tipper")
    assert (done.status, done.stdout.splitlines()[0]) == (0, "my_tipper.py")
    for line in done.stdout.splitlines()[3:]:
        assert line.startswith("  mbsfmu ")
        assert "my_tipper.py:my_tipper" in line
    model = find_model("my_tipper.py:my_tipper")
    assert model.name == "my-tipper"
    run = model.simulation(compiled=False).run(3.9)
    angle = run["bed.angle"][-1]
    lift = 2.2 * np.sin(angle) + 0.6 * (np.cos(angle) - 1.0)
    assert angle > 0.1
    assert run["energy.work"][-1] == pytest.approx(3000.0 * 9.81 * lift, rel=2e-3)
    done = in_process("show", "my_tipper.py:my_tipper", "--quiet")
    assert done.status == 0, done.stderr
    (unit,) = mbsfmu.export(model, tmp_path / "units", layout="monolithic", backend="python")
    assert unit.exists()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_models_by_name_and_files_to_copy(name: str, in_process: Call) -> None:
    done = in_process("new", "copied", "--like", name, "--quiet")
    assert done.status == 0, done.stderr
    files = done.stdout.split()
    function = name.replace("-", "_")
    assert "examples/" not in Path("copied.py").read_text(encoding="utf-8").split('"""')[1]
    assert sorted(each.name for each in Path().iterdir() if each.suffix in (".py", ".urdf")) == sorted(files)
    copied, model = find_model(f"copied.py:{function}").to_dict(), mbsfmu.models.built_in(name).to_dict()
    assert copied == model
    assert example_description(name)[:1].isupper()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("Tipper",), "'Tipper' is refused as the name of a machine: it must be small letters"),
        (("lambda",), "no word of Python"),
        (("hydraulics",), "a module of Python is called so"),
        (("tipper", "--like", "crain"), "there is no example 'crain' to copy; did you mean 'crane'?"),
        (("tipper", "-o", "nowhere"), "there is no folder nowhere"),
    ],
)
def test_what_no_machine_can_be_called_is_refused(arguments: tuple[str, ...], sentence: str, in_process: Call) -> None:
    done = in_process("new", *arguments)
    assert done.status == 2
    assert sentence in done.stderr
    assert not list(Path().iterdir())


def test_a_file_that_is_there_is_kept(in_process: Call) -> None:
    Path("mine.py").write_text("mine = 1\n", encoding="utf-8")
    done = in_process("new", "mine")
    assert done.status == 2
    assert "mine.py is there already; --force" in done.stderr
    assert Path("mine.py").read_text(encoding="utf-8") == "mine = 1\n"
    assert in_process("new", "mine", "--force").status == 0
    assert "def mine()" in Path("mine.py").read_text(encoding="utf-8")


def test_models_lists_examples(in_process: Call) -> None:
    done = in_process("models")
    for name in EXAMPLES:
        assert name in done.stdout
    done = in_process("show", "excavater")
    assert "did you mean 'excavator'?" in done.stderr
