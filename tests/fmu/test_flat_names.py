"""Flat names: identifiers for importers that make buses of dots, with the structured names in descriptions."""

from __future__ import annotations

import re
from pathlib import Path

import fmpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mbsfmu
from mbsfmu import InputError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.modelling.variables import flat_description, flat_name, flat_names, structured_name

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
IDENTIFIER = re.compile(r"[A-Za-z]\w*")
KEYWORDS = {"end", "for", "function", "double", "switch"}  # of MATLAB, of C, of both
PARTS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,40}(\[[1-9](,[1-9])?\])?", fullmatch=True)
NAMES = st.lists(st.lists(PARTS, min_size=1, max_size=4).map(".".join), unique=True, max_size=30)


@pytest.mark.parametrize(
    ("name", "flat"),
    [
        ("boom.angle", "boom_angle"),
        ("b.quaternion[1]", "b_quaternion_1"),
        ("der(boom.angle)", "der_boom_angle"),
        ("end", "end_"),
        ("double", "double_"),
        ("_hidden", "hidden"),
        (f"{'a' * 31}.{'b' * 31}", f"{'a' * 31}_{'b' * 31}"),
        (f"{'a' * 40}.{'b' * 40}", f"{'a' * 31}__{'b' * 30}"),  # of 63 characters, as the one before
    ],
)
def test_flat_names_are_those_of_the_page(name: str, flat: str) -> None:
    assert flat_names([name]) == (flat,)


@given(NAMES)
def test_flat_names_are_identifiers_and_lead_back(names: list[str]) -> None:
    """Of MATLAB, which has 63 characters and no underscore at the beginning, and of C; each is there once."""
    found = flat_names(names)
    assert len(set(found)) == len(names)
    for name, flat in zip(names, found, strict=True):
        assert IDENTIFIER.fullmatch(flat, 0, 63)
        assert len(flat) <= 63
        assert flat not in KEYWORDS
        expected = name if "." in name else flat  # without a dot it may be a word of a description
        assert structured_name(flat, flat_description(name, "what it is: in words")) == expected
        assert structured_name(flat, flat_description(name, "")) == expected


def test_later_names_are_numbered() -> None:
    assert flat_names(["a.b", "a_b", "a.b_2", "c"]) == ("a_b", "a_b_2", "a_b_2_2", "c")


def test_descriptions_of_others_are_no_names() -> None:
    for text in ("speed: of the motor", "boom.length: another variable", "", "in words"):
        assert structured_name("boom_angle", text) == "boom_angle"
    for name, text in (("flow_2", "flow: pump 2"), ("y_1", "y[1]: second"), ("p", "|p|: size"), ("a_b", "a..b: odd")):
        assert structured_name(name, text) == name


@needs_compiler
@pytest.mark.parametrize(("backend", "fmi"), [("native", 2), ("native", 3), ("python", 2)])
def test_the_same_unit_with_flat_names(tmp_path: Path, backend: str, fmi: int) -> None:
    """Values, order, references and model structure are those of the FMU with structured names; FMPy runs it."""
    chosen = {"layout": "monolithic", "backend": backend, "fmi": fmi, "step": 1e-2}
    (one,) = mbsfmu.export(mbsfmu.models.built_in("four-bar"), tmp_path / "one", **chosen)
    (other,) = mbsfmu.export(mbsfmu.models.built_in("four-bar"), tmp_path / "other", naming="flat", **chosen)
    plain, flat = (fmpy.read_model_description(str(path)) for path in (one, other))
    assert (plain.variableNamingConvention, flat.variableNamingConvention) == ("structured", "flat")
    assert plain.guid != flat.guid
    for each, written in zip(plain.modelVariables, flat.modelVariables, strict=True):
        assert written.name == flat_name(each.name)
        assert (each.valueReference, each.causality, each.start, each.unit) == (
            written.valueReference, written.causality, written.start, written.unit,
        )  # fmt: skip
        assert (written.description or "").startswith(each.name) or each.name == written.name == "time"
    names = ["boom.angle", "cylinder.force", "valve.spool"]
    names = [each.name for each in plain.modelVariables if each.name in names]
    expected = fmpy.simulate_fmu(str(one), stop_time=0.1, step_size=1e-2, output=names)
    found = fmpy.simulate_fmu(str(other), stop_time=0.1, step_size=1e-2, output=[flat_name(each) for each in names])
    for name in names:
        np.testing.assert_array_equal(found[flat_name(name)], expected[name])
    assert not [each for each in mbsfmu.validate(other) if each.severity == "error"]


@needs_compiler
def test_the_master_takes_both_names(tmp_path: Path) -> None:
    """A package of FMUs with flat names runs as that of structured ones does, and is asked by either."""
    model = mbsfmu.models.built_in("four-bar")
    paths = {
        naming: mbsfmu.export(model, tmp_path / naming, layout="separate", naming=naming, step=1e-3)
        for naming in ("structured", "flat")
    }
    chosen = {"step": 1e-3, "stop": 0.05}
    expected = mbsfmu.cosimulate(paths["structured"][-1], parameters={"mechanism.boom.mass": 250.0}, **chosen)
    for mass, record in (("mechanism.boom_mass", "mechanism.boom_*"), ("mechanism.boom.mass", "mechanism.boom.*")):
        found = mbsfmu.cosimulate(paths["flat"][-1], parameters={mass: 250.0}, record=[record], **chosen)
        for name in ("mechanism.boom.angle", "mechanism.boom_angle"):
            np.testing.assert_array_equal(found[name], expected["mechanism.boom.angle"])
        assert {name.split(".")[1] for name in found.names} == {"boom"}
    files = [path for path in paths["flat"] if path.suffix == ".fmu"]
    lines = [f"{a}={b}" for a, b in (("circuit.cylinder_force", "mechanism.cylinder.force"),
             ("mechanism.cylinder_length", "circuit.cylinder_length"),
             ("mechanism.cylinder.velocity", "circuit.cylinder_velocity"),
             ("mechanism.cylinder_static_force", "circuit.cylinder_initial_load"))]  # fmt: skip
    wired = mbsfmu.cosimulate(
        files, connections=lines, isolate=["circuit"], parameters={"mechanism.boom_mass": 250.0}, **chosen
    )
    np.testing.assert_array_equal(wired["mechanism.boom.angle"], expected["mechanism.boom.angle"])
    twice = {"mechanism.boom_mass": 250.0, "mechanism.boom.mass": 300.0}
    with pytest.raises(InputError, match=r"mechanism\.boom\.mass is given twice, by two of its names"):
        mbsfmu.cosimulate(files, parameters=twice, **chosen)
    with pytest.raises(InputError, match="mechanism has no variable 'boom_mas'"):
        mbsfmu.cosimulate(files, parameters={"mechanism.boom_mas": 250.0}, **chosen)


def test_wrong_namings_are_refused(tmp_path: Path) -> None:
    model = mbsfmu.models.built_in("pendulum-1")
    with pytest.raises(InputError, match="there is no naming 'flatt'; did you mean 'flat'"):
        mbsfmu.export(model, tmp_path, naming="flatt")
    for chosen in ({"fmi": 2}, {"fmi": 2, "backend": "python"}):
        with pytest.raises(InputError, match=r"arrays are for native FMUs of FMI 3\.0"):
            mbsfmu.export(model, tmp_path, arrays=True, **chosen)
    assert not list(tmp_path.iterdir())
