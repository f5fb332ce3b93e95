"""Mechanisms in which nothing moves say so."""

from __future__ import annotations

from math import pi

import pytest

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody
from mbsfmu.model import along
from mbsfmu.model.joint import Joint
from mbsfmu.parts import Fixed


def machine(*joints: Joint, bodies: int = 1) -> CoupledModel:
    links = tuple(
        RigidBody(name=f"link_{index}", mass=1.0, inertia=(1.0, 1.0, 1.0), length=1.0, points={"end": along(1.0)})
        for index in range(bodies)
    )
    ground = {"A": (0.0, 0.0, 0.0), "B": (1.0, 0.0, 0.0)}
    return CoupledModel(name="still", systems={"mechanism": Mechanism(ground=ground, bodies=links, joints=joints)})


def test_all_joints_fixed(caplog: pytest.LogCaptureFixture) -> None:
    machine(Fixed(name="bolt", parent="ground.A", child="link_0.origin")).simulation(formulation="dca", solver="rk45")
    assert "still: no body moves: all joints are fixed" in caplog.text


TRIANGLE = (
    Revolute(name="left", parent="ground.A", child="link_0.origin", angle=pi / 3),
    Revolute(name="top", parent="link_0.end", child="link_1.origin", angle=-2 * pi / 3),
    Revolute(name="right", parent="ground.B", child="link_1.end", cut=True),
)


def test_loops_without_freedom(caplog: pytest.LogCaptureFixture) -> None:
    machine(*TRIANGLE, bodies=2).simulation()
    assert "still: no body moves: no freedom is left by the loop closed at right" in caplog.text


def test_what_moves_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    machine(*TRIANGLE[:2], bodies=2).simulation()
    assert "no body moves" not in caplog.text
