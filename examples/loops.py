"""Closed loops: four links, eight links, and eight links in two loops.

Run `mbsfmu simulate examples/loops.py:loop_8`, or this file: how does the energy drift fall with the step?
"""

from math import pi

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, along

GROUND = {"A": (-0.5, 0.0, 0.0), "B": (0.5, 0.0, 0.0)}
LINKS = tuple(
    RigidBody(
        name=f"link_{number}",
        mass=1.0,
        inertia=(1.0, 1.0, 1.0),
        centre=along(0.5),
        length=1.0,
        points={"end": along(1.0)},
    )
    for number in range(1, 9)
)
# Counterclockwise, each angle is relative to the link before. The last joint of a loop is cut: the tree then has every
# angle that is given. Left to itself it would grow from both ends of a loop and guess the angle of the last joint.


def loop_4() -> CoupledModel:
    """Return a regular pentagon whose top side is the ground."""
    turn = 2.0 * pi / 5
    joints = (
        Revolute(name="joint_1", parent="ground.A", child="link_1.origin", angle=turn - pi),
        Revolute(name="joint_2", parent="link_1.end", child="link_2.origin", angle=turn),
        Revolute(name="joint_3", parent="link_2.end", child="link_3.origin", angle=turn),
        Revolute(name="joint_4", parent="link_3.end", child="link_4.origin", angle=turn),
        Revolute(name="joint_5", parent="ground.B", child="link_4.end", cut=True),
    )
    mechanism = Mechanism(ground=GROUND, bodies=LINKS[:4], joints=joints)
    return CoupledModel(name="loop-4", description="loop of 4 links and the ground", systems={"mechanism": mechanism})


def loop_8() -> CoupledModel:
    """Return a regular nonagon whose top side is the ground."""
    turn = 2.0 * pi / 9
    joints = (
        Revolute(name="joint_1", parent="ground.A", child="link_1.origin", angle=turn - pi),
        Revolute(name="joint_2", parent="link_1.end", child="link_2.origin", angle=turn),
        Revolute(name="joint_3", parent="link_2.end", child="link_3.origin", angle=turn),
        Revolute(name="joint_4", parent="link_3.end", child="link_4.origin", angle=turn),
        Revolute(name="joint_5", parent="link_4.end", child="link_5.origin", angle=turn),
        Revolute(name="joint_6", parent="link_5.end", child="link_6.origin", angle=turn),
        Revolute(name="joint_7", parent="link_6.end", child="link_7.origin", angle=turn),
        Revolute(name="joint_8", parent="link_7.end", child="link_8.origin", angle=turn),
        Revolute(name="joint_9", parent="ground.B", child="link_8.end", cut=True),
    )
    mechanism = Mechanism(ground=GROUND, bodies=LINKS, joints=joints)
    return CoupledModel(name="loop-8", description="loop of 8 links and the ground", systems={"mechanism": mechanism})


def double_loop_8() -> CoupledModel:
    """Return a hexagon under the ground, and a square under its bottom side, link_3."""
    turn, corner = 2.0 * pi / 6, 2.0 * pi / 4
    joints = (
        Revolute(name="joint_1", parent="ground.A", child="link_1.origin", angle=turn - pi),
        Revolute(name="joint_2", parent="link_1.end", child="link_2.origin", angle=turn),
        Revolute(name="joint_3", parent="link_2.end", child="link_3.origin", angle=turn),
        Revolute(name="joint_4", parent="link_3.end", child="link_4.origin", angle=turn),
        Revolute(name="joint_5", parent="link_4.end", child="link_5.origin", angle=turn),
        Revolute(name="joint_6", parent="ground.B", child="link_5.end", cut=True),
        Revolute(name="joint_7", parent="link_3.origin", child="link_6.origin", angle=corner - pi),
        Revolute(name="joint_8", parent="link_6.end", child="link_7.origin", angle=corner),
        Revolute(name="joint_9", parent="link_7.end", child="link_8.origin", angle=corner),
        Revolute(name="joint_10", parent="link_3.end", child="link_8.end", cut=True),
    )
    mechanism = Mechanism(ground=GROUND, bodies=LINKS, joints=joints)
    return CoupledModel(
        name="double-loop-8", description="two coupled loops of 8 links", systems={"mechanism": mechanism}
    )


if __name__ == "__main__":
    for model in (loop_4(), double_loop_8()):
        coarse, fine = (model.simulation(step=step).run(0.2).largest("energy.drift") for step in (4e-3, 2e-3))
        print(f"{model.name}: energy drift {coarse:.3g} J at 4 ms, {fine:.3g} J at 2 ms, ratio {coarse / fine:.2f}")
