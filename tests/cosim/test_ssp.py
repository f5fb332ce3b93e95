"""SSP 1.0 packages that are not ours: every part that has a meaning for a run has it, the rest is refused in words."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cosim.ssp_documents import (
    HEAD,
    SET,
    SINE,
    SOURCE,
    TAIL,
    VOLT,
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
from fmpy.ssp.simulation import simulate_ssp
from fmpy.ssp.ssd import read_ssd

from mbsfmu import InputError, StepSignal, cosimulate
from mbsfmu.cosim import CosimulationResult, read_ssp, write_ssp
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.ssp import read_structure, write_structure

Make = Callable[..., Path]


def run(path: Path, **options: object) -> CosimulationResult:
    return cosimulate(path, step=0.1, algorithm="gauss-seidel", **options)


# -- units and transformations ----------------------------------------------------------------------------------------

LINEAR = '<ssc:LinearTransformation factor="-2.0" offset="1.0"/>'


@pytest.mark.parametrize(
    ("unit", "inside", "attributes", "factor", "offset"),
    [
        ("mV", "", "", 1.0, 0.0),
        ("V", "", "", 1e-3, 0.0),
        ("V", LINEAR, "", -2e-3, 1.0),
        ("V", LINEAR, 'suppressUnitConversion="true"', -2.0, 1.0),
        ("m", "", 'suppressUnitConversion="true"', 1.0, 0.0),
        ("", LINEAR, "", -2.0, 1.0),
    ],
)
def test_value_is_converted_then_transformed(
    make: Make, unit: str, inside: str, attributes: str, factor: float, offset: float
) -> None:
    """The standard: target = factor · source + offset, the source being in the unit of the target already."""
    result = run(make(system(SOURCE + through(unit), wire("source.sine", "through.real_in", inside, attributes))))
    expected = factor * 1000.0 * np.sin(2 * np.pi * result.time) + offset
    np.testing.assert_allclose(result["real_out"], expected, rtol=1e-12, atol=1e-9)


def test_direction_follows_from_the_kinds_not_from_start_and_end(make: Make) -> None:
    forth = run(make(system(SOURCE + through("V"), wire("source.sine", "through.real_in")), "forth"))
    back = run(make(system(SOURCE + through("V"), wire("through.real_in", "source.sine")), "back"))
    np.testing.assert_array_equal(back["real_out"], forth["real_out"])
    assert np.ptp(forth["real_out"]) > 1.0


def test_temperatures_have_an_offset(make: Make) -> None:
    """Degrees Fahrenheit to Celsius through kelvins; 212 °F is 100 °C."""
    inner = component("through", "feed_through", connector("real_in", "input", unit="degC"))
    outside = connectors(connector("heat", "input", unit="degF"))
    path = make(system(inner, wire("heat", "through.real_in"), outside=outside))
    assert run(path, inputs={"heat": lambda _: 212.0})["real_out"][-1] == pytest.approx(100.0, abs=1e-10)
    assert run(path, parameters={"heat": 32.0})["real_out"][-1] == pytest.approx(0.0, abs=1e-10)


# -- systems ----------------------------------------------------------------------------------------------------------

NESTED = system(
    SOURCE
    + system(
        component(
            "lag", "dahlquist", connector("x", "output"), connector("u", "input"), connector("rate", "parameter")
        ),
        wire("drive", "lag.u", '<ssc:LinearTransformation factor="3.0"/>'),
        wire("lag.x", "level"),
        wire("speed", "lag.rate"),
        outside=connectors(
            connector("drive", "input", unit="V"), connector("level", "output"), connector("speed", "parameter")
        ),
        name="inner",
    ),
    wire("source.sine", "inner.drive"),
    wire("inner.level", "level"),
    wire("pace", "inner.speed"),
    outside=connectors(connector("level", "output", unit="K"), connector("pace", "parameter")),
)


def test_nested_systems_dissolve(make: Make, tmp_path: Path) -> None:
    path = make(NESTED)
    graph = read_ssp(path, tmp_path / "unpacked")
    assert list(graph.units) == ["source", "inner/lag"]
    assert graph.connections == (
        Connection(("source", "sine"), ("inner/lag", "u"), pytest.approx(3e-3), 0.0, convert_units=False),
    )
    # dx/dt = 2 (u - x) with u held at its value at the end of each step.
    result = run(path, parameters={"pace": 2.0})
    x = 1.0
    for index, time in enumerate(result.time[1:], start=1):
        u = 3.0 * np.sin(2 * np.pi * time)
        x = u + (x - u) * np.exp(-0.2)
        assert result["inner/lag.x"][index] == pytest.approx(x, rel=1e-12)
    np.testing.assert_array_equal(result["level"], result["inner/lag.x"])
    assert result.unit("level") == "K"


def test_input_of_the_system_drives_several_units(make: Make) -> None:
    body = system(
        through("mV") + component("lag", "dahlquist", connector("u", "input")),
        wire("drive", "through.real_in"),
        wire("drive", "lag.u"),
        wire("through.real_out", "echo"),
        outside=connectors(connector("drive", "input", unit="V"), connector("echo", "output", unit="V")),
    )
    step = StepSignal(times=(0.35,), values=(2.0,), initial=0.0)
    result = run(make(body), inputs={"drive": step}, parameters={"lag.x_start": 0.0})
    assert set(result["through.real_out"]) == {0.0, 2000.0}
    assert 0.0 < result["lag.x"][-1] < 2.0


def test_experiment_starts_where_the_package_says(make: Make) -> None:
    tail = TAIL.replace('startTime="0.0" stopTime="1.0"', 'startTime="0.25" stopTime="0.5"')
    result = run(make(system(SOURCE), tail=tail))
    np.testing.assert_allclose(result.time, [0.25, 0.35, 0.45, 0.5])
    np.testing.assert_allclose(result["sine"], 1000 * np.sin(2 * np.pi * result.time))


# -- parameters -------------------------------------------------------------------------------------------------------


def test_values_of_every_type_and_unit(make: Make) -> None:
    units = f'<ssv:Units><ssc:Unit name="kV"><ssc:BaseUnit {VOLT} factor="1000"/></ssc:Unit></ssv:Units>'
    values = (
        value("real_parameter", "Real", "-4.5")
        + value("integer_parameter", "Integer", "-7")
        + value("boolean_parameter", "Boolean", "true")
        + value("text_parameter", "String", "a &amp; b")
        + value("mode_in", "Enumeration", "locked")
        + value("unknown", "Real", "1")
    )
    body = system(
        component("source", "source", SINE, bindings=bindings(binding(value("amplitude", "Real", "0.5", "kV"), units)))
        + through(bindings=bindings(binding(values)))
    )
    result = run(make(body))
    assert np.max(result["sine"]) == pytest.approx(500e3 * np.sin(2 * np.pi * 0.2))
    shown = [result[name][-1] for name in ("real_shown", "integer_shown", "boolean_shown", "mode_out")]
    assert shown == [-4.5, -7.0, 1.0, 5.0]
    assert result.texts["through.text_shown"] == [(0.0, "a & b")]


def test_value_that_fits_nothing_is_told(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    run(make(system(through(bindings=bindings(binding(value("nothing", "Real", "1")))))))
    assert "the value of 'nothing' fits nothing in 'through'" in caplog.text


def test_outer_and_later_values_count(make: Make) -> None:
    """Inside, the second of two; around it, the hierarchical name; a connector of the system passes its value on."""
    inner = bindings(binding(value("real_parameter", "Real", "1")), binding(value("real_parameter", "Real", "2")))
    cases = (
        ("inner", "", 2.0),
        ("named", bindings(binding(value("through.real_parameter", "Real", "3"))), 3.0),
        ("prefix", bindings(binding(value("real_parameter", "Real", "4"), attributes='prefix="through."')), 4.0),
        ("connector", bindings(binding(value("load", "Real", "5"))), 5.0),
    )
    taken = (connector("real_parameter", "parameter"),)
    for name, outer, expected in cases:
        element = component("through", "feed_through", *taken, bindings=inner)
        outside = connectors(connector("load", "parameter")) + outer
        path = make(system(element, wire("load", "through.real_parameter"), outside=outside), name)
        assert run(path)["real_shown"][-1] == expected, name
        assert run(path, parameters={"load": 6.0})["real_shown"][-1] == 6.0


def test_values_and_mapping_from_files(make: Make) -> None:
    parameters = value("A", "Real", "2", "V") + value("frequency", "Real", "9")
    units = f'<ssv:Units><ssc:Unit name="V"><ssc:BaseUnit {VOLT}/></ssc:Unit></ssv:Units>'
    namespaces = HEAD[HEAD.index("xmlns:ssd") :]
    ssv = SET.format(parameters, units).replace("<ssv:ParameterSet", f"<ssv:ParameterSet {namespaces[:-1]}", 1)
    ssm = (
        f'<ssm:ParameterMapping version="1.0" {namespaces}<ssm:MappingEntry source="A" target="amplitude">'
        '<ssc:LinearTransformation factor="0.5"/></ssm:MappingEntry></ssm:ParameterMapping>'
    )
    mapping = '<ssd:ParameterMapping source="resources/names.ssm"/>'
    bound = bindings(binding("", attributes='source="resources/values.ssv"', mapping=mapping))
    path = make(system(component("source", "source", SINE, bindings=bound)), values__ssv=ssv, names__ssm=ssm)
    result = run(path)
    # 2 V are 2000 mV, halved; the frequency has no entry in the mapping, so the file's value is not applied.
    np.testing.assert_allclose(result["sine"], 1000.0 * np.sin(2 * np.pi * result.time), atol=1e-9)


# -- refusals ---------------------------------------------------------------------------------------------------------

DICTIONARY = '<ssd:SignalDictionaries><ssd:SignalDictionary name="bus"/></ssd:SignalDictionaries>'
MAP = '<ssc:{0}MappingTransformation><ssc:MapEntry source="{1}" target="{1}"/></ssc:{0}MappingTransformation>'


def referred(source: str) -> str:
    """A system whose component refers to its unit so: RFC 3986 has a scheme end at ":", a fragment begin at "#"."""
    return system(component("a", "source").replace("resources/source.fmu", source))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (system(SOURCE).replace("</ssd:System>", f"{DICTIONARY}</ssd:System>"), "has signal dictionaries in 'root'"),
        (
            system('<ssd:SignalDictionaryReference name="bus" dictionary="b"/>'),
            "refers to a signal dictionary as 'bus'",
        ),
        (
            system(component("a", "source", attributes='type="application/x-ssp-package"')),
            "a component 'a' of type app",
        ),
        (
            system(component("a", "source", attributes='implementation="ModelExchange"')),
            "2.0 or 3.0 FMU for model exchange",
        ),
        (system(component("a.b", "source")), "has a component 'a.b' with a dot"),
        (system(component("a", "../../source")), "refers to 'resources/../../source.fmu'; only files inside"),
        (referred("resources/%2e%2e/%2e%2e/source.fmu"), "only files inside"),
        (referred("https://example.org/source.fmu"), "refers to 'https://example.org/source.fmu'; only files inside"),
        (referred("file:///source.fmu"), "refers to 'file:///source.fmu'; only files inside"),
        (referred("resources/source.fmu#part"), "refers to 'resources/source.fmu#part'; only files inside"),
        (system(component("a", "nothing")), "holds no file 'resources/nothing.fmu' for its component 'a'"),
        (system(SOURCE + SOURCE), "has two elements called 'source'"),
        (system(component("a", "source", SINE, SINE)), "'a' has two connectors called 'sine'"),
        (system(component("a", "source", connector("cosine", "output"))), "the FMU of 'a' has no variable 'cosine'"),
        (system(component("a", "source", connector("sine", "inout"))), "a connector 'sine' of kind inout"),
        (
            system(
                component("a", "source", connector("sine", "output", "Binary")) + through(),
                wire("a.sine", "through.real_in"),
            ),
            "the connection a.sine – through.real_in is of type Binary",
        ),
        (system(SOURCE + through(), wire("source.sine", "through.real_out")), "goes from output to output; one end"),
        (system(SOURCE + through(), wire("source.sine", "thorough.real_in")), "'thorough', which is no element"),
        (system(SOURCE + through(), wire("source.sine", "through.text_in")), "a connector that is not declared"),
        (system(SOURCE + through(), *[wire("source.sine", "through.real_in")] * 2), "through.real_in is driven twice"),
        (system(SOURCE + through("m"), wire("source.sine", "through.real_in")), "'mV' and 'm' are units of different"),
        (
            system(SOURCE + through(), wire("source.sine", "through.real_in", MAP.format("Integer", 1))),
            "has a IntegerMappingTransformation on the connection source.sine – through.real_in",
        ),
        (
            system(SOURCE + through(), wire("source.sine", "through.real_in", LINEAR.replace("-2.0", "0"))),
            "the transformation on the connection source.sine – through.real_in has the factor 0",
        ),
        (system(through(bindings=bindings(binding("", attributes='source="x.ssv"')))), "holds no file 'x.ssv'"),
        (system(through(bindings=bindings(binding("")))), "has neither values nor a source"),
        (
            system(through(bindings=bindings(binding("", attributes='source="x" type="text/csv"')))),
            "a parameter binding of 'through' of type text/csv",
        ),
        (
            system(through(bindings=bindings(binding("", attributes='source="x" sourceBase="component"')))),
            "with its source inside the component",
        ),
        (system(through(bindings=bindings(binding(value("a", "Binary", "00"))))), "a parameter 'a' of type Binary"),
        ('<ssd:System name="root"><ssd:Elements/></ssd:System>', "does not follow the schema of SSP 1.0"),
    ],
)
def test_what_a_run_cannot_do_is_refused(make: Make, body: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        run(make(body))
    assert sentence in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_files_that_are_no_packages(tmp_path: Path) -> None:
    path = tmp_path / "x.ssp"
    for text, sentence in (
        (None, "holds no SystemStructure.ssd"),
        ("<a/>", "no document of SSP: its root is 'a'"),
        ("<a", "SystemStructure.ssd is no XML"),
        (HEAD.replace('version="1.0" name', 'version="3.0" name') + system("") + TAIL, "is of version 3.0; SSP 1.0"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            if text is not None:
                archive.writestr("SystemStructure.ssd", text)
        with pytest.raises(InputError, match=sentence):
            cosimulate(path)


# -- round trips and other tools ---------------------------------------------------------------------------------------


def test_package_survives_reading_and_writing(make: Make, tmp_path: Path) -> None:
    mapping = (
        '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="a" target="rate" '
        'suppressUnitConversion="true"/></ssm:ParameterMapping></ssd:ParameterMapping>'
    )
    bound = bindings(binding(value("a", "Real", "2.5") + value("b", "String", "words"), mapping=mapping))
    body = NESTED.replace("</ssd:Component>", f"{bound}</ssd:Component>", 1)
    first = make(body)
    versions, paths = [], [first]
    for index in range(2):
        folder = tmp_path / f"unpacked_{index}"
        versions.append(read_structure(paths[-1], folder))
        files = {str(each.relative_to(folder)): each for each in folder.rglob("*.fmu")}
        paths.append(write_structure(tmp_path / f"copy_{index}.ssp", versions[-1], files))
    assert versions[0] == versions[1]
    assert paths[1].read_bytes() == paths[2].read_bytes()
    read_ssd(str(paths[1]), validate=True)
    np.testing.assert_array_equal(run(paths[1])["level"], run(first)["level"])


@pytest.fixture
def written(foreign: Callable[[str], Path], tmp_path: Path) -> Path:
    """A package of our writing: a source in mV drives a lag, with a value for each."""
    units = {name: foreign(name) for name in ("source", "dahlquist")}
    wires = [Connection(("source", "stairs"), ("dahlquist", "u"), 0.5)]
    values = {"dahlquist": {"rate": 2.0}, "source": {"amplitude": 10.0}}
    return write_ssp(tmp_path / "written.ssp", "written", units, wires, 3.0, values)


def test_written_package_runs_as_told(written: Path) -> None:
    result = cosimulate(written, step=0.5, algorithm="gauss-seidel")
    x, expected = 1.0, [1.0]
    for time in result.time[1:]:
        u = 0.5 * 10.0 * np.floor(time)
        x = u + (x - u) * np.exp(-1.0)
        expected.append(x)
    np.testing.assert_allclose(result["x"], expected, rtol=1e-12)
    assert np.max(np.abs(result["sine"])) <= 10.0


def test_fmpy_reads_and_runs_what_is_written(foreign: Callable[[str], Path], tmp_path: Path) -> None:
    """FMPy steps with what is known at the beginning, from inputs of zero, and wants every input connected."""
    second = tmp_path / "second.fmu"
    second.write_bytes(foreign("dahlquist").read_bytes())
    wires = [Connection(("first", "x"), ("second", "u")), Connection(("second", "x"), ("first", "u"))]
    path = write_ssp(tmp_path / "two.ssp", "two", {"first": foreign("dahlquist"), "second": second}, wires, 3.0)
    assert [element.name for element in read_ssd(str(path), validate=True).system.elements] == ["first", "second"]
    theirs = simulate_ssp(str(path), stop_time=3.0, step_size=0.5)
    x, u, expected = np.ones(2), np.zeros(2), []
    for _ in theirs:
        x = u + (x - u) * np.exp(-0.5)
        u = x[::-1]
        expected.append(x)
    np.testing.assert_allclose(np.column_stack([theirs["first.x"], theirs["second.x"]]), expected, rtol=1e-12)


def test_libcosim_reads_and_runs_our_package(four_bar_package: Path, tmp_path: Path) -> None:
    """libcosim, which steps as Jacobi with held inputs, agrees; it takes no connections to parameters."""
    pytest.importorskip("libcosimpy")
    from libcosimpy.CosimExecution import CosimExecution  # noqa: PLC0415 - not there on every platform
    from libcosimpy.CosimObserver import CosimObserver  # noqa: PLC0415

    structure = read_structure(four_bar_package, tmp_path / "ours")
    wires = tuple(each for each in structure.system.wires if each.end[1] != "cylinder.initial_load")
    assert len(wires) == len(structure.system.wires) - 1
    files = {f"resources/{name}.fmu": four_bar_package.with_name(f"{name}.fmu") for name in ("mechanism", "circuit")}
    kept = replace(structure, system=replace(structure.system, wires=wires))
    read_structure(write_structure(tmp_path / "theirs.ssp", kept, files), tmp_path / "theirs")
    execution = CosimExecution.from_ssp_file(str(tmp_path / "theirs"), step_size=1_000_000)
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    execution.step(1100)
    unit = execution.slave_index_from_instance_name("mechanism")
    (length,) = (each for each in execution.slave_variables(unit) if each.name == b"cylinder.length")
    (theirs,) = observer.last_real_values(unit, [length.reference])
    ours = cosimulate(four_bar_package, step=1e-3, stop=1.1, algorithm="jacobi")["mechanism.cylinder.length"]
    assert theirs == pytest.approx(ours[-1], rel=1e-9)
    assert abs(theirs - ours[0]) > 1e-3


def test_empty_element_means_the_system(make: Make) -> None:
    """OMSimulator writes so; without the attribute it means the same."""
    outside = connectors(connector("shown", "output", unit="mV"))
    named = make(system(SOURCE, wire("source.sine", "shown"), outside=outside), "named")
    written = wire("source.sine", "shown").replace("endConnector", 'endElement="" endConnector')
    empty = make(system(SOURCE, written, outside=outside), "empty")
    np.testing.assert_array_equal(run(empty)["shown"], run(named)["shown"])
    np.testing.assert_allclose(run(empty)["shown"], run(empty)["source.sine"])


def test_package_without_a_component_is_told(make: Make) -> None:
    with pytest.raises(InputError, match=r"package\.ssp has no component; there is nothing to run"):
        run(make('<ssd:System name="root"/>'))
