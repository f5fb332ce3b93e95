"""The double pentagon: a second loop that hangs on a link of the first.

Run `mbsfmu simulate examples/double_pentagon.py:double_pentagon`, or this file: do the formulations agree?
"""

from math import pi

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, along

LENGTH = 0.2
TURN = 2.0 * pi / 5  # from side to side of a regular pentagon


def link(number: int) -> RigidBody:
    """Return one of the equal links."""
    return RigidBody(
        name=f"link_{number}",
        mass=1.0,
        inertia=(0.25, 0.25, 0.25),
        centre=along(0.5),
        length=LENGTH,
        points={"end": along(1.0)},
    )


def double_pentagon() -> CoupledModel:
    """Return a pentagon under the ground, and another one on its third link."""
    mechanism = Mechanism(
        ground={"A": (-0.5 * LENGTH, 0.0, 0.0), "B": (0.5 * LENGTH, 0.0, 0.0)},
        bodies=tuple(link(number) for number in range(1, 9)),
        joints=(
            # The first pentagon, counterclockwise from A; each angle is relative to the link before.
            Revolute(name="joint_1", parent="ground.A", child="link_1.origin", angle=TURN - pi),
            Revolute(name="joint_2", parent="link_1.end", child="link_2.origin", angle=TURN),
            Revolute(name="joint_3", parent="link_2.end", child="link_3.origin", angle=TURN),
            Revolute(name="joint_4", parent="link_3.end", child="link_4.origin", angle=TURN),
            # The joints back to B and to link_3 close the loops and are cut: the tree has every angle that is given.
            Revolute(name="joint_5", parent="ground.B", child="link_4.end", cut=True),
            # The second has link_3 as its side that is there, as the first has the ground.
            Revolute(name="joint_6", parent="link_3.origin", child="link_5.origin", angle=TURN - pi),
            Revolute(name="joint_7", parent="link_5.end", child="link_6.origin", angle=TURN),
            Revolute(name="joint_8", parent="link_6.end", child="link_7.origin", angle=TURN),
            Revolute(name="joint_9", parent="link_7.end", child="link_8.origin", angle=TURN),
            Revolute(name="joint_10", parent="link_3.end", child="link_8.end", cut=True),
        ),
    )
    return CoupledModel(
        name="double-pentagon",
        description="two coupled pentagons",
        systems={"mechanism": mechanism},
    )


if __name__ == "__main__":
    model = double_pentagon()
    partitioned = model.simulation(formulation="double-step", step=1e-3).run(0.5)
    penalized = model.simulation(formulation="penalty", step=1e-3).run(0.5)
    for result in (partitioned, penalized):
        print(
            f"{result.formulation}: {result.statistics.newton_mean:.2f} Newton iterations a step, "
            f"loops open by at most {result.largest('constraint.position'):.3g} m, "
            f"energy drift at most {result.largest('energy.drift'):.3g} J"
        )
    height = "link_7.centre.y.position"
    print(f"the lowest link differs by at most {max(abs(partitioned[height] - penalized[height])):.3g} m")
