"""What `mbsfmu show` lists of FMUs and packages that are not ours, for platforms that are not this one."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ended_calls import Ended

import mbsfmu

PUMP = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="Pump" description="a pump" guid="{1}" generationTool="Other Tool 7">
  <CoSimulation modelIdentifier="pump" canGetAndSetFMUstate="true" canHandleVariableCommunicationStepSize="false"/>
  <UnitDefinitions><Unit name="bar"><BaseUnit kg="1" m="-1" s="-2" factor="1e5"/></Unit></UnitDefinitions>
  <DefaultExperiment startTime="1" stopTime="6.5"/>
  <ModelVariables>
    <ScalarVariable name="p" valueReference="0" causality="output"
      description="outlet pressure"><Real unit="bar"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="1" causality="local" variability="continuous"><Real/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2" causality="local" variability="continuous">
      <Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="speed" valueReference="3" causality="input"><Real start="150" max="300"/></ScalarVariable>
    <ScalarVariable name="on" valueReference="4" causality="parameter" variability="tunable">
      <Boolean start="true"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="1"/></Outputs>
    <Derivatives><Unknown index="3"/></Derivatives></ModelStructure>
</fmiModelDescription>"""
OLD = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="1.0" modelName="Old" modelIdentifier="old" guid="{2}"
  numberOfContinuousStates="0" numberOfEventIndicators="0">
  <ModelVariables><ScalarVariable name="u" valueReference="0" causality="input"><Real start="0"/>
  </ScalarVariable></ModelVariables>
  <Implementation><CoSimulation_StandAlone><Capabilities/></CoSimulation_StandAlone></Implementation>
</fmiModelDescription>"""
PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="station"
  xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <ssd:System name="root">
    <ssd:Elements>
      <ssd:Component name="first" source="resources/pump.fmu"><ssd:Connectors>
        <ssd:Connector name="p" kind="output"><ssc:Real/></ssd:Connector></ssd:Connectors></ssd:Component>
      <ssd:Component name="second" source="resources/pump.fmu"><ssd:Connectors>
        <ssd:Connector name="speed" kind="input"><ssc:Real/></ssd:Connector></ssd:Connectors></ssd:Component>
    </ssd:Elements>
    <ssd:Connections><ssd:Connection startElement="first" startConnector="p" endElement="second" endConnector="speed">
      <ssc:LinearTransformation factor="2" offset="-1"/></ssd:Connection></ssd:Connections>
  </ssd:System>
</ssd:SystemStructureDescription>"""


def written(path: Path, entries: dict[str, str | bytes]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return str(path)


@pytest.fixture
def pump(tmp_path: Path) -> str:
    """An FMU of another tool, for Windows alone."""
    return written(tmp_path / "pump.fmu", {"modelDescription.xml": PUMP, "binaries/win64/pump.dll": b"MZ"})


def test_an_fmu_for_another_platform_is_listed(pump: str, tmp_path: Path, in_process: Callable[..., Ended]) -> None:
    printed = in_process("show", pump, "--variables", "--json", "pump.json").stdout
    for expected in ("Pump: a pump", "win64", "Other Tool 7", "start 1 s, stop 6.5 s", "outlet pressure"):
        assert expected in printed
    content = json.loads((tmp_path / "pump.json").read_text())
    assert content["interfaces"] == ["co-simulation"]
    assert content["platforms"] == ["win64"]
    assert content["capabilities"] == ["saves its state"]
    assert {each["name"]: each["kind"] for each in content["variables"]} == {
        "p": "output",
        "x": "state",
        "der(x)": "local",
        "speed": "input",
        "on": "parameter",
    }
    speed = next(each for each in content["variables"] if each["name"] == "speed")
    assert (speed["default"], speed["maximum"], speed["unit"]) == ("150", "300", None)


def test_version_1_is_listed(tmp_path: Path) -> None:
    content = mbsfmu.overview(written(tmp_path / "old.fmu", {"modelDescription.xml": OLD}))
    assert content["fmi"] == "1.0"
    assert content["platforms"] == []
    assert [each["name"] for each in content["variables"]] == ["u"]


def test_a_package_is_listed_with_its_connections(pump: str, tmp_path: Path, in_process: Callable[..., Ended]) -> None:
    entries: dict[str, str | bytes] = {"SystemStructure.ssd": PACKAGE, "resources/pump.fmu": Path(pump).read_bytes()}
    package = written(tmp_path / "station.ssp", entries)
    assert mbsfmu.overview(package)["connections"] == [
        {"source": "first.p", "target": "second.speed", "factor": 2.0, "offset": -1.0}
    ]
    printed = in_process("show", package).stdout
    assert "2 · value + -1" in printed
    assert "outlet pressure" not in printed
    assert "inputs of second" in in_process("show", package, "--variables").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "{pump}", "--html", "x.html"], "is refused with --html: only models of mbsfmu are shown in motion"),
        (["simulate", "{pump}"], "the model cannot be read from an FMU; `mbsfmu show` lists what it holds"),
        (["show", "none.fmu"], "there is no file none.fmu"),
        (["show", "{page}"], "is no FMU that can be read"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], sentence: str, pump: str, tmp_path: Path, in_process: Callable[..., Ended]
) -> None:
    page = tmp_path / "page.fmu"
    page.write_text("<html>")
    ended = in_process(*(each.format(pump=pump, page=page) for each in arguments))
    assert ended.status == 2
    assert sentence in " ".join(ended.stderr.split())
