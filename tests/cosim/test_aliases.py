"""Aliases: names of one variable, of FMI 3.0 by `Alias`, of FMI 2.0 by one value reference, on every road to it."""

from __future__ import annotations

import logging
import shutil
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from cosim.linear_units import change_description
from cosim.ssp_documents import HEAD, TAIL, binding, bindings, component, connector, connectors, system, value, wire
from foreign_fmus import compiler

import mbsfmu
from mbsfmu import InputError, cosimulate, export_coupled
from mbsfmu.analysis.fmu_linearization import continuous_variables
from mbsfmu.cli.cosim import command as cosim
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.library_instance import LibraryInstance, LibraryPort
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.modelling.variables import Causality

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

Foreign = Callable[[str], Path]
GRID: dict[str, Any] = {"step": 0.5, "stop": 1.0}
STUDY: dict[str, Any] = {"settings": {"step": [0.5]}, "stop": 1.0, "workers": 1}


@pytest.fixture
def three(foreign: Foreign, tmp_path: Path) -> Path:
    """Arrays of FMI 3.0: `force` is `push` too, and `float32_in` is `level`."""
    path = Path(shutil.copy(foreign("vectors"), tmp_path / "v.fmu"))
    change_description(path, '(name="force"[^>]*>)', r'\1<Alias name="push"/>')
    change_description(path, '(<Float32 name="float32_in"[^>]*)/>', r'\1><Alias name="level"/></Float32>')
    return path


@pytest.fixture
def two(foreign: Foreign, tmp_path: Path) -> Path:
    """FMI 2.0: the output `seen` and the input `other` have the reference of `real_in`, `gain` that of a parameter."""
    path = Path(shutil.copy(foreign("feed_through"), tmp_path / "t.fmu"))
    fixed = 'causality="parameter" variability="fixed"'
    more = f"""<ScalarVariable name="seen" valueReference="0" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="other" valueReference="0" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="gain" valueReference="4" {fixed}><Real start="1.5"/></ScalarVariable>
  </ModelVariables>"""
    change_description(path, "</ModelVariables>", more)
    return path


def test_one_variable_has_one_writer(three: Path, two: Path, tmp_path: Path) -> None:
    """Every pair of roads that write to one variable by two names is refused, as by the same name twice."""
    files, link = [f"{name}={two}" for name in "abc"], {"connections": ["a.real_out=b.other"]}
    signal, start, later = {"inputs": {"b.real_in": lambda _: 1.0}}, {"b.real_in": 9.0}, {0.5: {"b.real_in": 1.0}}
    pairs: list[tuple[str, dict[str, Any]]] = [
        ("driven twice", {"connections": ["a.real_out=b.real_in", "c.real_out=b.other"]}),
        ("connection a.real_out=b.real_in drives it", {**link, "parameters": start}),
        ("given twice, by two of its names", {"parameters": {**start, "b.other": 8.0}}),
        ("given twice, by two of its names", {"parameters": {"b.real_parameter": 9.0, "b.gain": 8.0}}),
        ("by a connection and by a signal", {**link, **signal}),
        ("a signal drives it", {"parameters": {"b.other": 9.0}, **signal}),
        ("connection or a signal drives it", {**link, "scenario": later}),
        ("given twice, by two of its names", {"scenario": {0.5: {**later[0.5], "b.other": 1.0}}}),
    ]  # fmt: skip
    for sentence, call in pairs:
        with pytest.raises(InputError, match=sentence):
            cosimulate(files, **call, **GRID)
        if set(call) <= {"connections", "parameters"} and sentence != pairs[1][0]:
            with pytest.raises(InputError, match=sentence):
                export_coupled(files, tmp_path / "one.fmu", **call)
    arrays = [f"{name}={three}" for name in "abc"]
    with pytest.raises(InputError, match=r"force\[2\] \(also called push\[2\]\) of b is driven twice"):
        cosimulate(arrays, connections=["a.point=b.push", "c.point[1]=b.force[2]"], **GRID)
    with pytest.raises(InputError, match=r"b\.force\[1\] \(also called push\[1\]\) is given twice"):
        cosimulate(arrays, parameters={"b.force": [1.0, 2.0, 3.0], "b.push[1]": 4.0}, **GRID)


