"""Forces and moments on bodies at each frame, as arrows, from the recorded run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mbsfmu.equations.forces import ActingForce
from mbsfmu.equations.frames import Frames
from mbsfmu.equations.loads import MotionState
from mbsfmu.equations.located_part import Given
from mbsfmu.model.force import PointLoad
from mbsfmu.model.machine import Machine
from mbsfmu.model.reference_types import GROUND, split_reference
from mbsfmu.view.scene.body_shapes import numbers
from mbsfmu.view.scene.joint_loads import LoadedJoint
from mbsfmu.view.scene.packing import packed
from mbsfmu.view.scene.poses import Placement
from mbsfmu.view.scene.recorded import Floats, Recorded


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
