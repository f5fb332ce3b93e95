"""Overconstrained loops that are not planar in the ground's axes, or do not remain so."""

from __future__ import annotations

from math import acos, asin, atan, atan2, cos, pi, radians, sin, sqrt, tan

from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.model import Mechanism, Point, RigidBody, along
from mbsfmu.models.origin import ORIGIN
from mbsfmu.parts import Revolute

_TWIST = radians(30.0)
_LENGTH, _OTHER_LENGTH = 1.0, 1.6
_OTHER_TWIST = asin(_OTHER_LENGTH * sin(_TWIST) / _LENGTH)


def bennett_angle(angle: float) -> float:
    """Return the second angle of Bennett's linkage from the first in rad; the product of their tangents is constant.

    tan(θ₁/2) tan(θ₂/2) = sin((β + α)/2) / sin((β − α)/2) with the twists α and β of the links
    (Bennett, Engineering 76, 1903).
    """
    return 2.0 * atan(sin(0.5 * (_OTHER_TWIST + _TWIST)) / sin(0.5 * (_OTHER_TWIST - _TWIST)) / tan(0.5 * angle))


def _twisted(name: str, parent: str, child: str, twist: float, angle: float) -> Revolute:
    """Return a hinge about the Z axis of its child, which is twisted about the parent's X axis."""
    axis = (0.0, -sin(twist), cos(twist))
    return Revolute(name=name, parent=parent, child=child, axis=axis, orientation=(twist, 0.0, 0.0), angle=angle)


def bennett(angle: float = 1.0) -> CoupledModel:
    """Return Bennett's linkage: four spatial hinges, three redundant loop equations, one degree of freedom.

    Opposite links are equal, 1 m long with a twist of 30° and 1.6 m with the twist that sin α / a = sin β / b gives;
    one of the long links is the ground. Which loop equations are independent changes as it moves.

    Parameters
    ----------
    angle
        Angle of the first link at the start in rad.
    """
    second = bennett_angle(angle)
    bodies = tuple(
        RigidBody(
            name=f"link_{number}",
            mass=mass,
            inertia=inertia,
            products_of_inertia=products,
            centre=along(0.5),
            length=length,
            points={"end": along(1.0)},
        )
        for number, mass, length, inertia, products in (
            (1, 1.0, _LENGTH, (0.02, 0.10, 0.11), (0.005, -0.004, 0.003)),
            (2, 1.6, _OTHER_LENGTH, (0.05, 0.36, 0.38), (-0.010, 0.008, 0.012)),
            (3, 1.0, _LENGTH, (0.03, 0.09, 0.10), (0.002, 0.006, -0.005)),
        )
    )
    # One Denavit–Hartenberg frame per hinge: turn about Z, go along X, twist about X. The last hinge is seen from the
    # ground, where that link's frame is the inverse of its way along and twist.
    joints = (
        Revolute(name="hinge_1", parent="ground.A", child="link_1.origin", angle=angle),
        _twisted("hinge_2", "link_1.end", "link_2.origin", _TWIST, second),
        _twisted("hinge_3", "link_2.end", "link_3.origin", _OTHER_TWIST, -angle),
        Revolute(
            name="hinge_4",
            parent="ground.B",
            child="link_3.end",
            axis=(0.0, sin(_OTHER_TWIST), cos(_OTHER_TWIST)),
            orientation=(-_OTHER_TWIST - _TWIST, 0.0, 0.0),
            cut=True,
        ),
    )
    mechanism = Mechanism(
        gravity=(1.0, -9.81, 3.0),
        ground={"A": (0.0, 0.0, 0.0), "B": (-_OTHER_LENGTH, 0.0, 0.0)},
        bodies=bodies,
        joints=joints,
    )
    return CoupledModel(
        name="bennett",
        description="Bennett's linkage, an overconstrained loop in space",
        systems={"mechanism": mechanism},
        stop_time=3.0,
        **ORIGIN,
    )


def slewing_four_bar(slew: float = 0.0, speed: float = 0.5 * pi) -> CoupledModel:
    """Return a planar four-bar in the vertical plane of a slewing house.

    The redundant loop equations are normal to the plane of the four-bar, which rotates.

    Parameters
    ----------
    slew
        Angle of the house at the start in rad.
    speed
        Its angular velocity at the start in rad/s.
    """

    def link(name: str, length: float, mass: float, inertia: tuple[float, float, float]) -> RigidBody:
        return RigidBody(
            name=name, mass=mass, inertia=inertia, centre=along(0.5), length=length, points={"end": along(1.0)}
        )

    axis = (0.0, -1.0, 0.0)

    def hinge(name: str, parent: str, child: str, angle: float) -> Revolute:
        return Revolute(name=name, parent=parent, child=child, axis=axis, angle=angle)

    # Where the coupler is turned back by 70 degrees, its end is this far from the crank's pivot; the rocker reaches it.
    turned = radians(70.0)
    reach = sqrt(5.0 + 4.0 * cos(turned))
    crank = atan2(2.0 * sin(turned), 1.0 + 2.0 * cos(turned)) + acos((reach**2 + 4.0 - 1.5**2) / (4.0 * reach))
    rocker = pi - acos((4.0 + 1.5**2 - reach**2) / 6.0)

    house = RigidBody(
        name="house",
        mass=1000.0,
        inertia=(6e5, 6e5, 1e6),
        points={"front": Point(position=(2.0, 0.0, 0.0)), "rear": Point()},
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -9.81),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            house,
            link("crank", 1.0, 10.0, (0.1, 1.0, 1.0)),
            link("coupler", 2.0, 20.0, (0.1, 5.0, 5.0)),
            link("rocker", 1.5, 15.0, (0.1, 3.0, 3.0)),
        ),
        joints=(
            Revolute(name="slewing", parent="ground.O", child="house.origin", angle=slew, angular_velocity=speed),
            hinge("A", "house.rear", "crank.origin", crank),
            hinge("B", "crank.end", "coupler.origin", -turned),
            hinge("D", "house.front", "rocker.origin", rocker),
            Revolute(name="C", parent="coupler.end", child="rocker.end", axis=axis, cut=True),
        ),
    )
    return CoupledModel(
        name="slewing-four-bar",
        description="a planar four-bar on a house that turns",
        systems={"mechanism": mechanism},
        stop_time=12.0,
        **ORIGIN,
    )