@pytest.mark.parametrize("isolate", [None, "b"])
def test_an_alias_is_the_variable(
    three: Path, two: Path, isolate: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """What is written by one name is read by the other, and nothing is said to lack a source."""
    how: dict[str, Any] = {**GRID, "extrapolation": "zero", "isolate": isolate and [isolate]}
    files = [f"a={two}", f"b={two}", f"v={three}"]
    with caplog.at_level(logging.INFO):
        result = cosimulate(
            files, connections=["a.seen=b.other", "b.seen=v.level"], parameters={"b.gain": 4.0, "v.push[2]": 3.0},
            inputs={"a.other": lambda time: 2.0 + time}, **how,
        )  # fmt: skip
    np.testing.assert_allclose(result["a.real_out"][-1], 2.5)  # held from 0.5 s on
    np.testing.assert_allclose(result["b.real_shown"], 4.0)
    np.testing.assert_allclose(result["v.point[2]"][-1], 3.0 * 1.0)  # ẋ = u over 1 s
    assert result["v.float32_out"][-1] > 0.0
    undriven = [each for each in result.statistics.undriven if "real" in each or "other" in each or "level" in each]
    assert undriven == []
    assert not [each for each in caplog.messages if "nothing drives" in each and "level" in each]


def test_elements_are_read_by_both_names_in_compiled_steps(foreign: Foreign, tmp_path: Path) -> None:
    """ẋ = u from rest; a reference hands over its whole array, and is asked for twice where elements have two names."""
    path = Path(shutil.copy(foreign("vectors"), tmp_path / "v.fmu"))
    change_description(path, '(name="point"[^>]*>)', r'\1<Alias name="place"/>')
    change_description(
        path, r"<(Float32|U?Int\d+|Boolean|String|Enumeration) (?s:.*)</ModelVariables>", "</ModelVariables>"
    )
    change_description(path, r'<(Output|InitialUnknown) valueReference="(?!2"|5")\d+"[^>]*/>', "")
    names = [f"{name}[{place}]" for name in ("point", "place") for place in (1, 2, 3)]
    result = cosimulate([f"v={path}"], parameters={"v.force": [1.0, 2.0, 3.0]}, **GRID)
    for name in names:
        np.testing.assert_allclose(result[f"v.{name}"], int(name[-2]) * result.time, err_msg=name)
    with closing(Archive(path)) as archive, closing(make_instance("v", archive)) as instance:
        assert isinstance(instance, LibraryInstance)
        (layout,) = LibraryPort(instance, names).layout()
        assert (layout.references, layout.places) == ((2, 2), (0, 1, 2, 3, 4, 5))


def test_studies_vary_a_variable_once(two: Path) -> None:
    """real_shown shows the parameter, by any of its names."""
    table = mbsfmu.sweep([str(two)], {"t.gain": [2.0, 3.0]}, **STUDY)
    assert [row["final.t.real_shown"] for row in table.rows] == [2.0, 3.0]
    with pytest.raises(InputError, match="varied twice"):
        mbsfmu.sweep([str(two)], {"t.gain": [2.0], "real_parameter": [1.0]}, **STUDY)
    with pytest.raises(InputError, match=r"the connection .* drives it"):
        mbsfmu.sweep([f"a={two}", f"b={two}"], {"b.other": [2.0]}, connections=["a.real_out=b.real_in"], **STUDY)


def test_live_and_linear_faces_know_one_variable(two: Path) -> None:
    with Cosimulation([f"a={two}", f"b={two}"], connections=["a.real_out=b.other"], **GRID) as run:
        with pytest.raises(InputError, match=r"b\.real_in cannot be set at t = 0 s: a connection"):
            run.set({"b.real_in": 1.0})
        run.set({"a.other": 5.0})
        assert run["a.real_in"] == 5.0
    with closing(Archive(two)) as archive, closing(make_instance("t", archive)) as instance:
        assert continuous_variables(instance, Causality.INPUT) == ["real_in"]  # columns of the linear system


def test_a_fit_frees_a_parameter_once(two: Path) -> None:
    """y = p, measured as 3."""
    measured = {"time": np.linspace(0.0, 1.0, 5), "real_out": np.full(5, 3.0)}
    with pytest.raises(InputError, match="named twice"):
        mbsfmu.fit_fmu(two, measured, {"gain": (1.0, 5.0), "real_parameter": (1.0, 5.0)}, step=0.5)


def test_the_command_says_so(two: Path) -> None:
    run = CliRunner().invoke(cosim, [f"b={two}", "--start", "b.real_in=1", "--start", "b.other=2", "--step", "0.5"])
    assert "b.real_in (also called seen, other) is given twice" in str(run.output) + str(run.exception)


def test_a_package_writes_a_variable_once(two: Path, tmp_path: Path) -> None:
    """Its parameter values, and its connectors; to run, and to make one FMU of it."""
    inside = connector("real_in", "input"), connector("other", "input")
    given = bindings(binding(value("real_in", "Real", "1") + value("other", "Real", "2")))
    outside = connectors(connector("a", "input"), connector("b", "input"))
    cases = {
        "is given twice, by two of its names": system(component("t", "t", *inside, bindings=given)),
        "the connector b of the system drives real_in": system(
            component("t", "t", *inside), wire("a", "t.real_in"), wire("b", "t.other"), outside=outside
        ),
    }
    for sentence, body in cases.items():
        with zipfile.ZipFile(tmp_path / "p.ssp", "w") as archive:
            archive.writestr("SystemStructure.ssd", HEAD + body + TAIL)
            archive.write(two, "resources/t.fmu")
        with pytest.raises(InputError, match=sentence):
            cosimulate(tmp_path / "p.ssp", **GRID)
        with pytest.raises(InputError, match=sentence):
            export_coupled(tmp_path / "p.ssp", tmp_path / "one.fmu", **GRID)
