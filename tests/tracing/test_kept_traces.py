"""What was traced is kept: the next process does without, to the last bit, and nothing stale is ever taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import casadi as ca
import numpy as np
import pytest

import mbsfmu
from hydraulics import Quantity
from mbsfmu import Block, CoupledModel, FirstOrder, Mechanism, Revolute, RigidBody, SampledPidController, Table
from mbsfmu.base.errors import SimulationError
from mbsfmu.compiling import kept
from mbsfmu.model import Point
from mbsfmu.native import compiled
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


def test_what_a_later_process_adds_takes_the_place_of_what_was_kept(folder: Path) -> None:
    """The numbers 1, 2, 3, each from a process that knows those before it."""
    for count in (1, 2, 3):
        _remembered.cache_clear()
        traces = Traces("a model")
        for number in range(1, count):
            assert traces.fact(f"fact {number}", lambda: 0) == number
        assert traces.fact(f"fact {count}", lambda: count) == count  # noqa: B023 - computed at once
        traces.keep()
        assert [each.suffix for each in folder.iterdir()].count(".traces") == 1


def test_a_process_remembers_what_it_traced(folder: Path, traced: list[str]) -> None:
    """Interpreted runs keep nothing for other processes; another formulation finds what they have in common."""
    first = mbsfmu.models.built_in("loop-4").simulation(compiled=False, formulation="dca").run(0.01)
    assert "outputs" in traced
    traced.clear()
    second = mbsfmu.models.built_in("loop-4").simulation(compiled=False, formulation="dca").run(0.01)
    assert "outputs" not in traced
    assert all(np.array_equal(first[each], second[each]) for each in first.names)
    assert not folder.exists()


def rod(
    length: float = 2.0, mass: float = 3.0, angle: float = 0.0, axis: tuple[float, float, float] = (0.0, 0.0, 1.0),
    aside: float = 0.0,
) -> CoupledModel:  # fmt: skip
    """A uniform rod on a hinge, along x of its frame; its centre may be aside from the line."""
    inertia = mass * length**2 / 12.0
    body = RigidBody(
        name="rod",
        mass=mass,
        inertia=(inertia,) * 3,
        length=length,
        centre=Point(along=0.5, position=(0.0, aside, 0.0)),
    )
    hinge = Revolute(name="hinge", parent="ground.O", child="rod.origin", axis=axis, angle=angle)
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(body,), joints=(hinge,))
    return CoupledModel(name="rod", systems={"mechanism": mechanism})


def falling(model: CoupledModel, **exact: float) -> None:
    """The rod starts with the acceleration of a closed form, and the hinge carries what it does not fall with."""
    result = model.simulation(formulation="dca").run(1e-3)
    for name, value in exact.items():
        assert result[{"acceleration": "rod.angular_acceleration", "force": "hinge.force.y"}[name]][0] == pytest.approx(
            value, rel=1e-9
        )


G = 9.81


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("changed", "acceleration", "force"),
    [
        ({"length": 5.0}, -1.5 * G / 5.0, 3.0 * G / 4.0),
        ({"mass": 8.0}, -1.5 * G / 2.0, 8.0 * G / 4.0),
        ({"angle": 0.7}, -1.5 * G / 2.0 * np.cos(0.7), 3.0 * G * (1.0 - 0.75 * np.cos(0.7) ** 2)),
    ],
)
def test_a_changed_number_traces_and_compiles_nothing(
    changed: dict[str, float], acceleration: float, force: float, traced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(rod(), acceleration=-1.5 * G / 2.0, force=3.0 * G / 4.0)
    assert traced
    traced.clear()
    _remembered.cache_clear()
    monkeypatch.setattr(compiled, "compile_library", refused)
    falling(rod(**changed), acceleration=acceleration, force=force)
    assert not traced


def refused(*_: object, **__: object) -> None:
    raise AssertionError("something is compiled")


def test_rules_have_functions_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one rule left there changes nothing of another one."""
    model, results = rod(angle=0.3), {}
    for cache, rule in (("kept", "trapezoidal"), ("kept", "bdf2"), ("another", "bdf2")):
        monkeypatch.setenv(kept.FOLDER, str(folder.parent / cache))
        results[cache, rule] = model.simulation(solver=rule, step=0.02).run(1.0)["rod.angle"]
    assert np.array_equal(results["kept", "bdf2"], results["another", "bdf2"])
    assert np.max(np.abs(results["kept", "bdf2"] - results["kept", "trapezoidal"])) > 1e-5


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("changed", "acceleration"),
    [
        ({"axis": (0.0, 0.6, 0.8)}, -1.5 * G / 2.0 * 0.8 / (1.0 + 0.0)),
        ({"aside": 0.5}, -3.0 * G * 1.0 / (4.0 + 3.0 * 0.25)),
    ],
)
def test_a_number_inside_the_equations_is_traced(
    changed: dict[str, Any], acceleration: float, traced: list[str]
) -> None:
    """The direction of an axis, and a zero that was left out of them."""
    falling(rod(), acceleration=-1.5 * G / 2.0)
    traced.clear()
    falling(rod(**changed), acceleration=acceleration)
    assert traced


