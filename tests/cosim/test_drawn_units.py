"""Coupled FMUs that say what they are are drawn without their model; units of others are not, and a word says why."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mbsfmu
from hydraulics import DataError
from mbsfmu import BoxShape, InputError, cosimulate
from mbsfmu.cosim import Connection
from mbsfmu.model.machine import Carried, Machine, joined, machine_of_fmus
from mbsfmu.view.report import write_report

Floats = NDArray[np.float64]


def numbers(text: str, columns: int) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(float).reshape(-1, columns)


def tips(payload: dict[str, Any], local: tuple[float, float, float]) -> Floats:
    """Return where a point of each body is at the frames, shape (k, bodies, 3): by quaternions x, y, z, w."""
    poses = numbers(payload["runs"][0]["poses"], 7 * len(payload["bodies"])).reshape(-1, len(payload["bodies"]), 7)
    place, vector, scalar = np.split(poses, [3, 6], axis=2)
    across = 2.0 * np.cross(vector, local)
    return place + local + scalar * across + np.cross(vector, across)


def test_units_of_a_package_are_drawn_as_their_model_is(four_bar_package: Path) -> None:
    """Poses, shapes, cylinders and arrows, all of it as where the model is at hand."""
    model = mbsfmu.models.four_bar()
    run = cosimulate(four_bar_package, algorithm="gauss-seidel", step=2e-3, stop=1.3)
    alone, told = run.animate().payload, run.animate(model).payload
    assert told["lines"][0]["kind"] == "cylinder"
    assert [each["kind"] for each in told["arrows"]] == ["force"]
    assert {**alone, "name": ""} == {**told, "name": ""}
    assert alone["name"] == "mechanism and circuit"
    report = write_report(run, four_bar_package.with_name("report.html")).read_text(encoding="utf-8")
    assert "The machine in motion" in report
    assert "No moving picture" not in report


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pendulum with a box for a bob, as a unit of the whole."""
    plain = mbsfmu.models.pendulum(1)
    (name, mechanism), *_ = plain.systems.items()
    (body,) = mechanism.bodies
    box = BoxShape(size=(0.1, 0.1, 0.1), position=(1.0, 0.0, 0.0))
    looking = mechanism.model_copy(update={"bodies": (body.model_copy(update={"shapes": (box,)}),)})
    model = plain.model_copy(update={"systems": {name: looking}})
    return mbsfmu.export(model, tmp_path_factory.mktemp("pendulum"), step=1e-3, solver="rk4")[0]


def test_two_units_of_one_file_are_two_machines(pendulum: Path) -> None:
    """Each where its own angle says; one begins elsewhere and is longer, which only the call knows."""
    starts = {"right.link_1.angle_start": 0.5, "right.link_1.length": 2.0}
    run = cosimulate([f"left={pendulum}", f"right={pendulum}"], parameters=starts, step=1e-2, stop=0.5)
    payload = run.animate().payload
    assert [each["name"] for each in payload["bodies"]] == ["left.mechanism.link_1", "right.mechanism.link_1"]
    assert [each["shapes"][0]["kind"] for each in payload["bodies"]] == ["box", "box"]
    assert payload["notes"] == []
    found = tips(payload, (1.0, 0.0, 0.0))
    at = np.linspace(0.0, 0.5, payload["time"]["count"])
    for body, unit in enumerate(("left", "right")):
        angle = np.interp(at, run.time, run[f"{unit}.link_1.angle"])
        expected = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
        np.testing.assert_allclose(found[:, body], expected, atol=2e-4)
    machine = run.drawable.machine()  # pyright: ignore[reportOptionalMemberAccess]
    assert machine.values["right.mechanism.link_1.length"] == 2.0
    assert machine.values["left.mechanism.link_1.length"] == 1.0


def test_units_of_others_have_no_picture(oscillators: list[Path], tmp_path: Path) -> None:
    run = cosimulate(oscillators, step=1e-2, stop=0.1)
    with pytest.raises(InputError, match="no FMU carries along what its bodies look like"):
        run.animate()
    report = write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No moving picture: no FMU carries along what its bodies look like" in report


@pytest.mark.parametrize("text", ["[1, 2]", '{"mbsfmu": 99}', "no JSON", '{"name": "theirs"}'])
def test_a_file_of_somebody_else_is_none_of_ours(text: str) -> None:
    assert Carried.read(text) is None
    assert machine_of_fmus({"theirs": text}, [], {}, ()) is None


def test_units_that_show_nothing_inside_carry_nothing(tmp_path: Path) -> None:
    (path,) = mbsfmu.export(
        mbsfmu.models.pendulum(1), tmp_path, solver="rk4", locals="none", platforms=[], sources=True
    )
    assert "resources/machine.json" not in zipfile.ZipFile(path).namelist()


def test_parts_of_ones_own_that_are_not_there_are_told(pendulum: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(pendulum) as archive:
        told = json.loads(archive.read("resources/machine.json"))
    told["model"]["systems"]["mechanism"]["forces"] = [{"type": "sail", "name": "sail", "point": "link_1.end"}]
    with pytest.raises(DataError, match=r"the unit 'boat' cannot be drawn: .*'sail'"):
        machine_of_fmus({"boat": json.dumps(told)}, [], {}, ())


def test_what_a_call_drives_follows_no_signal_of_the_unit() -> None:
    """In the unit the valve of the four-bar follows steps; where somebody drives it, nobody knows its command."""
    model = mbsfmu.models.four_bar()
    carried = {"machine": Carried(Machine.of(model))}
    assert "machine.circuit.valve.command" in joined(carried, [], {}, ()).signals
    assert joined(carried, [], {}, {("machine", "valve.command")}).signals == {}
    ends = [Connection.parse("stick.y=machine.valve.command")]
    wired = joined(carried, [(each.source, each.target) for each in ends], {}, ())
    assert wired.signals == {}
    assert ("stick.y", "machine.circuit.valve.command") in wired.connections
    assert wired.split("machine.circuit.valve.command") == ("machine.circuit", "valve.command")
