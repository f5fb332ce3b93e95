"""What descriptions of FMI 3.0 say beside what those of FMI 2.0 say."""

from __future__ import annotations

import zipfile
from pathlib import Path

import fmpy
import pytest
from crane import crane
from extending.controllers import SampledPid
from lxml import etree

import mbsfmu
from mbsfmu import Causality, CoupledModel, Variable
from mbsfmu.base.errors import InputError
from mbsfmu.fmu.description import Entry, entries, terminals
from mbsfmu.native.native_package import export_native

SCHEMAS = Path(fmpy.__file__).parent / "schema" / "fmi3"


def described(model: CoupledModel, folder: Path, system: str, **options: bool | bytes) -> dict[str, etree._Element]:
    """The XML files of a unit, of which nothing is compiled."""
    simulation = model.simulation_of(system)
    path = export_native(simulation, folder / "unit.fmu", platforms=[], fmi=3, force=True, sources=True, **options)
    with zipfile.ZipFile(path) as archive:
        return {Path(n).name: etree.fromstring(archive.read(n)) for n in archive.namelist() if n.endswith(".xml")}


def variable(name: str, causality: Causality, unit: str = "1", **given: float) -> Variable:
    return Variable(name, causality, unit=unit, **given)


def test_components_of_vectors_are_arrays() -> None:
    force = [variable(f"tip.force.{axis}", Causality.INPUT, "N") for axis in "xyz"]
    turn = [variable(f"tip.quaternion.{axis}", Causality.OUTPUT) for axis in "wxyz"]
    flat = [variable(f"gravity.{axis}", Causality.PARAMETER, "m/s2") for axis in "xz"]
    unlike = [variable(f"limit.{axis}", Causality.PARAMETER, minimum=float(axis == "y")) for axis in "xyz"]
    found = entries([*force, *turn, *flat, *unlike])
    assert found[:2] == (Entry("tip.force", 0, 3), Entry("tip.quaternion", 3, 4))
    assert [(each.name, each.size) for each in found[2:]] == [(each.name, 1) for each in (*flat, *unlike)]


def test_vectors_that_something_else_is_about_stay_single() -> None:
    force = [variable(f"tip.force.{axis}", Causality.INPUT, "N") for axis in "xyz"]
    singles = [(each.name, 1) for each in force]
    assert [(each.name, each.size) for each in entries(force, ["tip.force.y"])] == singles
    taken = [*force, variable("tip.force", Causality.OUTPUT, "N")]
    assert [each.size for each in entries(taken)] == [1, 1, 1, 1]
    mixed = [force[0], variable("other", Causality.INPUT), *force[1:]]
    assert [each.size for each in entries(mixed)] == [1, 1, 1, 1]


def test_ports_of_power_are_terminals(tmp_path: Path) -> None:
    """The two sides of a cylinder have the same members, and what one gives goes into the other."""
    sides = {}
    for system in ("mechanism", "circuit"):
        root = described(mbsfmu.models.four_bar(), tmp_path, system, icon=b"picture")["terminalsAndIcons.xml"]
        etree.XMLSchema(file=str(SCHEMAS / "fmi3TerminalsAndIcons.xsd")).assertValid(root)
        assert root.find("GraphicalRepresentation/Icon") is not None
        (terminal,) = root.iter("Terminal")
        assert terminal.get("name") == "cylinder"
        sides[system] = {each.get("memberName"): each.get("variableKind") for each in terminal}
        assert [each.get("variableName") for each in terminal] == [f"cylinder.{name}" for name in sides[system]]
    assert sides["mechanism"] == {"force": "inflow", "velocity": "signal", "length": "signal"}
    assert sides["circuit"] == {**sides["mechanism"], "force": "outflow"}


def test_ports_of_circuits_have_flows_into_the_unit() -> None:
    for given, taken in ((Causality.INPUT, Causality.OUTPUT), (Causality.OUTPUT, Causality.INPUT)):
        (port,) = terminals([variable("P.flow", given, "m3/s"), variable("P.pressure", taken, "Pa")])
        assert [(each.name, each.kind) for each in port.members] == [("pressure", "signal"), ("flow", "inflow")]
    shaft = [variable("M.torque", Causality.OUTPUT, "N.m"), variable("M.angular_velocity", Causality.INPUT, "rad/s")]
    assert [each.kind for each in terminals(shaft)[0].members] == ["outflow", "signal"]
    assert terminals([variable("M.torque", Causality.INPUT, "N.m"), shaft[1]]) == ()


