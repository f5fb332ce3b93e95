"""SSP 2.0, unpacked packages, packages with several faults, and FMUs that nothing defines."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cosim.ssp_documents import (
    HEAD,
    SOURCE,
    TAIL,
    binding,
    bindings,
    component,
    connector,
    connectors,
    system,
    through,
    value,
    wire,
)

from mbsfmu import InputError, StepSignal, cosimulate
from mbsfmu.cosim import read_ssp, write_ssp
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.ssp import read_structure, write_structure

Make = Callable[..., Path]
HEAD_2 = HEAD.replace('version="1.0" name', 'version="2.0" name')


def array(name: str, kind: str, *dimensions: str, type_: str = "Float64") -> str:
    sizes = "".join(f"<ssc:Dimension {each}/>" for each in dimensions)
    return f'<ssd:Connector name="{name}" kind="{kind}"><ssc:{type_}/>{sizes}</ssd:Connector>'


@pytest.fixture
def make_2(foreign: Callable[[str], Path], tmp_path: Path) -> Make:
    """Write a package of SSP 2.0 of units with vectors."""

    def package(body: str, tail: str = TAIL) -> Path:
        path = tmp_path / "package.ssp"
        with zipfile.ZipFile(path, "w") as archive:
            text = HEAD_2 + body.replace('ParameterSet version="1.0"', 'ParameterSet version="2.0"') + tail
            archive.writestr("SystemStructure.ssd", text)
            for unit in ("vectors", "dahlquist"):
                archive.write(foreign(unit), f"resources/{unit}.fmu")
        return path

    return package


def vectors(name: str, *each: str, values: str = "") -> str:
    taken = array("force", "input", 'size="3"'), array("point", "output", 'size="3"')
    bound = bindings(binding(values)) if values else ""
    return component(name, "vectors", *taken, *each, bindings=bound)


def numbers(name: str, text: str, *sizes: int) -> str:
    dimensions = "".join(f'<ssc:Dimension size="{each}"/>' for each in sizes)
    return f'<ssv:Parameter name="{name}"><ssv:Float64 value="{text}"/>{dimensions}</ssv:Parameter>'


# -- SSP 2.0 ----------------------------------------------------------------------------------------------------------


def test_arrays_through_a_package(make_2: Make) -> None:
    """Two integrators in series, with start values row by row and connectors of the system at both ends."""
    outside = connectors(array("load", "input", 'size="3"'), array("tip", "output", "", type_="Float64"))
    body = system(
        vectors("a") + vectors("b", values=numbers("matrix", "1 2 3 4", 2, 2) + numbers("force", "9 8 7", 3)),
        wire("load", "a.force"), wire("a.point", "b.force"), wire("b.point", "tip"), outside=outside,
    )  # fmt: skip
    result = cosimulate(
        make_2(body), parameters={"load": [1.0, -2.0, 4.0]}, step=0.125, algorithm="newton", extrapolation="linear"
    )
    for index, rate in enumerate((1.0, -2.0, 4.0), 1):
        np.testing.assert_allclose(result[f"b.point[{index}]"], rate * result.time**2 / 2.0, atol=1e-12)
        np.testing.assert_array_equal(result[f"tip[{index}]"], result[f"b.point[{index}]"])
    held = np.clip(result.time - 0.0625, 0.0, None)  # what b takes over a step is its mean
    np.testing.assert_allclose(result["b.product[1]"], 1.0 * held + 2.0 * (-2.0 * held), atol=1e-12)


def test_all_that_only_2_0_has(make_2: Make, tmp_path: Path) -> None:
    """Types, clocks, metadata, structural parameters and local connectors are read and do no harm."""
    each = (
        array("int8_in", "input", type_="Int8"), array("uint64_out", "output", type_="UInt64"),
        array("float32_in", "input", type_="Float32"), connector("time", "local", "Float64"),
        '<ssd:Connector name="switches" kind="input"><ssc:Boolean/><ssc:Dimension size="2"/>'
        '<ssd:Clock name="tick"/></ssd:Connector>',
    )  # fmt: skip
    small = value("int8_in", "Int8", "-3")
    body = system(vectors("a", *each, values=small))
    body = body.replace("</ssd:Component>", '<ssc:MetaData kind="general" type="text/plain"/></ssd:Component>', 1)
    path = make_2(body)
    assert read_structure(path, tmp_path / "unpacked").version == "2.0"
    assert cosimulate(path, step=0.5)["a.int8_out"][-1] == -3.0


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (system('<ssd:Component name="a"/>'), "has a component 'a' without a source"),
        (system(vectors("a") + component("b", "vectors", attributes='implementation="ScheduledExecution"')),
         "wants 'b' run by scheduled execution"),
        (system(vectors("a"), "<ssd:Connections/>"), "does not follow the schema of SSP 2.0: line"),
        (system(vectors("a", '<ssd:Connector name="x" kind="input"><ssc:Real loud="1"/></ssd:Connector>')),
         "Real', attribute 'loud': The attribute 'loud' is not allowed"),
        (system(vectors("a") + '<ssd:Clock name="tick"/>'), "Clock': This element is not expected"),
        (system(vectors("a", connector("matrix", "unspecified", "Float64"))), "'matrix' of kind unspecified"),
        (system(vectors("a", values=numbers("force", "1 2", 2))), "a.force has 3 elements, but is given 2 values"),
    ],
)  # fmt: skip
def test_what_is_refused_of_2_0(make_2: Make, body: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        cosimulate(make_2(body), step=0.5)
    assert sentence in str(caught.value)


def test_version_2_is_written_where_a_unit_is_of_fmi_3(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    units = {name: foreign("vectors") for name in "ab"} | {"lag": foreign("dahlquist")}
    connections = [Connection.parse(each) for each in ("a.point=b.force", "lag.x=a.force[2]")]
    values = {"a": {"force": [1.0, 2.0, 3.0], "int16_in": 7}}
    whole = write_ssp(tmp_path / "whole.ssp", "whole", units, connections[:1], 1.0, values)
    text = zipfile.ZipFile(whole).read("SystemStructure.ssd").decode()
    assert 'version="2.0"' in text
    assert "<ssc:UInt16/>" in text
    assert text.count('<ssc:Dimension size="3"/>') == 2 * 2 + 1  # of forces and points, and of a value
    result = cosimulate(whole, step=0.25, algorithm="newton", extrapolation="linear")
    np.testing.assert_allclose(result["b.point[3]"], 3.0 * result.time**2 / 2.0, atol=1e-12)
    assert result["a.int16_out"][0] == 7.0
    structure = read_structure(whole, tmp_path / "first")
    files = {f"resources/{file.name}": file for file in units.values()}
    copy = write_structure(tmp_path / "copy.ssp", structure, files)
    assert read_structure(copy, tmp_path / "second") == structure
    with pytest.raises(InputError, match=r"'force', an array or its size, which SSP 1\.0 does not know; take 2\.0"):
        write_ssp(tmp_path / "old.ssp", "old", units, connections[:1], 1.0, version="1.0")


def test_units_of_fmi_2_are_written_as_1_0(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    units = {"lag": foreign("dahlquist")}
    for version in ("1.0", "2.0"):
        path = write_ssp(tmp_path / f"{version}.ssp", "lag", units, [], 1.0, version=version)
        assert read_structure(path, tmp_path / version).version == version
    assert read_structure(write_ssp(tmp_path / "x.ssp", "lag", units, [], 1.0), tmp_path / "x").version == "1.0"


# -- folders ----------------------------------------------------------------------------------------------------------


def test_unpacked_packages(make: Make, tmp_path: Path) -> None:
    """A folder with the description runs as the package does, and stays as it is."""
    path = make(system(SOURCE + through(), wire("source.sine", "through.real_in")))
    folder = tmp_path / "unpacked"
    shutil.unpack_archive(path, folder, "zip")
    before = sorted(folder.rglob("*"))
    packed, unpacked = (cosimulate(each, step=0.1) for each in (path, folder))
    assert packed["through.real_out"].tobytes() == unpacked["through.real_out"].tobytes()
    assert sorted(folder.rglob("*")) == before
    (folder / "SystemStructure.ssd").unlink()
    with pytest.raises(InputError, match=r"holds 0 SSP files and no SystemStructure\.ssd"):
        cosimulate(folder, step=0.1)


# -- what others write ------------------------------------------------------------------------------------------------


def test_empty_names_mean_the_system(make: Make) -> None:
    """OMSimulator names no element, instead of leaving it out, where a connector is the system's."""
    outside = connectors(connector("load", "input"), connector("answer", "output"))
    wires = wire("load", "through.real_in"), wire("through.real_out", "answer")
    body = system(through(), *wires, outside=outside)
    body = body.replace("<ssd:Connection startConnector", '<ssd:Connection startElement="" startConnector')
    body = body.replace('endConnector="answer"', 'endElement="" endConnector="answer"')
    assert body.count('Element=""') == 2
    result = cosimulate(make(body), inputs={"load": StepSignal(times=(0.0,), values=(4.0,))}, step=0.25)
    assert result["answer"][-1] == 4.0


