"""The model description against the standard's schema, and against what the model really depends on."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import fmpy
import matplotlib.pyplot as plt
import numpy as np
import pytest
from crane import crane
from lxml import etree

import mbsfmu
from mbsfmu import CoupledModel, LinearSignal, StepSignal
from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import dimension
from mbsfmu.modelling.variables import identifier
from mbsfmu.native.native_package import export_native


def description(path: Path) -> etree._Element:
    with zipfile.ZipFile(path) as archive:
        return etree.fromstring(archive.read("modelDescription.xml"))


@pytest.mark.parametrize("name", ["four-bar", "mechanism", "circuit"])
def test_unit_is_valid(four_bar_fmus: dict[str, Path], name: str) -> None:
    """Nothing is to be said, but of an FMU in Python that it needs Python."""
    needs_python = description(four_bar_fmus[name]).xpath("string(CoSimulation/@needsExecutionTool)") == "true"
    rules = [each.rule for each in mbsfmu.validate(four_bar_fmus[name])]
    assert rules == (["execution-tool"] if needs_python else [])
    schema = Path(fmpy.__file__).parent / "schema" / "fmi2" / "fmi2ModelDescription.xsd"
    etree.XMLSchema(file=str(schema)).assertValid(description(four_bar_fmus[name]))


def test_inputs_and_outputs_come_first(four_bar_fmus: dict[str, Path]) -> None:
    order = ["input", "output", "parameter", "calculatedParameter", "local"]
    ranks = [order.index(v.get("causality")) for v in description(four_bar_fmus["mechanism"]).iter("ScalarVariable")]
    assert ranks == sorted(ranks)


def test_dependencies_are_true(four_bar_fmus: dict[str, Path]) -> None:
    root = description(four_bar_fmus["circuit"])
    names = [None, *(v.get("name") for v in root.iter("ScalarVariable"))]

    def of(tag: str) -> dict[str, set[str]]:
        unknowns = root.iterfind(f"ModelStructure/{tag}/Unknown")
        return {names[int(u.get("index"))]: {names[int(i)] for i in u.get("dependencies").split()} for u in unknowns}

    outputs = of("Outputs")
    # Friction and end stops make the force depend on length and velocity; pressures are states.
    assert outputs["cylinder.force"] == {"cylinder.length", "cylinder.velocity"}
    assert outputs["cylinder.pressure_piston"] == set()
    initial = of("InitialUnknowns")
    assert "cylinder.initial_load" in initial["cylinder.pressure_piston"]
    assert "valve.time_constant" not in initial["cylinder.pressure_piston"]
    # The state is the oil's compression, found from the pressure, which then is found from it.
    oil = {f"oil.{name}" for name in ("bulk_modulus", "air_content", "vapour_pressure")}
    assert initial["cylinder.pressure_rod"] == {"V3.initial_pressure", *oil}


def test_static_force_is_a_calculated_parameter(four_bar_fmus: dict[str, Path]) -> None:
    variables = {v.get("name"): v for v in description(four_bar_fmus["mechanism"]).iter("ScalarVariable")}
    static = variables["cylinder.static_force"]
    assert static.get("causality") == "calculatedParameter"
    assert static[0].get("start") is None
    assert variables["boom.mass"].get("variability") == "fixed"
    assert variables["solver.step"].get("variability") == "tunable"


def test_guid_follows_the_content(tmp_path: Path) -> None:
    model = mbsfmu.models.pendulum(1)
    guids = []
    for step in (1e-3, 1e-3, 2e-3):
        (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", step=step, force=True)
        guids.append(description(path).get("guid"))
    assert guids[0] == guids[1]
    assert guids[0] != guids[2]


def test_needs_execution_tool_can_be_denied(tmp_path: Path) -> None:
    model = mbsfmu.models.pendulum(1)
    (path,) = mbsfmu.export(model, tmp_path, layout="monolithic", backend="python", needs_execution_tool=False)
    assert description(path).find("CoSimulation").get("needsExecutionTool") == "false"


def described(model: CoupledModel, tmp_path: Path, system: str | None = None) -> etree._Element:
    """The description of a native FMU, of which nothing is compiled."""
    simulation = model.simulation(compiled=False) if system is None else model.simulation_of(system)
    return description(export_native(simulation, tmp_path / "unit.fmu", platforms=[], sources=True, force=True))


def test_input_starts_where_its_signal_does(tmp_path: Path) -> None:
    """Where the first jump is at the start itself, it is made already."""
    data = mbsfmu.models.four_bar().to_dict()
    for signal, start in (
        (StepSignal(times=(1.0,), values=(9.0,), initial=6.0), 6.0),
        (StepSignal(times=(0.0, 1.0), values=(4.0, 9.0)), 4.0),
        (LinearSignal(times=(-1.0, 1.0), values=(1.0, 2.0)), 1.5),
    ):
        model = CoupledModel.from_dict({**data, "signals": {"circuit.valve.command": signal.to_dict()}})
        for system in (None, "circuit"):
            variables = {v.get("name"): v for v in described(model, tmp_path, system).iter("ScalarVariable")}
            assert float(variables["valve.command"][0].get("start")) == start


@pytest.mark.parametrize("name", ["four-bar", "quick-return", "double-pentagon", "pendulum-2"])
def test_magnitudes_and_units_are_complete(name: str, tmp_path: Path) -> None:
    """Every output and state has a nominal value, which the run stays within a factor of a hundred of, if it moves."""
    model = mbsfmu.models.built_in(name)
    root = described(model, tmp_path)
    assert all(len(unit.findall("BaseUnit")) == 1 for unit in root.iter("Unit"))
    result = model.simulation(step=5e-3).run(2.0)
    for variable in root.iter("ScalarVariable"):
        if variable.get("variability") != "continuous":
            continue
        nominal = float(variable[0].get("nominal"))
        assert nominal > 0.0
        largest = np.max(np.abs(result[variable.get("name")]))
        moves = variable.get("causality") == "output" and largest > 1e-6 * nominal
        assert largest < 100.0 * nominal, variable.get("name")
        assert largest > 1e-3 * nominal or not moves, variable.get("name")


def test_display_units_have_their_factors(tmp_path: Path) -> None:
    """Value shown = factor · value in SI: 1 m is 1000 mm, 1 bar 1e5 Pa, 1 l/min a sixty-thousandth of 1 m³/s."""
    root = described(mbsfmu.models.four_bar(), tmp_path)
    exposed = {unit.get("name"): unit[1] for unit in root.iter("Unit") if len(unit) > 1}
    for unit, name, factor in (
        ("m", "mm", 1000.0),
        ("Pa", "bar", 1e-5),
        ("m3/s", "l/min", 60000.0),
        ("m3", "l", 1000.0),
        ("rad", "deg", 180.0 / np.pi),
        ("rad/s", "deg/s", 180.0 / np.pi),
        ("N", "kN", 1e-3),
    ):
        assert exposed[unit].get("name") == name
        assert float(exposed[unit].get("factor")) == pytest.approx(factor, rel=1e-14)
        assert exposed[unit].get("offset", "0") == "0"


def test_model_tells_where_it_comes_from(tmp_path: Path) -> None:
    root = described(mbsfmu.models.pendulum(1), tmp_path)
    assert [root.get(key) for key in ("version", "author", "license")] == ["1.0", "the mbsfmu authors", "BSD-3-Clause"]
    assert "the mbsfmu authors" in root.get("copyright")
    own = CoupledModel.from_dict({**crane().to_dict(), "version": "2.1", "author": "A. Crane"})
    root = described(own, tmp_path)
    assert (root.get("version"), root.get("author"), root.get("copyright")) == ("2.1", "A. Crane", None)
    assert root.get("license").startswith("of the model: not stated")


def test_identifiers_tell_models_and_systems_apart(tmp_path: Path) -> None:
    found = {
        (model.name, system): described(model, tmp_path, system).find("CoSimulation").get("modelIdentifier")
        for model in (mbsfmu.models.four_bar(), mbsfmu.models.quick_return())
        for system in (None, "mechanism", "circuit")
    }
    assert len(set(found.values())) == len(found)
    assert found["four-bar", "circuit"] == "four_bar_circuit"
    assert [identifier(name) for name in ("a-b.c", "double", "ünit")] == ["a_b_c", "double_", "_nit"]


def test_only_system_is_written_once(tmp_path: Path) -> None:
    paths = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, backend="python")
    assert [path.name for path in paths] == ["pendulum-1.fmu"]


def test_entries_of_the_archive_can_be_read_by_everyone(four_bar_fmus: dict[str, Path]) -> None:
    with zipfile.ZipFile(four_bar_fmus["circuit"]) as archive:
        assert {(entry.create_system, entry.external_attr >> 16) for entry in archive.infolist()} == {(3, 0o100644)}


@pytest.mark.parametrize("formulation", ["double-step", "dca-alm"])
def test_dependencies_of_accelerations_are_declared(formulation: str) -> None:
    """The crane's load swings on a joint: its acceleration depends on the force that lifts the boom.

    With absolute coordinates it is measured, which is another way through the equations.
    """
    simulation = crane().simulation_of("mechanism", formulation=formulation)
    accelerations = [each.name for each in simulation.variables if each.name.endswith("angular_acceleration")]
    assert accelerations
    for name in accelerations:
        assert simulation.dependencies[name] == ("lift.force",)
    positions = [each.name for each in simulation.variables if each.name.endswith((".angle", "lift.length"))]
    assert all(simulation.dependencies[name] == () for name in positions)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("kg.m2", {"kg": 1, "m": 2}),
        ("N/m", {"kg": 1, "s": -2}),
        ("N.m.s/rad", {"kg": 1, "m": 2, "s": -1, "rad": -1}),
        ("rad/s2", {"rad": 1, "s": -2}),
        ("1", {}),
        ("m3/(s.V)", {"m": 1, "s": 2, "kg": -1, "A": 1}),
    ],
)
def test_units_have_their_dimensions(unit: str, expected: dict[str, float]) -> None:
    assert dimension(unit) == expected


def test_unknown_unit_is_refused() -> None:
    for unit, part in (("furlong/s", "furlong"), ("m3/(s.Pa0.5)", "5"), ("m^2", r"m\^2")):
        with pytest.raises(InputError, match=f"'{part}' is no SI unit"):
            dimension(unit)


def pixels_of(content: bytes) -> np.ndarray:
    """Red, green, blue and opacity of a PNG, read by another program."""
    return plt.imread(io.BytesIO(content), format="png")


def test_icon_shows_the_mechanism(four_bar_fmus: dict[str, Path]) -> None:
    """The boom lies along x through the ground's O and is 9 m long: the picture's left and right end."""
    pictures = {}
    for name, path in four_bar_fmus.items():
        with zipfile.ZipFile(path) as archive:
            pictures[name] = archive.read("model.png")
    assert pictures["mechanism"] == pictures["four-bar"] != pictures["circuit"]
    assert all(len(each) < 4000 for each in pictures.values())
    pixels = pixels_of(pictures["four-bar"])
    seen = pixels[..., 3] > 0.5
    columns, rows = np.flatnonzero(seen.any(axis=0)), np.flatnonzero(seen.any(axis=1))
    width, height = np.ptp(columns), np.ptp(rows)
    # 9 m from O to the boom's end, 2 m down to G; at O half a joint's dot, at the ends half a line.
    assert (height - 5.5) / (width - 6.0) == pytest.approx(2.0 / 9.0, abs=0.03)
    assert np.sum(seen[rows[0] : rows[0] + 9].any(axis=0)) > 0.9 * width  # the boom is on top
    red = (pixels[..., 0] > 0.6) & (pixels[..., 1] < 0.4) & seen
    assert 20 < np.sum(red) < np.sum(seen)  # the cylinder


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("bar", "'bar' is no SI unit; write Pa, and numbers in it: 1 bar is 100000 Pa"),
        ("mm", "'mm' is no SI unit; write m, and numbers in it: 1 mm is 0.001 m"),
        ("l/min", "write m3/s, and numbers in it: 1 l/min is 1.66667e-05 m3/s"),
        ("N.bananas", "'bananas' is no SI unit; write N.m, m/s2"),
    ],
)
def test_units_that_people_read_are_refused_with_what_they_are(unit: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        dimension(unit)
