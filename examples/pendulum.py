"""The pendulum: an open chain of equal links, which starts horizontal and at rest.

Run `mbsfmu simulate examples/pendulum.py:pendulum`, or this file: is the period of one link the one known exactly?
"""

from math import gamma, pi, sqrt

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, along


def pendulum(links: int = 3) -> CoupledModel:
    """Return a chain of so many links, hinged about Z."""
    bodies = []
    joints = []
    # No loop, no cut: every link hangs on the end of the one before, and its angle is relative to that one. All
    # angles are left at zero, so the chain starts stretched out along x.
    end = "ground.O"
    for number in range(1, links + 1):
        link = RigidBody(
            name=f"link_{number}",
            mass=1.0,
            inertia=(1.0, 1.0, 1.0),  # about the centre of mass
            centre=along(0.5),
            length=1.0,
            points={"end": along(1.0)},
        )
        bodies.append(link)
        joints.append(Revolute(name=f"joint_{number}", parent=end, child=f"link_{number}.origin"))
        end = f"link_{number}.end"
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=tuple(bodies), joints=tuple(joints))
    return CoupledModel(
        name=f"pendulum-{links}",
        description=f"open chain of {links} links",
        systems={"mechanism": mechanism},
    )


if __name__ == "__main__":
    result = pendulum(1).simulation(step=1e-3).run(3.0)
    # The link passes below its hinge after a quarter and after three quarters of the period.
    angle = result["link_1.angle"] + pi / 2
    crossings = [
        result.time[index] + 1e-3 * angle[index] / (angle[index] - angle[index + 1])
        for index in range(len(angle) - 1)
        if angle[index] * angle[index + 1] < 0
    ]
    period = 2.0 * (crossings[1] - crossings[0])
    # T = 2π sqrt(J / (m g l)) about the hinge, times a factor for the amplitude: for 90°, 2 K(1/√2) / π in Γ.
    small = 2.0 * pi * sqrt((1.0 + 0.5**2) / (9.81 * 0.5))
    exact = small * gamma(0.25) ** 2 / (2.0 * pi**1.5)
    print(f"period {period:.6f} s, exactly {exact:.6f} s; for small swings it would be {small:.6f} s")
    print(f"largest energy drift {result.largest('energy.drift'):.3g} J")
