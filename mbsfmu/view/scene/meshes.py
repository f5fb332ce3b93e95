"""Triangles of STL and OBJ files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.view.scene.recorded import Floats

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
