"""A joint closes a loop as it holds in the tree, never turned over by half a turn, which its equations also fulfil."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import cache
from math import atan2, cos, dist, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchange import Host
from importer import Importer
from scipy.spatial.transform import Rotation

import mbsfmu
from mbsfmu import (
    CoupledModel,
    Cylindrical,
    Fixed,
    Free,
    InputError,
    Joint,
    JointSensor,
    Mechanism,
    Planar,
    PointSensor,
    Prismatic,
    Result,
    Revolute,
    RigidBody,
    Spherical,
    Universal,
)
from mbsfmu.compiling.compiler import has_compiler

sys.path.insert(0, str(Path(__file__).parents[1] / "extending"))
from screw import Screw

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
AXIS, ACROSS = (0.6, 0.0, 0.8), (0.0, 1.0, 0.0)
TURNED, PITCH, EYE_OF_C = (0.3, -0.5, 0.4), 0.05, (0.1, 0.0, 0.2)
KINDS: dict[str, tuple[type[Joint], dict[str, Any], dict[str, Any]]] = {
    "fixed": (Fixed, {}, {}),
    "prismatic": (Prismatic, {"axis": AXIS}, {"displacement": 0.3}),
    "revolute": (Revolute, {"axis": AXIS}, {"angle": 0.7}),
    "cylindrical": (Cylindrical, {"axis": AXIS}, {"displacement": 0.3, "angle": 0.7}),
    "planar": (Planar, {"axis": AXIS, "direction": ACROSS}, {"displacements": (0.3, -0.2), "angle": 0.7}),
    "universal": (Universal, {"axis": AXIS, "second_axis": ACROSS}, {"angles": (0.7, -2.4)}),
    "spherical": (Spherical, {}, {"angles": (0.7, 0.5, -2.0)}),
    "screw": (Screw, {"axis": AXIS, "pitch": PITCH}, {"angle": 0.7}),
}
"""Class, data, and start values in the tree."""


def machine(*joints: Joint, measured: Joint) -> CoupledModel:
    """Body b on a spinning pin, and body c on b by the joints."""
    pin = Revolute(name="pin", parent="ground.O", child="b.origin", axis=(0.2, 1.0, 0.1), angular_velocity=2.0)
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="b", mass=1.0, inertia=(0.1, 0.12, 0.14), points={"end": (0.4, 0.1, -0.2)}),
            RigidBody(name="c", mass=2.0, inertia=(0.1, 0.2, 0.15), centre=(0.5, 0.2, 0.1), points={"eye": EYE_OF_C}),
        ),
        joints=(pin, *joints),
        sensors=(
            PointSensor(name="centre", point="c.centre", measures=("position", "acceleration")),
            *(
                JointSensor(name=f"measured_{index}", joint=f"w.{name}")
                for index, name in enumerate(measured.coordinate_names)
            ),
        ),
    )  # fmt: skip
    return CoupledModel(name="machine", systems={"mechanism": mechanism}, step=1e-3)


def joint(kind: str, *, cut: bool = False, **starts: Any) -> Joint:
    made, data, _ = KINDS[kind]
    return made(name="w", parent="b.end", child="c.eye", orientation=TURNED, cut=cut, **data, **starts)


def turned_over(kind: str, half: float, about: tuple[float, float, float]) -> CoupledModel:
    """Joint w closes the loop of a body that starts turned by about half a turn from where w would hold it."""
    made, data, starts = KINDS[kind]
    rotation, place = Rotation.identity(), np.zeros(3)
    for element in made(name="w", parent="b.end", child="c.eye", **data, **starts).elements:
        axis = np.array(element.axis) / np.linalg.norm(element.axis)
        place = place + rotation.apply(axis) * (element.start if element.slides else element.pitch * element.start)
        rotation = rotation if element.slides else rotation * Rotation.from_rotvec(axis * element.start)
    over = Rotation.from_rotvec(half * np.array(about) / np.linalg.norm(about))
    turned = over * rotation * Rotation.from_rotvec(TURNED)
    guide = Free(
        name="guide",
        parent="b.end",
        child="c.eye",
        displacement=tuple(place.tolist()),
        orientation=tuple(turned.as_rotvec().tolist()),
    )
    return machine(guide, joint(kind, cut=True), measured=joint(kind))


def measured(result: Result, kind: str) -> dict[str, Any]:
    """Return the start values of the joint where a run has begun, as data of the joint in the tree."""
    names, starts = joint(kind).coordinate_names, KINDS[kind][2]
    found = iter(float(result[f"measured_{index}.coordinate"][0]) for index in range(len(names)))
    return {
        name: tuple(next(found) for _ in value) if isinstance(value, tuple) else next(found)
        for name, value in starts.items()
    }


@cache
def in_the_tree(kind: str, *starts: tuple[str, Any]) -> Result:
    held = joint(kind, **dict(starts))
    simulation = machine(held, measured=held).simulation(solver="rodas5p", relative_tolerance=1e-8, compiled=False)
    return simulation.run(0.1)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_closes_a_loop_as_it_holds_in_the_tree(kind: str, formulation: str) -> None:
    """The machine moves as that with the joint in the tree, which starts where the loop has been closed."""
    for half, about in ((pi, (0.8, 0.0, -0.6)), (2.6, (0.3, 0.9, -0.4))):
        result = turned_over(kind, half, about).simulation(formulation=formulation, compiled=False).run(0.1)
        starts = measured(result, kind)
        reference = in_the_tree(kind, *starts.items())
        for axis in "xyz":
            for name in (f"centre.position.{axis}", f"centre.acceleration.{axis}"):
                assert result[name][0] == pytest.approx(reference[name][0], abs=1e-9)
                assert result[name][-1] == pytest.approx(reference[name][-1], abs=2e-5)


WELDED = -2.0 * 9.81 * 0.5 / (0.1 + 0.1 + 2.0 * (0.5**2 + 0.2**2))
"""Angular acceleration in rad/s² of both bodies as one about their hinge, -m g x / J; x is of the centre of c."""


def welded(
    start: float, *, order: tuple[str, ...] = ("j", "k", "w"), cut: str = "", held: Joint | None = None
) -> CoupledModel:
    """Return two bodies on a hinge j: c is on b by an assembly hinge k, and by w, which lets k be turned nowhere."""
    joints: dict[str, Joint] = {
        "j": Revolute(name="j", parent="ground.O", child="b.origin"),
        "k": held or Revolute(name="k", parent="b.origin", child="c.origin", angle=start, cut=cut == "k"),
        "w": Fixed(name="w", parent="b.origin", child="c.origin", cut=cut == "w"),
    }
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            RigidBody(name="b", mass=1.0, inertia=(0.1, 0.1, 0.1)),
            RigidBody(name="c", mass=2.0, inertia=(0.1, 0.1, 0.1), centre=(0.5, 0.2, 0.1)),
        ),
        joints=tuple(joints[name] for name in order),
    )
    return CoupledModel(name="welded", systems={"mechanism": mechanism})


@pytest.mark.parametrize("order", [("j", "k", "w"), ("w", "k", "j"), ("k", "w", "j")])
def test_the_order_of_joints_does_not_decide(order: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    """Whichever of them closes the loop: the machine is the same, and the start of k is warned of."""
    for start in (0.4, 2.8, pi, -pi, 4.0):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            result = welded(start, order=order).simulation(compiled=False).run(0.001)
        assert result["b.angular_acceleration"][0] == pytest.approx(WELDED, rel=1e-9)
        assert "angle starts at " in caplog.text
        assert f" instead of {start:.6g} rad" in caplog.text


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_fmus_close_loops_as_joints_hold(tmp_path: Path, formulation: str) -> None:
    """The start is set in the FMU, which closes its loop from there: exactly half a turn away, and less."""
    options: dict[str, Any] = {"layout": "monolithic", "formulation": formulation}
    (path,) = mbsfmu.export(welded(0.0, cut="w"), tmp_path, **options)
    importer = Importer(path, tmp_path / "unpacked")
    for start in (pi, 2.8, -2.8):
        slave = importer.running(**{"c.angle_start": start})
        assert importer.get(slave, "b.angular_acceleration") == pytest.approx(WELDED, rel=1e-9)
        assert "c.angle starts at " in importer.messages[-1][1]


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_steps_that_turn_a_joint_over_are_refused(tmp_path: Path) -> None:
    """The solver of a host sets states that close the loop with the weld turned by half a turn."""
    (path,) = mbsfmu.export(welded(0.0, cut="w"), tmp_path, layout="monolithic", formulation="dca", kind="me")
    host = Host(path, tmp_path / "unpacked")
    host.begin()
    point = host.point
    assert not host.complete()
    point[host.states.index("c.angle")] += pi
    host.go(0.0, point)
    with pytest.raises(Exception, match="failed"):
        host.complete()
    assert "joint w (orientation) is turned by half a turn" in host.messages[-1]


def test_half_a_turn_that_cannot_be_undone_is_refused() -> None:
    """A slide holds body c as it is, half a turn from what the closing joint is for."""
    slide = Prismatic(name="k", parent="b.origin", child="c.origin", orientation=(0.0, pi, 0.0))
    with pytest.raises(InputError, match=r"only with joint w \(orientation\) turned by half a turn .* by pi"):
        welded(0.0, cut="w", held=slide).simulation(compiled=False)


BOOM, FOOT = 0.5, (0.3, -0.6)
EYE = (1.2 * cos(BOOM), 1.2 * sin(BOOM))
ALONG, LENGTH = atan2(EYE[1] - FOOT[1], EYE[0] - FOOT[0]), dist(EYE, FOOT)


def cylinder(orientation: float, *, slides_in_tree: bool) -> CoupledModel:
    """Return a boom on a cylinder of two bodies, whose rod's frame looks towards the barrel."""
    turned = (0.0, 0.0, orientation)
    slide = Prismatic(name="slide", parent="barrel.origin", child="rod.origin", orientation=turned, displacement=LENGTH)
    pin = Revolute(name="pin", parent="boom.eye", child="rod.origin", angle=ALONG + pi - BOOM)
    boom = {"mass": 100.0, "inertia": (5.0, 30.0, 30.0), "centre": (1.0, 0.0, 0.0), "points": {"eye": (1.2, 0.0, 0.0)}}
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "G": (*FOOT, 0.0)},
        bodies=(
            RigidBody(name="boom", **boom),
            RigidBody(name="barrel", mass=40.0, inertia=(1.0, 3.0, 3.0), centre=(0.3, 0.0, 0.0)),
            RigidBody(name="rod", mass=30.0, inertia=(1.0, 2.0, 2.0), centre=(0.3, 0.05, 0.0)),
        ),
        joints=(
            Revolute(name="h", parent="ground.O", child="boom.origin", angle=BOOM),
            Revolute(name="g", parent="ground.G", child="barrel.origin", angle=ALONG),
            *((slide, pin) if slides_in_tree else (pin, slide)),
        ),
        sensors=(PointSensor(name="rod_centre", point="rod.centre", measures=("position",)),),
    )
    return CoupledModel(name="cylinder", systems={"mechanism": mechanism}, step=1e-3)