# -- units ------------------------------------------------------------------------------------------------------------


def test_units_that_nothing_defines(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Values in them are taken as they are, and that is told; where all must be defined, they are refused."""
    bound = bindings(binding(value("real_parameter", "Real", "5", "furlong")))
    wires = wire("source.sine", "through.real_in")
    path = make(system(SOURCE + through("cm", bindings=bound), wires))
    result = cosimulate(path, step=0.1)
    assert result["through.real_shown"][-1] == 5.0
    np.testing.assert_array_equal(result["through.real_out"][1:], result["source.sine"][1:])
    for unit in ("furlong", "cm"):
        assert caplog.text.count(f"nothing defines the unit '{unit}'; values in it are taken as they are") == 1
    with pytest.raises(InputError) as caught:
        cosimulate(path, step=0.1, strict=True)
    for unit in ("furlong", "cm"):
        assert f"nothing defines the unit '{unit}'" in str(caught.value)


def test_definitions_of_units_in_fmus_count(make: Make) -> None:
    """Who uses mV in a parameter set without defining it means that of the FMU, which has V as well."""
    bound = bindings(binding(value("amplitude", "Real", "0.5", "V")))
    path = make(system(component("source", "source", connector("sine", "output"), bindings=bound)))
    result = cosimulate(path, step=0.05, strict=True)
    np.testing.assert_allclose(result["sine"], 500.0 * np.sin(2 * np.pi * result.time), atol=1e-9)


# -- several faults ---------------------------------------------------------------------------------------------------


def test_all_faults_of_the_documents_are_told(make: Make, tmp_path: Path) -> None:
    body = system(
        component("a", "nothing") + component("b.c", "source") + component("d", "source", connector("e", "inout")),
        wire("a.x", "d.y", '<ssc:IntegerMappingTransformation><ssc:MapEntry source="1" target="1"/>'
             "</ssc:IntegerMappingTransformation>"),
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_ssp(make(body), tmp_path / "unpacked")
    text = str(caught.value)
    assert "package.ssp has 4 faults: (1) " in text
    for sentence in (
        "holds no file 'resources/nothing.fmu'", "a component 'b.c' with a dot", "a connector 'e' of kind inout",
        "IntegerMappingTransformation on the connection a.x – d.y",
    ):  # fmt: skip
        assert sentence in text


def test_all_faults_of_what_is_connected_are_told(make: Make, tmp_path: Path) -> None:
    body = system(
        SOURCE + through(bindings=bindings(binding(value("real_parameter", "Real", "1", "m")))),
        wire("source.sine", "thorough.real_in"), wire("source.sine", "through.real_out"),
        wire("source.cosine", "through.real_in"),
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_ssp(make(body), tmp_path / "unpacked")
    for sentence in (
        "'thorough', which is no element",
        "goes from output to output",
        "a connector that is not declared",
    ):
        assert sentence in str(caught.value)
