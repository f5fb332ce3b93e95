"""Rigid bodies: mass, inertia, named points, and shapes for animations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mbsfmu.model.reference_types import GROUND, Name, NonNegative, Positive, Vector
from mbsfmu.modelling import Data, FrozenMap, FrozenMapping, Measured, Role, word

ROUND_OFF = 1e-9
"""Tolerance of the validity conditions, relative to the trace."""
NO_INERTIA = 1e-14
"""Fraction of the trace below which a principal moment counts as zero."""
ALLOWED = "no principal moment may be negative, and each must be at most the sum of the two others"
REGULAR = "in the model it has a moment about each axis, and must keep one"

Tensor = Sequence[float]
"""Jxx, Jyy, Jzz, Jxy, Jxz, Jyz in kg m²: moments, and off-diagonal elements, about the centre of mass."""


def matrix_of(tensor: Tensor) -> NDArray[np.float64]:
    """Return an inertia tensor as a matrix, shape (3, 3)."""
    xx, yy, zz, xy, xz, yz = tensor
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def impossible_in(tensor: Tensor) -> str | None:
    """Return why no body has an inertia tensor, with its principal moments; None for a possible one.

    A body may have no moment about any axis (a point mass), or none about one axis (a thin rod).
    """
    missing = missing_in(tensor, rod=True)
    if missing is None:
        return None
    smallest, middle, largest = np.linalg.eigvalsh(matrix_of(tensor))
    return f"the principal moments are {smallest:.4g}, {middle:.4g}, {largest:.4g} kg m²; {missing}"


def missing_in(tensor: Tensor, *, rod: bool) -> str | None:
    """Return the violated condition of a valid inertia tensor; None for a valid one.

    With the density ρ, the matrix ∫ρ r rᵀ dV = ½ tr(J) I − J has no negative eigenvalue: none of the principal moments
    exceeds the sum of the two others, from which it follows that none is negative.

    Parameters
    ----------
    tensor
        The tensor.
    rod
        Whether principal moments may be zero.
    """
    (xx, yy, zz, xy, xz, yz), trace = tensor, sum(tensor[:3])
    half = 0.5 * trace
    if not trace > 0.0:
        return (None if rod else REGULAR) if not any(tensor) else ALLOWED
    if not _positive_definite((half - xx, half - yy, half - zz, -xy, -xz, -yz), ROUND_OFF * trace):
        return ALLOWED
    return None if rod or _positive_definite(tensor, -NO_INERTIA * trace) else REGULAR


def _positive_definite(matrix: Sequence[float], shift: float) -> bool:
    """Return whether a symmetric matrix, plus a shift of its diagonal, has positive pivots only."""
    xx, yy, zz, xy, xz, yz = matrix
    first = xx + shift
    if not first > 0.0:
        return False
    second = yy + shift - xy / first * xy
    if not second > 0.0:
        return False
    coupled = yz - xy / first * xz
    return zz + shift - xz / first * xz - coupled / second * coupled > 0.0


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


QUANTITY = re.compile(
    "(mass|length|axial_inertia|inertia_[xyz]{2}|displacement|velocity|acceleration|angle|angular_velocity|"
    "angular_acceleration|quaternion|cardan_angle|cardan_rate|cardan_acceleration|absolute|force|moment)"
    "(_1|_2|_start|_integral)*"
)
"""Last part of variable names of a body, and of a joint with the same name."""


class Point(Data):
    """A point of a body, in the body frame.

    Attributes
    ----------
    position
        Coordinates in m.
    along
        Fraction of the body's length that is added along x, so that a point moves with the length.
    """

    position: Annotated[Vector, Role.PARAMETER, Measured("m")] = (0.0, 0.0, 0.0)
    along: Annotated[float, Role.PARAMETER, Measured("1")] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _from_coordinates(cls, data: Any) -> Any:
        """Accept three coordinates as a point, as (x, y, z)."""
        return {"position": data} if isinstance(data, (tuple, list)) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of a point, or of three coordinates."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        described = ("default", "description")
        coordinates = {key: each for key, each in schema["properties"]["position"].items() if key not in described}
        return {"anyOf": [schema, coordinates]}


def along(share: float) -> Point:
    """Return the point at a fraction of the body's length, on its x axis."""
    return Point(along=share)


class Body(Data, ABC):
    """Base class of rigid bodies.

    Attributes
    ----------
    name
        Name of the body.
    points
        Points by name, in addition to those of its class.
    shapes
        Shapes for animations; by default from its points and inertia. No result depends on them.
    """

    name: Name
    points: FrozenMap[Name, Point] = {}
    shapes: Annotated[tuple[AnyShape, ...], Role.PICTURE] = ()

    built_in_points: ClassVar[Mapping[str, Point]] = FrozenMapping()

    @model_validator(mode="after")
    def _names_are_free(self) -> Body:
        if self.name == GROUND:
            raise ValueError(f"the name '{GROUND}' stands for the fixed frame and cannot be a body's")
        for name in self.points:
            if name == "centre" or name in self.built_in_points:
                raise ValueError(f"the point '{name}' exists already on every {type(self).__name__}")
            if QUANTITY.fullmatch(name):
                raise ValueError(f"a point is called '{name}', as a variable of bodies and joints is; rename it")
        return self

    @property
    def all_points(self) -> dict[str, Point]:
        """All points by name, including the built-in ones."""
        return {**self.built_in_points, **self.points}

    @property
    @abstractmethod
    def centre_of_mass(self) -> Point:
        """The centre of mass."""


