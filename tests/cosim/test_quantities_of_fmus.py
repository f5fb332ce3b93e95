"""Every road on which a number with a unit comes to an FMU: each converts by the same rules."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fmpy
import pytest
from click.testing import CliRunner
from lxml import etree
from ssp_documents import binding, bindings, component, connector, connectors, system, value, wire

import mbsfmu
from mbsfmu import InputError, cosimulate
from mbsfmu.cli.cosim import command as cosim
from mbsfmu.cli.sweep import command as sweep
from mbsfmu.cosim.fmus.archive import read_fmu
from mbsfmu.cosim.fmus.variable_descriptions import accepted_value, described_measurement_units
from mbsfmu.io.formats import read_table
from mbsfmu.io.signals import StepSignal, read_signal
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.studies import OpenStudy, read_samples

Foreign = Callable[[str], Path]
Make = Callable[..., Path]

UNITS = """<UnitDefinitions>
  <Unit name="K"><BaseUnit K="1"/></Unit><Unit name="degC"><BaseUnit K="1" offset="273.15"/></Unit>
  <Unit name="rad/s"><BaseUnit rad="1" s="-1"/></Unit><Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit>
  <Unit name="%"><BaseUnit factor="0.01"/></Unit><Unit name="1"><BaseUnit/></Unit>
</UnitDefinitions>"""
TYPES = '<SimpleType name="Difference"><Real unit="degC" relativeQuantity="true"/></SimpleType>'
DIFFERENCE = 'unit="K" relativeQuantity="true"'


@pytest.fixture
def unit(foreign: Foreign, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that gives `feed_through` other attributes of its numbers, by their names."""

    def described(name: str = "unit", **attributes: str) -> Path:
        with zipfile.ZipFile(foreign("feed_through")) as archive:
            entries = {each: archive.read(each) for each in archive.namelist()}
        text = entries["modelDescription.xml"].decode()
        text = text.replace("<TypeDefinitions>", UNITS + "<TypeDefinitions>" + TYPES)
        for variable, told in attributes.items():
            begin = text.index("<Real", text.index(f'name="{variable}"'))
            text = text[: begin + 5] + f" {told}" + text[begin + 5 :]
        path = tmp_path / f"{name}.fmu"
        with zipfile.ZipFile(path, "w") as archive:
            for entry, content in (entries | {"modelDescription.xml": text.encode()}).items():
                archive.writestr(entry, content)
        return path

    return described


@pytest.mark.parametrize(
    ("said", "text", "number"),
    [
        ('unit="rad/s"', "1500 1/min", 50.0 * math.pi),
        (DIFFERENCE, "5 degC", 5.0),
        ('declaredType="Difference"', "5 K", 5.0),
        ('declaredType="Difference" relativeQuantity="false"', "293.15 K", 20.0),
        ('unit="degC"', "293.15 K", 20.0),
        ('unit="1"', "50 %", 0.5),
        ('unit="%"', "0.5 1", None),
        ("", "50 %", None),
        ('unit="N"', "5 Pa", None),
    ],
)
def test_start_values(unit: Callable[..., Path], said: str, text: str, number: float | None) -> None:
    """In Python and on the command line, of parameters and inputs, and at a time of a scenario."""
    path = unit(real_parameter=said, real_in=said, real_out=said, jumping_in=said)
    parameters = {"unit.real_parameter": text, "unit.real_in": text}
    call = [str(path), "--step", "0.1", "--stop", "0.2"]
    for name, each in parameters.items():
        call += ["--set", f"{name}={each}"]
    done = CliRunner().invoke(cosim, call)
    if number is None:
        with pytest.raises(InputError, match="is refused"):
            cosimulate(path, parameters=parameters, step=0.1, stop=0.2)
        assert "is refused" in str(done.exception)
        return
    assert done.exit_code == 0
    result = cosimulate(path, parameters=parameters, scenario={0.1: {"unit.jumping_in": text}}, step=0.1, stop=0.2)
    for output in ("real_shown", "real_out", "jumping_out"):
        assert result[output][-1] == pytest.approx(number, rel=1e-12), output


def test_connections(unit: Callable[..., Path]) -> None:
    given = unit("a", real_out='declaredType="Difference"', jumping_out='unit="1"', real_shown='unit="degC"')
    taken = unit("b", real_in=DIFFERENCE, jumping_in='unit="%"', real_parameter='unit="K"')
    result = cosimulate(
        [given, taken],
        connections=["a.real_out=b.real_in", "a.jumping_out=b.jumping_in", "a.real_shown=b.real_parameter"],
        parameters={"a.real_in": 5.0, "a.jumping_in": 0.5, "a.real_parameter": 20.0},
        step=0.1,
        stop=0.3,
    )
    assert result["b.real_out"][-1] == 5.0
    assert result["b.jumping_out"][-1] == pytest.approx(50.0, rel=1e-12)
    assert result["b.real_shown"][-1] == pytest.approx(293.15, rel=1e-12)
    with pytest.raises(InputError, match="one of them is a difference"):
        cosimulate([given, taken], connections=["a.real_shown=b.real_in"], step=0.1, stop=0.1)


