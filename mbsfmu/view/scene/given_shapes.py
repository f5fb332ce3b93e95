"""Shapes that bodies were given, as a page takes them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.rotation import rotation_from_vector
from mbsfmu.model.shape import AnyShape, BoxShape, CylinderShape, MeshShape, PlateShape, RodShape, SphereShape
from mbsfmu.view.scene.body_shapes import Shape, box, numbers, placed, rod
from mbsfmu.view.scene.meshes import triangles
from mbsfmu.view.scene.packing import packed


def given_shapes(shapes: Iterable[AnyShape], owner: str) -> tuple[list[Shape], list[str]]:
    """Return shapes, and sentences on those that cannot be drawn.

    Parameters
    ----------
    shapes
        Those of a body or of the ground.
    owner
        Whose they are, for the sentences.
    """
    drawn, notes = [], []
    for shape in shapes:
        try:
            found = _drawn(shape)
        except InputError as error:
            notes.append(f"{owner}: {error}")
            continue
        drawn.append(found if shape.colour is None else {**found, "colour": shape.colour})
    return drawn, notes


def _drawn(shape: AnyShape) -> Shape:
    if isinstance(shape, RodShape):
        return rod(shape.start, shape.end, shape.radius)
    axes = rotation_from_vector(shape.orientation)
    place = placed(shape.position, axes)
    match shape:
        case BoxShape():
            return box(shape.size, shape.position, axes)
        case SphereShape():
            return {"kind": "sphere", "radius": shape.radius, **place}
        case CylinderShape():
            return {"kind": "cylinder", "radius": shape.radius, "length": shape.length, **place}
        case PlateShape():
            outline = [numbers(corner) for corner in shape.outline]
            return {"kind": "plate", "outline": outline, "thickness": shape.thickness, **place}
        case MeshShape():
            return {"kind": "mesh", "triangles": packed(triangles(shape.file) * np.array(shape.scale)), **place}
