"""Moving machines as binary glTF 2.0 files, with shapes as triangles."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.view.scene.poses import Floats, point_path

_AROUND = 32
"""Corners of a circle."""
_ARC = 9
"""Corners of a quarter of it in capsules and spheres."""
_COILS, _PER_COIL, _AROUND_WIRE, _WIRE = 9, 16, 6, 0.16
"""Coils of a spring, corners of each and around the wire, and radius of the wire by that of the spring."""


class Triangles(NamedTuple):
    """Triangles in m.

    Attributes
    ----------
    corners
        Shape (n, 3).
    normals
        Of the corners, shape (n, 3); None where triangles are flat, three corners each.
    indices
        Of the corners of each triangle, counterclockwise from outside, shape (k, 3); None as for normals.
    """

    corners: Floats
    normals: Floats | None = None
    indices: Floats | None = None


def tessellated(shape: Mapping[str, Any]) -> Triangles:
    """Return the triangles of a shape in its own frame; a rod lies along y about its middle."""
    match shape["kind"]:
        case "box":
            across, deep, thick = shape["size"]
            corners = [(x * across / 2, y * deep / 2) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            return extruded(corners, thick)
        case "plate":
            return extruded(shape["outline"], shape["thickness"])
        case "sphere":
            return capsule(shape["radius"], 0.0)
        case "rod":
            return capsule(shape["radius"], float(np.linalg.norm(np.subtract(shape["end"], shape["start"]))))
        case "cylinder":
            return turned_to_z(cylinder(shape["radius"], shape["length"]))
        case _:
            return Triangles(np.frombuffer(base64.b64decode(shape["triangles"]), "<f4").reshape(-1, 3).astype(float))


def extruded(outline: Sequence[Sequence[float]], thickness: float) -> Triangles:
    """Return a plate with an outline in the x-y plane, about its middle."""
    corners = np.array(outline, dtype=float)
    if _area(corners) < 0.0:
        corners = corners[::-1]
    low, high = (np.column_stack([corners, np.full(len(corners), z)]) for z in (-thickness / 2, thickness / 2))
    faces = [face for ear in _ears(corners) for face in (high[ear], low[ear[::-1]])]
    for here in range(len(corners)):
        behind = (here + 1) % len(corners)
        faces += [
            np.stack([low[here], low[behind], high[behind]]),
            np.stack([low[here], high[behind], high[here]]),
        ]
    return Triangles(np.concatenate(faces))


def _area(corners: Floats) -> float:
    """Return the area of a polygon, negative if clockwise."""
    x, y = corners.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def _ears(corners: Floats) -> list[list[int]]:
    """Return triangles of a counterclockwise polygon, by cutting ears [Meisters, Amer. Math. Monthly 82, 1975]."""
    left, found = list(range(len(corners))), []
    while len(left) > 3:
        for place in range(len(left)):
            ear = [left[place - 1], left[place], left[(place + 1) % len(left)]]
            others = corners[[each for each in left if each not in ear]]
            if _area(corners[ear]) > 0.0 and not _any_inside(corners[ear], others):
                break
        else:  # an outline that crosses itself has no ears everywhere
            place, ear = 0, [left[-1], left[0], left[1]]
        found.append(ear)
        left.pop(place)
    return [*found, left]


def _any_inside(triangle: Floats, points: Floats) -> bool:
    """Return whether one of some points lies in a counterclockwise triangle or on its edge."""
    edges = np.roll(triangle, -1, axis=0) - triangle
    away = points[:, None] - triangle
    return bool(np.any(np.all(edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0] >= 0.0, axis=1)))


def capsule(radius: float, length: float) -> Triangles:
    """Return a rod along y with round ends, between whose centres lies a length; a sphere without one."""
    angles = np.linspace(0.0, np.pi / 2, _ARC)
    upper = np.column_stack([np.cos(angles), np.sin(angles)])
    normals = np.concatenate([upper[::-1] * (1.0, -1.0), upper])
    shift = np.repeat([-length / 2, length / 2], _ARC)
    return revolved(radius * normals + np.column_stack([np.zeros(2 * _ARC), shift]), normals)


def cylinder(radius: float, length: float) -> Triangles:
    """Return a cylinder along y about its middle."""
    half = length / 2
    profile = [(0.0, -half), (radius, -half), (radius, -half), (radius, half), (radius, half), (0.0, half)]
    normals = [(0.0, -1.0), (0.0, -1.0), (1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]
    return revolved(np.array(profile), np.array(normals))


def revolved(profile: Floats, normals: Floats) -> Triangles:
    """Return the surface of a profile of radius and height, from below upwards, that turns about y."""
    angles = np.linspace(0.0, 2 * np.pi, _AROUND + 1)
    directions = np.stack([np.cos(angles), np.zeros_like(angles), -np.sin(angles)], axis=1)

    def around(values: Floats) -> Floats:
        return values[None, :, :1] * directions[:, None] + values[None, :, 1:] * np.array([0.0, 1.0, 0.0])

    return _sheet(around(profile), around(normals))


def coil() -> Triangles:
    """Return a spring along y of length and radius 1, about its middle."""
    turns = np.linspace(0.0, 2 * np.pi * _COILS, _COILS * _PER_COIL + 1)
    around = np.linspace(0.0, 2 * np.pi, _AROUND_WIRE + 1)
    outwards = np.stack([np.cos(turns), np.zeros_like(turns), np.sin(turns)], axis=1)
    normals = np.cos(around)[None, :, None] * outwards[:, None] + np.sin(around)[None, :, None] * np.array(
        [0.0, 1.0, 0.0]
    )
    centres = outwards + np.linspace(-0.5, 0.5, len(turns))[:, None] * np.array([0.0, 1.0, 0.0])
    return _sheet(centres[:, None] + normals * (_WIRE, 0.25 / _COILS, _WIRE), normals)


def _sheet(corners: Floats, normals: Floats) -> Triangles:
    """Return a surface of a grid of corners, shape (n, m, 3); outside is where the second goes left of the first."""
    rows, columns = corners.shape[:2]
    grid = np.arange(rows * columns).reshape(rows, columns)
    here, right, above, beyond = grid[:-1, :-1], grid[1:, :-1], grid[:-1, 1:], grid[1:, 1:]
    faces = np.concatenate([np.stack([here, right, beyond], axis=-1), np.stack([here, beyond, above], axis=-1)])
    return Triangles(corners.reshape(-1, 3), normals.reshape(-1, 3), faces.reshape(-1, 3))


def turned_to_z(surface: Triangles) -> Triangles:
    """Return a surface along y along z instead."""
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    normals = None if surface.normals is None else surface.normals @ turn
    return Triangles(surface.corners @ turn, normals, surface.indices)


MOST_TRIANGLES = 200_000
"""Of a file: a page with more is too large to be handed on."""
_HEADER, _TRIANGLE = 84, 50  # bytes of a binary STL file


def triangles(file: str) -> Floats:
    """Return the corners of the triangles of a file, shape (3 n, 3).

    Raises
    ------
    InputError
        When it cannot be read, or has no triangles or too many; the sentence names it.
    """
    path = Path(file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    try:
        corners = _of_obj(content.decode()) if path.suffix.lower() == ".obj" else _of_stl(content)
    except (ValueError, IndexError) as error:
        raise InputError(f"{file} is not what its name says: {error}") from None
    if not len(corners) or not np.isfinite(corners).all():
        raise InputError(f"{file} has no triangles that can be drawn")
    if len(corners) > 3 * MOST_TRIANGLES:
        raise InputError(f"{file} has {len(corners) // 3} triangles; a page takes {MOST_TRIANGLES} at most of a file")
    return corners


def _of_stl(content: bytes) -> Floats:
    """Read binary or text STL, distinguished by the length stated in binary files."""
    count = int.from_bytes(content[80:84], "little") if len(content) >= _HEADER else -1
    if len(content) == _HEADER + _TRIANGLE * count:
        kind = np.dtype([("numbers", "<f4", 12), ("attribute", "<u2")])
        rows = np.frombuffer(content, kind, count, _HEADER)["numbers"].astype(float)
        return rows[:, 3:].reshape(-1, 3)
    lines = (line.split() for line in content.decode("ascii").splitlines())
    corners = np.array([[float(each) for each in line[1:4]] for line in lines if line[:1] == ["vertex"]])
    if len(corners) % 3:
        raise ValueError("a triangle has not three corners")
    return corners.reshape(-1, 3)


def _of_obj(text: str) -> Floats:
    """Read an OBJ file: faces of more corners are fans of triangles."""
    places: list[list[float]] = []
    corners: list[int] = []
    for line in text.splitlines():
        kind, *words = line.split() or [""]
        if kind == "v":
            places.append([float(each) for each in words[:3]])
        elif kind == "f":
            face = [int(word.partition("/")[0]) for word in words]
            face = [index - 1 if index > 0 else len(places) + index for index in face]
            for second, third in pairwise(face[1:]):
                corners += [face[0], second, third]
    return np.array(places, dtype=float).reshape(-1, 3)[corners]


_FLOAT, _UNSIGNED = 5126, 5125  # component types
_CORNERS, _INDICES = 34962, 34963  # targets of buffer views
_MAGIC, _VERSION, _JSON, _BINARY = 0x46546C67, 2, 0x4E4F534A, 0x004E4942
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}
_STONE, _STEEL, _BARREL, _ROD = "#8a949e", "#5d6d7e", "#7f8c99", "#c8d0d8"
"""Colours of the ground, of springs and lines, and of cylinders."""
_Y = np.array([0.0, 1.0, 0.0])


def glb(payload: Mapping[str, Any]) -> bytes:
    """Return the motion of `motion` as the content of a .glb file.

    Nodes are the bodies, with their shapes as children, what stands on the ground, and forces between two points:
    barrel and rod of cylinders, springs, lines. One animation moves them through the first run, from time 0 on. Lengths
    are in m; the node `machine` turns what is up to y, as glTF has it.
    """
    return _Machine(payload).file()


class _File:
    """A file as it is put together."""

    def __init__(self) -> None:
        self._content = bytearray()
        self.scene: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": f"mbsfmu {version('mbsfmu')}"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [],
            **{kind: [] for kind in ("meshes", "materials", "accessors", "bufferViews", "buffers")},
        }

    def add(self, kind: str, entry: Mapping[str, Any]) -> int:
        """Add an entry, and return its index."""
        self.scene[kind].append(dict(entry))
        return len(self.scene[kind]) - 1

    def accessor(self, values: Floats, *, target: int | None = None, indices: bool = False) -> int:
        """Add numbers, one row each, and return their index."""
        rows = np.ascontiguousarray(values, dtype="<u4" if indices else "<f4").reshape(len(values), -1)
        view = {"buffer": 0, "byteOffset": len(self._content), "byteLength": rows.nbytes}
        self._content += rows.tobytes()
        place = self.add("bufferViews", view if target is None else {**view, "target": target})
        return self.add(
            "accessors",
            {
                "bufferView": place,
                "componentType": _UNSIGNED if indices else _FLOAT,
                "count": len(rows),
                "type": _TYPES[rows.shape[1]],
                "min": rows.min(axis=0).tolist(),
                "max": rows.max(axis=0).tolist(),
            },
        )

    def mesh(self, surface: Triangles, colour: str) -> int:
        """Add triangles of a colour, and return the index of their mesh."""
        primitive: dict[str, Any] = {"attributes": {"POSITION": self.accessor(surface.corners, target=_CORNERS)}}
        if surface.normals is not None:
            primitive["attributes"]["NORMAL"] = self.accessor(surface.normals, target=_CORNERS)
        if surface.indices is not None:
            primitive["indices"] = self.accessor(surface.indices.reshape(-1), target=_INDICES, indices=True)
        primitive["material"] = self._material(colour)
        return self.add("meshes", {"primitives": [primitive]})

    def _material(self, colour: str) -> int:
        for index, each in enumerate(self.scene["materials"]):
            if each["name"] == colour:
                return index
        look = {"baseColorFactor": [*_linear(colour), 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.7}
        return self.add("materials", {"name": colour, "pbrMetallicRoughness": look, "doubleSided": True})

    def content(self) -> bytes:
        """Return the whole file."""
        self.scene["buffers"] = [{"byteLength": len(self._content)}]
        text = json.dumps(self.scene, separators=(",", ":")).encode()
        chunks = b""
        for kind, part, filling in ((_JSON, text, b" "), (_BINARY, bytes(self._content), b"\0")):
            padded = part + filling * (-len(part) % 4)
            chunks += struct.pack("<II", len(padded), kind) + padded
        return struct.pack("<III", _MAGIC, _VERSION, 12 + len(chunks)) + chunks


class _Machine:
    """A machine in motion, put into a file."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self._file, self._payload = _File(), payload
        run = payload["runs"][0]
        span = payload["time"]
        self._reached = run["reached"]
        times = np.linspace(span["start"], span["stop"], span["count"])[: self._reached] - span["start"]
        flat = np.frombuffer(base64.b64decode(run["poses"]), "<f4").astype(float)
        self._poses = flat.reshape(self._reached, len(payload["bodies"]), 7)
        self._samplers: list[dict[str, Any]] = []
        self._channels: list[dict[str, Any]] = []
        machine = self._file.add("nodes", {"name": "machine", "rotation": _turn(np.array(payload["up"]), _Y)})
        self._times = self._file.accessor(times)
        children = [self._body(index, body) for index, body in enumerate(payload["bodies"])]
        if payload["scenery"]:
            children.append(self._file.add("nodes", {"name": "ground"}))
            self._add_shapes(children[-1], payload["scenery"], _STONE)
        children += [node for line in payload["lines"] for node in self._line(line)]
        self._file.scene["nodes"][machine]["children"] = children

    def file(self) -> bytes:
        """Return the file."""
        motion = {"name": self._payload["runs"][0]["label"], "samplers": self._samplers, "channels": self._channels}
        self._file.scene["animations"] = [motion]
        return self._file.content()

    def _body(self, index: int, body: Mapping[str, Any]) -> int:
        node = self._file.add("nodes", {"name": body["name"]})
        self._add_shapes(node, body["shapes"], body["colour"])
        self._move(node, "translation", self._poses[:, index, :3])
        self._move(node, "rotation", self._poses[:, index, 3:])
        return node

    def _add_shapes(self, node: int, shapes: Sequence[Mapping[str, Any]], colour: str) -> None:
        children = []
        for shape in shapes:
            mesh = self._file.mesh(tessellated(shape), shape.get("colour", colour))
            if shape["kind"] == "rod":
                start, end = np.array(shape["start"]), np.array(shape["end"])
                place = {"translation": (0.5 * (start + end)).tolist(), "rotation": _turn(_Y, end - start)}
            else:
                place = {"translation": shape["position"], "rotation": _unit(shape["quaternion"])}
            children.append(self._file.add("nodes", {"mesh": mesh, **place}))
        if children:
            self._file.scene["nodes"][node]["children"] = children

    def _line(self, line: Mapping[str, Any]) -> list[int]:
        """Return the nodes of a force between two points."""
        start, end = (self._path(each) for each in line["ends"])
        lengths = np.linalg.norm(end - start, axis=1)
        turns = np.array([_turn(_Y, gap) for gap in end - start])
        if line["kind"] != "cylinder":
            surface, radius = (
                (coil(), line["radius"]) if line["kind"] == "spring" else (cylinder(1.0, 1.0), 0.25 * line["radius"])
            )
            scales = np.column_stack([np.full_like(lengths, radius), lengths, np.full_like(lengths, radius)])
            node = self._along(line["name"], surface, _STEEL, 0.5 * (start + end), turns)
            self._move(node, "scale", scales)
            return [node]
        sizes = line.get("cylinder", {})
        bore = max(sizes.get("bore", 0.0), line["radius"])
        rod = bore * sizes["rod"] / sizes["bore"] if "rod" in sizes else 0.5 * bore
        barrel = sizes.get("barrel", 0.55 * lengths.max())
        reach = sizes["retracted"] - sizes["dead"] if sizes else 0.5 * barrel
        parts = (
            ("barrel", cylinder(bore, barrel), barrel / 2, start, _BARREL),
            ("rod", capsule(rod, reach), -reach / 2, end, _ROD),
        )
        return [
            self._along(
                f"{line['name']}.{name}", Triangles(surface.corners + middle * _Y, *surface[1:]), colour, places, turns
            )
            for name, surface, middle, places, colour in parts
        ]

    def _along(self, name: str, surface: Triangles, colour: str, places: Floats, turns: Floats) -> int:
        node = self._file.add("nodes", {"name": name, "mesh": self._file.mesh(surface, colour)})
        self._move(node, "translation", places)
        self._move(node, "rotation", turns)
        return node

    def _path(self, end: Mapping[str, Any]) -> Floats:
        """Return where a point is at the frames, shape (k, 3)."""
        return point_path(self._poses, end["body"], np.array(end["position"]))

    def _move(self, node: int, path: str, values: Floats) -> None:
        """Let the animation lead a node, which begins there; quaternions go the short way."""
        if path == "rotation":
            values = values / np.linalg.norm(values, axis=1, keepdims=True)
            flips = np.where(np.sum(values[1:] * values[:-1], axis=1) < 0.0, -1.0, 1.0)
            values = values * np.cumprod(np.concatenate([[1.0], flips]))[:, None]
        self._file.scene["nodes"][node][path] = values[0].tolist()
        sampler = {"input": self._times, "output": self._file.accessor(values), "interpolation": "LINEAR"}
        self._samplers.append(sampler)
        self._channels.append({"sampler": len(self._samplers) - 1, "target": {"node": node, "path": path}})


def _turn(one: Floats, other: Floats) -> list[float]:
    """Return the quaternion (x, y, z, w) of the shortest turn of a direction to another one."""
    first, second = (np.asarray(each, dtype=float) / (np.linalg.norm(each) or 1.0) for each in (one, other))
    cosine = float(first @ second)
    if cosine < -1.0 + 1e-12:  # half a turn about any axis across
        across = np.cross(first, np.eye(3)[np.argmin(np.abs(first))])
        return _unit([*across, 0.0])
    return _unit([*np.cross(first, second), 1.0 + cosine])


def _unit(quaternion: Sequence[float]) -> list[float]:
    values = np.array(quaternion, dtype=float)
    return (values / np.linalg.norm(values)).tolist()


def _linear(colour: str) -> list[float]:
    """Return the linear parts of a colour in sRGB, as `#d9902f` [IEC 61966-2-1]."""
    shares = [int(colour[place : place + 2], 16) / 255.0 for place in (1, 3, 5)]
    return [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
