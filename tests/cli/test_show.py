"""What `mbsfmu show` tells of models: parts, how they hang together, how they may move."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
from ended_calls import Ended

import mbsfmu
from mbsfmu.models import built_in

EXAMPLES = ("excavator", "stewart_platform")


@pytest.mark.parametrize(
    ("name", "mechanism", "freedom", "redundant"),
    [
        # in the plane, by Grübler: 3 for each moving body, less 2 for each hinge; z and two tilts of a loop follow
        ("four-bar", "mechanism", 3 * 3 - 2 * 4, 3),
        ("quick-return", "mechanism", 3 * 5 - 2 * 7, 6),
        ("loop-8", "mechanism", 3 * 8 - 2 * 9, 3),
        ("double-loop-8", "mechanism", 3 * 8 - 2 * 10, 6),
        ("pendulum-3", "mechanism", 3, 0),
        # moves though by Kutzbach it has 6 · 3 − 5 · 4 = −2 [Bennett 1903]
        ("bennett", "mechanism", 1, 3),
        ("excavator", "machine", 4, 3),  # slew, boom, stick, bucket
        ("stewart_platform", "platform", 6, 0),
    ],
)
def test_degrees_of_freedom_are_those_of_the_machine(name: str, mechanism: str, freedom: int, redundant: int) -> None:
    model = getattr(importlib.import_module(name), name)() if name in EXAMPLES else built_in(name)
    told = mbsfmu.overview(model)["freedom"][mechanism]
    assert told["degrees_of_freedom"] == freedom
    assert len(told["redundant_equations"]) == redundant
    assert told["coordinates"] - told["loop_equations"] + redundant == freedom


def test_a_planar_loop_has_its_equations_out_of_the_plane_redundant() -> None:
    told = mbsfmu.overview(mbsfmu.models.four_bar())["freedom"]["mechanism"]
    assert told["redundant_equations"] == ["E (z)", "E (tilt 1)", "E (tilt 2)"]


def test_a_loop_that_cannot_be_closed_is_told() -> None:
    model = mbsfmu.models.four_bar()
    mechanism = model.systems["mechanism"]
    short = tuple(
        body.model_copy(update={"length": 50.0}) if body.name == "link" else body for body in mechanism.bodies
    )
    systems = {**model.systems, "mechanism": mechanism.model_copy(update={"bodies": short})}
    told = mbsfmu.overview(model.model_copy(update={"systems": systems}))["freedom"]["mechanism"]
    assert "degrees_of_freedom" not in told
    assert "cannot be assembled: from the given start values the loops come no closer than" in told["problem"]


@pytest.mark.parametrize("name", ["four-bar", "slewing-four-bar", "ladder-2"])
def test_coordinates_in_the_tree_are_variables(name: str) -> None:
    model = built_in(name)
    told = mbsfmu.overview(model)
    tree = [coordinate for each in told["topology"]["mechanism"]["tree"] for coordinate in each["coordinates"]]
    assert len(tree) == told["freedom"]["mechanism"]["coordinates"]
    assert {f"mechanism.{each}" for each in tree} <= {each["name"] for each in told["variables"]}
    assert all(model.simulation(compiled=False).get(each) is not None for each in tree)


def test_blocks_are_systems_among_others() -> None:
    data = mbsfmu.models.pendulum(1).to_dict()
    data["systems"]["controller"] = {"type": "pid-controller", "proportional": 1.0}
    told = mbsfmu.overview(mbsfmu.CoupledModel.from_dict(data))
    assert list(told["systems"]) == ["mechanism", "controller"]
    assert told["systems"]["controller"] == {"blocks": ["controller"]}
    assert told["systems"]["mechanism"]["bodies"] == ["link_1"]


def test_topology_is_that_of_the_drawing() -> None:
    told = mbsfmu.overview(mbsfmu.models.four_bar())
    tree = told["topology"]["mechanism"]["tree"]
    assert [(each["body"], each["hangs_on"], each["joint"]) for each in tree] == [
        ("boom", "ground", "O"), ("link", "boom", "C"), ("rocker", "link", "D"),
    ]  # fmt: skip
    assert tree[0]["coordinates"] == ["boom.angle"]
    assert [each["joint"] for each in told["topology"]["mechanism"]["cuts"]] == ["E"]
    nodes = told["topology"]["circuit"]["nodes"]
    assert {node for node, each in nodes.items() if each["pressure"] == "state"} == {"V1", "V2", "V3"}
    ports = [port for each in nodes.values() for port in each["ports"]]
    assert len(ports) == len(set(ports))
    components = {port.partition(".")[0] for port in ports}
    assert components == {each["name"] for each in told["parts"] if each["among"] == "components"}


def test_parameters_that_may_change_say_so() -> None:
    """Settings of valves and damping may, lengths and masses may not; so do the FMUs that are exported."""
    model = mbsfmu.models.four_bar()
    described = {each["name"]: each for each in mbsfmu.overview(model)["variables"]}
    assert described["mechanism.boom.mass"]["tunable"] is False
    simulation = model.simulation(compiled=False)
    tunable = {each.name for each in simulation.variables if each.variability == "tunable"}
    named = simulation.exposed.by_system
    told = {named.get(name, name) for name, each in described.items() if each.get("tunable")}
    assert told
    assert told == tunable - {"solver.step"}
    assert {each["kind"] for each in described.values()} == {
        "input",
        "output",
        "parameter",
        "local",
        "state",
        "reaction",
    }


def test_tables_list_parts_and_what_hangs_on_what(in_process: Callable[..., Ended]) -> None:
    plain, contents = (in_process("show", "four-bar", *more) for more in ((), ("--contents",)))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in plain.stdout.splitlines()]
    for row in (
        ["mechanism", "joints", "O, C, D, E"],
        ["mechanism", "3", "5", "1", "3: E (z), E (tilt 1), E (tilt 2)"],
        ["circuit.cylinder.force", "mechanism.cylinder.force"],
        ["mechanism.cylinder.length", "circuit.cylinder.length"],
        ["circuit.valve.command", "steps", "1, 2.5, 5, 8"],
    ):
        assert row in rows
    for words in ("hangs on", "joints of mechanism that close loops", "nodes of circuit", "mass: 225"):
        assert words in contents.stdout
        assert words not in plain.stdout