@pytest.mark.parametrize("orientation", [0.0, pi])
def test_a_rod_is_where_its_slide_turns_it(orientation: float) -> None:
    """Boom and barrel stay; the rod's centre lies 0.3 m from the boom's eye, away from the barrel or towards it."""
    centre = Rotation.from_euler("z", ALONG + orientation).apply((0.3, 0.05, 0.0)) + np.array((*EYE, 0.0))
    ends = []
    for slides_in_tree in (True, False):
        result = cylinder(orientation, slides_in_tree=slides_in_tree).simulation(compiled=False).run(0.3)
        assert [result[f"rod_centre.position.{axis}"][0] for axis in "xyz"] == pytest.approx(centre.tolist(), abs=1e-9)
        ends.append(result["boom.angle"][-1])
    assert ends[0] == pytest.approx(ends[1], abs=1e-5)


def sensor_of(joint: Joint, coordinate: str) -> str:
    return f"{joint.name}_{coordinate}".replace(".", "_")


def spatial_loop(seed: int, cut: int, starts: Mapping[str, Mapping[str, Any]]) -> CoupledModel:
    """Return four bodies and five random joints in a ring, closed where all coordinates are zero."""
    random = np.random.default_rng(seed)
    kinds = random.permutation(["revolute", "revolute", "universal", "spherical", "cylindrical"]).tolist()
    poses = [Rotation.identity(), *Rotation.random(4, random_state=random), Rotation.identity()]
    places = np.vstack([np.zeros(3), random.normal(size=(4, 3)), np.zeros(3)])
    pins, axes = random.normal(size=(5, 3)), Rotation.random(5, random_state=random).as_matrix()
    names = ["ground", "b1", "b2", "b3", "b4", "ground"]
    points: list[dict[str, Any]] = [{} for _ in names]
    joints = []
    for index, kind in enumerate(kinds):
        for end in (index, index + 1):
            points[end][f"p{index}"] = tuple(poses[end].inv().apply(pins[index] - places[end]).tolist())
        made, data, _ = KINDS[kind]
        along = {name: tuple(poses[index].inv().apply(axes[index, row]).tolist()) for row, name in enumerate(data)}
        turn = (poses[index].inv() * poses[index + 1]).as_rotvec()
        ends = {"parent": f"{names[index]}.p{index}", "child": f"{names[index + 1]}.p{index}"}
        data = {"orientation": tuple(turn), **ends, **along, **starts.get(f"j{index}", {})}
        joints.append(made(name=f"j{index}", cut=index == cut, **data))
    bodies = [
        RigidBody(name=name, mass=1.0 + index, inertia=(0.3, 0.4, 0.5), points=points[index + 1])
        for index, name in enumerate(names[1:5])
    ]
    centres = [
        PointSensor(name=f"{each.name}_centre", point=f"{each.name}.centre", measures=("acceleration",))
        for each in bodies
    ]
    measures = [
        JointSensor(name=sensor_of(each, name), joint=f"{each.name}.{name}")
        for each in joints
        for name in each.coordinate_names
    ]
    ground = {**points[0], **points[5]}
    mechanism = Mechanism(ground=ground, bodies=bodies, joints=joints, sensors=[*centres, *measures])
    return CoupledModel(name="loop", systems={"mechanism": mechanism})


