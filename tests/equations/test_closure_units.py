"""Units of closure equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mbsfmu import (
    Cylindrical,
    Distance,
    Fixed,
    Planar,
    PointOnLine,
    PointOnPlane,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from mbsfmu.model.force import BodyPoint
from mbsfmu.parts.joints import Joint

ENDS: dict[str, Any] = {"name": "joint", "parent": "ground.O", "child": "body.end"}
JOINTS: list[Joint] = [
    *(kind(**ENDS) for kind in (Cylindrical, Fixed, Planar, PointOnLine, PointOnPlane, Prismatic, Revolute, Spherical)),
    Universal(**ENDS),
    Distance(**ENDS, length=0.5**0.5),
]


@pytest.mark.parametrize("joint", JOINTS, ids=lambda joint: joint.type)
def test_forces_hold_distances_and_moments_hold_angles(joint: Joint) -> None:
    """By virtual work: the multiplier of an equation in m is a force, that of one in rad a moment without a force."""
    still = np.zeros(3)
    parent, child = (BodyPoint(place, still, np.eye(3), still) for place in (still, np.array([0.3, -0.4, 0.5])))
    for name, equation in joint.equations().items():
        on_parent, on_child = (np.linalg.norm(wrench[:3]) for wrench in equation.wrenches(parent, child))
        assert (on_parent, on_child) == pytest.approx((1.0, 1.0) if equation.unit == "m" else (0.0, 0.0)), name
