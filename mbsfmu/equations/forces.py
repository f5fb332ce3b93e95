"""Forces between points and loads in joints: generalised forces, powers and stored energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.bodies import Points, body_and_point
from mbsfmu.equations.kinematics import Frames, body_velocity, point_velocity
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.rotation import Array, cross
from mbsfmu.model.force import Actuator, AnyForce, JointDrive, JointSpringDamper, SpringDamper
from mbsfmu.model.joint import Prismatic
from mbsfmu.model.mechanism import Mechanism


@dataclass(frozen=True)
class Motion:
    """What a force may depend on.

    Attributes
    ----------
    coordinates, velocities
        z and ż, each of shape (n,).
    frames
        Where the bodies are.
    body_velocities
        Z of each body, each of shape (6,).
    """

    coordinates: Array
    velocities: Array
    frames: Frames
    body_velocities: list[Array]


@dataclass(frozen=True)
class Loads:
    """Sums up what acts on the bodies and in the joints.

    Attributes
    ----------
    wrenches
        For each body, force in N and moment about the inertial origin in N m, each of shape (6,).
    joint_loads
        Generalised force of each joint coordinate in N m or N.
    """

    wrenches: list[Array]
    joint_loads: list[Array]

    @classmethod
    def none(cls, bodies: int, coordinates: int) -> Loads:
        """Return loads of zero."""
        return cls([np.zeros(6)] * bodies, [np.asarray(0.0)] * coordinates)

    def add_force(self, body: int, force: Array, point: Array) -> None:
        """Add a force in N at a point of a body; on the ground it has no effect."""
        if body >= 0:
            self.wrenches[body] = self.wrenches[body] + np.concatenate([force, cross(point, force)])


class Force(ABC):
    """One thing that acts on a mechanism.

    Attributes
    ----------
    name
        Its name.
    """

    name: str

    @abstractmethod
    def apply(self, loads: Loads, motion: Motion, given: Array | None, parameters: Array) -> None:
        """Add the loads; `given` is the force or torque from outside in N or N m, where there is one."""

    def work_rate(self, motion: Motion, given: Array | None, parameters: Array) -> Array:  # noqa: ARG002
        """Return the power brought in from outside in W."""
        return np.asarray(0.0)

    def dissipation(self, motion: Motion, parameters: Array) -> Array:  # noqa: ARG002
        """Return the power lost in W."""
        return np.asarray(0.0)

    def energy(self, frames: Frames, coordinates: Array, parameters: Array) -> Array:  # noqa: ARG002
        """Return the stored energy in J."""
        return np.asarray(0.0)


class Line:
    """The straight line between two points."""

    def __init__(self, force: Actuator | SpringDamper, mechanism: Mechanism, points: Points) -> None:
        self._start, self._start_point = body_and_point(mechanism, points, force.start)
        self._end, self._end_point = body_and_point(mechanism, points, force.end)

    def ends(self, frames: Frames, parameters: Array) -> tuple[Array, Array]:
        """Return both points in the inertial frame in m, each of shape (3,)."""
        return (
            frames.point(self._start, self._start_point.of(parameters)),
            frames.point(self._end, self._end_point.of(parameters)),
        )

    def length(self, frames: Frames, parameters: Array) -> Array:
        """Return |s| in m [Jaiswal2021, eq. 45]."""
        start, end = self.ends(frames, parameters)
        return np.sqrt((end - start) @ (end - start))

    def velocity(self, motion: Motion, parameters: Array) -> Array:
        """Return d|s|/dt in m/s [Jaiswal2021, eq. 45]."""
        start, end = self.ends(motion.frames, parameters)
        relative = point_velocity(body_velocity(motion.body_velocities, self._end), end) - point_velocity(
            body_velocity(motion.body_velocities, self._start), start
        )
        return relative @ (end - start) / self.length(motion.frames, parameters)

    def push(self, loads: Loads, frames: Frames, force: Array, parameters: Array) -> None:
        """Add a force in N that pushes the points apart."""
        start, end = self.ends(frames, parameters)
        vector = (end - start) / self.length(frames, parameters) * force
        loads.add_force(self._end, vector, end)
        loads.add_force(self._start, -vector, start)


class ActuatorForce(Force):
    """A force from outside along a line."""

    def __init__(self, actuator: Actuator, mechanism: Mechanism, points: Points) -> None:
        self.name = actuator.name
        self.line = Line(actuator, mechanism, points)

    def apply(self, loads: Loads, motion: Motion, given: Array | None, parameters: Array) -> None:
        """Push the points apart with the given force."""
        assert given is not None
        self.line.push(loads, motion.frames, given, parameters)

    def work_rate(self, motion: Motion, given: Array | None, parameters: Array) -> Array:
        """Return force times velocity in W."""
        assert given is not None
        return given * self.line.velocity(motion, parameters)


class SpringDamperForce(Force):
    """A spring and a damper along a line."""

    def __init__(self, spring: SpringDamper, mechanism: Mechanism, points: Points, properties: Properties) -> None:
        self.name = spring.name
        self._line = Line(spring, mechanism, points)
        self._stiffness = properties.scalar(f"{spring.name}.stiffness", spring.stiffness, "N/m", "stiffness", 0)
        self._damping = properties.scalar(f"{spring.name}.damping", spring.damping, "N.s/m", "damping", 0)
        self._free = properties.scalar(f"{spring.name}.free_length", spring.free_length, "m", "length without force", 0)

    def apply(self, loads: Loads, motion: Motion, given: Array | None, parameters: Array) -> None:  # noqa: ARG002
        """Push with the spring's and the damper's force."""
        stretch = self._line.length(motion.frames, parameters) - self._free.of(parameters)
        rate = self._line.velocity(motion, parameters)
        force = -self._stiffness.of(parameters) * stretch - self._damping.of(parameters) * rate
        self._line.push(loads, motion.frames, force, parameters)

    def dissipation(self, motion: Motion, parameters: Array) -> Array:
        """Return the damper's loss in W."""
        return self._damping.of(parameters) * self._line.velocity(motion, parameters) ** 2

    def energy(self, frames: Frames, coordinates: Array, parameters: Array) -> Array:  # noqa: ARG002
        """Return the spring's energy in J."""
        stretch = self._line.length(frames, parameters) - self._free.of(parameters)
        return 0.5 * self._stiffness.of(parameters) * stretch**2


