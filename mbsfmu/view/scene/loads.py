"""Forces in an animation: arrows on bodies at each frame, and lines between points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hydraulics.component import HydraulicActuator
from hydraulics.cylinders import AnyCylinder
from mbsfmu.equations.forces import ActingForce, Given
from mbsfmu.equations.joint_coordinates import Loads, MotionState, TreeCoordinate, coordinate_at
from mbsfmu.equations.rotation import Frames
from mbsfmu.model.force import Force, PointLoad
from mbsfmu.model.machine import Machine
from mbsfmu.model.model_data import circuits_of
from mbsfmu.model.reference_types import GROUND, ReferenceKind, references, split_reference
from mbsfmu.view.scene.body_shapes import numbers, packed
from mbsfmu.view.scene.poses import Floats, Placement, Recorded


class LoadedJoint:
    """A joint coordinate with a load.

    Parameters
    ----------
    placement
        The mechanism.
    reference
        `joint`, or `joint.coordinate`.

    Attributes
    ----------
    point
        The joint's point, as `body.point`, on the body that the load is shown on: the outer one of the tree, or the
        child, but the parent where the child is the ground.
    """

    def __init__(self, placement: Placement, reference: str) -> None:
        mechanism = placement.mechanism
        joint, index = mechanism.joint_element(reference)
        self._placement = placement
        self._slides = joint.elements[index].slides
        self._coordinate = coordinate_at(mechanism, placement.points, reference)
        outer = mechanism.topology.body_of_joint(joint.name)
        on_parent = split_reference(joint.child)[0] == GROUND
        if outer is not None and isinstance(self._coordinate, TreeCoordinate):
            on_parent = mechanism.topology.tree[outer].reversed
        self.point = joint.parent if on_parent else joint.child

    def exerted(self, load: Floats, motion: MotionState) -> tuple[Floats | None, Floats | None]:
        """Return the force in N and the moment in N m, each of shape (3,) or None, that a load exerts at the point."""
        if isinstance(self._coordinate, TreeCoordinate):
            along = np.asarray(load * motion.frames.axis[self._coordinate.index], dtype=float)
            return (along, None) if self._slides else (None, along)
        body, _ = self._placement.point(self.point)
        loads = Loads.none(len(motion.body_velocities), len(motion.coordinates))
        self._coordinate.add_load(loads, load, motion, self._placement.parameters)
        force, moment = np.split(np.asarray(loads.wrenches[body], dtype=float), 2)
        return (force, None) if self._slides else (None, moment)


class _Place(NamedTuple):
    """Place of a load: name of the force, point as `body.point`, and `force` or `moment`."""

    name: str
    point: str
    kind: str


class Acting:
    """The forces of a mechanism in a run.

    Parameters
    ----------
    placement, machine
        The mechanism, and what it is part of.
    recorded
        The run.
    frames
        Where the bodies are at its times.

    Attributes
    ----------
    notes
        Sentences on forces that cannot be drawn.
    """

    def __init__(self, placement: Placement, machine: Machine, recorded: Recorded, frames: list[Frames]) -> None:
        self._placement, self._machine, self._recorded, self._frames = placement, machine, recorded, frames
        self.notes: list[str] = []
        self._joints: dict[str, LoadedJoint] = {}
        self._states = [self._signal(each.name) for each in placement.forces.states]
        self._inputs = [self._signal(each.name) for each in placement.forces.inputs]
        self._coordinates, _ = placement.coordinates(recorded)
        self._velocities = placement.velocities(recorded, frames) if placement.forces.acting else None

    def arrows(self, first_body: int) -> list[dict[str, Any]]:
        """Return the arrows, each at a point of a body; `first_body` is the index of the mechanism's first one."""
        drawable = [force for force in self._placement.forces.acting if self._is_known(force)]
        if self._velocities is None or not drawable:
            return []
        found: dict[_Place, list[Floats]] = {}
        for index, frames in enumerate(self._frames):
            velocities = self._velocities[index]
            moved = self._placement.kinematics.velocities(frames, velocities)
            motion = MotionState(self._coordinates[index], velocities, frames, moved)
            given = Given(self._at(self._states, index), self._at(self._inputs, index), self._placement.parameters)
            for force in drawable:
                for place, vector in self._exerted(force, motion, given):
                    found.setdefault(place, []).append(vector)
        return [
            self._arrow(place, np.array(vectors), first_body)
            for place, vectors in found.items()
            if split_reference(place.point)[0] != GROUND
        ]

    def _arrow(self, place: _Place, vectors: Floats, first_body: int) -> dict[str, Any]:
        body, position = self._placement.point(place.point)
        return {
            "name": place.name,
            "kind": place.kind,
            "body": first_body + body,
            "position": numbers(position),
            "values": packed(vectors),
        }

    def _exerted(self, force: ActingForce, motion: MotionState, given: Given) -> Iterator[tuple[_Place, Floats]]:
        """Yield the loads of a force with their places, in N or N m."""
        for load in force.force.loads(force.present(motion, given)):
            named = getattr(force.force, load[0])
            if isinstance(load, PointLoad):
                point, both = named, (load.force, load.moment)
            else:
                joint = self._joints.setdefault(named, LoadedJoint(self._placement, named))
                point, both = joint.point, joint.exerted(np.asarray(load.load, dtype=float), motion)
            for kind, vector in zip(("force", "moment"), both, strict=True):
                if vector is not None:
                    yield _Place(force.force.name, point, kind), np.asarray(vector, dtype=float)

    def _signal(self, name: str) -> Floats | None:
        """Return a state or an input at the frames: recorded from its source, or from its signal.

        What a connection drives a run of the whole does not have under its own name: that may be another one's there.
        """
        system, times = self._placement.system, self._recorded.times
        full = f"{system}.{name}"
        source = next((source for source, target in self._machine.connections if target == full), None)
        if source is not None:
            return self._recorded.find(*self._machine.split(source))
        if (found := self._recorded.find(system, name)) is not None:
            return found
        signal = self._machine.signals.get(full)
        return None if signal is None else np.array([signal.before(float(time)) for time in times])

    def _is_known(self, force: ActingForce) -> bool:
        """Return whether all variables of a force are known; report missing ones."""
        forces = self._placement.forces
        own = f"{force.force.name}."
        of_all = zip((*forces.states, *forces.inputs), (*self._states, *self._inputs), strict=True)
        missing = [each.name for each, values in of_all if each.name.startswith(own) and values is None]
        if self._velocities is None:
            missing = ["velocities of the joints"]
        if missing:
            self.notes.append(f"{force.force.name} is not drawn as arrows: the run has no {missing[0]}")
        return not missing

    @staticmethod
    def _at(signals: list[Floats | None], frame: int) -> Floats:
        return np.array([0.0 if values is None else values[frame] for values in signals])


