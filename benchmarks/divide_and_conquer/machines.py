"""The machines of the study of large mechanisms, in a form that every engine can be given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flow import Floats
from scipy.spatial.transform import Rotation

from mbsfmu.model import Mechanism, RigidBody, along
from mbsfmu.model.joint import Joint
from mbsfmu.parts import Free, Revolute, Spherical
from mbsfmu.system_model.coupled_model import CoupledModel

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
BALL, FREE = 3, 4
"""Kinds of joints that are no hinges; hinges have the index of their axis."""
COORDINATES = {BALL: 3, FREE: 6}
"""Of a joint by its kind; hinges have one."""
Vector = tuple[float, float, float]
END: Vector = (1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Machine:
    """A tree of equal bodies of 1 kg and 1 kg m², each hung on another or on the ground, half a metre from its centre.

    Attributes
    ----------
    name
        Of the model.
    parents
        Index of the body that each hangs on; −1 for the ground.
    joints
        Kind of the joint of each: index of its axis, `BALL` or `FREE`.
    places
        Where each hangs on its parent, in m in the parent's frame; on the ground at its origin.
    """

    name: str
    parents: tuple[int, ...]
    joints: tuple[int, ...]
    places: tuple[Vector, ...]

    def model(self) -> CoupledModel:
        """Return the machine as a model."""
        names = [f"link_{index}" for index in range(len(self.parents))]
        points = [{END: "end"} for _ in names]
        for parent, place in zip(self.parents, self.places, strict=True):
            if parent >= 0:
                points[parent].setdefault(place, f"place_{len(points[parent])}")
        bodies = [
            RigidBody(
                name=name,
                mass=1.0,
                inertia=(1.0,) * 3,
                centre=along(0.5),
                length=1.0,
                points={end: place for place, end in own.items()},
            )
            for name, own in zip(names, points, strict=True)
        ]
        joints: list[Joint] = []
        for name, parent, kind, place in zip(names, self.parents, self.joints, self.places, strict=True):
            parent_point = "ground.O" if parent < 0 else f"{names[parent]}.{points[parent][place]}"
            ends = {"name": f"{name}_joint", "parent": parent_point, "child": f"{name}.origin"}
            free = {BALL: Spherical, FREE: Free}.get(kind)
            joints.append(free(**ends) if free else Revolute(axis=AXES[kind], **ends))
        mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=tuple(bodies), joints=tuple(joints))
        return CoupledModel(name=self.name, systems={"mechanism": mechanism})


def _chain(kind: str, joints: Callable[[int], int]) -> Callable[[int], Machine]:
    def made(bodies: int) -> Machine:
        indices = range(bodies)
        parents = tuple(index - 1 for index in indices)
        return Machine(f"{kind}-{bodies}", parents, tuple(map(joints, indices)), (END,) * bodies)

    return made


def _tree(bodies: int) -> Machine:
    indices = range(bodies)
    depths = [(index + 1).bit_length() - 1 for index in indices]
    parents = tuple((index - 1) // 2 for index in indices)
    return Machine(f"tree-{bodies}", parents, tuple(each % 3 for each in depths), (END,) * bodies)


LEG, FOOTPRINT, APART = (2, 0, 0), ((0.9, 0.0, 0.2), (0.9, 0.0, -0.2), (0.1, 0.0, 0.2), (0.1, 0.0, -0.2)), 1.0
"""Axes of a leg's hinges, by index; where four legs hang on the base in m; where the next four do along X."""


