"""The model description against the standard's schema, and against what the model really depends on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import fmpy
import pytest
from lxml import etree

import mbsfmu
from mbsfmu.errors import InputError
from mbsfmu.fmu.physical_units import dimension


def description(path: Path) -> etree._Element:
    with zipfile.ZipFile(path) as archive:
        return etree.fromstring(archive.read("modelDescription.xml"))


@pytest.mark.parametrize("name", ["four-bar", "mechanism", "circuit"])
def test_unit_is_valid(four_bar_fmus: dict[str, Path], name: str) -> None:
    assert mbsfmu.validate(four_bar_fmus[name]) == []
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


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("kg.m2", {"kg": 1, "m": 2}),
        ("N/m", {"kg": 1, "s": -2}),
        ("N.m.s/rad", {"kg": 1, "m": 2, "s": -1, "rad": -1}),
        ("rad/s2", {"rad": 1, "s": -2}),
        ("1", {}),
        ("m3/(s.V.Pa0.5)", {"m": 1.5, "s": 3.0, "kg": -1.5, "A": 1.0}),
    ],
)
def test_units_have_their_dimensions(unit: str, expected: dict[str, float]) -> None:
    assert dimension(unit) == expected


def test_unknown_unit_is_refused() -> None:
    with pytest.raises(InputError, match="'furlong' is no SI unit"):
        dimension("furlong/s")
