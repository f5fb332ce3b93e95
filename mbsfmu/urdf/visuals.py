"""Visuals of links as shapes of their bodies."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mbsfmu.model.shape import MESHES, AnyShape, BoxShape, CylinderShape, MeshShape, SphereShape
from mbsfmu.urdf.masses import Frame, as_tuple

_LOGGER = logging.getLogger(__name__)
_PACKAGE = "package://"


def shapes_of(link: Any, frame: Frame, materials: Mapping[str, Any], folder: Path) -> Iterator[AnyShape]:
    """Yield the shapes of a link in the frame of its body.

    Parameters
    ----------
    link
        Link from the parser.
    frame
        Frame of the link.
    materials
        Materials of the robot by name.
    folder
        Folder of the file, for relative paths of meshes.
    """
    for visual in link.visuals:
        origin = np.eye(4) if visual.origin is None else np.asarray(visual.origin, dtype=float)
        place: dict[str, Any] = {
            "position": as_tuple(frame.position + frame.rotation @ origin[:3, 3]),
            "orientation": as_tuple(Rotation.from_matrix(frame.rotation @ origin[:3, :3]).as_rotvec()),
            "colour": _colour(visual.material, materials),
        }
        geometry = visual.geometry
        if geometry is None:
            continue
        if geometry.box is not None:
            yield BoxShape(size=as_tuple(geometry.box.size), **place)
        elif geometry.sphere is not None:
            yield SphereShape(radius=float(geometry.sphere.radius), **place)
        elif geometry.cylinder is not None:
            yield CylinderShape(radius=float(geometry.cylinder.radius), length=float(geometry.cylinder.length), **place)
        elif geometry.mesh is not None:
            yield from _mesh(link.name, geometry.mesh, folder, place)


def _mesh(link: str, mesh: Any, folder: Path, place: Mapping[str, Any]) -> Iterator[MeshShape]:
    file = _found(mesh.filename, folder)
    if file is None or file.suffix.lower() not in MESHES:
        why = "is not there" if file is None else f"is not {' or '.join(MESHES)}"
        _LOGGER.warning("the mesh of link '%s' is not taken: %s %s", link, mesh.filename, why)
        return
    scale = np.ones(3) if mesh.scale is None else np.broadcast_to(np.asarray(mesh.scale, dtype=float), 3)
    if not np.all(scale > 0.0):
        _LOGGER.warning("the mesh of link '%s' is not taken: it is mirrored, with the scale %s", link, scale.tolist())
        return
    yield MeshShape(file=str(file), scale=as_tuple(scale), **place)


def _found(name: str, folder: Path) -> Path | None:
    """Return the file of a mesh; a package name refers to a parent folder of that name."""
    if not name.startswith(_PACKAGE):
        file = folder / name.removeprefix("file://")
        return file if file.is_file() else None
    inside = Path(name.removeprefix(_PACKAGE))
    beside = Path(*inside.parts[1:])
    places = (place / end for place in (folder, *folder.parents) for end in (inside, beside))
    return next((file for file in places if file.is_file()), None)


def _colour(material: Any, materials: Mapping[str, Any]) -> str | None:
    if material is not None and material.color is None:
        material = materials.get(material.name)
    if material is None or material.color is None:
        return None
    red, green, blue = (np.clip(np.asarray(material.color.rgba, dtype=float)[:3], 0.0, 1.0) * 255).round().astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"
