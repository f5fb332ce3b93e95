"""Chains and loops of links, planar and spatial.

Chains and loops of equal links, hinged about Z.

Chain: Chadaj, Malczyk, Frączek, open-loop Hamiltonian formulation, sect. III. Loops: the same authors,
closed-loop formulation, Multibody System Dynamics 2017, sect. 3 (the geometry, not printed in the text, is
ours). Pentagons: Malczyk, Frączek, Nonlinear Dynamics 2012, sect. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import acos, asin, atan, atan2, cos, pi, radians, sin, sqrt, tan
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.model import Mechanism, Point, RigidBody, along
from mbsfmu.parts import Revolute
from mbsfmu.system_model.coupled_model import CoupledModel

ORIGIN: dict[str, Any] = {
    "author": "the mbsfmu authors",
    "copyright": "Copyright (c) 2026, the mbsfmu authors",
    "license": "BSD-3-Clause",
}

MOST_LINKS = 10_000
"""Largest number of links of a pendulum: more take minutes and gigabytes to set up."""
MOST_LOOPS = 2_000
"""Largest number of loops of a ladder: beyond, the matrices at the start take gigabytes."""
LEANING = 0.3
"""Start angle in rad of a ladder's rails."""


def _link(name: str, length: float, inertia: float) -> RigidBody:
    return RigidBody(
        name=name,
        mass=1.0,
        inertia=(inertia, inertia, inertia),
        centre=along(0.5),
        length=length,
        points={"end": along(1.0)},
    )


def _hinge(number: int, parent: str, child: str) -> Revolute:
    return Revolute(name=f"joint_{number}", parent=parent, child=child)


def pendulum(links: int) -> CoupledModel:
    """Return an open chain, initially horizontal.

    Parameters
    ----------
    links
        Number of links.

    Raises
    ------
    InputError
        When there is no link, or more than `MOST_LINKS`.
    """
    if not 1 <= links <= MOST_LINKS:
        raise InputError(f"a pendulum with {links} links is refused: it needs at least 1 and has {MOST_LINKS} at most")
    names = [f"link_{number}" for number in range(1, links + 1)]
    ends = ["ground.O", *(f"{name}.end" for name in names)]
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=tuple(_link(name, 1.0, 1.0) for name in names),
        joints=tuple(
            _hinge(number, parent, f"{name}.origin")
            for number, (parent, name) in enumerate(zip(ends, names, strict=False), start=1)
        ),
    )
    return CoupledModel(
        name=f"pendulum-{links}",
        description=f"open chain of {links} links",
        systems={"mechanism": mechanism},
        **ORIGIN,
    )


def ladder(loops: int) -> CoupledModel:
    """Return a ladder of hinged links that hangs from the ground by its rails, which are initially inclined.

    Each rung hangs on the left rail, and the next link of the right rail on the rung. Each loop is then cut at its own
    link, and its equations contain the coordinates of two neighbouring loops only.

    Parameters
    ----------
    loops
        Number of rungs; each closes a loop.

    Raises
    ------
    InputError
        When there is no rung, or more than `MOST_LOOPS`.
    """
    if not 1 <= loops <= MOST_LOOPS:
        raise InputError(f"a ladder of {loops} loops is refused: it needs at least 1 and has {MOST_LOOPS} at most")
    bodies: list[RigidBody] = []
    joints: list[Revolute] = []
    above, beside = "ground.A", "ground.B"
    for number in range(1, loops + 1):
        left, rung, right = names = [f"{part}_{number}" for part in ("left", "rung", "right")]
        bodies += [_link(name, 1.0, 1.0) for name in names]
        turned = LEANING - 0.5 * pi if number == 1 else 0.0
        joints += [
            Revolute(name=f"{left}_top", parent=above, child=f"{left}.origin", angle=turned),
            Revolute(name=f"{rung}_left", parent=f"{left}.end", child=f"{rung}.origin", angle=0.5 * pi - LEANING),
            Revolute(name=f"{rung}_right", parent=f"{rung}.end", child=f"{right}.end", angle=LEANING - 0.5 * pi),
            Revolute(name=f"{right}_top", parent=beside, child=f"{right}.origin", cut=True),
        ]
        above, beside = f"{left}.end", f"{right}.end"
    mechanism = Mechanism(
        ground={"A": (-0.5, 0.0, 0.0), "B": (0.5, 0.0, 0.0)}, bodies=tuple(bodies), joints=tuple(joints)
    )
    return CoupledModel(
        name=f"ladder-{loops}",
        description=f"ladder of {loops} loops",
        systems={"mechanism": mechanism},
        **ORIGIN,
    )


def _ring(sides: int, left: str, right: str, first: int = 1, shift: int = 0) -> list[Revolute]:
    """Add a regular polygon below an existing side, counterclockwise from its left to its right end.

    Parameters
    ----------
    sides
        Number of sides, including the existing one.
    left, right
        Ends of the existing side.
    first
        Number of the first link.
    shift
        Number of a joint minus that of its link.
    """
    turn = 2.0 * pi / sides
    numbers = range(first, first + sides - 1)
    ends = [left, *(f"link_{number}.end" for number in numbers)]
    angles = [turn - pi, *(turn for _ in numbers)]
    hinges = [
        Revolute(name=f"joint_{shift + number}", parent=end, child=f"link_{number}.origin", angle=angle)
        for number, end, angle in zip(numbers, ends, angles, strict=False)
    ]
    last = numbers[-1]
    # Cut here: the tree then has every angle given above, and the polygon starts regular.
    closing = Revolute(name=f"joint_{shift + last + 1}", parent=right, child=f"link_{last}.end", cut=True)
    return [*hinges, closing]


def _rings(
    name: str, description: str, length: float, inertia: float, bodies: int, joints: Sequence[Revolute]
) -> CoupledModel:
    mechanism = Mechanism(
        ground={"A": (-0.5 * length, 0.0, 0.0), "B": (0.5 * length, 0.0, 0.0)},
        bodies=tuple(_link(f"link_{number}", length, inertia) for number in range(1, bodies + 1)),
        joints=tuple(joints),
    )
    return CoupledModel(name=name, description=description, systems={"mechanism": mechanism}, **ORIGIN)


def loop_4() -> CoupledModel:
    """Return a regular pentagon whose top side is the ground."""
    ring = _ring(5, "ground.A", "ground.B")
    return _rings("loop-4", "loop of 4 links and the ground", 1.0, 1.0, 4, ring)


def loop_8() -> CoupledModel:
    """Return a regular nonagon whose top side is the ground."""
    ring = _ring(9, "ground.A", "ground.B")
    return _rings("loop-8", "loop of 8 links and the ground", 1.0, 1.0, 8, ring)


def double_loop_8() -> CoupledModel:
    """Return a hexagon under the ground, and a square under its bottom side."""
    rings = [*_ring(6, "ground.A", "ground.B"), *_ring(4, "link_3.origin", "link_3.end", 6, 1)]
    return _rings("double-loop-8", "two coupled loops of 8 links", 1.0, 1.0, 8, rings)


def five_bar() -> CoupledModel:
    """Return the pentagon with links of 0.2 m."""
    ring = _ring(5, "ground.A", "ground.B")
    return _rings("five-bar", "five-bar with redundant constraints", 0.2, 0.25, 4, ring)


def double_pentagon() -> CoupledModel:
    """Return a pentagon under the ground, and another one on its third link."""
    rings = [*_ring(5, "ground.A", "ground.B"), *_ring(5, "link_3.origin", "link_3.end", 5, 1)]
    return _rings("double-pentagon", "two coupled pentagons", 0.2, 0.25, 8, rings)


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
