"""`mbsfmu compare` of FMUs by C of the tests: tables, JSON, page, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ended_calls import Ended
from foreign_fmus import build_c_unit, compiler

import mbsfmu
from mbsfmu.cosim import write_ssp

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


@pytest.fixture
def coupled(tmp_path: Path) -> list[str]:
    path = build_c_unit("sprung", tmp_path)
    return [f"one={path}", f"two={path}", "--connect", "one.x=two.u", "--connect", "two.x=one.u", "--set", "one.x=0.1"]


def test_fmus_are_compared_with_a_reference_run(
    in_process: Callable[..., Ended], coupled: list[str], tmp_path: Path
) -> None:
    options = ("--steps", "0.02,0.01", "--algorithms", "gauss-seidel", "--stop", "1", "--accuracy", "0.1", "--quiet")
    done = in_process("compare", *coupled, *options, "--json", "c.json", "--report", "c.html")
    assert done.status == 0, done.stderr
    assert "compared with the reference run" in done.stdout
    assert "The reference is newton-linear with a step of" in done.stdout
    assert "Not compared, because they are discrete: one.side, one.right, two.side, two.right." in done.stdout
    assert "For an error of at most 10 % the cheapest" in done.stdout
    found = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert found["coupled_reference"]["algorithm"] == "newton-linear"
    assert found["reference"]["stop"] == pytest.approx(1.0)
    assert found["left_out"] == ["one.side", "one.right", "two.side", "two.right"]
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert ">The reference<" in page
    assert "The monolithic reference" not in page
    assert "good to about" in page


@pytest.mark.parametrize("named", ["folder", "folder/pair.ssp"])
def test_a_package_is_compared(in_process: Callable[..., Ended], tmp_path: Path, named: str) -> None:
    unit = build_c_unit("sprung", tmp_path)
    (tmp_path / "folder").mkdir()
    crossed = [mbsfmu.Connection((a, "x"), (b, "u")) for a, b in (("one", "two"), ("two", "one"))]
    write_ssp(tmp_path / "folder/pair.ssp", "pair", {"one": unit, "two": unit}, crossed, 0.2)
    options = ("--set", "one.x=0.1", "--steps", "0.02", "--algorithms", "gauss-seidel", "--accuracy", "0.5", "--quiet")
    done = in_process("compare", named, *options)
    assert done.status == 0, done.stderr
    assert f"{Path(named).stem}, compared with the reference run" in done.stdout


def test_what_is_of_models_is_refused(in_process: Callable[..., Ended], coupled: list[str]) -> None:
    done = in_process("compare", *coupled, "--formulation", "dca")
    assert done.status == 2
    assert "formulation = dca has no effect with FMUs" in done.stderr
    done = in_process("compare", *coupled, "--live", "--report", "c.html")
    assert done.status == 2
    assert "--live is of models" in done.stderr
    done = in_process("compare", "four-bar", *coupled[:1])
    assert done.status == 2
    assert "four-bar is given with other models; a comparison has one model, or FMU files" in done.stderr
