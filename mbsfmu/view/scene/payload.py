"""Motion of a mechanism as data for a page: shapes once, poses at each frame, of one or several runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, cycle
from typing import Any

import numpy as np

from hydraulics import Component
from mbsfmu.base.errors import InputError
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.model.mechanism import mechanisms_of
from mbsfmu.model.model_data import circuits_of
from mbsfmu.model.reference_types import GROUND, ReferenceKind, references
from mbsfmu.view.scene.body_shapes import given_shapes, joint_symbols, numbers, packed, shapes_of
from mbsfmu.view.scene.loads import Acting, force_lines
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
