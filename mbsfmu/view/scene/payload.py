"""Motion of a mechanism as data for a page: shapes once, poses at each frame, of one or several runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, cycle
from typing import Any, NamedTuple

import numpy as np

from hydraulics import Component
from hydraulics.component import HydraulicActuator
from hydraulics.cylinders import AnyCylinder
from mbsfmu.base.errors import InputError
from mbsfmu.equations.forces import ActingForce, Given
from mbsfmu.equations.joint_coordinates import Loads, MotionState, TreeCoordinate, coordinate_at
from mbsfmu.equations.rotation import Frames
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.force import Force, PointLoad
from mbsfmu.model.machine import Machine
from mbsfmu.model.mechanism import mechanisms_of
from mbsfmu.model.model_data import circuits_of
from mbsfmu.model.reference_types import GROUND, ReferenceKind, references, split_reference
from mbsfmu.view.scene.body_shapes import given_shapes, joint_symbols, numbers, packed, shapes_of
from mbsfmu.view.scene.poses import Floats, Placement, Recorded, point_path, poses, viewing_times

FRAME_RATE = 30.0
"""Frames per second of a run; a page interpolates between them."""
_FEWEST, _MOST = 120, 3600
"""Limits of the number of frame intervals."""
_ROUGH = 0.1
"""Interval of recorded rows in s above which a note is given."""
_COLOURS = ("#d9902f", "#4c86b8", "#6a9a5b", "#9a6fb0", "#b8604c", "#4fa3a0", "#8c8250", "#77808c")
"""Colours of bodies in turn, where their shapes have none."""
_AGREEMENT = 1e-3
"""Tolerance of recorded lengths relative to a mechanism's size."""


def motion(
    machine: Machine,
    run: Trajectory,
    beside: Mapping[str, Trajectory] | None = None,
    *,
    label: str = "",
    frame_rate: float = FRAME_RATE,
    arrows: bool = True,
) -> dict[str, Any]:
    """Return the motion of a run's mechanisms as plain data for a page.

    Parameters
    ----------
    machine
        What the run was made of.
    run
        The run, with joint coordinates among its signals.
    beside
        Further runs of the same machine by their labels: they are shown as ghosts.
    label
        What the first run is called.
    frame_rate
        Frames for each second of a run.
    arrows
        Whether forces and moments are drawn.

    Raises
    ------
    InputError
        When there is no mechanism, or a run lacks the coordinates of a joint; the sentence names them.
    """
    if not frame_rate > 0.0:
        raise InputError(f"frame_rate is {frame_rate}; it must be positive")
    placements = placements_of(machine)
    times = viewing_times(run, frame_rate, _FEWEST, _MOST)
    label = label or "run"
    if label in (beside or {}):
        raise InputError(f"two runs are called '{label}'; give the first one a label of its own")
    runs = {label: run, **(beside or {})}
    shown = [_Run(name, each, times, placements, machine) for name, each in runs.items()]
    lowest, highest = shown[0].bounds
    size = float(np.max(highest - lowest))
    bodies = [0, *accumulate(len(each.bodies) for each in placements)]
    parts = list(zip(placements, bodies, strict=False))
    looks = [_Looks(each, size) for each in placements]
    acting = shown[0].acting if arrows else []
    return {
        "name": machine.name,
        "time": {"start": float(times[0]), "stop": float(times[-1]), "count": len(times)},
        "up": numbers(_up(placements)),
        "across": numbers(_across(placements)),
        "lowest": numbers(lowest),
        "highest": numbers(highest),
        "bodies": [
            {**body, "colour": colour}
            for body, colour in zip(
                (body for each in looks for body in each.bodies(several=len(placements) > 1)),
                cycle(_COLOURS),
                strict=False,
            )
        ],
        "scenery": [shape for each in looks for shape in each.scenery],
        "ground": {name: numbers(place) for each in placements for name, place in each.points_of(GROUND).items()},
        "joints": [symbol for each, first in parts for symbol in joint_symbols(each, first)],
        "lines": [line for each, first in parts for line in force_lines(each, machine, first, size)],
        "arrows": [arrow for each, first in zip(acting, bodies, strict=False) for arrow in each.arrows(first)],
        "runs": [each.payload() for each in shown],
        "notes": [
            *shown[0].missing,
            *chain(*(each.notes for each in (*looks, *acting)), *(each.notes(size) for each in shown)),
        ],
    }


