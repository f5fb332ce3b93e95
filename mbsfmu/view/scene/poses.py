"""Poses of bodies at each frame, from recorded signals.

Poses of bodies at each frame, from recorded joint coordinates.

All formulations, with joint or absolute coordinates, record these as outputs, and so do coupled FMUs. The orientation
of a ball or free joint is recorded as a quaternion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.equations.bodies import Points, PointSlot, Properties, body_and_point
from mbsfmu.equations.forces import MechanismForces
from mbsfmu.equations.kinematics import NO_TURN, REFERENCE, Kinematics, tree_joints
from mbsfmu.equations.rotation import Frames, quaternion_conjugate, quaternion_from_rotation, quaternion_product
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.body import Body
from mbsfmu.model.mechanism import Mechanism, TreeJoint

Floats = NDArray[np.float64]


class Recorded:
    """Recorded signals of a run at viewing times.

    A variable of a system is called `boom.angle` in a run of the whole where no other system has one of that name,
    `mechanism.boom.angle` elsewhere and in coupled runs. Of a unit of several systems, `unit.mechanism` is one, whose
    variables the run may call `unit.boom.angle`.

    Parameters
    ----------
    run
        The run.
    times
        Where its signals are wanted in s, shape (k,), within the run.
    systems
        Names of the systems that the run is of.
    """

    def __init__(self, run: Trajectory, times: Floats, systems: Collection[str]) -> None:
        self.times = times
        self._run, self._systems = run, systems

    def name(self, system: str, variable: str) -> str | None:
        """Return the run's name of a variable; None if not recorded."""
        unit, inside, _ = system.rpartition(".")
        for exact in (f"{system}.{variable}", *([f"{unit}.{variable}"] if inside else []), variable):
            if exact in self._run.names:
                return exact
        # A unit of the whole model has a name of its own, which is no system's.
        units = [name.removesuffix(f".{variable}") for name in self._run.names if name.endswith(f".{variable}")]
        found = [unit for unit in units if unit not in self._systems]
        return f"{found[0]}.{variable}" if len(found) == 1 else None

    def find(self, system: str, variable: str) -> Floats | None:
        """Return a linearly interpolated signal, shape (k,); None if not recorded."""
        name = self.name(system, variable)
        return None if name is None else self.values(name)

    def values(self, name: str) -> Floats:
        """Return a signal by the run's name, linearly interpolated, shape (k,)."""
        return np.interp(self.times, self._run.time, self._run[name])

    def need(self, system: str, variable: str, what: str) -> Floats:
        """Return a signal, shape (k,).

        Raises
        ------
        InputError
            When it was not recorded; the sentence says what does not follow without it.
        """
        found = self.find(system, variable)
        if found is None:
            raise InputError(
                f"the run has no signal '{system}.{variable}', without which nobody knows {what}; let it be an output"
            )
        return found

    def quaternion(self, system: str, variable: str, what: str) -> Floats:
        """Return a unit quaternion (w, x, y, z), needed as by `need`, shape (k, 4).

        A quaternion and its negative mean one orientation: between rows it goes the short way.
        """
        names = [f"{variable}.{part}" for part in "wxyz"]
        for name in names:
            self.need(system, name, what)
        rows = np.stack([self._run[self.name(system, name) or name] for name in names], axis=1)
        turns = np.sign(np.sum(rows[1:] * rows[:-1], axis=1))
        rows = rows * np.cumprod(np.concatenate([[1.0], np.where(turns < 0.0, -1.0, 1.0)]))[:, None]
        found = np.stack([np.interp(self.times, self._run.time, column) for column in rows.T], axis=1)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def viewing_times(run: Trajectory, rate: float, fewest: int, most: int) -> Floats:
    """Return equally spaced times in s over a run, shape (k,), with limits of their number.

    Raises
    ------
    InputError
        When the run has no two times.
    """
    if len(run.time) < 2:
        raise InputError("the run has one time only; there is no motion to show")
    begin, end = float(run.time[0]), float(run.time[-1])
    count = int(np.clip(round((end - begin) * rate), fewest, most))
    return np.linspace(begin, end, count + 1)


