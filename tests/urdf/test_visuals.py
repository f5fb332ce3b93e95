"""What links look like becomes shapes of the bodies that they are part of, in their places."""

from __future__ import annotations

import logging
from math import cos, pi, sin
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbsfmu import mechanism_from_urdf

pytest.importorskip("yourdfpy")

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
    assert caplog.messages == ["the mesh of link 'tool' is not taken: missing.stl is not there"]