def test_unit_without_ports_and_icon_has_no_terminals(tmp_path: Path) -> None:
    assert set(described(mbsfmu.models.pendulum(1), tmp_path, "mechanism")) == {
        "modelDescription.xml",
        "buildDescription.xml",
    }


def test_licences_have_an_entry(tmp_path: Path) -> None:
    path = export_native(
        mbsfmu.models.pendulum(1).simulation(), tmp_path / "unit.fmu", platforms=[], fmi=3, sources=True
    )
    with zipfile.ZipFile(path) as archive:
        told = archive.read("documentation/licenses/license.txt").decode().splitlines()
        assert told[0] == "pendulum-1: BSD-3-Clause"
        assert all(archive.read(f"documentation/licenses/{name}") for name in told[2:])
    assert len(told) == 3


def test_structure_goes_by_value_references(tmp_path: Path) -> None:
    """Friction makes the cylinder's force depend on its velocity; time comes behind all variables."""
    root = described(crane(), tmp_path, "circuit")["modelDescription.xml"]
    etree.XMLSchema(file=str(SCHEMAS / "fmi3ModelDescription.xsd")).assertValid(root)
    names = {each.get("valueReference"): each.get("name") for each in root.find("ModelVariables")}
    outputs = {
        names[each.get("valueReference")]: {names[known] for known in each.get("dependencies").split()}
        for each in root.iterfind("ModelStructure/Output")
    }
    assert outputs["lift.force"] == {"lift.velocity", "lift.length"}
    independent = [each for each in root.find("ModelVariables") if each.get("causality") == "independent"]
    assert [each.get("name") for each in independent] == ["time"]
    assert int(independent[0].get("valueReference")) == max(map(int, names))
    assert root.find("CoSimulation").get("mightReturnEarlyFromDoStep") == "true"
    root = described(crane(), tmp_path, "mechanism")["modelDescription.xml"]
    assert root.find("CoSimulation").get("mightReturnEarlyFromDoStep") == "false"


def test_clocks_are_numbered_behind_time(tmp_path: Path) -> None:
    """Each by the order of the blocks, as the functions of the FMU count them: the slow block comes second."""
    blocks = {
        name: SampledPid(proportional=1.0, sample_time=time, offset=time / 4)
        for name, time in (("fast", 0.125), ("slow", 0.5))
    }
    simulation = CoupledModel(name="two", systems=blocks).simulation()
    path = export_native(simulation, tmp_path / "unit.fmu", platforms=[], fmi=3, sources=True, clocks="periodic")
    with zipfile.ZipFile(path) as archive:
        variables = etree.fromstring(archive.read("modelDescription.xml")).find("ModelVariables")
    time = max(int(each.get("valueReference")) for each in variables if each.tag != "Clock")
    assert [each.get("name") for each in variables if each.get("valueReference") == str(time)] == ["time"]
    clocks = {each.get("name"): each for each in variables.iter("Clock")}
    assert list(clocks) == ["fast.clock", "slow.clock"]
    assert [int(each.get("valueReference")) - time for each in clocks.values()] == [1, 2]
    assert [float(each.get("intervalDecimal")) for each in clocks.values()] == [0.125, 0.5]
    assert [float(each.get("shiftDecimal")) for each in clocks.values()] == [0.03125, 0.125]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"fmi": 3, "backend": "python"}, "FMUs of 'python' are of FMI 2.0"),
        ({"fmi": 1}, "there is no FMI 1 for FMUs; there are 2 and 3"),
        (
            {"fmi": 2, "platforms": ["aarch64-linux"]},
            "FMI 2.0 has no platform 'aarch64-linux', but linux64, win64",
        ),
        ({"fmi": 3, "platforms": ["amiga"]}, "there is no platform 'amiga'; there are x86_64-linux, x86_64-windows"),
    ],
)
def test_versions_that_are_not_there_are_refused(tmp_path: Path, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []
