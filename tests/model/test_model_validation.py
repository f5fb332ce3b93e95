"""Models that cannot be are refused in one sentence that names the thing, the value and what is allowed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mbsfmu.model import Beam, Mechanism, Point, RigidBody
from mbsfmu.modelling import DataError
from mbsfmu.parts import Prismatic, Revolute, Universal
from mbsfmu.system_model.coupled_model import CoupledModel

STEPS: dict[str, Any] = {"type": "steps", "times": [0.0], "values": [1.0]}


def hinge(name: str, parent: str, child: str, **fields: Any) -> dict[str, Any]:
    return {"type": "revolute", "name": name, "parent": parent, "child": child, **fields}


def two_links() -> dict[str, Any]:
    """A double pendulum as JSON has it: crank on the ground, rod on the crank."""
    return {
        "ground": {"O": [0.0, 0.0, 0.0]},
        "bodies": [
            {"type": "beam", "name": "crank", "length": 0.3, "mass": 3.0},
            {"type": "beam", "name": "rod", "length": 1.0, "mass": 1.0},
        ],
        "joints": [hinge("A", "ground.O", "crank.start"), hinge("B", "crank.end", "rod.start")],
    }


def coupled(**fields: Any) -> dict[str, Any]:
    return {"name": "machine", "systems": {"mechanism": two_links()}, **fields}


def changed(*path_and_value: Any) -> dict[str, Any]:
    """The double pendulum with one entry replaced, or added."""
    *path, last, value = path_and_value
    data = two_links()
    place: Any = data
    for key in path:
        place = place[key]
    place[last] = value
    return data


def without(part: str, index: int, field: str) -> dict[str, Any]:
    data = two_links()
    del data[part][index][field]
    return data


def loaded(**force: Any) -> dict[str, Any]:
    return {**two_links(), "forces": [{"name": "load", **force}]}


def with_joint(joint: dict[str, Any], **fields: Any) -> dict[str, Any]:
    data = two_links()
    return {**data, "joints": [*data["joints"], joint], **fields}


def refused(make: Callable[[], Any], *words: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    sentence = str(caught.value)
    assert sentence == sentence.strip()
    assert len(sentence.splitlines()) == 1, "the message is one line"
    for word in words:
        assert word in sentence


RIGID: dict[str, Any] = {"type": "rigid", "name": "crank", "mass": 1.0, "inertia": [1.0, 1.0, 1.0]}

BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown body": (
        changed("joints", 1, "parent", "crnk.end"),
        ("joint 'B'", "no body 'crnk'", "did you mean 'crank'?"),
    ),
    "unknown point": (
        changed("joints", 1, "parent", "crank.tip"),
        ("joint 'B'", "'crank' has no point 'tip'", "start", "centre", "end"),
    ),
    "unknown point of the ground": (
        changed("joints", 0, "parent", "ground.P"),
        ("joint 'A'", "'ground' has no point 'P'", "O"),
    ),
    "no point of the ground at all": (changed("ground", {}), ("joint 'A'", "'ground' has no point 'O'", "none")),
    "reference without a point": (changed("joints", 0, "parent", "ground"), ("'A'", "parent", "'ground'")),
    "joint within a body": (
        changed("joints", 1, "child", "crank.start"),
        ("joint 'B'", "'crank.end'", "'crank.start'", "same body"),
    ),
    "negative mass": (changed("bodies", 0, "mass", -2.5), ("'crank'", "mass is -2.5", "greater than 0")),
    "zero mass": (changed("bodies", 0, "mass", 0.0), ("'crank'", "mass is 0.0", "greater than 0")),
    "zero length": (changed("bodies", 1, "length", 0.0), ("'rod'", "length is 0.0", "greater than 0")),
    "negative axial inertia": (
        changed("bodies", 1, "axial_inertia", -1.0),
        ("'rod'", "axial_inertia is -1.0", "greater than or equal to 0"),
    ),
    "impossible inertia": (
        changed("bodies", 0, {"type": "rigid", "name": "crank", "mass": 1.0, "inertia": [1.0, 1.0, 2.5]}),
        ("'crank'", "(1.0, 1.0, 2.5)", "at most the sum"),
    ),
    "principal moment below zero": (
        changed("bodies", 0, {**RIGID, "inertia": [1.0, 1.0, 1.0], "products_of_inertia": [1.5, 0.0, 0.0]}),
        ("'crank'", "(1.5, 0.0, 0.0)", "principal moments are -0.5, 1, 2.5", "no principal moment may be negative"),
    ),
    "principal moment above the sum of the others": (
        changed("bodies", 0, {**RIGID, "inertia": [1.0, 1.0, 1.0], "products_of_inertia": [0.6, 0.0, 0.0]}),
        ("'crank'", "principal moments are 0.4, 1, 1.6", "at most the sum"),
    ),
    "inertia without mass": (
        changed("bodies", 0, {**RIGID, "mass": 0.0, "inertia": [1.0, 1.0, 1.0]}),
        ("'crank'", "mass is 0, but inertia is (1.0, 1.0, 1.0)", "a body without mass has no inertia"),
    ),
    "products of inertia of a point mass": (
        changed("bodies", 0, {**RIGID, "inertia": [0.0, 0.0, 0.0], "products_of_inertia": [1e-9, 0.0, 0.0]}),
        ("'crank'", "no principal moment may be negative"),
    ),
    "truth for a mass": (
        changed("bodies", 0, "mass", True),
        ("'crank'", "mass has the value true; it must be no truth"),
    ),
    "truth for a coordinate": (
        changed("ground", {"O": [0.0, False, 0.0]}),
        ("ground has the value false; it must be no truth value",),
    ),
    "huge whole number": (changed("bodies", 0, "mass", 10**400), ("'crank'", "mass is 1000", "a valid number")),
    "mass beyond all bounds": (
        changed("bodies", 0, "mass", 1e300),
        ("'crank'", "mass is 1e+300; its magnitude must be at most 1e+50"),
    ),
    "axis beyond all bounds": (
        changed("joints", 0, "axis", [0.0, 0.0, -1e300]),
        ("'A'", "axis[2] is -1e+300; its magnitude must be at most 1e+50"),
    ),
    "point beyond all bounds": (
        changed("ground", {"O": [1e51, 0.0, 0.0]}),
        ("ground.O[0] is 1e+51; its magnitude must be at most 1e+50",),
    ),
    "point named as the centre of mass": (
        changed("bodies", 0, {**RIGID, "points": {"centre": [1.0, 0.0, 0.0]}}),
        ("'crank'", "point 'centre'", "exists already on every RigidBody"),
    ),
    "point named as a variable": (
        changed("bodies", 0, {**RIGID, "points": {"force": [1.0, 0.0, 0.0]}}),
        ("'crank'", "'force'", "variable"),
    ),
    "misspelt field": (
        changed("bodies", 0, {"type": "beam", "name": "crank", "lenght": 1.0, "mass": 1.0}),
        ("'crank'", "there is no field lenght; did you mean 'length'?"),
    ),
    "share of no length": (
        changed(
            "bodies",
            0,
            {"type": "rigid", "name": "crank", "mass": 1, "inertia": [1, 1, 1], "points": {"end": {"along": 1}}},
        ),
        ("'crank'", "share", "no length"),
    ),
    "text for a mass": (changed("bodies", 0, "mass", "heavy"), ("'crank'", "mass is 'heavy'", "number")),
    "doubled body name": (changed("bodies", 1, "name", "crank"), ("'crank'", "more than one", "body")),
    "doubled joint name": (changed("joints", 1, "name", "A"), ("'A'", "more than one", "joint")),
    "force named as a body": (
        changed("forces", [{"type": "actuator", "name": "rod", "start": "ground.O", "end": "rod.end"}]),
        ("'rod'", "more than one", "body, force, constraint or sensor"),
    ),
    "body named ground": (changed("bodies", 1, "name", "ground"), ("'ground'", "fixed frame")),
    "reserved name": (changed("bodies", 1, "name", "energy"), ("'energy'", "reserved", "beam")),
    "point that every beam has": (
        changed("bodies", 1, "points", {"end": [0.0, 1.0, 0.0]}),
        ("'rod'", "point 'end'", "exists already"),
    ),
    "space in a body's name": (changed("bodies", 0, "name", "my crank"), ("'my crank'", "name")),
    "joint's name begins with a digit": (changed("joints", 0, "name", "1A"), ("'1A'", "name")),
    "empty name": (changed("bodies", 0, "name", ""), ("name is ''",)),
    "line break in a name": (changed("bodies", 0, "name", "crank\nrod"), ("name", "crank")),
    "line break after a name": (changed("bodies", 0, "name", "crank\n"), ("name", "crank")),
    "unknown joint type": (changed("joints", 1, "type", "hinge"), ("'hinge'", "revolute", "prismatic", "fixed")),
    "unknown body type": (changed("bodies", 1, "type", "bar"), ("'bar'", "rigid", "beam", "cuboid")),
    "unknown force type": (loaded(type="rope"), ("'rope'", "actuator", "spring-damper", "joint-drive")),
    "missing mass": (without("bodies", 0, "mass"), ("'crank'", "mass is missing")),
    "missing child": (without("joints", 1, "child"), ("'B'", "child is missing")),
    "missing name": (without("joints", 1, "name"), ("Revolute", "name is missing")),
    "unknown field": (changed("bodies", 0, "colour", "red"), ("'crank'", "no field colour", "mass", "length")),
    "NaN": (changed("bodies", 0, "mass", math.nan), ("'crank'", "mass is nan", "finite number")),
    "infinite": (changed("gravity", [0.0, -math.inf, 0.0]), ("gravity[1] is -inf", "finite number")),
    "NaN inside a vector": (changed("joints", 1, "axis", [0.0, 0.0, math.nan]), ("'B'", "axis[2] is nan", "finite")),
    "infinite start value": (changed("joints", 1, "angle", math.inf), ("'B'", "angle is inf", "finite")),
    "axis of length zero": (changed("joints", 0, "axis", [0, 0, 0]), ("'A'", "axis", "zero vector")),
    "axis of two components": (changed("joints", 0, "axis", [0.0, 1.0]), ("'A'", "axis[2] is missing")),
    "no bodies": (changed("bodies", []), ("at least one body",)),
    "loose body": (changed("joints", [hinge("A", "ground.O", "crank.start")]), ("body 'rod'", "not attached")),
    "body that hangs on cut joints only": (changed("joints", 1, "cut", True), ("body 'rod'", "not attached", "cut")),
    "bodies that hang on each other only": (
        changed("joints", [hinge("B", "crank.end", "rod.start")]),
        ("body 'crank'", "not attached to the ground"),
    ),
    "spring at an unknown body": (
        loaded(type="spring-damper", start="ground.O", end="bar.end"),
        ("spring-damper 'load'", "no body 'bar'", "ground, crank, rod"),
    ),
    "actuator at one body": (
        loaded(type="actuator", start="rod.start", end="rod.end"),
        ("actuator 'load'", "'rod.start'", "'rod.end'", "same body"),
    ),
    "negative stiffness": (
        loaded(type="spring-damper", start="ground.O", end="rod.end", stiffness=-1.0),
        ("'load'", "stiffness is -1.0", "greater than or equal to 0"),
    ),
    "drive of an unknown joint": (
        loaded(type="joint-drive", joint="Z"),
        ("joint-drive 'load'", "no joint 'Z'", "A, B"),
    ),
    "drive of a fixed joint": (
        {**changed("joints", 1, "type", "fixed"), "forces": [{"type": "joint-drive", "name": "load", "joint": "B"}]},
        ("joint-drive 'load'", "joint 'B' is fixed", "has none"),
    ),
    "drive of a coordinate that is not there": (
        loaded(type="joint-drive", joint="B.displacement"),
        ("joint-drive 'load'", "joint 'B' has no coordinate 'displacement'", "there are angle"),
    ),
}


UNIVERSAL = {"type": "universal", "name": "B", "parent": "crank.end", "child": "rod.start"}
PLANAR = {**UNIVERSAL, "type": "planar"}
SPHERICAL = {**UNIVERSAL, "type": "spherical"}
FREE = {**UNIVERSAL, "type": "free"}
CLOSING = {"name": "C", "parent": "rod.end", "child": "ground.O"}

BAD |= {
    "universal joint with axes that are not square": (
        changed("joints", 1, {**UNIVERSAL, "axis": [0, 0, 1], "second_axis": [0, 1, 0.5]}),
        ("'B'", "axis is (0.0, 0.0, 1.0)", "second_axis is (0.0, 1.0, 0.5)", "must be perpendicular"),
    ),
    "planar joint whose direction leaves its plane": (
        changed("joints", 1, {**PLANAR, "axis": [0, 0, 1], "direction": [1, 0, 0.1]}),
        ("'B'", "axis is (0.0, 0.0, 1.0)", "direction is (1.0, 0.0, 0.1)", "must be perpendicular"),
    ),
    "second angle of a spherical joint too large": (
        changed("joints", 1, {**SPHERICAL, "angles": [3.0, 1.3, 3.0]}),
        ("'B'", "second of angles is 1.3 rad", "between -1.2 and 1.2", "orientation"),
    ),
    "second angle of a free joint too small": (
        changed("joints", 1, {**FREE, "angles": [0.0, -1.21, 0.0]}),
        ("'B'", "second of angles is -1.21 rad", "between -1.2 and 1.2"),
    ),
    "free joint that is marked as cut": (
        with_joint({**FREE, **CLOSING, "cut": True}),
        ("joint 'C' is free and closes a loop", "leave it out"),
    ),
    "free joint that the tree leaves out": (
        with_joint({**FREE, "name": "C", "parent": "rod.end", "child": "crank.start"}),
        ("joint 'C' is free and closes a loop", "leave it out"),
    ),
}
LOADED_KINDS = ("cylindrical", "universal", "spherical", "planar", "free")
BAD |= {
    f"{load} on a {kind} joint": (
        {**changed("joints", 1, {**UNIVERSAL, "type": kind}), "forces": [{"type": load, "name": "load", "joint": "B"}]},
        (f"{load} 'load'", f"joint 'B' is {kind}", "has the coordinates", "say which"),
    )
    for kind in LOADED_KINDS
    for load in ("joint-drive", "joint-spring-damper")
}


@pytest.mark.parametrize("joint", [UNIVERSAL, PLANAR, {**SPHERICAL, "angles": [3.0, 1.2, 3.0]}, FREE])
def test_joints_of_several_coordinates_are_good(joint: dict[str, Any]) -> None:
    """What the others spoil; a second angle may be at its bound."""
    assert len(Mechanism.from_dict(changed("joints", 1, joint)).topology.tree[1].coordinates) > 1


def test_angles_that_numbers_do_not_resolve_are_refused() -> None:
    hinge = {"name": "O", "parent": "ground.O", "child": "link.start"}
    assert Revolute(**hinge, angle=-1e8).angle == -1e8
    with pytest.raises(DataError, match=r"starts at an angle of -1e\+20 rad; its magnitude must be at most 1e\+08 rad"):
        Revolute(**hinge, angle=-1e20)
    with pytest.raises(DataError, match=r"starts at an angle of 2e\+08 rad"):
        Universal(**hinge, angles=(0.0, 2e8), second_axis=(0.0, 1.0, 0.0))
    assert Prismatic(**hinge, displacement=1e20).displacement == 1e20


def test_the_model_that_the_others_spoil_is_good() -> None:
    assert Mechanism.from_dict(two_links()).topology.coordinates == 2
    assert set(CoupledModel.from_dict(coupled()).systems) == {"mechanism"}


@pytest.mark.parametrize("case", BAD)
def test_mechanism_is_refused(case: str) -> None:
    data, words = BAD[case]
    refused(lambda: Mechanism.from_dict(data).topology, *words)


@pytest.mark.parametrize("case", BAD)
def test_model_file_is_refused_in_the_same_words(case: str, tmp_path: Path) -> None:
    data, words = BAD[case]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(coupled(systems={"mechanism": data})))
    refused(lambda: CoupledModel.from_file(path).system(), *words)


@pytest.mark.parametrize("field", ["bodies", "joints"])
def test_mechanism_without_a_part_names_it(field: str) -> None:
    data = two_links()
    del data[field]
    refused(lambda: Mechanism.from_dict(data), "Mechanism", f"{field} is missing")


def test_of_two_faults_the_message_tells_one() -> None:
    data = changed("bodies", 0, "mass", -2.5)
    data["bodies"][1]["length"] = 0.0
    with pytest.raises(DataError) as caught:
        Mechanism.from_dict(data)
    assert "mass is -2.5" in str(caught.value)
    assert "length" not in str(caught.value)


def test_refusal_is_a_value_error_without_a_pydantic_one_behind() -> None:
    with pytest.raises(ValueError, match="mass is -1") as caught:
        Beam(name="crank", length=1.0, mass=-1.0)
    assert type(caught.value) is DataError
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Beam(name="crank", length=1.0), ("'crank'", "mass is missing")),
        (lambda: Beam(name="crank", length=1.0, mass=1.0, points={"end": (0, 0, 0)}), ("point 'end'", "Beam")),
        (lambda: Point(position=(0.0, math.nan, 0.0)), ("position[1] is nan", "finite")),
        (
            lambda: RigidBody(name="arm", mass=1.0, inertia=(1.0, 1.0, 1.0), centre=Point(along=0.5)),
            ("'arm'", "no length"),
        ),
        (lambda: Revolute(name="A", parent="ground.O", child="crank.start", axis=(0, 0, 0)), ("'A'", "zero vector")),
    ],
)
def test_objects_are_refused_as_json_is(make: Callable[[], Any], words: tuple[str, ...]) -> None:
    refused(make, *words)


def test_inertia_of_a_thin_plate_is_taken() -> None:
    """The bound itself, Jzz = Jxx + Jyy, is a flat body's."""
    assert RigidBody(name="plate", mass=1.0, inertia=(0.1, 0.2, 0.3)).inertia == (0.1, 0.2, 0.3)


@pytest.mark.parametrize("model", [Mechanism, CoupledModel])
@pytest.mark.parametrize("text", ['{"name": "machine",', "", "{'name': 'machine'}", "bodies: []"])
def test_broken_json_names_the_file_and_the_place(
    model: type[Mechanism | CoupledModel], text: str, tmp_path: Path
) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    refused(lambda: model.from_file(path), "machine.json is not a JSON file", "line 1")


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(b"\xff\xfe\x00")
    refused(lambda: Mechanism.from_file(path), "machine.json is not a JSON file")


@pytest.mark.parametrize("model", [Mechanism, CoupledModel])
@pytest.mark.parametrize("text", ["[1, 2]", "[]", '"machine"', "3", "null"])
def test_file_that_holds_no_object_is_refused(model: type[Mechanism | CoupledModel], text: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    refused(lambda: model.from_file(path), model.__name__, "not an object")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "recursion"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "recursion"),
        ('{"name": ' + "1" * 5000 + "}", "a number has thousands of digits"),
    ],
)
def test_file_that_no_reader_takes_names_the_file(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    refused(lambda: CoupledModel.from_file(path), "machine.json is not a JSON file", words)


def test_file_of_an_editor_that_marks_its_encoding_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(coupled()), encoding="utf-8-sig")
    assert CoupledModel.from_file(path) == CoupledModel.from_dict(coupled())


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        CoupledModel.from_file(tmp_path / "none.json")


@pytest.mark.parametrize("system", [{}, {"parts": []}, [], "circuit"])
def test_system_that_is_neither_is_refused(system: Any) -> None:
    refused(
        lambda: CoupledModel.from_dict(coupled(systems={"thing": system})),
        "thing",
        "'bodies' (a mechanism)",
        "'components' (a circuit)",
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "my machine"}, ("'my machine'", "name")),
        ({"systems": {}}, ("'machine'", "at least one system")),
        ({"systems": {"my mechanism": two_links()}}, ("'my mechanism'",)),
        ({"stop_time": 0.0}, ("'machine'", "stop_time is 0.0", "greater than 0")),
        ({"step": -1e-3}, ("'machine'", "step is -0.001", "greater than 0")),
        ({"step": math.inf}, ("'machine'", "step is inf", "finite")),
        ({"description": "a\x00b"}, ("'machine'", r"description is 'a\x00b'; a text has no control characters")),
        ({"author": "\ud800"}, ("'machine'", r"author is '\ud800'; a text has no control characters")),
        ({"stop_time": 1e60}, ("'machine'", "stop_time is 1e+60; its magnitude must be at most 1e+50")),
        ({"colour": "red"}, ("'machine'", "no field colour", "systems", "signals")),
        ({"connections": [["mechanism.crank.angle"]]}, ("'machine'", "connections[0][1] is missing")),
    ],
)
def test_coupled_model_is_refused(fields: dict[str, Any], words: tuple[str, ...]) -> None:
    refused(lambda: CoupledModel.from_dict(coupled(**fields)), *words)


@pytest.mark.parametrize("field", ["name", "systems"])
def test_coupled_model_without_a_part_names_it(field: str) -> None:
    data = coupled()
    del data[field]
    refused(lambda: CoupledModel.from_dict(data), "CoupledModel", f"{field} is missing")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("circuit.valve.command", ("'circuit.valve.command'", "no system", "mechanism")),
        ("motor.torque", ("'motor.torque'", "no system", "mechanism")),
        ("mechanism.brake.torque", ("'mechanism.brake.torque'", "no input", "mechanism.motor.torque")),
        ("mechanism.crank.angle", ("'mechanism.crank.angle'", "no input", "mechanism.motor.torque")),
    ],
)
def test_signal_that_drives_nothing_is_refused(target: str, words: tuple[str, ...]) -> None:
    mechanism = {**two_links(), "forces": [{"type": "joint-drive", "name": "motor", "joint": "A"}]}
    data = coupled(systems={"mechanism": mechanism})
    good = {**data, "signals": {"mechanism.motor.torque": STEPS}}
    CoupledModel.from_dict(good).simulation()
    refused(lambda: CoupledModel.from_dict({**data, "signals": {target: STEPS}}).simulation(), *words)


def test_signal_of_unknown_type_is_refused() -> None:
    signals = {"mechanism.motor.torque": {"type": "square", "times": [0.0], "values": [1.0]}}
    refused(lambda: CoupledModel.from_dict(coupled(signals=signals)), "'square'", "steps", "linear", "sine")


@pytest.mark.parametrize(
    ("connection", "words"),
    [
        (("mechanism.crank.speed", "mechanism.motor.torque"), ("no output 'mechanism.crank.speed'", "crank.angle")),
        (("mechanism.crank.angle", "engine.torque"), ("'engine.torque'", "no system", "mechanism")),
    ],
)
def test_connection_of_what_is_not_there_is_refused(connection: tuple[str, str], words: tuple[str, ...]) -> None:
    refused(lambda: CoupledModel.from_dict(coupled(connections=[connection])).system(), *words)


def test_what_stands_twice_in_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "double.json"
    path.write_text('{"name": "a", "name": "b"}')
    with pytest.raises(DataError, match=r"^'name' is there twice in one object of the file$"):
        CoupledModel.from_file(path)


def test_wrong_type_is_told_without_the_whole_object() -> None:
    with pytest.raises(DataError) as caught:
        CoupledModel.from_dict({"name": "m", "systems": {"thing": {"name": "x" * 500}}})
    assert str(caught.value).startswith("CoupledModel 'm': systems.thing")
    assert len(str(caught.value)) < 130
