"""Mechanisms that tests share."""

from __future__ import annotations

from mbsfmu import Beam, CoupledModel, Cuboid, Mechanism, Prismatic, Revolute


def slider_crank(speed: float = 6.0) -> CoupledModel:
    """A crank of 0.3 m, a rod of 1 m and a slider on the x axis, without gravity, thrown into full turns."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(
            Beam(name="crank", length=0.3, mass=3.0),
            Beam(name="rod", length=1.0, mass=1.0),
            Cuboid(name="slider", length=0.1, mass=2.0),
        ),
        joints=(
            Revolute(name="A", parent="ground.O", child="crank.start", angle=1.5, angular_velocity=speed),
            Revolute(name="B", parent="crank.end", child="rod.start", angle=-1.8, angular_velocity=-speed),
            Prismatic(name="slide", parent="ground.O", child="slider.centre", displacement=1.0),
            Revolute(name="C", parent="slider.centre", child="rod.end", cut=True),
        ),
    )
    return CoupledModel(name="slider-crank", systems={"mechanism": mechanism})
