"""The five-bar: a loop with two degrees of freedom, and equations that say the same thing twice.

Run `mbsfmu simulate examples/five_bar.py:five_bar`, or this file: which equations are left out?
"""

import logging
from math import pi

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, along

LENGTH = 0.2
TURN = 2.0 * pi / 5  # from side to side of a regular pentagon


def link(name: str) -> RigidBody:
    """Return one of the equal links."""
    return RigidBody(
        name=name,
        mass=1.0,
        inertia=(0.25, 0.25, 0.25),
        centre=along(0.5),
        length=LENGTH,
        points={"end": along(1.0)},
    )


def five_bar() -> CoupledModel:
    """Return a regular pentagon whose top side is the ground."""
    mechanism = Mechanism(
        ground={"A": (-0.5 * LENGTH, 0.0, 0.0), "B": (0.5 * LENGTH, 0.0, 0.0)},
        bodies=(link("link_1"), link("link_2"), link("link_3"), link("link_4")),
        joints=(
            # Counterclockwise from A, each angle relative to the link before.
            Revolute(name="joint_1", parent="ground.A", child="link_1.origin", angle=TURN - pi),
            Revolute(name="joint_2", parent="link_1.end", child="link_2.origin", angle=TURN),
            Revolute(name="joint_3", parent="link_2.end", child="link_3.origin", angle=TURN),
            Revolute(name="joint_4", parent="link_3.end", child="link_4.origin", angle=TURN),
            # The joint that closes the loop is cut: the tree then has every angle that is given.
            Revolute(name="joint_5", parent="ground.B", child="link_4.end", cut=True),
        ),
    )
    return CoupledModel(
        name="five-bar",
        description="five-bar with redundant constraints",
        systems={"mechanism": mechanism},
    )


if __name__ == "__main__":
    # All axes are parallel, so three of the five equations of a hinge hold by themselves: the log says which.
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    result = five_bar().simulation(formulation="penalty").run(1.0)
    print(f"the loop opens by at most {result.largest('constraint.position'):.3g} m")
    print(f"largest energy drift {result.largest('energy.drift'):.3g} J")