def _floating(bodies: int) -> Machine:
    """Return a floating base with legs of three hinges: a hip that swings out and forth, and a knee."""
    legs, left = divmod(bodies - 1, len(LEG))
    if left:
        raise ValueError(f"the machine has {bodies} bodies; it must have one, and three for each leg")
    corners = [
        (x + APART * (leg // len(FOOTPRINT)), y, z)
        for leg, (x, y, z) in zip(range(legs), itertools.cycle(FOOTPRINT), strict=False)
    ]
    parents = [-1, *[0] * legs, *range(1, bodies - legs)]  # level by level, as in our coordinates
    axes = [axis for axis in LEG for _ in range(legs)]
    return Machine(f"floating-{bodies}", tuple(parents), (FREE, *axes), (END, *corners, *[END] * (bodies - 1 - legs)))


TREES: dict[str, Callable[[int], Machine]] = {
    "planar": _chain("planar", lambda index: 0),  # noqa: ARG005 - hinges about Z, all of them
    "spatial": _chain("spatial", lambda index: index % 3),
    "spherical": _chain("spherical", lambda index: BALL),  # noqa: ARG005 - balls, all of them
    "tree": _tree,
    "floating": _floating,
}
"""Machines by kind, of so many bodies: chains with hinges about Z, about Z, Y and X in turn, with ball joints; two
links on the end of each, with hinges about Z, Y and X by depth; a floating base with legs of three hinges."""


@dataclass(frozen=True)
class Turned:
    """A joint that turns freely as other engines have it: a quaternion, and the angular velocity in the child's frame.

    Ours are three angles about X, the turned Y and the turned Z from a reference, which is no rotation here.

    Parameters
    ----------
    angles, rates
        θ and θ̇, shape (3,).
    """

    angles: Floats
    rates: Floats

    @property
    def _rotation(self) -> Rotation:
        """Of the child relative to the parent."""
        return Rotation.from_euler("XYZ", self.angles)

    @property
    def quaternion(self) -> Floats:
        """Components x, y, z, w."""
        return np.asarray(self._rotation.as_quat())

    @property
    def _axes(self) -> Floats:
        """Directions of the three axes in the parent's frame, shape (axis, 3)."""
        first, second = Rotation.from_euler("X", self.angles[0]), Rotation.from_euler("XY", self.angles[:2])
        x, y, z = np.eye(3)
        return np.stack([x, first.apply(y), second.apply(z)])

    @property
    def velocity(self) -> Floats:
        """ω in the child's frame."""
        return np.asarray(self._rotation.inv().apply(self.rates @ self._axes))

    def acceleration(self, second_rates: Floats) -> Floats:
        """Return ω̇ in the child's frame from θ̈, both of shape (3,)."""
        along_axes = self._axes * self.rates[:, None]
        carried = np.cross(along_axes[0], along_axes[1]) + np.cross(along_axes[0] + along_axes[1], along_axes[2])
        return np.asarray(self._rotation.inv().apply(second_rates @ self._axes + carried))


@dataclass(frozen=True)
class JointPoint:
    """A joint's coordinates, velocities and accelerations as other engines have them.

    Quaternions are x, y, z, w, and angular velocities in the child's frame. A free joint has the position before the
    quaternion, and the velocity of the child's origin in the parent's frame before the angular velocity.
    """

    positions: Floats
    rates: Floats
    second_rates: Floats

    def in_child(self) -> JointPoint:
        """Return a free joint with the velocity of the origin, and its rate of change, in the child's frame."""
        back = Rotation.from_quat(self.positions[3:]).inv()
        velocity, acceleration = back.apply(self.rates[:3]), back.apply(self.second_rates[:3])
        acceleration -= np.cross(self.rates[3:], velocity)
        return JointPoint(
            self.positions,
            np.concatenate([velocity, self.rates[3:]]),
            np.concatenate([acceleration, self.second_rates[3:]]),
        )


@dataclass(frozen=True)
class Point:
    """Where a machine is, how it moves, and what accelerations the toolkit gives there.

    Attributes
    ----------
    machine
        Which.
    coordinates, velocities, accelerations
        Of our representation, shape (n,).
    """

    machine: Machine
    coordinates: Floats
    velocities: Floats
    accelerations: Floats

    @property
    def joints(self) -> list[JointPoint]:
        """The same as other engines have it, joint by joint."""
        ends = np.cumsum([COORDINATES.get(kind, 1) for kind in self.machine.joints])[:-1]
        own = (np.split(each, ends) for each in (self.coordinates, self.velocities, self.accelerations))
        return [
            JointPoint(*values) if kind in range(len(AXES)) else _turned(*values)
            for kind, *values in zip(self.machine.joints, *own, strict=True)
        ]


def _turned(coordinates: Floats, velocities: Floats, accelerations: Floats) -> JointPoint:
    """Return a joint that turns freely, with slides before if it is free."""
    turned = Turned(coordinates[-3:], velocities[-3:])
    return JointPoint(
        np.concatenate([coordinates[:-3], turned.quaternion]),
        np.concatenate([velocities[:-3], turned.velocity]),
        np.concatenate([accelerations[:-3], turned.acceleration(accelerations[-3:])]),
    )
