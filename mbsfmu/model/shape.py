"""Shapes of bodies for animations; no result depends on them."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from mbsfmu.model.reference_types import Positive, Vector
from mbsfmu.modelling import Data, Measured, word

MESHES = (".stl", ".obj")
"""Formats of mesh files."""

Colour = Annotated[str, word("#[0-9a-f]{6}", "a colour is written as #d9902f, in hexadecimal digits")]


class _Shape(Data):
    """A shape.

    Attributes
    ----------
    colour
        As `#d9902f`; that of the body by default.
    """

    colour: Colour | None = None


class _PlacedShape(_Shape):
    """A shape with its own frame.

    Attributes
    ----------
    position
        Where its middle is in the body's frame, in m.
    orientation
        Rotation vector in rad that turns the body's axes into those of the shape.
    """

    position: Annotated[Vector, Measured("m")] = (0.0, 0.0, 0.0)
    orientation: Annotated[Vector, Measured("rad")] = (0.0, 0.0, 0.0)


class BoxShape(_PlacedShape):
    """A box, its edges along the axes of its frame.

    Attributes
    ----------
    size
        Edges along x, y and z in m.
    """

    type: Literal["box"] = "box"
    size: Annotated[tuple[Positive, Positive, Positive], Measured("m")]


class SphereShape(_PlacedShape):
    """A ball.

    Attributes
    ----------
    radius
        In m.
    """

    type: Literal["sphere"] = "sphere"
    radius: Annotated[Positive, Measured("m")]


class CylinderShape(_PlacedShape):
    """A cylinder along the z axis of its frame.

    Attributes
    ----------
    radius, length
        In m.
    """

    type: Literal["cylinder"] = "cylinder"
    radius: Annotated[Positive, Measured("m")]
    length: Annotated[Positive, Measured("m")]


class RodShape(_Shape):
    """A rod with round ends between two points.

    Attributes
    ----------
    start, end
        In the body's frame, in m.
    radius
        In m.
    """

    type: Literal["rod"] = "rod"
    start: Vector
    end: Vector
    radius: Annotated[Positive, Measured("m")]

    @model_validator(mode="after")
    def _has_a_length(self) -> RodShape:
        if self.start == self.end:
            raise ValueError(f"start and end are both {self.start}; they must be two places")
        return self


def _surrounds_an_area(outline: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    points = np.array(outline)
    x, y = (points - points.mean(axis=0)).T
    twice = abs(float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)))
    if not twice > 1e-12 * float(np.ptp(x) ** 2 + np.ptp(y) ** 2):
        raise ValueError("the outline surrounds no area; its corners must not lie on a line")
    return outline


class PlateShape(_PlacedShape):
    """A plate: an outline in the x-y plane of its frame, with a thickness along z, half to either side.

    Attributes
    ----------
    outline
        Corners (x, y) in m, one after the other, three at least.
    thickness
        In m.
    """

    type: Literal["plate"] = "plate"
    outline: Annotated[tuple[tuple[float, float], ...], Field(min_length=3), AfterValidator(_surrounds_an_area)]
    thickness: Annotated[Positive, Measured("m")]


def _of_triangles(file: str) -> str:
    if PurePath(file).suffix.lower() not in MESHES:
        raise ValueError(f"the file is '{file}'; its name must end in {' or '.join(MESHES)}")
    return file


class MeshShape(_PlacedShape):
    """Triangles of an STL or OBJ file, in the frame of the file.

    The file is read for an animation; a missing one is reported there.

    Attributes
    ----------
    file
        Its path.
    scale
        By which its coordinates are multiplied along x, y and z to be in m, as 1e-3 for mm.
    """

    type: Literal["mesh"] = "mesh"
    file: Annotated[str, AfterValidator(_of_triangles)]
    scale: tuple[Positive, Positive, Positive] = (1.0, 1.0, 1.0)


AnyShape = Annotated[
    BoxShape | SphereShape | CylinderShape | RodShape | PlateShape | MeshShape, Field(discriminator="type")
]


def without_shapes(data: dict[str, Any]) -> dict[str, Any]:
    """Return the plain data of a model without shapes, on which results depend."""
    systems = {
        name: system if "bodies" not in system else _bare(system) for name, system in data.get("systems", {}).items()
    }
    return {**data, "systems": systems}


def _bare(mechanism: dict[str, Any]) -> dict[str, Any]:
    bodies = [{field: value for field, value in body.items() if field != "shapes"} for body in mechanism["bodies"]]
    return {**{field: value for field, value in mechanism.items() if field != "scenery"}, "bodies": bodies}
