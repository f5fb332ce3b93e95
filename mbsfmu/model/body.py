"""Rigid bodies: mass, inertia and named points."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mbsfmu.model.inertia import ROUND_OFF, impossible_in, matrix_of
from mbsfmu.model.reference_types import GROUND, Name, NonNegative, Positive, Vector
from mbsfmu.model.shape import AnyShape
from mbsfmu.modelling import Data, FrozenMap, FrozenMapping, Measured, Role

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