@dataclass(frozen=True)
class Uncoloured:
    """A node whose pressure is not known.

    Attributes
    ----------
    component
        `circuit.component` that is drawn without its colour.
    """

    component: str


def pressure_sources(machine: Machine, recorded: Recorded) -> dict[str, tuple[str, str] | float | Uncoloured]:
    """Return where the pressures of the nodes at actuators come from, by `circuit.node`.

    It is a variable as system and name, or a constant in Pa, or nothing.
    """
    found: dict[str, tuple[str, str] | float | Uncoloured] = {}
    for name, data in circuits_of(machine.systems).items():
        for component in data.actuators:
            for node in component.ports().values():
                source = node_pressure(machine, recorded, name, node)
                found.setdefault(f"{name}.{node}", Uncoloured(f"{name}.{component.name}") if source is None else source)
    return found


def node_pressure(machine: Machine, recorded: Recorded, circuit: str, node: str) -> tuple[str, str] | float | None:
    """Return where the pressure of a node comes from: a variable as system and name, a constant in Pa, or None."""
    data = circuits_of(machine.systems)[circuit]
    holder = data.source_nodes.get(node)
    # FMUs have the pressures of cylinders as outputs, and those of sources that are driven as inputs.
    at_actuators = [
        f"{each.name}.pressure_{port}" for each in data.actuators for port, at in each.ports().items() if at == node
    ]
    driven = [] if holder is None else [f"{holder.name}.pressure"]
    for variable in (f"{node}.pressure", *driven):
        if recorded.name(circuit, variable) is not None:
            return circuit, variable
    held = _held_pressure(machine, circuit, holder)
    known = [each for each in at_actuators if recorded.name(circuit, each) is not None]
    return held if held is not None or not known else (circuit, known[0])


def _held_pressure(machine: Machine, circuit: str, source: Component | None) -> float | None:
    """Return the pressure in Pa of a node held by a source, such as a tank; None if unknown."""
    pressure = None if source is None else getattr(source, "pressure", None)
    if source is None or pressure is None:
        return None
    return float(machine.values.get(f"{circuit}.{source.name}.pressure", pressure))


def placements_of(machine: Machine) -> list[Placement]:
    """Return the mechanisms of a machine."""
    mechanisms = mechanisms_of(machine.systems)
    if not mechanisms:
        raise InputError(f"{machine.name} has no mechanism; there is no motion to show")
    return [Placement(name, data, machine.values) for name, data in mechanisms.items()]


class _Looks:
    """Shapes of a mechanism's bodies: given ones, or defaults."""

    def __init__(self, placement: Placement, size: float) -> None:
        self._placement = placement
        self.scenery, self.notes = given_shapes(placement.mechanism.scenery, GROUND)
        self._shapes = []
        for body, suggested in zip(placement.bodies, shapes_of(placement, size), strict=True):
            given, notes = given_shapes(body.shapes, body.name)
            self._shapes.append(given or suggested)
            self.notes += notes

    def bodies(self, *, several: bool) -> Iterator[dict[str, Any]]:
        """Yield name, shapes and points of the bodies."""
        for body, shapes in zip(self._placement.bodies, self._shapes, strict=True):
            name = f"{self._placement.system}.{body.name}" if several else body.name
            points = {name: numbers(place) for name, place in self._placement.points_of(body.name).items()}
            yield {"name": name, "shapes": shapes, "points": points}


def _up(placements: list[Placement]) -> Floats:
    """Return the upward direction against gravity; y without gravity."""
    gravity = np.array(placements[0].mechanism.gravity)
    strength = float(np.linalg.norm(gravity))
    return -gravity / strength if strength else np.array([0.0, 1.0, 0.0])


def _across(placements: list[Placement]) -> Floats:
    """Return the common axis of all hinges; zero without one."""
    axes = [
        np.array(element.axis) / np.linalg.norm(element.axis)
        for each in placements
        for joint in each.mechanism.joints
        for element in joint.elements
        if not element.slides
    ]
    planar = bool(axes) and all(abs(abs(axis @ axes[0]) - 1.0) < 1e-9 for axis in axes)
    return axes[0] if planar else np.zeros(3)


