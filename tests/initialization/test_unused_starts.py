"""Start values of joints that close loops: told where the loops start elsewhere."""

from __future__ import annotations

import logging
from math import pi

import pytest

from mbsfmu import CoupledModel, Mechanism, Prismatic, Revolute, RigidBody, Spherical
from mbsfmu.model.body import Point
from mbsfmu.model.joint import Joint


def slider_crank(closing: Joint, angle: float = pi / 3, speed: float = 2.0) -> CoupledModel:
    """A crank of 1 m and a rod of 2 m, whose end slides along x: with the crank at 60°, sin β = √3/4."""
    bodies = tuple(
        RigidBody(name=name, mass=1.0, inertia=(0.1, 0.1, 0.1), points={"end": Point(position=(length, 0.0, 0.0))})
        for name, length in (("crank", 1.0), ("rod", 2.0), ("block", 0.1))
    )
    joints = (
        Revolute(name="pin", parent="ground.O", child="crank.origin", angle=angle, angular_velocity=speed),
        Revolute(name="knee", parent="crank.end", child="rod.origin"),
        Prismatic(name="guide", parent="ground.O", child="block.origin"),
        closing,
    )
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=bodies, joints=joints)
    return CoupledModel(name="slider_crank", systems={"mechanism": mechanism})


ANGLE = 0.44783239692893
"""Of the block relative to the rod in rad, asin(√3/4)."""
RATE = 1.0 / (1.0 - 3.0 / 16.0) ** 0.5 / 2.0
"""Its rate in rad/s: 2 cos β β̇ = cos(60°) · 2 rad/s."""


def told(model: CoupledModel, caplog: pytest.LogCaptureFixture) -> list[str]:
    with caplog.at_level(logging.WARNING):
        model.simulation(compiled=False)
    return [record.getMessage() for record in caplog.records if "closes a loop" in record.getMessage()]


def closing(**starts: float) -> Revolute:
    return Revolute(name="eye", parent="rod.end", child="block.origin", cut=True, **starts)


def test_values_that_the_loop_has_or_that_are_not_given_are_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert not told(slider_crank(closing()), caplog)
    assert not told(slider_crank(closing(angle=ANGLE, angular_velocity=RATE)), caplog)
    assert not told(slider_crank(closing(angle=ANGLE - 2.0 * pi)), caplog)


def test_another_angle_and_rate_are_told(caplog: pytest.LogCaptureFixture) -> None:
    angle, rate = told(slider_crank(closing(angle=-2.0, angular_velocity=3.0)), caplog)
    assert angle.startswith(
        f"slider_crank: eye.angle starts at {ANGLE:.6g} instead of -2 rad: this joint closes a loop"
    )
    assert f"the rate of eye.angle starts at {RATE:.6g} instead of 3 rad/s" in rate


def test_a_zero_that_is_written_is_told(caplog: pytest.LogCaptureFixture) -> None:
    (angle,) = told(slider_crank(closing(angle=0.0, angular_velocity=RATE)), caplog)
    assert f"eye.angle starts at {ANGLE:.6g} instead of 0 rad" in angle


def test_a_slide_is_told_in_metres(caplog: pytest.LogCaptureFixture) -> None:
    """The tree may take the eye instead; then the guide closes the loop, at x = cos 60° + 2 cos β."""
    place = 0.5 + 2.0 * (13.0 / 16.0) ** 0.5
    for given, count in ((place, 0), (place + 0.1, 1)):
        caplog.clear()
        model = slider_crank(Spherical(name="eye", parent="rod.end", child="block.origin"))
        mechanism = model.systems["mechanism"]
        assert isinstance(mechanism, Mechanism)
        guide = Prismatic(name="guide", parent="ground.O", child="block.origin", displacement=given, cut=True)
        joints = (*mechanism.joints[:2], guide, mechanism.joints[3])
        changed = mechanism.model_copy(update={"joints": joints})
        sentences = told(model.model_copy(update={"systems": {"mechanism": changed}}), caplog)
        assert len(sentences) == count
        assert all(f"guide.displacement starts at {place:.6g} instead of {given:.6g} m" in each for each in sentences)