class JointSpringDamperForce(Force):
    """A spring and a damper on a joint coordinate."""

    def __init__(self, spring: JointSpringDamper, mechanism: Mechanism, properties: Properties) -> None:
        self.name = spring.name
        self._coordinate, slides = joint_coordinate(mechanism, spring.joint)
        stiffness, damping, coordinate = ("N/m", "N.s/m", "m") if slides else ("N.m/rad", "N.m.s/rad", "rad")
        self._stiffness = properties.scalar(f"{spring.name}.stiffness", spring.stiffness, stiffness, "stiffness", 0)
        self._damping = properties.scalar(f"{spring.name}.damping", spring.damping, damping, "damping", 0)
        self._free = properties.scalar(
            f"{spring.name}.free_coordinate", spring.free_coordinate, coordinate, "coordinate without force"
        )

    def apply(self, loads: Loads, motion: Motion, given: Array | None, parameters: Array) -> None:  # noqa: ARG002
        """Add the spring's and the damper's load to the joint."""
        stretch = motion.coordinates[self._coordinate] - self._free.of(parameters)
        rate = motion.velocities[self._coordinate]
        load = -self._stiffness.of(parameters) * stretch - self._damping.of(parameters) * rate
        loads.joint_loads[self._coordinate] = loads.joint_loads[self._coordinate] + load

    def dissipation(self, motion: Motion, parameters: Array) -> Array:
        """Return the damper's loss in W."""
        return self._damping.of(parameters) * motion.velocities[self._coordinate] ** 2

    def energy(self, frames: Frames, coordinates: Array, parameters: Array) -> Array:  # noqa: ARG002
        """Return the spring's energy in J."""
        stretch = coordinates[self._coordinate] - self._free.of(parameters)
        return 0.5 * self._stiffness.of(parameters) * stretch**2


class JointDriveForce(Force):
    """A torque or force from outside in a joint.

    Attributes
    ----------
    slides
        True on a prismatic joint, where the drive gives a force.
    """

    def __init__(self, drive: JointDrive, mechanism: Mechanism) -> None:
        self.name = drive.name
        self._coordinate, self.slides = joint_coordinate(mechanism, drive.joint)

    def apply(self, loads: Loads, motion: Motion, given: Array | None, parameters: Array) -> None:  # noqa: ARG002
        """Add the given load to the joint."""
        loads.joint_loads[self._coordinate] = loads.joint_loads[self._coordinate] + given

    def work_rate(self, motion: Motion, given: Array | None, parameters: Array) -> Array:  # noqa: ARG002
        """Return load times joint velocity in W."""
        assert given is not None
        return given * motion.velocities[self._coordinate]


def joint_coordinate(mechanism: Mechanism, joint: str) -> tuple[int, bool]:
    """Return the index of a tree joint's coordinate, and whether the joint slides."""
    body = mechanism.topology.body_of_joint(joint)
    assert body is not None, joint  # the mechanism was checked when it was made
    tree_joint = mechanism.topology.tree[body]
    (coordinate,) = tree_joint.coordinates
    return coordinate, isinstance(tree_joint.joint, Prismatic)


def make_force(force: AnyForce, mechanism: Mechanism, points: Points, properties: Properties) -> Force:
    """Make the equations of what acts on a mechanism."""
    if isinstance(force, Actuator):
        return ActuatorForce(force, mechanism, points)
    if isinstance(force, SpringDamper):
        return SpringDamperForce(force, mechanism, points, properties)
    if isinstance(force, JointSpringDamper):
        return JointSpringDamperForce(force, mechanism, properties)
    if isinstance(force, JointDrive):
        return JointDriveForce(force, mechanism)
    raise TypeError(f"no equations are known for a {type(force).__name__}")
