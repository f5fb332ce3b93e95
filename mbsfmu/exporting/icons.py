"""Icons of FMUs: mechanisms where they start, or what other kinds draw, as pictures of lines and dots."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from mbsfmu.equations.bodies import Points, Properties, body_and_point
from mbsfmu.equations.kinematics import NO_TURN, Kinematics, tree_joints
from mbsfmu.model.mechanism import Mechanism, mechanisms_of
from mbsfmu.model.model_data import AnySystem
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.model.system_kinds import BODY, FORCE, JOINT, Stroke, box, kind_of
from mbsfmu.modelling.data import Array
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.systems.system import starts

Floats = NDArray[np.float64]
_SIDE = 96  # pixels
_MARGIN = 10  # pixels


def draw(strokes: Sequence[Stroke]) -> bytes:
    """Return a PNG with the strokes one over the other, as large as the picture allows, on nothing."""
    ends = np.array([end for stroke in strokes for end in (stroke.begin, stroke.end)])
    low, high = ends.min(axis=0), ends.max(axis=0)
    scale = (_SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    y, x = np.mgrid[0:_SIDE, 0:_SIDE] + 0.5
    pixels, cover = np.zeros((_SIDE, _SIDE, 3)), np.zeros((_SIDE, _SIDE, 1))
    for stroke in strokes:
        begin, end = ((np.array(each) - (low + high) / 2) * scale for each in (stroke.begin, stroke.end))
        near = _near(begin, end, 0.5 + stroke.width / 2)
        distance = _distance(x[near] - _SIDE / 2, _SIDE / 2 - y[near], begin, end)
        share = np.clip(0.5 + stroke.width / 2 - distance, 0.0, 1.0)[..., None]
        pixels[near] = pixels[near] * (1 - share) + share * np.array(stroke.colour, dtype=float)
        cover[near] += share * (1 - cover[near])
    colours = np.divide(pixels, cover, out=np.zeros_like(pixels), where=cover > 0)
    return _png(np.concatenate([colours, 255.0 * cover], axis=2).round().astype(np.uint8))


def _near(begin: Floats, end: Floats, reach: float) -> tuple[slice, slice]:
    """Return the rows and columns of all pixels that may be nearer to a line than some pixels."""
    low = np.floor(np.minimum(begin, end) - reach).astype(int) + _SIDE // 2
    high = np.ceil(np.maximum(begin, end) + reach).astype(int) + _SIDE // 2
    return slice(max(_SIDE - high[1], 0), max(_SIDE - low[1], 0)), slice(max(low[0], 0), max(high[0], 0))


def _distance(x: Floats, y: Floats, begin: Floats, end: Floats) -> Floats:
    """Return how far each pixel is from a line."""
    along = end - begin
    share = ((x - begin[0]) * along[0] + (y - begin[1]) * along[1]) / max(float(along @ along), 1e-9)
    nearest = np.clip(share, 0.0, 1.0)
    return np.hypot(x - begin[0] - nearest * along[0], y - begin[1] - nearest * along[1])


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Write red, green, blue and opacity, shape (rows, columns, 4), as PNG (ISO/IEC 15948)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


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
