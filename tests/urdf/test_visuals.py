"""What links look like becomes shapes of the bodies that they are part of, in their places."""

from __future__ import annotations

import logging
import re
from math import cos, pi, sin
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbsfmu import mechanism_from_urdf

ROBOT = """<?xml version="1.0"?>
<robot name="two">
  <material name="red"><color rgba="1 0 0.5 1"/></material>
  <link name="base"><visual><geometry><sphere radius="0.2"/></geometry></visual></link>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5" rpy="0 0 0"/><geometry><cylinder radius="0.1" length="1"/></geometry>
      <material name="red"/></visual>
  </link>
  <link name="tool">
    <visual><origin xyz="0.3 0 0" rpy="0.4 0 0"/><geometry><box size="0.1 0.2 0.3"/></geometry></visual>
    <visual><geometry><mesh filename="package://parts/meshes/tool.stl" scale="0.001 0.001 0.001"/></geometry></visual>
    <visual><geometry><mesh filename="missing.stl"/></geometry></visual>
  </link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="weld" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/></joint>
</robot>
"""


def test_visuals_become_shapes_where_they_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "parts"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "tool.stl").write_text("solid\nendsolid\n")
    (folder / "urdf").mkdir()
    path = folder / "urdf" / "two.urdf"
    path.write_text(ROBOT)
    with caplog.at_level(logging.WARNING):
        mechanism = mechanism_from_urdf(path)
    assert [each.type for each in mechanism.scenery] == ["sphere"]
    cylinder, box, mesh = mechanism.bodies[0].shapes
    assert cylinder.type == "cylinder"
    assert (cylinder.radius, cylinder.length, cylinder.position) == (0.1, 1.0, (0.0, 0.0, 0.5))
    assert cylinder.colour == "#ff0080"
    # The tool is turned by 90° about z and stands at the arm's end: its x is the arm's y.
    assert box.type == "box"
    assert box.position == pytest.approx((0.0, 0.3, 1.0))
    turned = Rotation.from_rotvec(box.orientation).as_matrix()
    np.testing.assert_allclose(turned[:, 2], (sin(0.4), 0.0, cos(0.4)), atol=1e-12)
    assert mesh.type == "mesh"
    assert Path(mesh.file) == folder / "meshes" / "tool.stl"
    assert mesh.scale == (0.001, 0.001, 0.001)
    assert mesh.orientation == pytest.approx((0.0, 0.0, pi / 2))
    assert caplog.messages == [
        f"{path}: a visual is not drawn, which changes no result: line 13: link 'tool', <mesh> names missing.stl, "
        "which is not there"
    ]


@pytest.mark.parametrize(
    ("visual", "why"),
    [
        (
            '<geometry><sphere radius="0"/></geometry>',
            "<sphere> is refused: .*radius is 0.0; it must be",
        ),
        ('<geometry><capsule radius="1" length="1"/></geometry>', "<capsule> is none of box, sphere, cylinder, mesh"),
        ('<geometry><plane normal="0 0 1"/></geometry>', "<plane> is none of"),
        ('<geometry><mesh filename="a.stl" scale="1 1 1 1"/></geometry>', "<mesh> has scale='1 1 1 1'; it must be 3"),
        ('<geometry><box size="1 1"/></geometry>', "<box> has size='1 1'; it must be 3 finite numbers"),
        ('<origin xyz="0 0 0 0"/><geometry><sphere radius="1"/></geometry>', "<origin> has xyz='0 0 0 0'"),
        (
            '<geometry><sphere radius="1"/></geometry><material name="a"><color rgba="1 1"/></material>',
            "<color> has rgba='1 1'",
        ),
        ("<geometry/>", "<visual> has an empty <geometry>"),
        ("", "<visual> has no <geometry>"),
    ],
)
def test_a_picture_never_stops_a_machine(
    visual: str, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(
        ROBOT.replace('<visual><geometry><sphere radius="0.2"/></geometry></visual>', f"<visual>{visual}</visual>")
    )
    mechanism = mechanism_from_urdf(path)
    assert not mechanism.scenery
    assert mechanism.bodies[0].mass == 1.0
    assert re.search(
        f"arm.urdf: a visual is not drawn, which changes no result: line 4: link 'base', {why}", caplog.text
    )


def test_a_colour_that_is_none_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ROBOT.replace('rgba="1 0 0.5 1"', 'rgba="red"'))
    cylinder = mechanism_from_urdf(path).bodies[0].shapes[0]
    assert cylinder.colour is None
    assert "line 3: <color> has rgba='red'; it must be 4 finite numbers" in caplog.text
