"""Icons of FMUs: mechanisms where they start, seen from the side that shows most of them; or what other kinds draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise

import numpy as np

from mbsfmu.equations.bodies import Points, body_and_point
from mbsfmu.equations.coordinate_charts import NO_TURN
from mbsfmu.equations.kinematics import Kinematics
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.tree_joints import tree_joints
from mbsfmu.fmu.raster import draw
from mbsfmu.model.coupled import AnySystem
from mbsfmu.model.icon_strokes import BODY, FORCE, JOINT, Stroke, box
from mbsfmu.model.mechanism import Mechanism, mechanisms_of
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.model.system_kinds import kind_of
from mbsfmu.modelling.fields import Array
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.system import starts


def icon(systems: Mapping[str, AnySystem], simulation: Simulation) -> bytes:
    """Return a PNG of what an FMU is made of.

    Parameters
    ----------
    systems
        Its systems by name; where there is a mechanism it is drawn alone, with its actuators.
    simulation
        The simulation of the FMU, which knows where mechanisms start.
    """
    mechanisms = mechanisms_of(systems)
    if mechanisms:
        return draw(list(_mechanisms(mechanisms, simulation)))
    return draw([stroke for data in systems.values() for stroke in kind_of(data).icon(data)] or list(box()))


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
    no_turns = np.tile(NO_TURN, mechanism.topology.references)
    frames = kinematics.frames(coordinates, no_turns, parameters)
    places = {name: frames.point(body, slot.of(parameters)) for name, (body, slot) in slots.items()}
    for body in range(len(mechanism.topology.bodies)):
        own = [places[name] for name, (index, _) in slots.items() if index == body]
        for begin, end in combinations(own, 2):
            yield begin, end, 5.0, BODY
    for start, end in forces:
        yield places[start], places[end], 4.0, FORCE
    for parent, child in joints:
        for name in (parent, child):
            yield places[name], places[name], 9.0, JOINT


def _stroke(begin: Array, end: Array, width: float, colour: tuple[int, int, int]) -> Stroke:
    (a, b), (c, d) = begin.tolist(), end.tolist()
    return Stroke((a, b), (c, d), width, colour)
