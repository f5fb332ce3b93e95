"""Structures that are near to moving, with what holds them by statics: the smaller ε, the nearer.

Tests take some of them, `benchmarks/structures.py` all, with all formulations and solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import asin, atan2, cos, hypot, pi, sin, sqrt, tan

from mbsfmu import CoupledModel, Gear, Mechanism, Revolute, RigidBody
from mbsfmu.model import along
from mbsfmu.model.joint import Constraint, Joint

GRAVITY = 9.81


@dataclass(frozen=True)
class Structure:
    """A structure, and what holds it.

    Attributes
    ----------
    model
        The structure as a model.
    reactions
        Forces and moments in joints by name, in N and N m, by statics.
    angle
        Name of a coordinate.
    """

    model: CoupledModel
    reactions: Mapping[str, float]
    angle: str


def bar(name: str, mass: float, length: float = 1.0, **points: float) -> RigidBody:
    """Return a bar whose centre of mass is half way, with points at shares of its length beside its end."""
    shares = {"end": 1.0, **points}
    return RigidBody(
        name=name,
        mass=mass,
        inertia=(0.1, 1.0, 1.0),
        length=length,
        centre=along(0.5),
        points={each: along(share) for each, share in shares.items()},
    )


def planar(
    name: str,
    ground: Mapping[str, tuple[float, float]],
    bodies: tuple[RigidBody, ...],
    joints: tuple[Joint, ...],
    constraints: tuple[Constraint, ...] = (),
) -> CoupledModel:
    """Return a mechanism in the plane as a model."""
    points = {point: (*place, 0.0) for point, place in ground.items()}
    mechanism = Mechanism(ground=points, bodies=bodies, joints=joints, constraints=constraints)
    return CoupledModel(name=name, systems={"mechanism": mechanism})


def _angle(versine: Fraction) -> float:
    """Return ε from 1 − cos ε: small cosines as floating-point numbers have them decide on the last digits of ε."""
    return 2.0 * asin(sqrt(float(versine) / 2.0))


def toggle(epsilon: float) -> Structure:
    """Two bars of 1 m between two pins, nearly in line: thrust m g / (2 tan ε)."""
    right = 2.0 * cos(epsilon)
    model = planar(
        "toggle",
        {"A": (0.0, 0.0), "B": (right, 0.0)},
        (bar("left", 10.0), bar("right", 10.0)),
        (
            Revolute(name="A", parent="ground.A", child="left.origin", angle=epsilon),
            Revolute(name="C", parent="left.end", child="right.origin", angle=-2.0 * epsilon),
            Revolute(name="B", parent="ground.B", child="right.end", cut=True),
        ),
    )
    thrust = 10.0 * GRAVITY / (2.0 * tan(_angle(1 - Fraction(right) / 2)))
    return Structure(model, {"B.force.x": -thrust, "B.force.y": 10.0 * GRAVITY}, "left.angle")


def prop(epsilon: float) -> Structure:
    """A boom of 2 m, 20 kg, and at its end a prop of 1 m, 10 kg, nearly along it: moments about either pin."""
    foot = (2.0 - cos(epsilon), -sin(epsilon))
    model = planar(
        "prop",
        {"A": (0.0, 0.0), "B": foot},
        (bar("boom", 20.0, 2.0), bar("prop", 10.0)),
        (
            Revolute(name="A", parent="ground.A", child="boom.origin"),
            Revolute(name="B", parent="ground.B", child="prop.origin", angle=epsilon),
            Revolute(name="C", parent="boom.end", child="prop.end", cut=True),
        ),
    )
    # The sides of the triangle are 2, 1 and the distance of the pins: 1 − cos ε by these.
    distance = Fraction(foot[0]) ** 2 + Fraction(foot[1]) ** 2
    push = 30.0 * GRAVITY / (2.0 * tan(_angle((distance - 1) / 4)))
    return Structure(model, {"C.force.x": -push, "C.force.y": -10.0 * GRAVITY}, "boom.angle")


def clamp(epsilon: float) -> Structure:
    """A toggle that pushes half way up an arm, whose tip holds a bar against the ground: half the thrust is in that."""
    base, end = 2.0 * cos(epsilon), 2.0 * cos(epsilon) + 1.0
    model = planar(
        "clamp",
        {"A": (0.0, 0.0), "D": (base, -0.5), "W": (end, 0.5)},
        (bar("crank", 10.0), bar("link", 10.0), bar("arm", 10.0, middle=0.5), bar("piece", 2.0)),
        (
            Revolute(name="A", parent="ground.A", child="crank.origin", angle=epsilon),
            Revolute(name="K", parent="crank.end", child="link.origin", angle=-2.0 * epsilon),
            Revolute(name="D", parent="ground.D", child="arm.origin", angle=0.5 * pi),
            Revolute(name="T", parent="arm.end", child="piece.origin", angle=-0.5 * pi),
            Revolute(name="J", parent="arm.middle", child="link.end", cut=True),
            Revolute(name="W", parent="ground.W", child="piece.end", cut=True),
        ),
    )
    knee = (Fraction(base) + Fraction(end) - 1) / 2
    thrust = 10.0 * GRAVITY / (2.0 * tan(_angle(1 - knee / 2)))
    return Structure(model, {"J.force.x": -thrust, "W.force.x": -0.5 * thrust, "W.force.y": GRAVITY}, "crank.angle")


def geared_four_bar(epsilon: float) -> Structure:
    """A four-bar whose crank and rocker a gear couples by nearly the ratio that they have anyway.

    By virtual work along the motion of the four-bar alone, which the gear gives by ε only.
    """
    crank, coupler, rocker, width = 1.0, 2.0, 1.5, 2.0
    first = 1.4
    knee = crank * cos(first), crank * sin(first)
    across, up = width - knee[0], -knee[1]
    distance = hypot(across, up)
    lift = _angle_of(coupler, distance, rocker)
    second = atan2(up, across) + lift
    tip = knee[0] + coupler * cos(second), knee[1] + coupler * sin(second)
    third = atan2(tip[1], tip[0] - width)
    rate_2 = crank * sin(first - third) / (coupler * sin(third - second))
    rate_3 = crank * sin(first - second) / (rocker * sin(third - second))
    ratio = 1.0 / rate_3 + epsilon
    model = planar(
        "geared_four_bar",
        {"A": (0.0, 0.0), "D": (width, 0.0)},
        (bar("crank", 10.0), bar("coupler", 20.0, coupler), bar("rocker", 15.0, rocker)),
        (
            Revolute(name="A", parent="ground.A", child="crank.origin", angle=first),
            Revolute(name="K", parent="crank.end", child="coupler.origin", angle=second - first),
            Revolute(name="D", parent="ground.D", child="rocker.origin", angle=third),
            Revolute(name="L", parent="coupler.end", child="rocker.end", cut=True),
        ),
        (Gear(name="gear", driving="A", driven="D", ratio=ratio, offset=first - ratio * third),),
    )
    rises = (
        10.0 * 0.5 * crank * cos(first)
        + 20.0 * (crank * cos(first) + 0.5 * coupler * cos(second) * rate_2)
        + 15.0 * 0.5 * rocker * cos(third) * rate_3
    )
    torque = -GRAVITY * rises / (epsilon * rate_3)
    return Structure(model, {"gear.A.torque": torque}, "crank.angle")


def _angle_of(one: float, other: float, opposite: float) -> float:
    """Return the angle between two sides of a triangle, by the law of cosines."""
    cosine = (one**2 + other**2 - opposite**2) / (2.0 * one * other)
    return atan2(sqrt(1.0 - cosine**2), cosine)


STRUCTURES: dict[str, Callable[[float], Structure]] = {
    each.__name__.replace("_", " "): each for each in (toggle, prop, clamp, geared_four_bar)
}
