"""The spanning tree of a mechanism, its cut joints, and mechanisms through JSON and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.model import Beam, Body, Cuboid, Mechanism, Point, RigidBody, Topology, along
from mbsfmu.parts import Actuator, Fixed, JointDrive, JointSpringDamper, Prismatic, Revolute, SpringDamper

AnyJoint = Revolute | Prismatic | Fixed


def place(body: str) -> str:
    return "ground.O" if body == "ground" else f"{body}.centre"


def hinge(name: str, parent: str, child: str, cut: bool = False) -> Revolute:
    return Revolute(name=name, parent=place(parent), child=place(child), cut=cut)


def mechanism(bodies: Sequence[str], *joints: AnyJoint) -> Mechanism:
    return Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=tuple(Cuboid(name=name, length=1.0, mass=1.0) for name in bodies),
        joints=joints,
    )


def order(topology: Topology) -> list[str]:
    return [body.name for body in topology.bodies]


def parents(topology: Topology) -> dict[str, str]:
    """The name of the body that each body hangs on."""
    names = [*order(topology), "ground"]  # -1, the last, is the ground
    return {body.name: names[joint.parent] for body, joint in zip(topology.bodies, topology.tree, strict=True)}


def joints_of(topology: Topology) -> list[str]:
    return [joint.joint.name for joint in topology.tree]


def cuts(topology: Topology) -> list[str]:
    return [joint.name for joint in topology.cuts]


def depths(topology: Topology) -> list[int]:
    found: list[int] = []
    for joint in topology.tree:
        found.append(1 if joint.parent == -1 else found[joint.parent] + 1)
    return found


def test_chain_is_ordered_outwards_whatever_order_it_is_given_in() -> None:
    topology = mechanism(
        ["c", "a", "b"], hinge("C", "b", "c"), hinge("B", "a", "b"), hinge("A", "ground", "a")
    ).topology
    assert order(topology) == ["a", "b", "c"]
    assert joints_of(topology) == ["A", "B", "C"]
    assert [joint.parent for joint in topology.tree] == [-1, 0, 1]
    assert [joint.coordinates for joint in topology.tree] == [(0,), (1,), (2,)]
    assert not any(joint.reversed for joint in topology.tree)
    assert topology.cuts == ()


def test_joint_whose_child_is_nearer_to_the_ground_is_reversed() -> None:
    topology = mechanism(["a", "b"], hinge("A", "a", "ground"), hinge("B", "a", "b")).topology
    assert parents(topology) == {"a": "ground", "b": "a"}
    assert [joint.reversed for joint in topology.tree] == [True, False]


def test_tree_branches_at_the_ground_and_at_a_body() -> None:
    """ground - trunk - (left - leaf, right), ground - other."""
    topology = mechanism(
        ["leaf", "trunk", "left", "right", "other"],
        hinge("T", "ground", "trunk"),
        hinge("L", "trunk", "left"),
        hinge("R", "right", "trunk"),
        hinge("E", "left", "leaf"),
        hinge("O", "ground", "other"),
    ).topology
    on_trunk = {"left": "trunk", "right": "trunk"}
    assert parents(topology) == {"trunk": "ground", "other": "ground", **on_trunk, "leaf": "left"}
    assert order(topology) == ["trunk", "other", "left", "right", "leaf"]  # breadth first, joints as given
    assert {joint.joint.name for joint in topology.tree if joint.reversed} == {"R"}
    assert topology.cuts == ()


def test_fixed_joint_has_no_coordinate() -> None:
    weld = Fixed(name="B", parent=place("a"), child=place("b"))
    slide = Prismatic(name="C", parent=place("b"), child=place("c"))
    topology = mechanism(["a", "b", "c"], hinge("A", "ground", "a"), weld, slide).topology
    assert [joint.coordinates for joint in topology.tree] == [(0,), (), (1,)]
    assert topology.coordinates == 2
    assert [joint.parent for joint in topology.tree] == [-1, 0, 1]


def test_welded_mechanism_has_no_coordinate_at_all() -> None:
    topology = mechanism(["a"], Fixed(name="A", parent=place("a"), child=place("ground"))).topology
    assert topology.coordinates == 0
    assert topology.tree[0].reversed


def four_bar(*names: str, cut: str = "") -> Topology:
    """Crank, coupler and rocker on the ground, with the four hinges in the given order."""
    ends = {"A": ("ground", "crank"), "B": ("crank", "coupler"), "C": ("coupler", "rocker"), "D": ("rocker", "ground")}
    joints = (hinge(name, *ends[name], cut=name == cut) for name in names)
    return mechanism(["crank", "coupler", "rocker"], *joints).topology


@pytest.mark.parametrize(
    ("names", "cut", "coupler_hangs_on"),
    [("ABCD", "C", "crank"), ("DCBA", "B", "rocker"), ("BCAD", "C", "crank"), ("CBDA", "B", "rocker")],
)
def test_loop_is_cut_on_the_far_side_of_the_first_branch(names: str, cut: str, coupler_hangs_on: str) -> None:
    """No joint is marked: crank and rocker stand on the ground, and the one attached first takes the coupler."""
    topology = four_bar(*names)
    assert cuts(topology) == [cut]
    assert parents(topology) == {"crank": "ground", "rocker": "ground", "coupler": coupler_hangs_on}
    assert topology.coordinates == 3
    assert topology.tree[topology.index("rocker")].reversed  # D is given from the rocker to the ground


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("A", {"rocker": "ground", "coupler": "rocker", "crank": "coupler"}),
        ("B", {"crank": "ground", "rocker": "ground", "coupler": "rocker"}),
        ("C", {"crank": "ground", "rocker": "ground", "coupler": "crank"}),
        ("D", {"crank": "ground", "coupler": "crank", "rocker": "coupler"}),
    ],
)
def test_loop_is_cut_where_it_is_marked(cut: str, expected: dict[str, str]) -> None:
    topology = four_bar("A", "B", "C", "D", cut=cut)
    assert cuts(topology) == [cut]
    assert parents(topology) == expected


def test_cutting_at_the_first_hinge_reverses_the_rest() -> None:
    """All hinges run from the crank's side; seen from the rocker's foot they run backwards."""
    assert [joint.reversed for joint in four_bar("A", "B", "C", "D", cut="A").tree] == [True, True, True]
    assert [joint.reversed for joint in four_bar("A", "B", "C", "D", cut="D").tree] == [False, False, False]


def test_of_two_joints_between_the_same_bodies_the_second_is_cut() -> None:
    weld = Fixed(name="A2", parent=place("a"), child=place("ground"))
    topology = mechanism(["a"], hinge("A1", "ground", "a"), weld).topology
    assert joints_of(topology) == ["A1"]
    assert topology.cuts == (weld,)


def test_cut_joints_stand_in_the_order_they_are_given() -> None:
    topology = mechanism(
        ["a", "b"],
        hinge("extra", "ground", "a", cut=True),
        hinge("A", "ground", "a"),
        hinge("loop", "a", "b"),
        hinge("B", "ground", "b"),
        hinge("last", "ground", "b", cut=True),
    ).topology
    assert cuts(topology) == ["extra", "loop", "last"]
    assert joints_of(topology) == ["A", "B"]


def test_bodies_and_joints_are_found_by_name() -> None:
    topology = four_bar("A", "B", "C", "D")
    assert topology.index("ground") == -1
    for index, body in enumerate(topology.bodies):
        assert topology.index(body.name) == index
    assert topology.body_of_joint("A") == topology.index("crank")
    assert topology.body_of_joint("B") == topology.index("coupler")
    assert topology.body_of_joint("D") == topology.index("rocker")
    assert topology.body_of_joint("C") is None


@dataclass(frozen=True)
class RandomGraph:
    """Bodies, and joints as (inner, outer, whether the joint's data runs inwards); the first ones are a tree."""

    bodies: tuple[str, ...]
    tree: tuple[tuple[str, str, bool], ...]
    extra: tuple[tuple[str, str, bool], ...]

    @property
    def joints(self) -> list[Revolute]:
        return [
            hinge(f"J{index}", outer, inner) if inwards else hinge(f"J{index}", inner, outer)
            for index, (inner, outer, inwards) in enumerate((*self.tree, *self.extra))
        ]


@st.composite
def graphs(draw: st.DrawFn, loops: int = 0) -> RandomGraph:
    size = draw(st.integers(1, 8))
    bodies = tuple(f"b{index}" for index in range(size))
    tree = []
    for index, body in enumerate(bodies):
        inner = draw(st.integers(-1, index - 1))
        tree.append(("ground" if inner < 0 else bodies[inner], body, draw(st.booleans())))
    ends = st.tuples(st.sampled_from(("ground", *bodies)), st.sampled_from(bodies)).filter(lambda two: two[0] != two[1])
    extra = draw(st.lists(ends, max_size=loops))
    return RandomGraph(bodies, tuple(tree), tuple((*two, draw(st.booleans())) for two in extra))


def distances(graph: RandomGraph) -> dict[str, int]:
    """The least number of joints between each body and the ground, by relaxing until nothing gets nearer."""
    found = {"ground": 0, **dict.fromkeys(graph.bodies, 1000)}
    for _ in graph.bodies:
        for one, other, _ in (*graph.tree, *graph.extra):
            found[one] = min(found[one], found[other] + 1)
            found[other] = min(found[other], found[one] + 1)
    return found


@given(graphs(), st.randoms(use_true_random=False))
def test_tree_is_found_in_any_order(graph: RandomGraph, random: Random) -> None:
    joints, bodies = graph.joints, list(graph.bodies)
    random.shuffle(joints)
    random.shuffle(bodies)
    topology = mechanism(bodies, *joints).topology
    assert parents(topology) == {outer: inner for inner, outer, _ in graph.tree}
    assert {body.name: joint.reversed for body, joint in zip(topology.bodies, topology.tree, strict=True)} == {
        outer: inwards for _, outer, inwards in graph.tree
    }
    assert topology.cuts == ()


@given(graphs(loops=5), st.randoms(use_true_random=False))
def test_every_graph_gives_a_shortest_tree_and_its_cuts(graph: RandomGraph, random: Random) -> None:
    joints = graph.joints
    random.shuffle(joints)
    topology = mechanism(graph.bodies, *joints).topology
    assert sorted(order(topology)) == sorted(graph.bodies)
    assert sorted(joints_of(topology) + cuts(topology)) == sorted(joint.name for joint in joints)
    assert len(topology.cuts) == len(graph.extra)
    assert all(joint.parent < index for index, joint in enumerate(topology.tree))
    assert depths(topology) == sorted(depths(topology))
    distance = distances(graph)
    assert depths(topology) == [distance[name] for name in order(topology)]
    assert [joint.coordinates for joint in topology.tree] == [(index,) for index in range(len(graph.bodies))]


@given(graphs(loops=4))
def test_marking_the_joints_that_are_cut_anyway_changes_nothing(graph: RandomGraph) -> None:
    chosen = mechanism(graph.bodies, *graph.joints).topology
    marked = [joint.model_copy(update={"cut": joint.name in cuts(chosen)}) for joint in graph.joints]
    again = mechanism(graph.bodies, *marked).topology
    assert (parents(again), joints_of(again), cuts(again)) == (parents(chosen), joints_of(chosen), cuts(chosen))


# -- JSON ---------------------------------------------------------------------------------------------------


def everything() -> Mechanism:
    """One of each kind of part, with fields that are not at their defaults."""
    arm = RigidBody(
        name="arm",
        mass=4.0,
        inertia=(0.1, 0.2, 0.25),
        products_of_inertia=(0.01, -0.02, 0.0),
        centre=Point(position=(0.0, 0.1, 0.0), along=0.5),
        length=2.0,
        points={"tip": along(1.0), "eye": Point(position=(1 / 3, 0.0, 1e-300))},
    )
    bodies: tuple[Body, ...] = (
        arm,
        Beam(name="rod", length=1.0, mass=1.0, axial_inertia=1e-3),
        Cuboid(name="slider", length=0.1, mass=2.0, points={"eye": Point(position=(0.05, 0.0, 0.0))}),
        RigidBody(name="plate", mass=1.0, inertia=(1.0, 1.0, 2.0)),
    )
    return Mechanism(
        name="all_of_it",
        gravity=(0.0, 0.0, -1.62),
        ground={"O": (0.0, 0.0, 0.0), "P": (1.0, -2.0, 3.0)},
        bodies=bodies,
        joints=(
            Revolute(
                name="A", parent="ground.O", child="arm.origin", axis=(1.0, 1.0, 0.0), angle=0.1, angular_velocity=-3
            ),
            Revolute(name="B", parent="rod.start", child="arm.tip", orientation=(0.0, 0.3, 0.0)),
            Prismatic(name="C", parent="ground.P", child="slider.centre", displacement=-0.5, velocity=0.25),
            Fixed(name="D", parent="slider.eye", child="plate.origin"),
            Revolute(name="E", parent="slider.centre", child="rod.end", cut=True),
        ),
        forces=(
            Actuator(name="cylinder", start="ground.P", end="arm.eye"),
            SpringDamper(name="spring", start="ground.O", end="rod.centre", stiffness=1e4, damping=2, free_length=0.7),
            JointSpringDamper(name="buffer", joint="C", stiffness=10.0, free_coordinate=-0.1),
            JointDrive(name="motor", joint="A"),
        ),
    )


def test_mechanism_goes_through_a_file_and_back(tmp_path: Path) -> None:
    before = everything()
    before.to_file(tmp_path / "mechanism.json")
    after = Mechanism.from_file(tmp_path / "mechanism.json")
    assert after == before
    assert [type(part) for part in (*after.bodies, *after.joints, *after.forces)] == [
        type(part) for part in (*before.bodies, *before.joints, *before.forces)
    ]
    assert after.topology == before.topology
    assert [path.name for path in tmp_path.iterdir()] == ["mechanism.json"]


def test_file_says_what_the_mechanism_is(tmp_path: Path) -> None:
    everything().to_file(tmp_path / "mechanism.json")
    data = json.loads((tmp_path / "mechanism.json").read_text())
    assert [body["type"] for body in data["bodies"]] == ["rigid", "beam", "cuboid", "rigid"]
    assert data["bodies"][0]["points"]["eye"]["position"] == [1 / 3, 0.0, 1e-300]
    assert data["joints"][4]["cut"] is True
    assert data["gravity"] == [0.0, 0.0, -1.62]


def test_fields_left_out_of_a_file_have_their_defaults(tmp_path: Path) -> None:
    data = {
        "bodies": [{"type": "cuboid", "name": "box", "length": 1, "mass": 1}],
        "ground": {"O": [0, 0, 0]},
        "joints": [{"type": "revolute", "name": "A", "parent": "ground.O", "child": "box.centre"}],
    }
    (tmp_path / "mechanism.json").write_text(json.dumps(data))
    expected = Mechanism(
        gravity=(0.0, -9.81, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Cuboid(name="box", length=1.0, mass=1.0),),
        joints=(Revolute(name="A", parent="ground.O", child="box.centre", axis=(0.0, 0.0, 1.0), cut=False),),
    )
    assert Mechanism.from_file(tmp_path / "mechanism.json") == expected


@given(graphs(loops=3), st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_any_mechanism_survives_json_to_the_last_bit(graph: RandomGraph, numbers: list[float]) -> None:
    joints = [joint.model_copy(update={"angle": numbers[0]}) for joint in graph.joints]
    before = mechanism(graph.bodies, *joints).model_copy(update={"gravity": tuple(numbers[1:])})
    after = Mechanism.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert after.topology == before.topology
