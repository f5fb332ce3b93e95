"""Triangles of shapes, for files that know triangles alone."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mbsfmu.view.scene.recorded import Floats

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