def test_packages(unit: Callable[..., Path], make: Make) -> None:
    """Parameter sets, connectors of components, and those of the whole, which do not say what is a difference."""
    path = unit("feed_through", real_in=DIFFERENCE, real_parameter=DIFFERENCE)
    bound = bindings(binding(value("real_parameter", "Real", "5", "degC")))
    inner = component("through", "feed_through", connector("real_in", "input", unit="degC"), bindings=bound)
    outside = connectors(connector("warmer", "input", unit="degF"))
    package = make(system(inner, wire("warmer", "through.real_in"), outside=outside))
    with zipfile.ZipFile(package) as archive:
        entries = {each: archive.read(each) for each in archive.namelist()}
    entries["resources/feed_through.fmu"] = path.read_bytes()
    with zipfile.ZipFile(package, "w") as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    for given in ({"warmer": 9.0}, {"warmer": "9 degF"}, {"warmer": "5 degC"}, {"warmer": "5 K"}):
        result = cosimulate(package, parameters=given, step=0.1, stop=0.1)
        assert result["through.real_out"][-1] == pytest.approx(5.0, rel=1e-12), given
        assert result["through.real_shown"][-1] == 5.0
    signal = StepSignal(times=(0.0,), values=(5.0,), initial=5.0, unit="degC")
    result = cosimulate(package, inputs={"warmer": signal}, step=0.1, stop=0.1)
    assert result["through.real_out"][-1] == pytest.approx(5.0, rel=1e-12)


def test_tables(unit: Callable[..., Path], tmp_path: Path) -> None:
    """Signals of inputs, scenarios, points of studies and measured columns."""
    said = 'unit="rad/s"'
    path = unit(real_in=said, jumping_in=said, real_parameter=said, real_out=said, real_shown=said)
    table = tmp_path / "table.csv"
    expected = 50.0 * math.pi
    for header, numbers in (("1/min", 1500.0), ("Hz", 25.0), ("rad/s", expected), ("rpm", 1500.0)):
        table.write_text(f"time,unit.real_in [{header}]\n0,{numbers!r}\n1,{numbers!r}\n")
        driven = cosimulate(path, inputs={"unit.real_in": read_signal(f"{table}:real_in")}, step=0.1, stop=0.2)
        assert driven["real_out"][-1] == pytest.approx(expected, rel=1e-12), header
        scenario = cosimulate(path, scenario=table, step=0.1, stop=0.2)
        assert scenario["real_out"][-1] == pytest.approx(expected, rel=1e-12), header
        table.write_text(f"unit.real_parameter [{header}]\n{numbers!r}\n")
        study = mbsfmu.sweep([path], {}, samples=read_samples(str(table)), stop=0.2, workers=1)
        assert study["final.unit.real_shown"][0] == pytest.approx(expected, rel=1e-12), header
        table.write_text(f"time,real_out [{header}]\n0,{2 * numbers!r}\n1,{2 * numbers!r}\n")
    for header in ("N", "1/s"):
        table.write_text(f"time,unit.real_in [{header}]\n0,1\n1,1\n")
        with pytest.raises(InputError, match=header):
            cosimulate(path, inputs={"unit.real_in": read_signal(f"{table}:real_in")}, step=0.1, stop=0.2)
        with pytest.raises(InputError, match=header):
            cosimulate(path, scenario=table, step=0.1, stop=0.2)
        table.write_text(f"unit.real_parameter [{header}]\n1\n")
        with pytest.raises(InputError, match=header):
            mbsfmu.sweep([path], {}, samples=read_samples(str(table)), stop=0.2, workers=1)


def test_studies(unit: Callable[..., Path], tmp_path: Path) -> None:
    path, file = unit(real_parameter='unit="rad/s"', real_shown='unit="rad/s"'), tmp_path / "study.csv"
    call = [str(path), "--step", "0.1", "--stop", "0.1", "--force", "-o", str(file), "--workers", "1"]
    for text in ("600 1/min,1500 1/min", "10 Hz:25 Hz:2"):
        assert CliRunner().invoke(sweep, [*call, "--vary", f"unit.real_parameter={text}"]).exit_code == 0
        study = read_table(file)
        assert list(study.columns["final.unit.real_shown"]) == pytest.approx(
            [20.0 * math.pi, 50.0 * math.pi], rel=1e-12
        )
    assert CliRunner().invoke(sweep, [*call, "--vary", "unit.real_parameter=600 rpm,1500 1/min"]).exit_code
    opened = OpenStudy([str(path)], "unit.real_parameter", stop=0.1)
    assert opened.ask("1500 1/min")["final.unit.real_shown"] == pytest.approx(50.0 * math.pi, rel=1e-12)


