"""Icons of units: a mechanism where it starts, seen from the side that shows most of it; or a circuit, or a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise

import numpy as np

from hydraulics import Circuit
from mbsfmu.equations.bodies import Points, body_and_point
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.tree_joints import tree_joints
from mbsfmu.fmu.raster import Stroke, draw
from mbsfmu.model.coupled import AnySystem
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.modelling.fields import Array
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.system import starts

_BODY, _JOINT, _FORCE, _OIL = (52, 73, 94), (44, 62, 80), (192, 57, 43), (41, 128, 185)


def icon(systems: Mapping[str, AnySystem], simulation: Simulation) -> bytes:
    """Return a PNG of what an FMU is made of.

    Parameters
    ----------
    systems
        Its systems by name; where there is a mechanism, circuits are left to its cylinders, and blocks are drawn alone.
    simulation
        The simulation of the unit, which knows where mechanisms start.
    """
    mechanisms = {name: data for name, data in systems.items() if isinstance(data, Mechanism)}
    if mechanisms:
        return draw(list(_mechanisms(mechanisms, simulation)))
    circuits = [stroke for data in systems.values() if isinstance(data, Circuit) for stroke in _circuit(data)]
    return draw(circuits or list(_block()))


def _mechanisms(mechanisms: Mapping[str, Mechanism], simulation: Simulation) -> Iterator[Stroke]:
    system = simulation.initialization.system
    found = simulation.initialization.run(starts(system.parameters)).coordinates
    first, shapes = 0, []
    for part in system.parts:
        coordinates = found[first : first + len(part.coordinates)]
        first += len(coordinates)
        if len(coordinates):
            mechanism = mechanisms.get(part.name) or next(iter(mechanisms.values()))
            shapes += list(_lines(mechanism, coordinates))
    extent = np.ptp([end for *ends, _, _ in shapes for end in ends], axis=0)
    across, up = sorted(np.argsort(-extent, kind="stable")[:2].tolist())
    for begin, end, width, colour in shapes:
        yield _stroke(begin[[across, up]], end[[across, up]], width, colour)


def _lines(mechanism: Mechanism, coordinates: Array) -> Iterator[tuple[Array, Array, float, tuple[int, int, int]]]:
    """Yield the ends of lines in the inertial frame in m, with width and colour: bodies, forces, joints."""
    properties = Properties()
    points = Points(mechanism, properties)
    kinematics = Kinematics(tree_joints(mechanism.topology, points))
    joints = [(joint.parent, joint.child) for joint in mechanism.joints]
    forces = [pair for each in mechanism.forces for pair in pairwise(references(each, ReferenceKind.POINT))]
    named = [f"{body.name}.{name}" for body in mechanism.topology.bodies for name in (*body.all_points, "centre")]
    used = dict.fromkeys([each for pair in (*joints, *forces) for each in pair] + named)
    slots = {name: body_and_point(mechanism, points, name) for name in used}
    parameters = starts(properties.variables)
    no_turns = np.tile([1.0, 0.0, 0.0, 0.0], mechanism.topology.references)
    frames = kinematics.frames(coordinates, no_turns, parameters)
    places = {name: frames.point(body, slot.of(parameters)) for name, (body, slot) in slots.items()}
    for body in range(len(mechanism.topology.bodies)):
        own = [places[name] for name, (index, _) in slots.items() if index == body]
        for begin, end in combinations(own, 2):
            yield begin, end, 5.0, _BODY
    for start, end in forces:
        yield places[start], places[end], 4.0, _FORCE
    for parent, child in joints:
        for name in (parent, child):
            yield places[name], places[name], 9.0, _JOINT


def _circuit(circuit: Circuit) -> Iterator[Stroke]:
    """Draw nodes around a circle, and components as dots between the nodes at their ports; actuators stand out."""
    nodes = list(dict.fromkeys(node for component in circuit.components for node in component.nodes()))
    turns = 2.0 * np.pi * np.arange(len(nodes)) / len(nodes)
    places = {node: np.array([np.sin(turn), np.cos(turn)]) for node, turn in zip(nodes, turns, strict=True)}
    for component in circuit.components:
        own = [places[node] for node in component.nodes()]
        middle = np.mean(own, axis=0) if len(own) > 1 else 1.25 * own[0]
        width, colour = (14.0, _FORCE) if component in circuit.actuators else (9.0, _OIL)
        for place in own:
            yield _stroke(middle, place, 3.0, _OIL)
        yield _stroke(middle, middle, width, colour)
    for place in places.values():
        yield _stroke(place, place, 7.0, _JOINT)


def _block() -> Iterator[Stroke]:
    """Draw a box with a line that goes in and one that comes out."""
    corners = np.array([[-1.0, -0.7], [1.0, -0.7], [1.0, 0.7], [-1.0, 0.7], [-1.0, -0.7]])
    for begin, end in pairwise(corners):
        yield _stroke(begin, end, 5.0, _BODY)
    for side in (-1.0, 1.0):
        yield _stroke(np.array([side, 0.0]), np.array([2.0 * side, 0.0]), 5.0, _FORCE)


def _stroke(begin: Array, end: Array, width: float, colour: tuple[int, int, int]) -> Stroke:
    (a, b), (c, d) = begin.tolist(), end.tolist()
    return Stroke((a, b), (c, d), width, colour)
