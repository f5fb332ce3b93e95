"""Loops in space with one degree of freedom, laid out in the inertial frame, where all coordinates are zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from mbsfmu import CoupledModel, Force, Mechanism
from mbsfmu.model import RigidBody
from mbsfmu.parts import Cylindrical, Fixed, Planar, Prismatic, Revolute, Spherical, Universal

Floats = NDArray[np.float64]

LOOPS: dict[str, tuple[type, ...]] = {
    "R-S-U-R": (Revolute, Spherical, Universal, Revolute),
    "R-U-U-C": (Revolute, Universal, Universal, Cylindrical),
    "R-S-U-P": (Revolute, Spherical, Universal, Prismatic),
    "R-R-U-E": (Revolute, Revolute, Universal, Planar),
    "R-S-weld-U-R": (Revolute, Spherical, Fixed, Universal, Revolute),
}
"""Joints around each loop, from the ground to the ground; freedoms add up to seven."""


@dataclass
class Place:
    """Where a joint is: its point and axes in the inertial frame."""

    kind: type
    point: Floats
    axis: Floats
    across: Floats
    rates: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def screws(self) -> Floats:
        """Velocity of the inertial origin and angular velocity for a unit rate of each coordinate, shape (6, f)."""
        along, third = self.axis, np.cross(self.axis, self.across)
        turns = [np.concatenate([np.cross(self.point, axis), axis]) for axis in (along, self.across)]
        slides = [np.concatenate([axis, np.zeros(3)]) for axis in (along, self.across, third)]
        about = [np.concatenate([np.cross(self.point, axis), axis]) for axis in np.eye(3)]
        columns = {
            Revolute: turns[:1],
            Prismatic: slides[:1],
            Cylindrical: [slides[0], turns[0]],
            Universal: turns,
            Spherical: about,
            Planar: [slides[1], slides[2], turns[0]],
            Fixed: [],
        }[self.kind]
        return np.array(columns).reshape(-1, 6).T


def loop_of(name: str, cut: int) -> CoupledModel:
    """One of the loops, with irregular dimensions, in motion, cut at the joint of a number."""
    kinds = LOOPS[name]
    random = np.random.default_rng(sum(map(ord, name)))
    bodies = len(kinds) - 1
    corners = [np.array([np.cos(angle), 0.1, np.sin(angle)]) for angle in np.linspace(0.0, np.pi, len(kinds))]
    places = []
    for kind, corner in zip(kinds, corners, strict=True):
        axis = random.normal(size=3)
        across = np.cross(axis, random.normal(size=3))
        unit, other = axis / np.linalg.norm(axis), across / np.linalg.norm(across)
        places.append(Place(kind, corner + 0.3 * random.normal(size=3), unit, other))
    # The loop stays closed where the screws of all joints add up to nothing.
    rates = null_space(np.concatenate([place.screws for place in places], axis=1))
    assert rates.shape[1] == 1, "one degree of freedom"
    set_rates(places, 1.5 * rates[:, 0] / np.max(np.abs(rates)))
    ends = [(number, (number + 1) % (bodies + 1)) for number in range(bodies + 1)]
    return machine_of("loop", places, ends, {cut}, random)


def set_rates(places: Sequence[Place], rates: Floats) -> None:
    """Give each joint its rates, of those of all."""
    first = 0
    for place in places:
        place.rates = rates[first : first + place.screws.shape[1]]
        first += place.screws.shape[1]


def machine_of(
    name: str,
    places: Sequence[Place],
    ends: Sequence[tuple[int, int]],
    cuts: Set[int],
    random: np.random.Generator,
    *,
    mass: Callable[[], float] | None = None,
    size: float = 1.0,
    forces: Sequence[Force] = (),
) -> CoupledModel:
    """A machine of joints in the inertial frame.

    Parameters
    ----------
    name
        Of the model.
    places
        The joints.
    ends
        The bodies that each connects, parent and child; 0 is the ground.
    cuts
        Numbers of the joints that close loops.
    random
        Gives orientations of bodies, and what follows.
    mass
        Gives the mass of one body after the other in kg; some 1 kg by default.
    size
        Of the bodies in m.
    forces
        What acts beside gravity.
    """
    bodies = max(max(pair) for pair in ends)
    frames = [(np.eye(3), np.zeros(3))]
    frames += [(Rotation.random(rng=random).as_matrix(), 0.3 * size * random.normal(size=3)) for _ in range(bodies)]
    points: list[dict[str, tuple[float, ...]]] = [{} for _ in frames]
    for number, (place, pair) in enumerate(zip(places, ends, strict=True)):
        for body in pair:
            rotation, origin = frames[body]
            points[body][f"at_{number}"] = tuple(rotation.T @ (place.point - origin))
    names = ["ground", *(f"body_{number}" for number in range(1, bodies + 1))]
    joints = []
    for number, (place, (parent, child)) in enumerate(zip(places, ends, strict=True)):
        inner, outer = frames[parent][0], frames[child][0]
        joints.append(
            place.kind(
                name=f"joint_{number}",
                parent=f"{names[parent]}.at_{number}",
                child=f"{names[child]}.at_{number}",
                orientation=tuple(Rotation.from_matrix(inner.T @ outer).as_rotvec()),
                cut=number in cuts,
                **_data(place, inner),
            )
        )
    made = []
    for body in range(1, bodies + 1):
        rotation, origin = frames[body]
        middle = np.mean([place.point for place, pair in zip(places, ends, strict=True) if body in pair], axis=0)
        centre = middle + 0.1 * size * random.normal(size=3)
        own = random.uniform(0.5, 2.0) if mass is None else mass()
        weight = size**2 * (1.0 if mass is None else own)
        made.append(
            RigidBody(
                name=names[body],
                mass=own,
                inertia=(0.11 * weight, 0.13 * weight, 0.17 * weight),
                products_of_inertia=(0.01 * weight, -0.02 * weight, 0.015 * weight),
                centre=tuple(rotation.T @ (centre - origin)),
                points=points[body],
            )
        )
    mechanism = Mechanism(ground=points[0], bodies=tuple(made), joints=tuple(joints), forces=tuple(forces))
    return CoupledModel(name=name, systems={"mechanism": mechanism})


def _data(place: Place, inner: Floats) -> dict[str, Any]:
    """Axes and rates of a joint in the frame of the body that carries it."""
    axis, across = tuple(inner.T @ place.axis), tuple(inner.T @ place.across)
    rates = place.rates
    return {
        Revolute: lambda: {"axis": axis, "angular_velocity": rates[0]},
        Prismatic: lambda: {"axis": axis, "velocity": rates[0]},
        Cylindrical: lambda: {"axis": axis, "velocity": rates[0], "angular_velocity": rates[1]},
        Universal: lambda: {"axis": axis, "second_axis": across, "angular_velocities": tuple(rates)},
        Spherical: lambda: {"angular_velocity": tuple(inner.T @ rates)},
        Planar: lambda: {
            "axis": axis,
            "direction": across,
            "velocities": tuple(rates[:2]),
            "angular_velocity": rates[2],
        },
        Fixed: dict,
    }[place.kind]()
