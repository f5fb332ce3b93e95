"""Loops in space with one degree of freedom, laid out in the inertial frame, where all coordinates are zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from mbsfmu import CoupledModel, Mechanism
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
    rates = 1.5 * rates[:, 0] / np.max(np.abs(rates))
    first = 0
    for place in places:
        place.rates = rates[first : first + place.screws.shape[1]]
        first += place.screws.shape[1]
    frames = [(np.eye(3), np.zeros(3))]
    frames += [(Rotation.random(rng=random).as_matrix(), 0.3 * random.normal(size=3)) for _ in range(bodies)]
    frames.append(frames[0])
    points: list[dict[str, tuple[float, ...]]] = [{} for _ in frames]
    for number, place in enumerate(places):
        for side, end in ((number, "outer"), (number + 1, "inner")):
            rotation, origin = frames[side]
            points[side][end] = tuple(rotation.T @ (place.point - origin))
    names = ["ground", *(f"body_{number}" for number in range(1, bodies + 1)), "ground"]
    joints = []
    for number, place in enumerate(places):
        (inner, _), (outer, _) = frames[number], frames[number + 1]
        joints.append(
            place.kind(
                name=f"joint_{number}",
                parent=f"{names[number]}.{'first' if number == 0 else 'outer'}",
                child=f"{names[number + 1]}.{'last' if number == bodies else 'inner'}",
                orientation=tuple(Rotation.from_matrix(inner.T @ outer).as_rotvec()),
                cut=number == cut,
                **_data(place, inner),
            )
        )
    made = []
    for number in range(1, bodies + 1):
        rotation, origin = frames[number]
        centre = 0.5 * (places[number - 1].point + places[number].point) + 0.1 * random.normal(size=3)
        made.append(
            RigidBody(
                name=names[number],
                mass=random.uniform(0.5, 2.0),
                inertia=(0.11, 0.13, 0.17),
                products_of_inertia=(0.01, -0.02, 0.015),
                centre=tuple(rotation.T @ (centre - origin)),
                points=points[number],
            )
        )
    ground = {"first": points[0]["outer"], "last": points[-1]["inner"]}
    mechanism = Mechanism(ground=ground, bodies=tuple(made), joints=tuple(joints))
    return CoupledModel(name="loop", systems={"mechanism": mechanism})


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
