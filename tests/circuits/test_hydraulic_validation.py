"""Circuits that cannot be are refused in one sentence; those that can go through JSON and back."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hydraulic_bench import FRICTION, paper_circuit, two_volume_circuit

import hydraulics
import mbsfmu.modelling
from hydraulics import (
    Circuit,
    Cylinder,
    DataError,
    DirectionalValve,
    Hose,
    Oil,
    PressureSource,
    Tank,
    Throttle,
    Volume,
    balanced,
)
from hydraulics.component import COMPONENTS

OIL = Oil(bulk_modulus=1500e6, density=850.0)
PAPER_KINDS = ["pressure-source", "tank", "directional-valve", "hose", "throttle", "hose", "cylinder", "hose"]
PUMP = PressureSource(name="pump", node="P", pressure=7.6e6)
TANK = Tank(name="tank", node="T")
HOSE_A = Hose(name="hose_a", node="A", volume=1e-4, bulk_modulus=150e6)
HOSE_B = Hose(name="hose_b", node="B", volume=1e-4, bulk_modulus=150e6)

VALVE: dict[str, Any] = {
    "name": "valve",
    "supply": "P",
    "tank": "T",
    "a": "A",
    "b": "B",
    "flow_coefficient": 2e-8,
    "time_constant": 5e-3,
}
CYLINDER: dict[str, Any] = {
    "name": "cylinder",
    "piston": "A",
    "rod": "B",
    "piston_diameter": 0.08,
    "rod_diameter": 0.035,
    "stroke": 0.9,
    "retracted_length": 0.9,
    "bulk_modulus": 31500e6,
}
THROTTLE: dict[str, Any] = {
    "name": "throttle",
    "inlet": "A",
    "outlet": "B",
    "orifice_diameter": 6e-3,
    "discharge_coefficient": 0.8,
}
PRESSURES: dict[str, Any] = {"A": 1e6, "B": 1e6}


def circuit(*components: Any, **pressures: Any) -> Circuit:
    return Circuit(oil=OIL, components=components, initial_pressures=pressures)


def refused(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ValueError)


# -- components ---------------------------------------------------------------------------------------------

POSITIVE = "it must be greater than 0"
NOT_NEGATIVE = "it must be greater than or equal to 0"


@pytest.mark.parametrize(
    ("kind", "data", "field", "sign"),
    [
        *((Oil, OIL.to_dict(), field, POSITIVE) for field in ("bulk_modulus", "density")),
        *((Oil, OIL.to_dict(), field, NOT_NEGATIVE) for field in ("air_content", "vapour_pressure")),
        *((Hose, HOSE_A.to_dict(), field, POSITIVE) for field in ("volume", "bulk_modulus")),
        (Volume, {"name": "block", "node": "A", "volume": 1.0}, "volume", POSITIVE),
        *(
            (Throttle, THROTTLE, field, POSITIVE)
            for field in ("orifice_diameter", "discharge_coefficient", "laminar_pressure")
        ),
        *(
            (DirectionalValve, VALVE, field, POSITIVE)
            for field in ("flow_coefficient", "time_constant", "command_limit", "laminar_pressure")
        ),
        *(
            (Cylinder, CYLINDER, field, POSITIVE)
            for field in (
                "piston_diameter",
                "rod_diameter",
                "stroke",
                "retracted_length",
                "bulk_modulus",
                "initial_length",
                "stribeck_velocity",
                "smoothing_velocity",
            )
        ),
        (PressureSource, PUMP.to_dict(), "pressure", NOT_NEGATIVE),
        (Tank, TANK.to_dict(), "pressure", NOT_NEGATIVE),
        (DirectionalValve, VALVE, "dead_band", NOT_NEGATIVE),
        *(
            (Cylinder, CYLINDER, field, NOT_NEGATIVE)
            for field in (
                "viscous_friction",
                "coulomb_friction",
                "static_friction",
                "stop_stiffness",
                "stop_damping",
            )
        ),
    ],
)
def test_numbers_of_the_wrong_sign_are_refused(kind: Any, data: dict[str, Any], field: str, sign: str) -> None:
    thing = f"{kind.__name__} '{data['name']}'" if "name" in data else kind.__name__
    for wrong in (-1.0, 0.0) if sign == POSITIVE else (-1.0,):
        refused(partial(kind, **{**data, field: wrong}), f"{thing}: {field} is {wrong}; {sign}")
    for odd in (float("nan"), float("inf")):
        sentence = f"{thing}: {field} is {odd}; it must be a finite number"
        refused(partial(kind, **{**data, field: odd}), sentence)


@pytest.mark.parametrize("field", ["initial_load", "initial_spool"])
def test_numbers_of_any_sign_must_be_finite(field: str) -> None:
    kind, data = (Cylinder, CYLINDER) if field == "initial_load" else (DirectionalValve, VALVE)
    assert getattr(kind(**{**data, field: -5.0}), field) == -5.0
    sentence = f"{kind.__name__} '{data['name']}': {field} is nan; it must be a finite number"
    refused(lambda: kind(**{**data, field: float("nan")}), sentence)


@pytest.mark.parametrize("name", ["", "1st", "a b", "a.b", "größe", "end\n"])
def test_names_must_be_identifiers(name: str) -> None:
    with pytest.raises(DataError, match=r"^Hose .*: name is .*; a name has letters, digits and _, no digit first"):
        Hose(name=name, node="A", volume=1.0, bulk_modulus=1.0)
    with pytest.raises(DataError, match=r"^Hose 'h': node is .*; a name has letters, digits and _, no digit first"):
        Hose(name="h", node=name, volume=1.0, bulk_modulus=1.0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rod_diameter": 0.08}, "piston_diameter is 0.08; it must be greater than the rod's, 0.08"),
        ({"rod_diameter": 0.09}, "piston_diameter is 0.08; it must be greater than the rod's, 0.09"),
        (
            {"coulomb_friction": 10.0, "static_friction": 5.0},
            "static_friction is 5.0; it must be at least the Coulomb friction, 10.0",
        ),
        (
            {"coulomb_friction": 10.0},
            "static_friction is missing; with Coulomb friction it must be given too",
        ),
        ({"rod": "A"}, "piston and rod are both at node 'A'; they need a node each"),
    ],
)
def test_cylinders_must_be_consistent(changes: dict[str, Any], sentence: str) -> None:
    refused(lambda: Cylinder(**{**CYLINDER, **changes}), f"Cylinder 'cylinder': {sentence}")


@pytest.mark.parametrize("spool", [-10.5, 10.5])
def test_spool_starts_within_its_limit(spool: float) -> None:
    refused(
        lambda: DirectionalValve(**{**VALVE, "initial_spool": spool}),
        f"DirectionalValve 'valve': initial_spool is {spool}; it must be within the command limit of 10.0 V",
    )


@pytest.mark.parametrize("length", [0.5, 1.85])
def test_cylinders_begin_within_their_stroke(length: float) -> None:
    refused(
        lambda: Cylinder(**CYLINDER, initial_length=length),
        f"Cylinder 'cylinder': initial_length is {length}; it must be between 0.9, fully retracted, and 1.8, "
        "fully extended",
    )


def test_missing_and_unknown_fields_are_named() -> None:
    refused(lambda: Oil.from_dict({"bulk_modulus": 1e9}), "Oil: density is missing")
    refused(
        lambda: Oil.from_dict({**OIL.to_dict(), "viscosity": 1.0}),
        "Oil: there is no field viscosity; there are bulk_modulus, density, air_content, polytropic_index, "
        "vapour_pressure, conserves",
    )


def test_data_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        HOSE_A.volume = 1.0  # type: ignore[misc]


# -- circuits -----------------------------------------------------------------------------------------------

CIRCUITS: list[tuple[str, Callable[[], Circuit], str]] = [
    ("nothing", circuit, "a circuit needs at least one component"),
    (
        "name twice",
        lambda: circuit(HOSE_A, Hose(name="hose_a", node="B", volume=1.0, bulk_modulus=1.0), **PRESSURES),
        "the name 'hose_a' is given to more than one component",
    ),
    (
        "name of the oil",
        lambda: circuit(Volume(name="oil", node="A", volume=1.0), A=1e6),
        "the name 'oil' stands for the fluid and cannot be a component's",
    ),
    (
        "name of a node",
        lambda: circuit(Volume(name="A", node="A", volume=1.0), A=1e6),
        "the name 'A' is given to a component and to a node",
    ),
    (
        "two sources",
        lambda: circuit(PUMP, Tank(name="tank", node="P")),
        "node 'P' is held at a pressure by more than one source",
    ),
    (
        "hose at a source",
        lambda: circuit(PUMP, Hose(name="hose", node="P", volume=1.0, bulk_modulus=1.0)),
        "hose 'hose': node 'P' is held at a pressure by 'pump' and has no volume of its own",
    ),
    (
        "volume at a source, named first",
        lambda: circuit(Volume(name="block", node="T", volume=1.0), TANK),
        "volume 'block': node 'T' is held at a pressure by 'tank' and has no volume of its own",
    ),
    (
        "cylinder at a source",
        lambda: circuit(TANK, HOSE_A, Cylinder(**{**CYLINDER, "rod": "T"}), A=1e6),
        "cylinder 'cylinder': node 'T' is held at a pressure by 'tank' and has no volume of its own",
    ),
    (
        "dangling throttle",
        lambda: circuit(HOSE_A, Throttle(**THROTTLE), **PRESSURES),
        "node 'B' of throttle 'throttle' has no volume: attach a hose or a volume to it, or a source",
    ),
    (
        "dangling valve",
        lambda: circuit(PUMP, HOSE_A, HOSE_B, DirectionalValve(**VALVE), **PRESSURES),
        "node 'T' of directional-valve 'valve' has no volume: attach a hose or a volume to it, or a source",
    ),
    (
        "chamber alone",
        lambda: circuit(HOSE_A, Cylinder(**CYLINDER), **PRESSURES),
        "node 'B' of cylinder 'cylinder' has no volume that is always there, for the chamber of cylinder 'cylinder' "
        "may close: attach a hose or a volume to it, such as that of its line",
    ),
    (
        "throttle at a chamber alone",
        lambda: circuit(HOSE_A, Throttle(**THROTTLE), Cylinder(**CYLINDER), **PRESSURES),
        "node 'B' of throttle 'throttle' has no volume that is always there, for the chamber of cylinder 'cylinder' "
        "may close: attach a hose or a volume to it, such as that of its line",
    ),
    (
        "balance of a stranger",
        lambda: circuit(
            HOSE_A,
            HOSE_B,
            Volume(name="block", node="C", volume=1.0),
            Cylinder(**CYLINDER),
            A=balanced("cylinder"),
            B=1e6,
            C=balanced("cylinder"),
        ),
        "initial_pressures: node 'C' is to balance cylinder 'cylinder', but no line joins it to the chamber at 'A'; "
        "behind a valve or a source a pressure is one of its own",
    ),
    (
        "balance behind a valve",
        lambda: circuit(
            *(HOSE_A, HOSE_B, TANK, DirectionalValve(**VALVE), Cylinder(**CYLINDER)),
            Volume(name="block", node="P", volume=1.0),
            A=balanced("cylinder"),
            B=1e6,
            P=balanced("cylinder"),
        ),
        "initial_pressures: node 'P' is to balance cylinder 'cylinder', but no line joins it to the chamber at 'A'; "
        "behind a valve or a source a pressure is one of its own",
    ),
    (
        "throttle to itself",
        lambda: circuit(HOSE_A, Throttle(**{**THROTTLE, "outlet": "A"}), A=1e6),
        "throttle 'throttle' has two ports at the same node",
    ),
    (
        "valve to itself",
        lambda: circuit(PUMP, TANK, HOSE_A, DirectionalValve(**{**VALVE, "b": "A"}), A=1e6),
        "directional-valve 'valve' has two ports at the same node",
    ),
    (
        "unknown node",
        lambda: circuit(HOSE_A, HOSE_B, C=1e6, **PRESSURES),
        "initial_pressures: there is no volume at a node 'C'; there are volumes at A, B",
    ),
    (
        "source's node",
        lambda: circuit(TANK, HOSE_A, T=1e6, A=1e6),
        "initial_pressures: there is no volume at a node 'T'; there are volumes at A",
    ),
    (
        "missing pressure",
        lambda: circuit(HOSE_A, HOSE_B, A=1e6),
        "initial_pressures: the pressure at node 'B' is missing",
    ),
    (
        "unknown cylinder",
        lambda: circuit(HOSE_A, HOSE_B, Cylinder(**CYLINDER), A=balanced("ram"), B=1e6),
        "initial_pressures: node 'A' is to balance 'ram', which is no actuator; actuators are cylinder",
    ),
    (
        "no cylinder",
        lambda: circuit(HOSE_A, A=balanced("ram")),
        "initial_pressures: node 'A' is to balance 'ram', which is no actuator; actuators are none",
    ),
    (
        "both chambers balanced",
        lambda: circuit(HOSE_A, HOSE_B, Cylinder(**CYLINDER), A=balanced("cylinder"), B=balanced("cylinder")),
        "initial_pressures: to balance cylinder 'cylinder', one of its nodes 'A' and 'B' must have a number "
        "and the other one not",
    ),
    (
        "both chambers given",
        lambda: circuit(
            HOSE_A,
            HOSE_B,
            Volume(name="block", node="C", volume=1.0),
            Cylinder(**CYLINDER),
            C=balanced("cylinder"),
            **PRESSURES,
        ),
        "initial_pressures: to balance cylinder 'cylinder', one of its nodes 'A' and 'B' must have a number "
        "and the other one not",
    ),
    (
        "negative pressure",
        lambda: circuit(HOSE_A, A=-1.0),
        "Circuit: initial_pressures.A.pressure is -1.0; it must be greater than or equal to 0",
    ),
    (
        "pressure that is no number",
        lambda: circuit(HOSE_A, A="high"),
        "Circuit: initial_pressures.A.pressure is 'high'; it must be a number in Pa, or with a unit of its own",
    ),
    (
        "pressure with its unit",
        lambda: Tank(name="tank", node="T", pressure="200 kg"),  # type: ignore[arg-type]
        "Tank 'tank': pressure: '200 kg' is refused: 'kg' and 'Pa' are units of different quantities",
    ),
    ("balance of nothing", lambda: circuit(HOSE_A, A={}), "Balanced: actuator is missing"),
    (
        "wrong part",
        lambda: circuit({**HOSE_A.to_dict(), "volume": -1.0}, A=1e6),
        "Hose 'hose_a': volume is -1.0; it must be greater than 0",
    ),
    (
        "wrong oil",
        lambda: Circuit(oil={"bulk_modulus": -1.0, "density": 850.0}, components=(PUMP,)),
        "Oil: bulk_modulus is -1.0; it must be greater than 0",
    ),
    (
        "modulus in bar",
        lambda: Circuit(oil={"bulk_modulus": 15000.0, "density": 850.0}, components=(PUMP,)),
        "Oil: bulk_modulus is 15000 Pa; it must be at least 1e+07 Pa as that of any liquid, and that of mineral oil is "
        "some 1.5e9 Pa",
    ),
    (
        "density in kg/l",
        lambda: Circuit(oil={"bulk_modulus": 1.5e9, "density": 0.85}, components=(PUMP,)),
        "Oil: density is 0.85 kg/m3; it must be at least 100 kg/m3 as that of any liquid, and that of mineral oil is "
        "some 850 kg/m3",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), [each[1:] for each in CIRCUITS], ids=[each[0] for each in CIRCUITS])
def test_circuits_that_cannot_be_are_refused(make: Callable[[], Circuit], sentence: str) -> None:
    refused(make, sentence)


@pytest.mark.parametrize("word", ["xyz", ["tank"], "throtle"])
def test_unknown_types_are_told_what_there_is(word: Any) -> None:
    with pytest.raises(DataError) as caught:
        circuit(TANK, {"type": word, "name": "pump"})
    told = str(caught.value).removeprefix(f"Circuit: components[1].type is {word!r}; ")
    told = told.removesuffix(
        " (a type of your own needs the file that defines it: --parts FILE, or parts=[FILE] in Python)"
    )
    if word == "throtle":
        assert told == "did you mean 'throttle'?"
        return
    words = sorted(COMPONENTS.words())  # those of other tests among them
    assert {*PAPER_KINDS, "volume"} <= set(words)
    more = f", {len(words) - 20} more" if len(words) > 20 else ""
    assert told == f"there are {', '.join(words[:20])}{more}"


def test_a_missing_type_is_named() -> None:
    refused(lambda: circuit({"name": "pump"}), "Circuit: components[0].type is missing")


@pytest.mark.parametrize("data", [None, [1], "circuit"])
def test_circuit_comes_from_named_fields(data: Any) -> None:
    refused(lambda: Circuit.from_dict(data), f"Circuit: {data!r} is not an object with named fields")


# -- what is allowed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "original",
    [
        paper_circuit(),
        paper_circuit(valve={"dead_band": 0.5}, initial_length=1.4, **FRICTION),
        two_volume_circuit(),
    ],
)
def test_circuit_goes_through_json_and_back(original: Circuit) -> None:
    text = json.dumps(original.to_dict(), allow_nan=False)
    again = Circuit.from_dict(json.loads(text))
    assert again == original
    assert [type(each) for each in again.components] == [type(each) for each in original.components]
    assert again.to_dict() == original.to_dict()


def test_json_leaves_out_what_is_not_given() -> None:
    assert "initial_length" not in Cylinder(**CYLINDER).to_dict()
    assert Cylinder(**CYLINDER, initial_length=1.4).to_dict()["initial_length"] == 1.4


def test_json_tells_components_by_their_type() -> None:
    assert [each["type"] for each in paper_circuit().to_dict()["components"]] == PAPER_KINDS


def test_nodes_are_sorted_into_sources_and_volumes() -> None:
    made = paper_circuit()
    assert set(made.source_nodes) == {"P", "T"}
    assert set(made.volume_nodes) == {"V1", "V2", "V3"}
    assert [each.name for each in made.actuators] == ["cylinder"]


def test_public_names_are_there_and_described() -> None:
    promised = {"Oil", "Hose", "Volume", "Throttle", "DirectionalValve", "Cylinder", "PressureSource", "Tank"}
    promised |= {"Circuit", "CircuitEquations", "balanced", "Quantity", "DataError", "catalogue_coefficient"}
    assert promised <= set(hydraulics.__all__)
    assert all(getattr(hydraulics, name).__doc__ for name in hydraulics.__all__)


def package_files(package: ModuleType) -> list[Path]:
    return sorted(Path(str(package.__file__)).parent.glob("*.py"))


def test_package_stands_on_numpy_pydantic_and_the_base_of_parts_alone() -> None:
    allowed = {"hydraulics", "mbsfmu", "numpy", "pydantic", "pydantic_core", *sys.stdlib_module_names}
    files = [each for package in (hydraulics, mbsfmu.modelling) for each in package_files(package)]
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            else:
                continue
            assert {module.partition(".")[0] for module in modules} <= allowed, file.name
            ours = [module for module in modules if module.partition(".")[0] == "mbsfmu"]
            assert all(module.startswith("mbsfmu.modelling") for module in ours), file.name