@pytest.mark.usefixtures("folder")
def test_a_changed_gain_traces_nothing(traced: list[str]) -> None:
    for gain, time_constant in ((2.0, 0.5), (7.0, 0.2)):
        traced.clear()
        lag = FirstOrder(gain=gain, time_constant=time_constant)
        model = CoupledModel(name="lag", systems={"lag": lag}, start={"lag.input": 3.0})
        result = model.simulation(solver="rodas5p", relative_tolerance=1e-9).run(1.0)
        exact = 3.0 * gain * (1.0 - np.exp(-result.time / time_constant))
        np.testing.assert_allclose(result["output"], exact, atol=1e-6)
    assert not traced


@pytest.mark.usefixtures("folder")
def test_places_of_tables_and_sample_times_are_inside_the_equations() -> None:
    """Values of a table are parameters, their places are not; nor is the time between updates."""
    for place, value in ((1.0, 2.0), (4.0, 2.0), (4.0, 6.0)):
        table = Table(points=((0.0, 0.0), (place, value)))
        model = CoupledModel(name="read", systems={"table": table}, start={"table.input": 0.5})
        assert model.simulation().run(1e-3)["output"][0] == pytest.approx(0.5 * value / place, rel=1e-12)
    for sample_time in (0.1, 0.25):
        controller = SampledPidController(proportional=0.0, integral=1.0, sample_time=sample_time)
        start = {"controller.setpoint": 1.0, "controller.measured": 0.0}
        model = CoupledModel(name="sampled", systems={"controller": controller}, start=start)
        command = model.simulation().run(1.0)["command"]
        assert len(np.unique(np.round(command, 9))) == round(1.0 / sample_time) + 1
        assert np.diff(np.unique(np.round(command, 9)))[-1] == pytest.approx(sample_time, rel=1e-6)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("value", [1.0, 2.5])
def test_start_values_of_states_are_inside_the_equations(value: float) -> None:
    """ẏ = (u − y)/T from y(0)."""
    for begun in (0.3, value):
        lag = FirstOrder(time_constant=0.5)
        model = CoupledModel(name="begun", systems={"lag": lag}, start={f"lag.{lag.states()[0].name}": begun})
        assert model.simulation().run(1e-3)["output"][0] == pytest.approx(begun, rel=1e-12)


def test_another_cache_gives_the_same_to_the_last_bit(
    folder: Path, traced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All masses and lengths, and all numbers of the components of the four-bar are others."""
    mbsfmu.models.four_bar().simulation().run(0.02)
    data = mbsfmu.models.four_bar().to_dict()
    for body in data["systems"]["mechanism"]["bodies"]:
        body.update({name: 1.01 * body[name] for name in ("mass", "length") if body.get(name)})
    for component in data["systems"]["circuit"]["components"]:
        component.update({name: 1.02 * each for name, each in component.items() if isinstance(each, float)})
    data["systems"]["circuit"]["oil"]["density"] = 870.0
    traced.clear()
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "compile_library", refused)
        first = CoupledModel.from_dict(data).simulation().run(0.02)
    assert set(traced) <= {"misalignment_slopes"}, "the loops of the first one are closed as they start"
    monkeypatch.setenv(kept.FOLDER, str(folder.parent / "another"))
    second = CoupledModel.from_dict(data).simulation().run(0.02)
    assert traced
    assert all(np.array_equal(first[name], second[name]) for name in first.names)


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


def test_code_that_makes_no_functions_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "made_for_this_test_too"
    for folder in (package, package / "view", package / "equations", package / "equations" / "view"):
        folder.mkdir()
        (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(traces_module, "PACKAGES", (package.name,))
    seen = []
    for folder in ("view", "equations", "equations/view"):
        toolkit.cache_clear()
        before = toolkit()
        (package / folder / "page.py").write_text("another")
        toolkit.cache_clear()
        seen.append(toolkit() != before)
    toolkit.cache_clear()
    assert seen == [False, True, True]


def test_code_that_is_left_out_is_not_loaded_where_functions_are_made() -> None:
    """Traces and compiled code of runs are made with other folders alone."""
    code = (
        "import sys, mbsfmu.parts, mbsfmu.native.compiled, mbsfmu.native.ensemble_library\n"
        "import mbsfmu.simulation.simulation\n"
        "from mbsfmu.native import many_points\n"
        "from mbsfmu.tracing.kept_traces import UNUSED\n"
        "loaded = {name.split('.')[1] for name in sys.modules if name.startswith('mbsfmu.')}\n"
        "assert {'systems', 'native'} <= loaded and loaded.isdisjoint(UNUSED), loaded & set(UNUSED)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
