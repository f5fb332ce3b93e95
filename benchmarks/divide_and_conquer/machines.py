"""The machines of the study of large mechanisms, in a form that every engine can be given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flow import Floats
from scipy.spatial.transform import Rotation

from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.model import Mechanism, RigidBody, along
from mbsfmu.model.joint import Joint
from mbsfmu.parts import Revolute, Spherical

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
BALL = 3
"""The kind of a joint that is no hinge; hinges have the index of their axis."""
BALL_COORDINATES = 3


@dataclass(frozen=True)
class Machine:
    """A tree of equal links of 1 m, 1 kg and 1 kg m², each hung on the end of another or on the ground.

    Attributes
    ----------
    name
        Of the model.
    parents
        Index of the body that each hangs on; −1 for the ground.
    joints
        Kind of the joint of each: index of its axis, or `BALL`.
    """

    name: str
    parents: tuple[int, ...]
    joints: tuple[int, ...]

    @property
    def has_balls(self) -> bool:
        """Whether coordinates are those of joints that turn freely, of which engines have their own."""
        return BALL in self.joints

    def model(self) -> CoupledModel:
        """Return the machine as a model."""
        names = [f"link_{index}" for index in range(len(self.parents))]
        bodies = [
            RigidBody(
                name=name, mass=1.0, inertia=(1.0,) * 3, centre=along(0.5), length=1.0, points={"end": along(1.0)}
            )
            for name in names
        ]
        joints: list[Joint] = []
        for name, parent, kind in zip(names, self.parents, self.joints, strict=True):
            ends = {"parent": "ground.O" if parent < 0 else f"{names[parent]}.end", "child": f"{name}.origin"}
            own = f"{name}_joint"
            joints.append(Spherical(name=own, **ends) if kind == BALL else Revolute(name=own, axis=AXES[kind], **ends))
        mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=tuple(bodies), joints=tuple(joints))
        return CoupledModel(name=self.name, systems={"mechanism": mechanism})


def _chain(kind: str, joints: Callable[[int], int]) -> Callable[[int], Machine]:
    def made(bodies: int) -> Machine:
        indices = range(bodies)
        return Machine(f"{kind}-{bodies}", tuple(index - 1 for index in indices), tuple(map(joints, indices)))

    return made


def _tree(bodies: int) -> Machine:
    indices = range(bodies)
    depths = [(index + 1).bit_length() - 1 for index in indices]
    return Machine(f"tree-{bodies}", tuple((index - 1) // 2 for index in indices), tuple(each % 3 for each in depths))


TREES: dict[str, Callable[[int], Machine]] = {
    "planar": _chain("planar", lambda index: 0),  # noqa: ARG005 - hinges about Z, all of them
    "spatial": _chain("spatial", lambda index: index % 3),
    "spherical": _chain("spherical", lambda index: BALL),  # noqa: ARG005 - balls, all of them
    "tree": _tree,
}
"""Machines by kind, of so many bodies: chains with hinges about Z, about Z, Y and X in turn, with ball joints; and two
links on the end of each, with hinges about Z, Y and X by depth."""


@dataclass(frozen=True)
class Turned:
    """Ball joints as other engines have them: quaternions, and angular velocities in the child's frame.

    Ours are three angles about X, the turned Y and the turned Z from a reference, which is no rotation here.

    Parameters
    ----------
    angles, rates
        θ and θ̇ of n joints, shape (n, 3).
    """

    angles: Floats
    rates: Floats

    @property
    def rotations(self) -> Rotation:
        """Of the child relative to the parent."""
        return Rotation.from_euler("XYZ", self.angles)

    @property
    def quaternions(self) -> Floats:
        """Components x, y, z, w, shape (n, 4)."""
        return np.asarray(self.rotations.as_quat())

    @property
    def _axes(self) -> Floats:
        """Directions of the three axes in the parent's frame, shape (n, axis, 3)."""
        first = Rotation.from_euler("X", self.angles[:, :1])
        second = Rotation.from_euler("XY", self.angles[:, :2])
        x, y, z = np.eye(3)
        return np.stack([np.tile(x, (len(self.angles), 1)), first.apply(y), second.apply(z)], axis=1)

    @property
    def velocities(self) -> Floats:
        """ω in the child's frame, shape (n, 3)."""
        return np.asarray(self.rotations.inv().apply(np.einsum("nka,nk->na", self._axes, self.rates)))

    def accelerations(self, second_rates: Floats) -> Floats:
        """Return ω̇ in the child's frame from θ̈, both of shape (n, 3)."""
        axes, along_axes = self._axes, self._axes * self.rates[:, :, None]
        carried = np.cross(along_axes[:, 0], along_axes[:, 1])
        carried += np.cross(along_axes[:, 0] + along_axes[:, 1], along_axes[:, 2])
        return np.asarray(self.rotations.inv().apply(np.einsum("nka,nk->na", axes, second_rates) + carried))


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
    def _turned(self) -> Turned:
        return Turned(self.coordinates.reshape(-1, BALL_COORDINATES), self.velocities.reshape(-1, BALL_COORDINATES))

    @property
    def positions(self) -> Floats:
        """Coordinates as other engines have them; quaternions are x, y, z, w."""
        return self._turned.quaternions.ravel() if self.machine.has_balls else self.coordinates

    @property
    def rates(self) -> Floats:
        """Velocities as other engines have them."""
        return self._turned.velocities.ravel() if self.machine.has_balls else self.velocities

    @property
    def second_rates(self) -> Floats:
        """Accelerations as other engines have them."""
        if not self.machine.has_balls:
            return self.accelerations
        return self._turned.accelerations(self.accelerations.reshape(-1, BALL_COORDINATES)).ravel()
