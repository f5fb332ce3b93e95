"""Files as robots have them: point masses, rods, names, limits, loops of other tools; and what is wrong in a file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mbsfmu import CoupledModel, DataError, InputError, Mechanism, mechanism_from_urdf
from mbsfmu.parts import JointStop

INERTIA = '<inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0.02" izz="0.25"/>'
POINT = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
BODY = f'<link name="b"><inertial><origin xyz="0.3 0 0"/><mass value="2"/>{INERTIA}</inertial></link>'
HINGE = '<joint name="j" type="revolute"><parent link="w"/><child link="b"/><axis xyz="0 1 0"/></joint>'
G, M, R, J = 9.81, 2.0, 0.3, 0.2
"""Gravity, and mass, distance from the hinge and moment of inertia of the body."""


def robot(folder: Path, *elements: str) -> Path:
    """A file with the link w and these elements, one a line from line 2."""
    path = folder / "robot.urdf"
    path.write_text("\n".join(['<robot name="r"><link name="w"/>', *elements, "</robot>"]))
    return path


def accelerations(mechanism: Mechanism, formulation: str = "double-step") -> dict[str, float]:
    """Accelerations of joints at the start by the names of the bodies that they carry."""
    model = CoupledModel(name="r", systems={"m": mechanism})
    simulation = model.simulation(formulation=formulation, compiled=False)
    simulation.initialize()
    kinds = {"revolute": "angular_acceleration", "prismatic": "acceleration"}
    bodies = [(joint.child.partition(".")[0], kinds[joint.type]) for joint in mechanism.joints if joint.type in kinds]
    return {body: simulation.get(f"{body}.{kind}") for body, kind in bodies}


FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
ALONG = 0.6435011087932844  # the angle with sine 0.6 and cosine 0.8
ROD = '<inertia ixx="0.1667" ixy="0" ixz="0" iyy="0.1667" iyz="0" izz="0"/>'
FALLING = {
    "point mass": ([BODY.replace(INERTIA, POINT), HINGE], {"b": G / R}),
    "point mass with round-off": (
        [BODY.replace(INERTIA, POINT.replace('ixy="0"', 'ixy="2e-18"')), HINGE], {"b": G / R},
    ),
    "point mass on a slide": (
        [BODY.replace(INERTIA, POINT), HINGE.replace("revolute", "prismatic").replace("0 1 0", "0 0 1")], {"b": -G},
    ),
    "rod across its frame": (
        [BODY.replace('"0.3 0 0"', f'"0.3 0 0.4" rpy="0 {ALONG} 0"').replace(INERTIA, ROD), HINGE],
        {"b": M * G * R / (0.1667 + M * 0.25)},
    ),
    "slides without mass": (
        ['<link name="x"/><link name="y"/>', BODY,
         '<joint name="i" type="prismatic"><parent link="w"/><child link="x"/><axis xyz="1 0 0"/></joint>',
         '<joint name="k" type="prismatic"><parent link="x"/><child link="y"/><axis xyz="0 0.6 0.8"/></joint>',
         '<joint name="j" type="prismatic"><parent link="y"/><child link="b"/><axis xyz="0 1 0"/></joint>'],
        {"x": 0.0, "y": -G / 0.8, "b": 0.6 * G / 0.8},
    ),
    "a link of the name of a joint": (
        ['<link name="j"/>', BODY,
         '<joint name="g" type="fixed"><parent link="w"/><child link="j"/></joint>',
         HINGE.replace('parent link="w"', 'parent link="j"')],
        {"b": M * G * R / (J + M * R**2)},
    ),
    "impossible inertia of what never moves": (
        [BODY, HINGE,
         '<link name="f"><inertial><mass value="-1"/><inertia ixx="-1" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
         '</inertial></link><joint name="g" type="fixed"><parent link="w"/><child link="f"/></joint>'],
        {"b": M * G * R / (J + M * R**2)},
    ),
    "quaternion": (
        [BODY, HINGE.replace("<axis", f'<origin quat_xyzw="{np.sqrt(0.5)} 0 0 {np.sqrt(0.5)}"/><axis')],
        {"b": 0.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("case", FALLING)
def test_what_is_there_falls_as_newton_and_euler_say(case: str, formulation: str, tmp_path: Path) -> None:
    elements, expected = FALLING[case]
    found = accelerations(mechanism_from_urdf(robot(tmp_path, *elements), drives=False), formulation)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


REFUSED = {
    "moment missing": ([BODY.replace('iyy="0.2"', 'iy="0"'), HINGE], "link 'b', <inertia> has no attribute iyy"),
    "no moments": ([BODY.replace(INERTIA, "<inertia/>"), HINGE], "line 2: link 'b', <inertia> has no attribute ixx"),
    "mass alone": ([BODY.replace(INERTIA, ""), HINGE], "line 2: link 'b', <inertial> has no <inertia>"),
    "comma": ([BODY.replace("0.3 0 0", "0.3, 0, 0"), HINGE], "line 2: link 'b', <origin> has xyz='0.3, 0, 0'; it must"),
    "four": ([BODY, HINGE.replace("0 1 0", "0 1 0 7")], "line 3: joint 'j', <axis> has xyz='0 1 0 7'; it must be 3"),
    "two": ([BODY.replace("0.3 0 0", "0.3 0"), HINGE], "line 2: link 'b', <origin> has xyz='0.3 0'; it must be 3"),
    "infinite": ([BODY.replace("0.3 0 0", "0 inf 0"), HINGE], "line 2: link 'b', <origin> has xyz='0 inf 0'; .* fini"),
    "not a number": ([BODY.replace('"2"', '"nan"'), HINGE], "line 2: link 'b', <mass> has value='nan'; .* a finite"),
    "digits of Python": ([BODY.replace('"2"', '"1_0"'), HINGE], "line 2: link 'b', <mass> has value='1_0'"),
    "no direction": ([BODY, HINGE.replace("0 1 0", "0 0 0")], "line 3: joint 'j', <axis> has xyz='0 0 0'; it must"),
    "negative mass": ([BODY.replace('"2"', '"-2"'), HINGE], "line 2: link 'b', <mass> has value='-2'; it must not"),
    "no parent": ([BODY, HINGE.replace('<parent link="w"/>', "")], "line 3: joint 'j', <joint> has no <parent>"),
    "two links": ([BODY, BODY, HINGE], "line 3: there are two links 'b'; the first is in line 2"),
    "two joints": ([BODY, HINGE, HINGE], "line 4: there are two joints 'j'; the first is in line 3"),
    "two masses": (
        [BODY.replace("<mass", '<mass value="1"/><mass'), HINGE], "<mass> is there twice; the first is in line 2",
    ),
    "damping that drives": (
        [BODY, HINGE.replace("<axis", '<dynamics damping="-1"/><axis')], "joint 'j', <dynamics> has a negative number",
    ),
    "hidden mass": (
        [BODY, HINGE, BODY.replace("b", "c").replace('"2"', '"-0.5"'),
         '<joint name="g" type="fixed"><parent link="b"/><child link="c"/></joint>'],
        "line 4: link 'c', <mass> has value='-0.5'; it must not be negative",
    ),
    "hidden moment": (
        [BODY, HINGE, BODY.replace("b", "c").replace('ixx="0.1"', 'ixx="-0.1"'),
         '<joint name="g" type="fixed"><parent link="b"/><child link="c"/></joint>'],
        "line 4: link 'c', <inertia> is of no body: the principal moments are -0.1",
    ),
    "fixed leader": (
        [BODY, BODY.replace('"b"', '"c"'), HINGE.replace("revolute", "fixed"),
         HINGE.replace('"j"', '"k"').replace('"b"', '"c"').replace("<axis", '<mimic joint="j"/><axis')],
        "line 5: joint 'k' mimics 'j', but 'j' is fixed; both must be revolute, continuous or prismatic",
    ),
    "ring": (
        [BODY, HINGE, BODY.replace('"b"', '"c"'), BODY.replace('"b"', '"d"'),
         HINGE.replace('"j"', '"k"').replace('"b"', '"c"').replace('"w"', '"d"'),
         HINGE.replace('"j"', '"l"').replace('"b"', '"d"').replace('"w"', '"c"')],
        "the links are no tree: c, d hang on each other in a ring",
    ),
    "nothing carried": (
        ['<link name="b"/>', HINGE], "line 3: joint 'j' moves link 'b', which has no mass, nor has anything",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    elements, sentence = REFUSED[case]
    with pytest.raises(DataError, match=sentence) as caught:
        mechanism_from_urdf(robot(tmp_path, *elements))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('<sdf version="1.7"><model name="m"/></sdf>', "it is SDF"),
        ('<mujoco model="m"/>', "it is MJCF"),
        ("<model/>", "its root element is <model>; that of URDF is <robot>"),
        ('<robot name="r"><link name="w"></robot>', "line 1: Opening and ending tag mismatch"),
        ("", "is no URDF"),
        ('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro/></robot>', "a file for xacro"),
    ],
)
def test_what_is_another_format_is_called_so(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        mechanism_from_urdf(path)


def test_what_parsers_of_robots_overlook_is_overlooked(tmp_path: Path) -> None:
    """A declaration of version 0.0 that is not at the beginning, and a prefix without a namespace."""
    path = robot(tmp_path, BODY, HINGE, "<sensor:camera/>")
    path.write_text(f'\n<!-- first --><?xml version="0.0" ?>\n{path.read_text()}')
    assert accelerations(mechanism_from_urdf(path))["b"] == pytest.approx(M * G * R / (J + M * R**2), rel=1e-9)


@pytest.mark.parametrize(
    ("element", "told"),
    [
        ('<loop_joint name="c" type="revolute"/>', "line 4: <loop_joint> 'c' is not taken; the loop that it closes"),
        ('<gazebo><joint name="c"/></gazebo>', "line 4: <joint> 'c' is not taken; the loop that it closes stays open"),
        ('<gazebo reference="b"><turnGravityOff>true</turnGravityOff></gazebo>', "<turnGravityOff> is not taken"),
        ('<link name="c"/><joint name="h" type="fixed" mass="2"><parent link="b"/><child link="c"/></joint>',
         "line 4: the attribute mass of <joint> 'h' is not taken"),
    ],
)  # fmt: skip
def test_what_may_change_the_motion_and_is_not_taken_is_told(
    element: str, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mechanism_from_urdf(robot(tmp_path, BODY, HINGE, element))
    assert told in caplog.text


def test_what_changes_nothing_is_not_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    quiet = '<gazebo reference="b"><mu1>1</mu1><turnGravityOff>false</turnGravityOff></gazebo><transmission name="t"/>'
    mechanism_from_urdf(robot(tmp_path, BODY, HINGE.replace("<axis", "<calibration/><axis"), quiet))
    assert not caplog.records


@pytest.mark.parametrize(("limit", "expected"), [('upper="1"', (0.0, 1.0)), ('lower="-1"', (-1.0, 0.0))])
def test_a_limit_that_is_missing_is_zero(limit: str, expected: tuple[float, float], tmp_path: Path) -> None:
    path = robot(tmp_path, BODY, HINGE.replace("<axis", f'<limit {limit} effort="1" velocity="1"/><axis'))
    (stop,) = (force for force in mechanism_from_urdf(path, stop_stiffness=1e4).forces if isinstance(force, JointStop))
    assert (stop.lower, stop.upper) == expected


def test_names_that_mean_something_else_here_are_taken(tmp_path: Path) -> None:
    """A joint and a link called `gravity`, a frame called `mass`, a link called as the drive of a joint."""
    path = robot(
        tmp_path,
        BODY.replace('"b"', '"gravity"'),
        HINGE.replace('"b"', '"gravity"').replace('"j"', '"energy"'),
        '<link name="mass"/><joint name="g" type="fixed"><parent link="gravity"/><child link="mass"/></joint>',
        BODY.replace('"b"', '"energy_joint_drive"'),
        HINGE.replace('"w"', '"mass"').replace('"b"', '"energy_joint_drive"'),
    )
    mechanism = mechanism_from_urdf(path)
    assert [body.name for body in mechanism.bodies] == ["gravity_link", "energy_joint_drive"]
    assert set(mechanism.bodies[0].points) == {"mass_link", "j"}
    assert [force.name for force in mechanism.forces] == ["energy_joint_drive_", "j_drive"]
    assert re.fullmatch("[a-z_]+", mechanism.joints[0].name)
