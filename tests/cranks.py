"""Parallel cranks, which have change points and, where they are three, redundant equations that stay so."""

from __future__ import annotations

from math import pi

from mbsfmu import CoupledModel, Mechanism, Revolute, RigidBody, along
from mbsfmu.model import Point


def parallel_cranks(angle: float, *, speed: float = 0.0, count: int = 3) -> CoupledModel:
    """Parallel cranks that carry a coupler: with three, three of the four equations of two cut joints count.

    Parameters
    ----------
    angle, speed
        Of the cranks from the vertical, in rad and rad/s; where they are horizontal, all bodies are on a line.
    count
        Number of cranks.
    """
    cranks = tuple(
        RigidBody(
            name=f"crank_{number}",
            mass=2.0,
            inertia=(0.01, 0.2, 0.2),
            centre=along(0.5),
            length=1.0,
            points={"end": along(1.0)},
        )
        for number in range(count)
    )
    places = {f"p{number}": Point(position=(float(number), 0.0, 0.0)) for number in range(count)}
    coupler = RigidBody(name="coupler", mass=5.0, inertia=(0.1, 2.0, 2.0), centre=places["p1"], points=places)
    below = angle - 0.5 * pi
    hinges = [
        Revolute(
            name=f"G{number}",
            parent=f"ground.p{number}",
            child=f"crank_{number}.origin",
            angle=below,
            angular_velocity=speed,
        )
        for number in range(count)
    ]
    hinges.append(
        Revolute(name="C0", parent="crank_0.end", child="coupler.p0", angle=0.5 * pi - angle, angular_velocity=-speed)
    )
    hinges += [
        Revolute(name=f"C{number}", parent=f"coupler.p{number}", child=f"crank_{number}.end", cut=True)
        for number in range(1, count)
    ]
    ground = {name: point.position for name, point in places.items()}
    mechanism = Mechanism(ground=ground, bodies=(*cranks, coupler), joints=tuple(hinges))
    return CoupledModel(name="parallel-cranks", systems={"mechanism": mechanism})