class _Run:
    """One run of the machine at the frames."""

    def __init__(
        self, label: str, run: Trajectory, times: Floats, placements: list[Placement], machine: Machine
    ) -> None:
        self._label, self._times, self._placements, self._trajectory = label, times, placements, run
        past = 1e-9 * (1.0 + abs(float(times[-1])))
        self._reached = int(np.searchsorted(times, float(run.time[-1]) + past))
        self._recorded = Recorded(run, times[: self._reached], machine.systems)
        frames = [placement.frames(self._recorded) for placement in placements]
        self._frames, self._machine = frames, machine
        self._poses = np.concatenate([poses(each) for each in frames], axis=1)
        self._reached = _finite(self._poses)
        self._poses = self._poses[: self._reached]
        self._colourless: dict[str, str] = {}
        self._pressures = dict(self._found_pressures(machine))

    @property
    def acting(self) -> list[Acting]:
        """The forces of the mechanisms."""
        pairs = zip(self._placements, self._frames, strict=True)
        return [Acting(placement, self._machine, self._recorded, frames) for placement, frames in pairs]

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Bounding box of the mechanisms' points, corners of shape (3,) in m."""
        places = []
        index = 0
        for placement in self._placements:
            places += [place[None] for place in placement.points_of(GROUND).values()]
            for body in placement.bodies:
                for place in placement.points_of(body.name).values():
                    places.append(self.places(index, place))
                index += 1
        every = np.concatenate(places)
        return every.min(axis=0), every.max(axis=0)

    def places(self, body: int, local: Floats) -> Floats:
        """Return a body's point at the frames, shape (k, 3), in m; body -1 is the ground."""
        return point_path(self._poses, body, local)

    def _found_pressures(self, machine: Machine) -> Iterator[tuple[str, Floats]]:
        """Yield the pressures of nodes in bar by `circuit.node`."""
        for node, source in pressure_sources(machine, self._recorded).items():
            if isinstance(source, Uncoloured):
                self._colourless.setdefault(source.component, f"{node}.pressure")
            elif isinstance(source, tuple):
                yield node, self._recorded.need(*source, "its pressure") / 1e5
            else:
                yield node, np.full(self._reached, source / 1e5)

    def payload(self) -> dict[str, Any]:
        """Return the run as data of the page: numbers are of four bytes, in base64."""
        return {
            "label": self._label,
            "reached": self._reached,
            "poses": packed(self._poses),
            "pressures": {name: packed(values) for name, values in self._pressures.items()},
        }

    @property
    def missing(self) -> list[str]:
        """Sentences on cylinders that are drawn without colours."""
        return [
            f"{name} has no colours of pressures: the run has no signal '{signal}'; let it be an output"
            for name, signal in self._colourless.items()
        ]

    def notes(self, size: float) -> Iterator[str]:
        """Yield the notes for the viewer of a page."""
        begin = float(self._trajectory.time[0])
        if begin > float(self._times[0]):
            yield f"{self._label}: the run begins at {begin:.6g} s; before, it is shown as it was then"
        if self._reached < len(self._times):
            yield f"{self._label}: the run ended at {self._trajectory.time[-1]:.6g} s"
        apart = float(np.max(np.diff(self._trajectory.time)))
        if apart > _ROUGH:
            yield f"{self._label}: rows are up to {apart:.3g} s apart; coordinates in between are interpolated"
        first = 0
        for placement in self._placements:
            yield from self._disagreements(placement, first, size)
            first += len(placement.bodies)

    def _disagreements(self, placement: Placement, first: int, size: float) -> Iterator[str]:
        """Return messages on recorded lengths that differ from those of the points, because of other parameters."""
        for force in placement.mechanism.forces:
            lengths = self._recorded.find(placement.system, f"{force.name}.length")
            ends = [placement.point(reference) for reference in references(force, ReferenceKind.POINT)]
            if lengths is None or len(ends) != 2:
                continue
            one, other = (self.places(body if body < 0 else first + body, local) for body, local in ends)
            off = float(np.max(np.abs(np.linalg.norm(other - one, axis=1) - lengths)))
            if off > _AGREEMENT * size:
                yield (
                    f"{self._label}: the length of {force.name} differs by up to {off:.3g} m from what was recorded; "
                    "the run had other parameters"
                )


def _finite(values: Floats) -> int:
    """Return the number of rows before the first non-finite one."""
    broken = np.flatnonzero(~np.isfinite(values).all(axis=(1, 2)))
    return int(broken[0]) if len(broken) else len(values)


# -- forces in an animation: arrows on bodies at each frame, and lines between points ----------------------------------


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
