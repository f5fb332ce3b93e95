"""The JSON Schema of model files takes all models that there are, and refuses what the loader refuses."""

from __future__ import annotations

import copy
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import mbsfmu
from mbsfmu.modelling import DataError
from mbsfmu.modelling.parameters import parameter_fields
from mbsfmu.modelling.part import FAMILIES, is_built_in
from mbsfmu.models import BUILT_IN, CIRCUITS, built_in

ROOT = Path(__file__).parents[2]
EXAMPLES = [file.stem for file in sorted((ROOT / "examples").glob("*.py")) if f"def {file.stem}()" in file.read_text()]
RELIEF_VALVE = ROOT / "tests" / "extending" / "relief_valve.py"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    made = mbsfmu.model_schema()
    Draft202012Validator.check_schema(made)
    return made


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(schema)


def written(model: Any) -> Any:
    return json.loads(json.dumps(model.to_dict()))


@pytest.mark.parametrize("name", [*BUILT_IN, "pendulum-3", *(f"four-bar-{circuit}" for circuit in CIRCUITS)])
def test_built_in_models_are_valid(name: str, validator: Draft202012Validator) -> None:
    model = built_in(name)
    validator.validate(written(model))
    for system in model.systems.values():
        validator.validate(written(system))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_valid(name: str, validator: Draft202012Validator) -> None:
    model = getattr(importlib.import_module(name), name)()
    validator.validate(written(model))


def test_every_kind_of_part_is_a_definition_with_its_fields_and_units(schema: dict[str, Any]) -> None:
    kinds = [(family.family, word, kind) for family in FAMILIES for word, kind in family.known() if is_built_in(kind)]
    assert len(kinds) > 60
    for family, word, kind in kinds:
        told = schema["$defs"][f"{family}.{word}"]
        assert {"$ref": f"#/$defs/{family}.{word}"} in schema["$defs"][family.capitalize()]["oneOf"]
        assert told["properties"]["type"]["const"] == word
        assert "type" in told["required"]
        for name, field in kind.model_fields.items():
            assert (name in told["required"]) == (field.is_required() or name == "type") or field.exclude, (word, name)
        for name, parameter in parameter_fields(kind).items():
            assert told["properties"][name]["unit"] == parameter.unit
            assert told["properties"][name]["description"] == parameter.description


def changed(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a model with one thing wrong: a strange field, a wrong kind, a text for a number."""
    for path, part in _objects(data):
        if part.keys() & {"type", "bodies", "components", "systems"}:
            yield f"{path}: field", _with(data, path, {**part, "colour": "red"})
        if "type" in part:
            yield f"{path}: kind", _with(data, path, {**part, "type": "flux-capacitor"})
            yield f"{path}: no kind", _with(data, path, {name: part[name] for name in part if name != "type"})
        for name in [name for name, value in part.items() if isinstance(value, float)][:1]:
            yield f"{path}.{name}: text", _with(data, path, {**part, name: "much"})
            yield f"{path}.{name}: truth", _with(data, path, {**part, name: True})


def _objects(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if isinstance(data, dict):
        yield path, data
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _objects(value, (*path, key))


def _with(data: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    result = copy.deepcopy(data)
    *way, last = path
    place = result
    for key in way:
        place = place[key]
    place[last] = part
    return result


@pytest.mark.parametrize("name", ["four-bar", "loop-4"])
def test_what_is_wrong_is_refused_by_schema_and_loader(name: str, validator: Draft202012Validator) -> None:
    data = written(built_in(name))
    cases = dict(changed(data))
    assert len(cases) > 20
    for what, wrong in cases.items():
        assert not validator.is_valid(wrong), what
        with pytest.raises(DataError) as caught:
            mbsfmu.CoupledModel.from_dict(wrong)  # before any equation is looked at
        assert "\n" not in str(caught.value), what


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("systems", "mechanism", "bodies", 0, "mass"), -1.0),
        (("systems", "mechanism", "joints", 0, "parent"), "ground"),
        (("systems", "mechanism", "gravity"), [0.0, -9.81]),
        (("systems", "circuit", "components", 0, "name"), "1st"),
        (("systems", "circuit", "initial_pressures"), {"no node!": 1e5}),
        (("signals", "circuit.valve.command", "times"), 3.0),
        (("step",), 0.0),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_values_out_of_range_are_refused_by_both(place: Any, value: Any, validator: Draft202012Validator) -> None:
    wrong = _with(written(mbsfmu.models.four_bar()), place, value)
    assert not validator.is_valid(wrong)
    with pytest.raises(DataError):
        mbsfmu.CoupledModel.from_dict(wrong)


def test_a_point_may_be_three_coordinates(validator: Draft202012Validator) -> None:
    data = written(mbsfmu.models.four_bar())
    body = data["systems"]["mechanism"]["bodies"][0]
    body["points"] = {**body.get("points", {}), "tip": [1.0, 0.0, 0.0]}
    validator.validate(data)
    mbsfmu.CoupledModel.from_dict(data)
    body["points"]["tip"] = [1.0, 0.0]
    assert not validator.is_valid(data)


def test_a_file_may_name_its_schema(tmp_path: Path, validator: Draft202012Validator) -> None:
    model = mbsfmu.models.pendulum(1)
    data = {"$schema": "model.schema.json", **written(model)}
    validator.validate(data)
    (tmp_path / "model.json").write_text(json.dumps(data))
    assert mbsfmu.CoupledModel.from_file(tmp_path / "model.json") == model


def test_parts_of_a_user_are_in_the_schema_where_their_file_is_given(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mbsfmu", "schema", "-o", "own.json", "--parts", str(RELIEF_VALVE)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    schema = json.loads((tmp_path / "own.json").read_text())
    told = schema["$defs"]["component.pilot-relief-valve"]
    assert told["properties"]["cracking_pressure"]["unit"] == "Pa"
    validator = Draft202012Validator(schema)
    valve = {"type": "pilot-relief-valve", "name": "relief", "inlet": "A", "outlet": "T"}
    valve |= {name: 1.0 for name in told["required"] if name not in valve}
    circuit = {"oil": {"bulk_modulus": 1e9, "density": 850.0}, "components": [valve]}
    validator.validate(circuit)
    plain = subprocess.run([sys.executable, "-m", "mbsfmu", "schema"], capture_output=True, text=True, check=True)
    assert not Draft202012Validator(json.loads(plain.stdout)).is_valid(circuit)