@pytest.mark.parametrize("seed", range(2))
def test_any_joint_of_a_spatial_loop_may_close_it(seed: int) -> None:
    """Closed from far away, a random loop fulfils all its joints: it moves alike whichever closes it."""
    random = np.random.default_rng(100 + seed)
    far = {f"j{index}": {} for index in range(5)}
    joints = spatial_loop(seed, 4, {}).systems["mechanism"]
    assert isinstance(joints, Mechanism)
    for each in joints.joints:
        for name in ("angle", "angles"):
            count = len(each.elements) - (each.type == "cylindrical")
            if name in type(each).model_fields:
                turned = (random.choice([-1.0, 1.0], count) * random.uniform(0.4, 1.1, count)).tolist()
                far[each.name][name] = turned[0] if name == "angle" else tuple(turned)
    result = spatial_loop(seed, seed, far).simulation(compiled=False).run(0.01)
    where: dict[str, dict[str, Any]] = {}
    for each in joints.joints:
        names = each.coordinate_names
        found = {name: float(result[f"{sensor_of(each, name)}.coordinate"][0]) for name in names}
        several = [value for name, value in found.items() if name.startswith(("angle_", "cardan_angle"))]
        where[each.name] = {"angles": tuple(several)} if several else found
    for cut in (seed + 1, seed + 3):
        other = spatial_loop(seed, cut, where).simulation(compiled=False).run(0.01)
        for name in (f"b{index}_centre.acceleration.{axis}" for index in range(1, 5) for axis in "xyz"):
            assert other[name][0] == pytest.approx(result[name][0], rel=1e-6, abs=1e-6)