def test_export_keeps_differences(unit: Callable[..., Path], tmp_path: Path) -> None:
    """One FMU of several says what is a difference, and defines the unit with its offset for all others."""
    path = unit(real_in=DIFFERENCE, real_out='declaredType="Difference"', jumping_in='unit="degC"')
    one = mbsfmu.export_coupled([path], tmp_path / "one.fmu", step=0.1, stop=0.1)
    description = {each.name: each for each in read_fmu(one).description.modelVariables}
    assert description["unit.real_in"].relativeQuantity
    assert not description["unit.jumping_in"].relativeQuantity
    with zipfile.ZipFile(one) as archive:
        root = etree.fromstring(archive.read("modelDescription.xml"))
    assert {each.get("offset") for each in root.iterfind("UnitDefinitions/Unit[@name='degC']/BaseUnit")} == {"273.15"}
    result = fmpy.simulate_fmu(str(one), stop_time=0.1, output=["unit.real_out"], start_values={"unit.real_in": 5.0})
    assert result["unit.real_out"][-1] == 5.0


def test_differences_of_fmi_3(foreign: Foreign, tmp_path: Path) -> None:
    """Of variables, their elements and their aliases."""
    with zipfile.ZipFile(foreign("vectors")) as archive:
        entries = {each: archive.read(each) for each in archive.namelist()}
    text = entries["modelDescription.xml"].decode()
    text = text.replace('name="force" valueReference="1"', 'name="force" relativeQuantity="true" valueReference="1"')
    text = text.replace('<Dimension start="3"/></Float64>', '<Dimension start="3"/><Alias name="other"/></Float64>', 1)
    path = tmp_path / "vectors.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in (entries | {"modelDescription.xml": text.encode()}).items():
            archive.writestr(entry, content)
    units = described_measurement_units(read_fmu(path).description)
    relative = {name: unit.relative for name, unit in units.items() if name.startswith(("force", "other", "constant"))}
    assert relative == {
        **dict.fromkeys((f"{name}[{place}]" for name in ("force", "other") for place in (1, 2, 3)), True),
        **dict.fromkeys(("constant[1]", "constant[2]"), False),
    }


@pytest.mark.parametrize(
    ("kind", "allowed", "refused"),
    [
        ("Integer", (-(2**31), 2**31 - 1, "3.0"), (2**31, -(2**31) - 1, "3e9", "4294967297")),
        ("Int8", (-128, 127), (128, "-129")),
        ("UInt8", (0, 255), (-1, 256)),
        ("UInt64", (0, 2**64 - 1), (2**64, -1)),
        ("Int64", (-(2**63),), (2**63,)),
    ],
)
def test_integers_beyond_their_type_are_refused(kind: str, allowed: tuple[Any, ...], refused: tuple[Any, ...]) -> None:
    """They would wrap: 2^31 as −2^31, 256 as 0."""
    described: Any = SimpleNamespace(type=kind, declaredType=None)
    variable = Variable("n", Causality.PARAMETER, unit="")
    for number in allowed:
        expected = int(float(number)) if isinstance(number, str) else number
        assert accepted_value("unit.n", described, variable, number) == expected
    said = rf"unit\.n: .* is refused: its type, {kind}, has numbers from -?\d+ to \d+"
    for number in refused:
        with pytest.raises(InputError, match=said):
            accepted_value("unit.n", described, variable, number)


def test_enumerations_are_as_wide_as_their_items() -> None:
    """FMI 2.0 has 32 bits for them, FMI 3.0 has 64."""
    variable = Variable("n", Causality.PARAMETER, unit="")

    def enumeration(largest: int) -> Any:
        items = [SimpleNamespace(name="least", value="1"), SimpleNamespace(name="most", value=str(largest))]
        return SimpleNamespace(type="Enumeration", declaredType=SimpleNamespace(items=items))

    with pytest.raises(InputError, match=r"has numbers from -2147483648 to 2147483647"):
        accepted_value("unit.n", enumeration(2), variable, 2**31)
    assert accepted_value("unit.n", enumeration(2**40), variable, "most") == 2**40
    assert accepted_value("unit.n", enumeration(2**40), variable, 2**31) == 2**31
