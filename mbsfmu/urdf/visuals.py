"""Visuals of links as shapes of their bodies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from mbsfmu.model.shape import MESHES, AnyShape, BoxShape, CylinderShape, MeshShape, SphereShape
from mbsfmu.modelling import DataError
from mbsfmu.urdf.masses import as_tuple
from mbsfmu.urdf.robot import Frame, UrdfLink, colour_of, frame_of
from mbsfmu.urdf.xml_element import UrdfElement

_LOGGER = logging.getLogger(__name__)
_PACKAGE = "package://"


def shapes_of(link: UrdfLink, frame: Frame, colours: Mapping[str, str], path: Path) -> Iterator[AnyShape]:
    """Yield the shapes of a link in the frame of its body; what cannot be drawn is reported in the log.

    Parameters
    ----------
    link
        The link.
    frame
        Frame of the link.
    colours
        Colours of the robot's materials by name.
    path
        The file; paths of meshes are relative to its folder.
    """
    for visual in link.visuals:
        try:
            yield _shape(visual, frame, colours, path.parent)
        except DataError as error:
            _LOGGER.warning("%s: a visual is not drawn, which changes no result: %s", path, error)


def _shape(visual: UrdfElement, frame: Frame, colours: Mapping[str, str], folder: Path) -> AnyShape:
    """Return the shape of a visual.

    Raises
    ------
    DataError
        When it cannot be drawn.
    """
    geometry = next(visual.required("geometry").children(), None)
    if geometry is None:
        raise visual.refused("has an empty <geometry>")
    made = _GEOMETRIES.get(geometry.tag)
    if made is None:
        raise geometry.refused(f"is none of {', '.join(_GEOMETRIES)}")
    placed, material = frame.of(frame_of(visual)), visual.child("material")
    colour = None if material is None else colour_of(material) or colours.get(material.element.get("name", ""))
    place = {
        "position": as_tuple(placed.position),
        "orientation": as_tuple(Rotation.from_matrix(placed.rotation).as_rotvec()),
        "colour": colour,
    }
    try:
        return made(geometry, folder, place)
    except DataError as error:
        raise error if str(error).startswith("line ") else geometry.refused(f"is refused: {error}") from None


def _box(geometry: UrdfElement, _: Path, place: Mapping[str, Any]) -> BoxShape:
    return BoxShape(size=as_tuple(geometry.vector("size", 3)), **place)


def _sphere(geometry: UrdfElement, _: Path, place: Mapping[str, Any]) -> SphereShape:
    return SphereShape(radius=geometry.number("radius"), **place)


def _cylinder(geometry: UrdfElement, _: Path, place: Mapping[str, Any]) -> CylinderShape:
    return CylinderShape(radius=geometry.number("radius"), length=geometry.number("length"), **place)


def _mesh(geometry: UrdfElement, folder: Path, place: Mapping[str, Any]) -> MeshShape:
    name, scale = geometry.text("filename"), geometry.element.get("scale", "1").split()
    factors = geometry.vector("scale", 3, (1.0, 1.0, 1.0)) if len(scale) != 1 else geometry.number("scale", 1.0)
    file = _found(name, folder)
    if file is None or file.suffix.lower() not in MESHES:
        why = "which is not there" if file is None else f"which is not {' or '.join(MESHES)}"
        raise geometry.refused(f"names {name}, {why}")
    if not np.all(factors > 0.0):
        raise geometry.refused(f"has scale='{' '.join(scale)}', which mirrors it; all factors must be positive")
    return MeshShape(file=str(file), scale=as_tuple(factors * np.ones(3)), **place)


_GEOMETRIES: dict[str, Callable[[UrdfElement, Path, Mapping[str, Any]], AnyShape]] = {
    "box": _box, "sphere": _sphere, "cylinder": _cylinder, "mesh": _mesh,
}  # fmt: skip


def _found(name: str, folder: Path) -> Path | None:
    """Return the file of a mesh; a package name refers to a parent folder of that name."""
    if not name.startswith(_PACKAGE):
        file = folder / name.removeprefix("file://")
        return file if file.is_file() else None
    inside = Path(name.removeprefix(_PACKAGE))
    beside = Path(*inside.parts[1:])
    places = (place / end for place in (folder, *folder.parents) for end in (inside, beside))
    return next((file for file in places if file.is_file()), None)