class RigidBody(Body):
    """A body given by its mass, its centre of mass and its inertia.

    Attributes
    ----------
    mass
        Mass in kg; zero for a body that only transmits loads between joints.
    inertia
        Moments of inertia (Jxx, Jyy, Jzz) about the centre of mass, in the body's axes, in kg m²; zeros of a
        point mass.
    products_of_inertia
        Products of inertia (Jxy, Jxz, Jyz): the off-diagonal elements of the tensor, in kg m².
    centre
        The centre of mass.
    length
        Length in m that points given by `along` refer to.
    """

    type: Literal["rigid"] = "rigid"
    mass: Annotated[NonNegative, Role.PARAMETER, Measured("kg")]
    inertia: Annotated[tuple[NonNegative, NonNegative, NonNegative], Role.PARAMETER, Measured("kg.m2")]
    products_of_inertia: Annotated[Vector, Role.PARAMETER, Measured("kg.m2")] = (0.0, 0.0, 0.0)
    centre: Point = Point()
    length: Annotated[Positive | None, Role.PARAMETER, Measured("m")] = None

    built_in_points: ClassVar[Mapping[str, Point]] = FrozenMapping({"origin": Point()})

    @model_validator(mode="after")
    def _physical(self) -> RigidBody:
        self._check_inertia()
        if self.length is None and (self.centre.along or any(point.along for point in self.points.values())):
            raise ValueError("a point is given by its share of the length, but the body has no length")
        return self

    def _check_inertia(self) -> None:
        given = f"inertia is {self.inertia} and products_of_inertia is {self.products_of_inertia}"
        if why := impossible_in((*self.inertia, *self.products_of_inertia)):
            raise ValueError(f"{given}: {why}")
        if not self.mass and any(self.inertia):
            raise ValueError(f"mass is 0, but {given}; a body without mass has no inertia")

    @property
    def inertia_tensor(self) -> NDArray[np.float64]:
        """Inertia tensor about the centre of mass in the body's axes in kg m², shape (3, 3)."""
        return matrix_of((*self.inertia, *self.products_of_inertia))

    @property
    def all_points(self) -> dict[str, Point]:
        """All points by name, including the origin and the centre of mass."""
        return {**super().all_points, "centre": self.centre}

    @property
    def centre_of_mass(self) -> Point:
        """The centre of mass."""
        return self.centre


class Beam(Body):
    """A slender beam along the x axis of its frame, from the origin; inertia m L²/12 about y and z.

    Attributes
    ----------
    length
        Length L in m.
    mass
        Mass m in kg.
    axial_inertia
        Moment of inertia about the beam's axis in kg m², at most m L²/6, as for all bodies; zero is sufficient if the
        beam cannot spin freely.
    """

    type: Literal["beam"] = "beam"
    mass: Annotated[Positive, Role.PARAMETER, Measured("kg")]
    length: Annotated[Positive, Role.PARAMETER, Measured("m")]
    axial_inertia: Annotated[NonNegative, Role.PARAMETER, Measured("kg.m2")] = 0.0

    built_in_points: ClassVar[Mapping[str, Point]] = FrozenMapping(
        {"start": Point(), "centre": along(0.5), "end": along(1.0)}
    )

    @model_validator(mode="after")
    def _physical(self) -> Beam:
        most = self.mass * self.length**2 / 6.0
        if self.axial_inertia > most * (1 + ROUND_OFF):
            raise ValueError(
                f"axial_inertia is {self.axial_inertia}; with that about its other axes, it must be at most "
                f"mass length²/6, {most:.4g} kg m²"
            )
        return self

    @property
    def centre_of_mass(self) -> Point:
        """The centre of mass, at mid-length."""
        return self.built_in_points["centre"]


class Cuboid(Body):
    """A cube with its frame at the centre; inertia m L²/6 about each axis.

    Attributes
    ----------
    length
        Edge length L in m.
    mass
        Mass m in kg.
    """

    type: Literal["cuboid"] = "cuboid"
    mass: Annotated[Positive, Role.PARAMETER, Measured("kg")]
    length: Annotated[Positive, Role.PARAMETER, Measured("m")]

    built_in_points: ClassVar[Mapping[str, Point]] = FrozenMapping({"centre": Point()})

    @property
    def centre_of_mass(self) -> Point:
        """The centre of mass, the origin of the frame."""
        return self.built_in_points["centre"]


AnyBody = Annotated[RigidBody | Beam | Cuboid, Field(discriminator="type")]
