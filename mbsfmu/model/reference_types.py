"""Field types for names, and references to points and joints."""

from __future__ import annotations

from enum import Enum
from math import hypot
from typing import Annotated

from pydantic import AfterValidator

from mbsfmu.modelling import Data, Name, NonNegative, OptionalPositive, Positive, word

__all__ = [
    "GROUND",
    "Direction",
    "JointReference",
    "Name",
    "NonNegative",
    "OptionalPositive",
    "PointOrNone",
    "PointReference",
    "Positive",
    "ReferenceKind",
    "Vector",
    "reference_fields",
    "references",
    "split_reference",
]

GROUND = "ground"


class ReferenceKind(Enum):
    """What a field of a part names, as an annotation of its type."""

    POINT = "point"
    JOINT = "joint"


PointReference = Annotated[
    str,
    word(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*", "a point is written as body.point"),
    ReferenceKind.POINT,
]
"""A point of a body or of the ground, as `body.point`."""

PointOrNone = Annotated[PointReference | None, ReferenceKind.POINT]
"""A point as above, or None."""

JointReference = Annotated[
    str,
    word(
        r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*(\.[xyz])?)?",
        "a coordinate of a joint is written as joint, or joint.coordinate where the joint has several",
    ),
    ReferenceKind.JOINT,
]
"""A joint coordinate: the name of a joint with one coordinate, or `joint.coordinate`."""

Vector = tuple[float, float, float]
"""Three components along x, y and z."""


def _direction(vector: Vector) -> Vector:
    if not hypot(*vector) > 1e-100:
        raise ValueError(f"axis is {vector}; it must not be the zero vector")
    return vector


Direction = Annotated[Vector, AfterValidator(_direction)]
"""A nonzero vector of which only the direction counts."""


def reference_fields(part: Data, kind: ReferenceKind) -> dict[str, str]:
    """Return the references of a part by field name, without those that are None."""
    fields = [name for name, field in type(part).model_fields.items() if kind in field.metadata]
    return {name: getattr(part, name) for name in fields if getattr(part, name) is not None}


def references(part: Data, kind: ReferenceKind) -> tuple[str, ...]:
    """Return the references of a part in the order of the fields."""
    return tuple(reference_fields(part, kind).values())


def split_reference(reference: str) -> tuple[str, str]:
    """Split `body.point` into its two names."""
    body, _, point = reference.partition(".")
    return body, point
