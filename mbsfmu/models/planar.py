"""Chains and loops of equal links, hinged about Z.

Chain: Chadaj, Malczyk, Frączek, open-loop Hamiltonian formulation, sect. III. Loops: the same authors,
closed-loop formulation, Multibody System Dynamics 2017, sect. 3 (the geometry, not printed in the text, is
ours). Pentagons: Malczyk, Frączek, Nonlinear Dynamics 2012, sect. 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from mbsfmu.base.errors import InputError
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.model import Mechanism, RigidBody, along
from mbsfmu.models.origin import ORIGIN
from mbsfmu.parts import Revolute

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
