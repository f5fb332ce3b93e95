"""What was traced is kept: the next process does without, to the last bit, and nothing stale is ever taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import casadi as ca
import numpy as np
import pytest

import mbsfmu
from hydraulics import Quantity
from mbsfmu import Block, CoupledModel, Mechanism
from mbsfmu.base.errors import SimulationError
from mbsfmu.compiling import kept
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing import kept_traces as traces_module
from mbsfmu.tracing.kept_traces import Traces, _remembered, toolkit

PACE = 1.0


class Decay(Block):
    """A state that fades at a pace which stands elsewhere, as in a study that goes through some."""

    type: Literal["decay-of-the-tests"] = "decay-of-the-tests"

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("level", "1", start=1.0, nominal=1.0, description="level"),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("half", "1", description="half of the level"),)

    def evaluate_outputs(self, now: mbsfmu.Numbers) -> dict[str, object]:
        return {"half": 0.5 * now["level"]}

    def rates(self, now: mbsfmu.Numbers) -> dict[str, object]:
        return {"level": -PACE * now["level"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is kept in it at first."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that are traced."""
    names: list[str] = []
    trace = SystemFunctions._function

    def noted(own: SystemFunctions, name: str, results: list[ca.SX], *, merged: bool = False) -> ca.Function:
        names.append(name)
        return trace(own, name, results, merged=merged)

    monkeypatch.setattr(SystemFunctions, "_function", noted)
    return names


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "formulation"),
    [("four-bar", "double-step"), ("bennett", "penalty"), ("loop-4", "dca"), ("loop-4", "hdca")],
)
def test_what_was_traced_once_gives_the_same_to_the_last_bit(name: str, formulation: str, traced: list[str]) -> None:
    first, second = (mbsfmu.models.built_in(name).simulation(formulation=formulation).run(0.02) for _ in range(2))
    assert traced
    traced.clear()
    _remembered.cache_clear()
    third = mbsfmu.models.built_in(name).simulation(formulation=formulation).run(0.02)
    assert not traced
    for result in (second, third):
        assert all(np.array_equal(first[each], result[each]) for each in first.names)


def test_a_second_process_loads_what_the_first_kept(folder: Path) -> None:
    mbsfmu.models.four_bar().simulation().run(0.01)
    assert [each.suffix for each in folder.iterdir()].count(".traces") == 1
    code = (
        "from mbsfmu.systems.expressions import SystemExpressions\n"
        "def refused(*_): raise AssertionError('something is traced')\n"
        "SystemExpressions.derivative = SystemExpressions.depends = refused\n"
        "import mbsfmu; mbsfmu.models.four_bar().simulation().run(0.01)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_process_remembers_what_it_traced(folder: Path, traced: list[str]) -> None:
    """Interpreted runs keep nothing for other processes; another formulation finds what they have in common."""
    first = mbsfmu.models.built_in("loop-4").simulation(compiled=False, formulation="dca").run(0.01)
    assert "outputs" in traced
    traced.clear()
    second = mbsfmu.models.built_in("loop-4").simulation(compiled=False, formulation="dca").run(0.01)
    assert "outputs" not in traced
    assert all(np.array_equal(first[each], second[each]) for each in first.names)
    assert not folder.exists()


@pytest.mark.usefixtures("folder")
def test_another_model_has_traces_of_its_own(traced: list[str]) -> None:
    """A point of the ground is a parameter, a second model with the same names another mechanism."""
    model = mbsfmu.models.five_bar()
    model.simulation().run(0.01)
    mechanism = model.systems["mechanism"]
    assert isinstance(mechanism, Mechanism)
    first, *others = mechanism.bodies
    heavier = mechanism.model_copy(update={"bodies": (first.model_copy(update={"mass": 2.0 * first.mass}), *others)})
    changed = model.model_copy(update={"systems": {"mechanism": heavier}})
    traced.clear()
    result = changed.simulation().run(0.2)
    assert "equilibrium" in traced
    fresh = changed.simulation(compiled=False).run(0.2)
    for name in result.names:
        np.testing.assert_allclose(result[name], fresh[name], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("change", ["toolkit", "library"])
def test_another_version_traces_anew(change: str, traced: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    mbsfmu.models.pendulum(1).simulation().run(0.01)
    traced.clear()
    if change == "toolkit":
        monkeypatch.setattr(traces_module, "toolkit", lambda: "another")
    else:
        monkeypatch.setattr(ca.CasadiMeta, "version", lambda: "0.0.0")
        toolkit.cache_clear()
    mbsfmu.models.pendulum(1).simulation().run(0.01)
    toolkit.cache_clear()
    assert "outputs" in traced


@pytest.mark.parametrize("name", ["code.py", "part.c", "part.h"])
def test_every_character_of_the_toolkit_counts(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "made_for_this_test"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(traces_module, "PACKAGES", (package.name,))
    seen = set()
    for text in ("one", "two", "two "):
        (package / name).write_text(text)
        toolkit.cache_clear()
        seen.add(toolkit())
    (package / f"another_{name}").write_text((package / name).read_text())
    (package / name).write_text("")
    toolkit.cache_clear()
    seen.add(toolkit())
    toolkit.cache_clear()
    assert len(seen) == 4


@pytest.mark.usefixtures("folder")
def test_what_code_of_users_follows_from_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and file are the same, but the equations are others: exp(-PACE t) in closed form."""
    for pace in (1.0, 3.0):
        monkeypatch.setattr(sys.modules[__name__], "PACE", pace)
        model = CoupledModel(name="fading", systems={"decay": Decay()})
        level = model.simulation(step=1e-3).run(0.5)["level"]
        assert level[-1] == pytest.approx(np.exp(-0.5 * pace), rel=1e-5)


def test_damaged_traces_are_made_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = mbsfmu.models.pendulum(2).simulation().run(0.01)
    (file,) = (each for each in folder.iterdir() if each.suffix == ".traces")
    file.write_bytes(file.read_bytes()[:-1])
    _remembered.cache_clear()
    again = mbsfmu.models.pendulum(2).simulation().run(0.01)
    assert "is damaged; it is compiled again" in caplog.text
    assert np.array_equal(first["link_2.angle"], again["link_2.angle"])


def test_names_mean_one_function() -> None:
    traces = Traces("a model")
    traces.fact("rank", lambda: 3)
    with pytest.raises(SimulationError, match="'rank' is traced twice"):
        traces.fact("rank", lambda: 4)
    assert traces.of("a part").fact("rank", lambda: 5) == 5