_DEAD, _HEAD = 0.4, 0.2
"""Shares of what a retracted cylinder is longer than its stroke: behind the piston, and the head before it."""
_WALL = 1.15
"""Ratio of outer to inner diameter of a barrel."""


def force_lines(placement: Placement, machine: Machine, first_body: int, size: float) -> list[dict[str, Any]]:
    """Return the forces of a mechanism between two points.

    Parameters
    ----------
    placement, machine
        The mechanism, and what it is part of.
    first_body
        Index of its first body among those of the scene.
    size
        How large the mechanism is in m.
    """
    result = []
    for force in placement.mechanism.forces:
        points = references(force, ReferenceKind.POINT)
        if len(points) != 2 or force.symbol == "none":
            continue
        ends = []
        for reference in points:
            body, position = placement.point(reference)
            ends.append({"body": body if body < 0 else first_body + body, "position": numbers(position)})
        line = {"name": f"{placement.system}.{force.name}", "kind": force.symbol, "radius": 0.012 * size, "ends": ends}
        for actuator in _actuators(machine, placement.system, force):
            line |= _cylinder(*actuator, machine)
        result.append(line)
    return result


def _actuators(machine: Machine, system: str, force: Force) -> Iterator[tuple[str, HydraulicActuator]]:
    """Yield the hydraulic cylinder of a force, with the name of its circuit."""
    inputs = {f"{system}.{force.name}.{each.name}" for each in force.inputs()}
    circuits = circuits_of(machine.systems)
    for source, target in machine.connections:
        circuit, variable = machine.split(source)
        if target in inputs and circuit in circuits:
            name = variable.partition(".")[0]
            yield from ((circuit, each) for each in circuits[circuit].actuators if each.name == name)


def _cylinder(circuit: str, actuator: HydraulicActuator, machine: Machine) -> dict[str, Any]:
    """Return the sizes of a cylinder in m, and the nodes of its chambers."""
    nodes = [f"{circuit}.{node}" for node in actuator.nodes()]
    if not isinstance(actuator, AnyCylinder):
        return {"nodes": nodes[:2]}

    def number(field: str) -> float:
        value = getattr(actuator, field)
        return machine.values.get(f"{circuit}.{actuator.name}.{field}", value)

    stroke, retracted = number("stroke"), number("retracted_length")
    spare = max(retracted - stroke, 0.0)
    sizes = {"dead": _DEAD * spare, "barrel": stroke + (_DEAD + _HEAD) * spare, "retracted": retracted}
    if hasattr(actuator, "piston_diameter"):
        piston, rod = number("piston_diameter"), number("rod_diameter")
        sizes |= {"bore": 0.5 * _WALL * piston, "rod": 0.5 * rod}
    return {"kind": "cylinder", "nodes": nodes[:2], "cylinder": sizes}
