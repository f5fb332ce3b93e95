"""Names of things and references to points."""

from __future__ import annotations

from math import hypot
from typing import Annotated

from pydantic import AfterValidator, Field

from mbsfmu.data import Name, word

__all__ = ["GROUND", "Direction", "Name", "NonNegative", "PointReference", "Positive", "Vector", "split_reference"]

GROUND = "ground"

PointReference = Annotated[
    str, word(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*", "a point is written as body.point")
]
"""A point of a body or of the ground, as `body.point`."""

Vector = tuple[float, float, float]
"""Three components along x, y and z."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


def _direction(vector: Vector) -> Vector:
    if not hypot(*vector) > 1e-100:
        raise ValueError(f"axis is {vector}; it must not be the zero vector")
    return vector


Direction = Annotated[Vector, AfterValidator(_direction)]
"""A vector of any length but zero; only its direction counts."""


def split_reference(reference: str) -> tuple[str, str]:
    """Split `body.point` into its two names."""
    body, _, point = reference.partition(".")
    return body, point