class Placement:
    """Kinematics of a mechanism with the parameters of a run.

    Parameters
    ----------
    system, mechanism
        The mechanism, and its name in the model.
    values
        Values of parameters by `system.variable`; others are as in the data.

    Attributes
    ----------
    system, mechanism
        As given.
    bodies
        In the order of the poses.
    points, kinematics, forces, parameters
        The equations that the run had, and their numbers.
    parameter_names
        What the numbers are, by names in the system.
    """

    def __init__(self, system: str, mechanism: Mechanism, values: Mapping[str, float]) -> None:
        self.system, self.mechanism = system, mechanism
        self.bodies: tuple[Body, ...] = mechanism.topology.bodies
        properties = Properties()
        self.points = points = Points(mechanism, properties)
        self.kinematics = Kinematics(tree_joints(mechanism.topology, points))
        self.forces = MechanismForces(mechanism, points, properties)
        self._slots: dict[str, tuple[int, PointSlot]] = {
            reference: body_and_point(mechanism, points, reference) for reference in _all_points(mechanism)
        }
        starts = {variable.name: variable.start or 0.0 for variable in properties.variables}
        self.parameter_names = tuple(starts)
        self.parameters = np.array([values.get(f"{system}.{name}", start) for name, start in starts.items()])

    def point(self, reference: str) -> tuple[int, Floats]:
        """Return the index of a point's body, -1 for the ground, and its coordinates in the body's frame in m."""
        body, slot = self._slots[reference]
        return body, np.asarray(slot.of(self.parameters), dtype=float)

    def points_of(self, body: str) -> dict[str, Floats]:
        """Return the points of a body, or of the ground, by name, each of shape (3,), in m."""
        return {
            name: self.point(reference)[1]
            for reference in self._slots
            for owner, _, name in [reference.partition(".")]
            if owner == body
        }

    def frames(self, recorded: Recorded) -> list[Frames]:
        """Return the poses of the bodies at each time.

        Raises
        ------
        InputError
            When a joint coordinate was not recorded.
        """
        coordinates, references = self.coordinates(recorded)
        return [self.kinematics.frames(*each, self.parameters) for each in zip(coordinates, references, strict=True)]

    def velocities(self, recorded: Recorded, frames: list[Frames]) -> Floats | None:
        """Return the joint velocities at each time, shape (k, n); None if not recorded."""
        topology = self.mechanism.topology
        result = np.zeros((len(recorded.times), topology.coordinates))
        for index, (body, joint) in enumerate(zip(topology.bodies, topology.tree, strict=True)):
            for coordinate, name in recorded_coordinates(joint):
                rate = name.replace("displacement", "velocity").replace("angle", "angular_velocity")
                found = recorded.find(self.system, f"{body.name}.{rate}")
                if found is None:
                    return None
                result[:, coordinate] = found
            if joint.reference is not None:
                three = [recorded.find(self.system, f"{body.name}.angular_velocity.{axis}") for axis in "xyz"]
                turning = [each for each in three if each is not None]
                if len(turning) < 3:
                    return None
                hinges = [element.coordinate for element in self.kinematics.joints[index].hinges]
                for row, frame, angular in zip(result, frames, np.stack(turning, axis=1), strict=True):
                    axes = np.stack([frame.axis[hinge] for hinge in hinges], axis=1)
                    row[hinges] = np.linalg.solve(axes, frame.orientation(joint.parent) @ angular)
        return result

    def coordinates(self, recorded: Recorded) -> tuple[Floats, Floats]:
        """Return joint coordinates, shape (k, n), and reference orientations, shape (k, 8 r)."""
        topology, count = self.mechanism.topology, len(recorded.times)
        coordinates = np.zeros((count, topology.coordinates))
        references = np.tile(NO_TURN, (count, topology.references))
        for body, joint in zip(topology.bodies, topology.tree, strict=True):
            for index, name in recorded_coordinates(joint):
                coordinates[:, index] = recorded.need(self.system, f"{body.name}.{name}", f"where '{body.name}' is")
            if joint.reference is not None:
                four = slice(REFERENCE * joint.reference, REFERENCE * joint.reference + 4)
                references[:, four] = self._turned(recorded, body)
        return coordinates, references

    def _turned(self, recorded: Recorded, body: Body) -> Floats:
        """Return the reference orientations of ball and free joints for zero angles, shape (k, 4)."""
        quaternions = recorded.quaternion(self.system, f"{body.name}.quaternion", f"how '{body.name}' is turned")
        back = self.back(body)
        return np.array([quaternion_product(quaternion, back) for quaternion in quaternions])

    def back(self, body: Body) -> Floats:
        """Return the quaternion that leads from a recorded one of a free joint to its reference orientation."""
        joint = self.kinematics.joints[[each.name for each in self.bodies].index(body.name)]
        return quaternion_conjugate(joint.quaternion)


def _all_points(mechanism: Mechanism) -> list[str]:
    own = [f"{body.name}.{name}" for body in mechanism.bodies for name in (*body.all_points, "centre")]
    return list(dict.fromkeys([*(f"ground.{name}" for name in mechanism.ground), *own]))


def recorded_coordinates(joint: TreeJoint) -> list[tuple[int, str]]:
    """Return index and name of a joint's pose coordinates; a quaternion for ball and free joints."""
    return [
        (index, name)
        for index, name, element in zip(
            joint.coordinates, joint.joint.coordinate_names, joint.joint.elements, strict=True
        )
        if element.slides or not joint.joint.turns_freely
    ]


def poses(frames: list[Frames]) -> Floats:
    """Return position in m and quaternion (x, y, z, w) of each body's frame, shape (k, bodies, 7)."""
    result = np.empty((len(frames), len(frames[0].origin), 7))
    for frame, row in zip(frames, result, strict=True):
        for body, (origin, rotation) in enumerate(zip(frame.origin, frame.rotation, strict=True)):
            row[body, :3] = origin
            row[body, 3:] = np.roll(quaternion_from_rotation(np.asarray(rotation, dtype=float)), -1)
    return result


def point_path(moved: Floats, body: int, local: Floats) -> Floats:
    """Return a body's point at each frame, shape (k, 3), in m.

    Parameters
    ----------
    moved
        Poses as of `poses`.
    body
        Index of the body; -1 is the ground.
    local
        The point in the frame of the body, shape (3,), in m.
    """
    if body < 0:
        return np.broadcast_to(local, (len(moved), 3))
    position, vector, scalar = np.split(moved[:, body], [3, 6], axis=1)
    across = 2.0 * np.cross(vector, local)
    return position + local + scalar * across + np.cross(vector, across)
